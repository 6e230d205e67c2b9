"""The whole of a diagnosis, as `--full` prints it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.report.model.build import FIX_OF_MISREAD
from stabtree.report.model.build import report as report_of
from stabtree.report.model.events import by_group, followers
from stabtree.report.model.restart import restart_line
from stabtree.report.model.run_facts import first_step, ranks
from stabtree.report.model.words import accepted_notes, because, first_ids, state_counts, step_prefix
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import new_page
from stabtree.report.screen.onset import plots, rows_around
from stabtree.report.screen.path import FURTHER
from stabtree.report.trees.reference import reference_to
from stabtree.report.verdicts import BADGES, CAUSE_SIGNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis, Happening, Incident
    from stabtree.report.model.report import CauseRow, Open, Report, Turn, Walk
    from stabtree.report.page import Page
    from stabtree.run import Run
    from stabtree.tree.model import Tree

MAX_EVIDENCE = 4
MIN_ID = 6
MAX_CAUSES = 3
MAX_EVENTS = 6
MAX_OPEN = 3  # things to log, and reasons that no log would change
MAX_DECIDED = 2
SERIES = ("loss", "eval_loss", "reward", "grad_norm", "lr", "loss_scale", "batch_id")


def full(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return all of it: verdict, path, plots, the rows around the onset, causes, fixes, and what was not checked."""
    page, report = new_page(options), report_of(diagnosis)
    _verdict(page, report)
    _path(page, report)
    finding = report.finding
    if options.plots and not options.ascii:
        plots(page, diagnosis, finding)
    rows_around(page, diagnosis, finding)
    if finding:
        _timeline(page, diagnosis.timeline)
        _causes(page, report.causes)
        _fixes(page, diagnosis.tree, finding)
    _list(page, "NaN monitor", report.monitor, "")
    _others(page, report.also)
    _trees(page, diagnosis)
    _not_checked(page, report.open)
    _list(page, "Your answers", diagnosis.answer_notes, "dim")
    _list(page, "Notes on the log", report.log_notes, "dim")
    return page.text()


def _list(page: Page, head: str, texts: Sequence[str], style: str) -> None:
    if texts:
        page.heading(head)
    for text in texts:
        page.item(("·", "dim"), [(text, style)], indent=1, head_width=2)


def _verdict(page: Page, report: Report) -> None:
    diagnosis, finding = report.diagnosis, report.finding
    page.line((f" {BADGES[report.badge].word} ", report.badge), ("  ", ""), (report.title, "heading"))
    page.line((_summary(diagnosis.run), "dim"), indent=1)
    if report.misread:
        page.blank()
        text = report.careful + report.misread
        if report.verdict == UNKNOWN:  # then the title names what was misread
            text = FIX_OF_MISREAD
        page.line((text, ""), indent=1)
    if finding:
        page.blank()
        page.line((report.why, ""), indent=1)
    for text in (report.earlier, report.plainly, *accepted_notes(diagnosis)):
        if text:
            page.line((text, ""), indent=1)
    if report.also_seen:
        page.line((report.also_seen, "dim"), indent=1)
    if finding and finding.restart:
        page.line(*restart_line(finding.restart), indent=1)


def _summary(run: Run) -> str:
    first = first_step(run)
    steps = "no steps"
    if first is not None:
        steps = f"{run.unit}s {first:,} to {run.last_step:,}"
    series = [name for name in SERIES if run.get(name)]
    series += sorted({f"{name.split('/')[0]}/*" for name in run.series if "/" in name})
    settings = filter(None, (str(run.setting("dtype") or ""), ranks(run)))
    return " · ".join([run.name, steps, *settings, ", ".join(series)])


def _path(page: Page, report: Report) -> None:
    page.heading("Path")
    turns = list(chain.from_iterable(walk.turns for walk in report.walks))
    ids = max([MIN_ID, *(len(turn.id) + 2 for turn in turns)])
    widths = ids, max([0, *(len(turn.answer) for turn in turns)]) + 2
    first, *others = report.walks
    _walk(page, report, first, widths)
    for walk in others:
        # The worst finding was made by a later section: the headline rests on its turns.
        page.line((FURTHER, "dim"), indent=1)
        _walk(page, report, walk, widths)


def _walk(page: Page, report: Report, walk: Walk, widths: tuple[int, int]) -> None:
    section = ""
    for turn, *others in walk.groups:
        if others:
            ids = ", ".join([turn.id, *(other.id for other in others)])
            text = f"{len(others) + 1} questions for a person ({ids}): --interactive asks them"
            page.rows([((turn.id, "id"), ("not asked", "dim"), (text, "dim"))], indent=3, widths=widths)
            continue
        if turn.section != section:
            section = turn.section
            page.line((report.diagnosis.tree.section(section).heading, "dim"), indent=1)
        _turn(page, turn, widths)
    page.line(("└─▶ ", "dim"), (walk.ends, "heading"), (f"  {walk.node} · {walk.leaf}", "dim"), indent=3)


