"""The whole of a diagnosis, as `--full` prints it."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.report.advice import add_actions
from stabtree.report.explain import reference_to
from stabtree.report.model import FIX_OF_MISREAD, Report
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import new_page
from stabtree.report.plot import chosen_series, columns_for, figure, strips
from stabtree.report.rows import steps_around, value_at
from stabtree.report.verdicts import BADGES, CAUSE_SIGNS
from stabtree.report.words import FURTHER, accepted_notes, because, first_step, in_order, ranks, step_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.report.model import Walk
    from stabtree.report.page import Page
    from stabtree.run import Run

MIN_ID = 6
ALL_LINES = 99
COLUMN = 14  # at the least; a longer name takes its own room
ROWS_AROUND = 2
MAX_PLOT = 100  # columns
SERIES = ("loss", "eval_loss", "reward", "grad_norm", "lr", "loss_scale", "batch_id")


def full(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return all of it: verdict, path, plot, the rows around the onset, causes, fixes, and what was not checked."""
    page, report = new_page(options), Report(diagnosis)
    finding = report.finding
    _verdict(page, report)
    if report.do_now:
        page.blank()
        add_actions(page, report.do_now, ALL_LINES)
    _path(page, report)
    if options.plots and (drawn := figure(diagnosis, finding, columns_for(min(options.width, MAX_PLOT)))):
        page.blank()
        page.lines(strips(drawn, min(options.width, MAX_PLOT) - 2, ascii=options.ascii), indent=1)
    if finding:
        _rows_around(page, diagnosis, finding)
        _timeline(page, report)
        _causes(page, report)
        _fixes(page, diagnosis, finding)
    _list(page, "NaN monitor", report.monitor, "")
    _others(page, report.also)
    _trees(page, diagnosis)
    _not_checked(page, report)
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
    page.line((f" {BADGES[report.badge].word} ", report.badge), ("  ", ""), (report.title, "heading"))
    page.line((_summary(report.diagnosis.run), "dim"), indent=1)
    if report.misread:
        page.blank()
        # Where the run was not judged the title names what was misread.
        text = FIX_OF_MISREAD if report.verdict == UNKNOWN else report.careful + report.misread
        page.line((text, ""), indent=1)
    if report.finding:
        page.blank()
        page.line((report.why, ""), indent=1)
    for text in filter(None, (report.earlier, report.plainly, *accepted_notes(report.diagnosis))):
        page.line((text, ""), indent=1)
    if report.also_seen:
        page.line((report.also_seen, "dim"), indent=1)


def _summary(run: Run) -> str:
    first = first_step(run)
    steps = "no steps" if first is None else f"{run.unit}s {first:,} to {run.last_step:,}"
    series = [name for name in SERIES if run.get(name)]
    series += sorted({f"{name.split('/')[0]}/*" for name in run.series if "/" in name})
    settings = filter(None, (str(run.setting("dtype") or ""), ranks(run)))
    return " · ".join([run.name, steps, *settings, ", ".join(series)])


def _path(page: Page, report: Report) -> None:
    page.heading("Path")
    turns = [turn for walk in report.walks for turn in walk.turns]
    ids = max([MIN_ID, *(len(turn.id) + 2 for turn in turns)])
    widths = ids, max([0, *(len(turn.answer) for turn in turns)]) + 2
    for walk in report.walks:
        if walk is not report.walks[0]:
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
        head = (turn.id, "id"), (turn.answer, "answer" if turn.checked else "dim"), (turn.ask + turn.source, "")
        page.rows([head, *((("", ""), ("", ""), (text, "dim")) for text in turn.evidence)], indent=3, widths=widths)
    page.line(("└─▶ ", "dim"), (walk.ends, "heading"), (f"  {walk.node} · {walk.leaf}", "dim"), indent=3)


