"""The whole of a diagnosis, as `--full` prints it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.report.model.build import FIX_OF_MISREAD
from stabtree.report.model.build import report as report_of
from stabtree.report.model.events import by_group, followers
from stabtree.report.model.run_facts import first_step, ranks
from stabtree.report.model.words import accepted_notes, because, step_prefix
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import new_page
from stabtree.report.screen.act import do_now
from stabtree.report.screen.onset import plots, rows_around
from stabtree.report.screen.path import FURTHER
from stabtree.report.trees.reference import reference_to
from stabtree.report.verdicts import BADGES, CAUSE_SIGNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.judged import Happening
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.report.model.report import CauseRow, Open, Report, Turn, Walk
    from stabtree.report.page import Page
    from stabtree.run import Run
    from stabtree.tree.model import Tree

MIN_ID = 6
ALL_LINES = 99
SERIES = ("loss", "eval_loss", "reward", "grad_norm", "lr", "loss_scale", "batch_id")


def full(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return all of it: verdict, path, plots, the rows around the onset, causes, fixes, and what was not checked."""
    page, report = new_page(options), report_of(diagnosis)
    _verdict(page, report)
    _do_now(page, report)
    _path(page, report)
    finding = report.finding
    if options.plots and not options.ascii:
        plots(page, diagnosis, finding)
    rows_around(page, diagnosis, finding)
    if finding:
        _timeline(page, report.events)
        _causes(page, report.causes)
        _fixes(page, diagnosis.tree, finding)
    _list(page, "NaN monitor", report.monitor, "")
    _others(page, report.also)
    _trees(page, diagnosis)
    _not_checked(page, report.open)
    _list(page, "Your answers", diagnosis.answer_notes, "dim")
    _list(page, "Unexplained", report.unexplained, "")
    _list(page, "Notes on the log", report.log_notes[len(report.unexplained) :], "dim")
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
    style = "answer" if turn.checked else "dim"
    head = ((turn.id, "id"), (turn.answer, style), (turn.ask + turn.source, ""))
    page.rows([head, *((("", ""), ("", ""), (text, "dim")) for text in turn.evidence)], indent=3, widths=widths)


def _do_now(page: Page, report: Report) -> None:
    """Add what to do now, each action with its reason."""
    if not report.do_now:
        return
    page.blank()
    do_now(page, report, lines=ALL_LINES)


def _timeline(page: Page, events: Sequence[Happening]) -> None:
    """Add what happened, a line for each group of series; nothing where the headline reports all of it."""
    groups = by_group(events)
    if len(groups) < 2:
        return
    page.heading("What happened, in order")
    width = max(len(f"{event.step:,}") for event in events) + 7
    for earliest, *others in groups:
        text = [(f"{earliest.sentence}{followers(len(others))}", "")]
        if earliest.first:
            text.append(("  ◀ first", "first"))
        step = f"{earliest.unit} {earliest.step:,}"
        page.item((step, "id"), text, indent=1, head_width=width)


def _causes(page: Page, rows: tuple[CauseRow, ...]) -> None:
    """Add all causes with all that was seen of them, those that were ruled out too."""
    if not rows:
        return
    page.heading("Causes, by evidence")
    for row in rows:
        seen = [item.text for item in row.judged.evidence] or [row.why]
        text = [(row.judged.cause.text, "dim" if row.silent else "")]
        if any(seen):
            text.append((f": {'; '.join(seen)}", "dim"))
        page.item((f"{CAUSE_SIGNS[row.state]} {row.state}", row.state), text, indent=1, head_width=17)


def _fixes(page: Page, tree: Tree, finding: Incident) -> None:
    page.heading("All fixes, in the order in which to try them")
    for number, (fix, reason) in enumerate(zip(finding.advice, because(finding.advice), strict=True), 1):
        page.item((f"{number}.", "number"), [(fix.text, "")], indent=1, head_width=4)
        if reason:
            page.line((reason, "dim"), indent=5)
    for link in finding.leaf.see:
        page.line(("see ", "dim"), page.link(reference_to(tree, link), link), indent=5)


def _others(page: Page, others: tuple[Incident, ...]) -> None:
    if others:
        page.heading("Also found")
    for finding in others:
        severity = finding.leaf.severity
        title = (f"{step_prefix(finding)}{finding.leaf.title}", "")
        ids = (f"  {finding.leaf.of} · {finding.leaf.id}", "dim")
        page.item((f" {BADGES[severity].word} ", severity), [title, ids], indent=1, head_width=11)
        for item in finding.evidence:
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
    """Add what to log, and why nothing to log would answer the rest."""
    if not items:
        return
    page.heading("Not checked, and what to log next time")
    decided: set[str] = set()
    logs = 0
    for item in items:
        if item.how:
            logs += 1
            _to_log(page, logs, item, decided)
            decided |= set(item.decides)
        else:
            page.item(("·", "id"), [(f"{', '.join(item.unlocks)}: {item.text}", "dim")], indent=1, head_width=4)


def _to_log(page: Page, number: int, item: Open, decided: set[str]) -> None:
    names, colon, how = item.how.partition(": ")  # names with their groups, where they have any
    if not colon or not names.startswith(item.text):
        names, how = item.text, item.how
    text = f"{names} → {', '.join(item.unlocks)}"
    page.item((f"{number}.", "number"), [(text, ""), (f": {how}", "dim")], indent=1, head_width=4)
    decides = [text for text in item.decides if text not in decided]
    if decides:
        page.line((f"decides {'; '.join(decides)}", "dim"), indent=5)