def _turn(page: Page, turn: Turn, widths: tuple[int, int]) -> None:
    texts = [*turn.evidence[:MAX_EVIDENCE]]
    if len(turn.evidence) > MAX_EVIDENCE:
        texts.append(f"and {len(turn.evidence) - MAX_EVIDENCE} more; --json lists all")
    style = "answer" if turn.checked else "dim"
    head = ((turn.id, "id"), (turn.answer, style), (turn.ask + turn.source, ""))
    page.rows([head, *((("", ""), ("", ""), (text, "dim")) for text in texts)], indent=3, widths=widths)


def _timeline(page: Page, events: Sequence[Happening]) -> None:
    """Add what happened, a line for each group of series; nothing where the headline reports all of it."""
    groups = by_group(events)
    if len(groups) < 2:
        return
    page.heading("What happened, in order")
    width = max(len(f"{event.step:,}") for event in events) + 7
    for earliest, *others in groups[:MAX_EVENTS]:
        text = [(f"{earliest.sentence}{followers(len(others))}", "")]
        if earliest.first:
            text.append(("  ◀ first", "first"))
        step = f"{earliest.unit} {earliest.step:,}"
        page.item((step, "id"), text, indent=1, head_width=width)


def _causes(page: Page, rows: tuple[CauseRow, ...]) -> None:
    if not rows:
        return
    page.heading("Causes, by evidence")
    for row in rows[:MAX_CAUSES]:
        text = [(row.judged.cause.text, "dim" if row.silent else "")]
        if row.why:
            text.append((f": {row.why}", "dim"))
        page.item((f"{CAUSE_SIGNS[row.state]} {row.state}", row.state), text, indent=1, head_width=17)
    if rows[MAX_CAUSES:]:
        page.line((f"and {state_counts(rows[MAX_CAUSES:], ' more')}; --json lists all", "dim"), indent=1)


def _fixes(page: Page, tree: Tree, finding: Incident) -> None:
    page.heading("Fix")
    fixes = finding.first_fixes
    for number, (fix, reason) in enumerate(zip(fixes, because(fixes), strict=True), 1):
        page.item((f"{number}.", "number"), [(fix.text, "")], indent=1, head_width=3)
        if reason:
            page.line((reason, "dim"), indent=4)
    others = len(finding.fixes) - len(fixes)
    if others:
        page.line((f"and {others:,} more: stabtree explain {finding.leaf.id}", "dim"), indent=4)
    for link in finding.leaf.see:
        page.line(("see ", "dim"), page.link(reference_to(tree, link), link), indent=4)


def _others(page: Page, others: tuple[Incident, ...]) -> None:
    if others:
        page.heading("Also found")
    for finding in others:
        severity = finding.leaf.severity
        title = (f"{step_prefix(finding)}{finding.leaf.title}", "")
        ids = (f"  {finding.leaf.of} · {finding.leaf.id}", "dim")
        page.item((f" {BADGES[severity].word} ", severity), [title, ids], indent=1, head_width=11)
        for item in finding.evidence[:2]:
            page.line((item.text, "dim"), indent=12)


def _trees(page: Page, diagnosis: Diagnosis) -> None:
    """Add which trees were walked, and which were not and why; nothing where there is only one."""
    others = diagnosis.trees[1:]
    if not others:
        return
    page.heading("Trees")
    walked = [diagnosis.trees[0].name, *(f"{tree.name} ({tree.why})" for tree in others if tree.walked)]
    page.item(("walked", "dim"), [("; ".join(walked), "dim")], indent=1, head_width=12)
    passed = [f"{tree.name} ({tree.why})" for tree in others if not tree.walked]
    if passed:
        page.item(("not walked", "dim"), [("; ".join(passed), "dim")], indent=1, head_width=12)


def _not_checked(page: Page, items: Sequence[Open]) -> None:
    """Add the first things to log, and the first reasons why nothing to log would answer the rest."""
    if not items:
        return
    page.heading("Not checked, and what to log next time")
    logs = reasons = 0
    decided: set[str] = set()
    for item in items:
        if item.how and logs < MAX_OPEN:
            logs += 1
            _to_log(page, logs, item, decided)
            decided |= set(item.decides)
        elif not item.how and reasons < MAX_OPEN:
            reasons += 1
            page.item(("·", "id"), [(f"{first_ids(item.unlocks)}: {item.text}", "dim")], indent=1, head_width=3)
    rest = len(items) - logs - reasons
    if rest:
        page.line((f"and {rest} more; --json lists all", "dim"), indent=4)


def _to_log(page: Page, number: int, item: Open, decided: set[str]) -> None:
    names, colon, how = item.how.partition(": ")  # names with their groups, where they have any
    if not colon or not names.startswith(item.text):
        names, how = item.text, item.how
    text = f"{names} → {first_ids(item.unlocks)}"
    page.item((f"{number}.", "number"), [(text, ""), (f": {how}", "dim")], indent=1, head_width=3)
    decides = [text for text in item.decides if text not in decided][:MAX_DECIDED]
    if decides:
        page.line((f"decides {'; '.join(decides)}", "dim"), indent=4)