def _rows_around(page: Page, diagnosis: Diagnosis, finding: Incident) -> None:
    """Add the rows around the onset of a finding and those that show it: the steps, and the series of its figure."""
    chosen, onset = chosen_series(diagnosis, finding), finding.onset_step
    if onset is None or not chosen:
        return
    page.heading("The rows around it")
    widths = [max(COLUMN, len(page.plain(series.metric)) + 2) for series in chosen]
    columns = [
        (series, width)
        for series, width, end in zip(chosen, widths, accumulate(widths), strict=True)
        if end < page.width - COLUMN
    ]
    heads = [(f"{series.metric:>{width}}", "dim") for series, width in columns]
    page.lines([[(f"{diagnosis.run.unit:>{COLUMN}}", "dim"), *heads]], indent=1)
    around = steps_around(chosen[0], onset, ROWS_AROUND, ROWS_AROUND).tolist()
    for step in sorted({*around, *(row.step for row in finding.rows)}):
        style = "number" if step == onset else ""
        cells = [(f"{value_at(series, step, '–'):>{width}}", style) for series, width in columns]
        page.lines([[(f"{step:>{COLUMN},}", style), *cells]], indent=1)


def _timeline(page: Page, report: Report) -> None:
    """Add what happened, a line for each group of series; nothing where the headline reports all of it."""
    events = in_order(report.events)
    if not events:
        return
    page.heading("What happened, in order")
    width = max(len(f"{event.step:,}") for event in report.events) + 7
    for event, text in events:
        pieces = [(text, ""), *([("  ◀ first", "first")] if event.first else [])]
        page.item((f"{event.unit} {event.step:,}", "id"), pieces, indent=1, head_width=width)


def _causes(page: Page, report: Report) -> None:
    """Add all causes with all that was seen of them, those that were ruled out too."""
    if report.causes:
        page.heading("Causes, by evidence")
    for row in report.causes:
        seen = [item.text for item in row.judged.evidence] or [row.why]
        text = [(row.judged.cause.text, "dim" if row.silent else "")]
        if any(seen):
            text.append((f": {'; '.join(seen)}", "dim"))
        page.item((f"{CAUSE_SIGNS[row.state]} {row.state}", row.state), text, indent=1, head_width=17)


def _fixes(page: Page, diagnosis: Diagnosis, finding: Incident) -> None:
    page.heading("All fixes, in the order in which to try them")
    for place, (fix, reason) in enumerate(zip(finding.advice, because(finding.advice), strict=True), 1):
        page.item((f"{place}.", "number"), [(fix.text, "")], indent=1, head_width=4)
        if reason:
            page.line((reason, "dim"), indent=5)
    for link in finding.leaf.see:
        page.line(("see ", "dim"), page.link(reference_to(diagnosis.tree, link), link), indent=5)


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
    first, *others = diagnosis.trees
    if not others:
        return
    page.heading("Trees")
    passed = [f"{tree.name} ({tree.why})" for tree in others if not tree.walked]
    walked = [first.name, *(f"{tree.name} ({tree.why})" for tree in others if tree.walked)]
    for head, names in (("walked", walked), ("not walked", passed)):
        if names:
            page.item((head, "dim"), [("; ".join(names), "dim")], indent=1, head_width=12)


def _not_checked(page: Page, report: Report) -> None:
    """Add what to log, and why nothing to log would answer the rest."""
    if report.open:
        page.heading("Not checked, and what to log next time")
    decided: set[str] = set()
    logs = 0
    for item in report.open:
        unlocks = ", ".join(item.unlocks)
        if not item.how:
            page.item(("·", "id"), [(f"{unlocks}: {item.text}", "dim")], indent=1, head_width=4)
            continue
        logs += 1
        names, colon, how = item.how.partition(": ")  # names with their groups, where they have any
        if not colon or not names.startswith(item.text):
            names, how = item.text, item.how
        page.item((f"{logs}.", "number"), [(f"{names} → {unlocks}", ""), (f": {how}", "dim")], indent=1, head_width=4)
        decides = [text for text in item.decides if text not in decided]
        if decides:
            page.line((f"decides {'; '.join(decides)}", "dim"), indent=5)
        decided |= set(item.decides)
