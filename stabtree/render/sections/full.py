"""The whole of a diagnosis, as `--full` prints it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.diagnosis.result import SILENT
from stabtree.render.look import LOOK, Look
from stabtree.render.page import new_page
from stabtree.render.report.build import MEND, report
from stabtree.render.report.restart import restart_line
from stabtree.render.report.words import known, step_of
from stabtree.render.sections.causes import MARKS
from stabtree.render.sections.figures import plots
from stabtree.render.sections.monitor import sentences
from stabtree.render.sections.not_checked import not_checked
from stabtree.render.sections.path import turn_groups
from stabtree.render.sections.rows import rows_around
from stabtree.render.trees.reference import reference_to
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis, Finding, Happening
    from stabtree.render.page import Page
    from stabtree.render.plot import Piece
    from stabtree.render.report.model import CauseRow, Report, Turn, Walk
    from stabtree.run import Run
    from stabtree.tree.model import Tree

MOST_EVIDENCE = 4
LEAST_ID = 6
MOST_CAUSES = 3
MOST_EVENTS = 6


def full(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """All of it: verdict, path, plots, the rows around the onset, causes, fixes, and what was not checked."""
    page, told = new_page(look), report(diagnosis)
    _verdict(page, told)
    _path(page, told)
    main = told.finding
    if look.plots and not look.ascii:
        plots(page, diagnosis, main)
    rows_around(page, diagnosis, main)
    if main:
        _timeline(page, diagnosis.timeline)
        _causes(page, told.causes)
        _fixes(page, diagnosis.tree, main)
    _monitor(page, diagnosis)
    _others(page, told.also)
    _trees(page, diagnosis)
    not_checked(page, told)
    _notes(page, diagnosis)
    return page.text()


def _verdict(page: Page, told: Report) -> None:
    diagnosis, finding = told.diagnosis, told.finding
    pieces: list[Piece] = [
        (f" {LOOKS[told.badge].word} ", told.badge),
        ("  ", ""),
        (told.title, "heading"),
    ]
    page.line(*pieces)
    page.line((_summary(diagnosis.run), "dim"), indent=1)
    if diagnosis.misread:
        page.blank()
        careful = "" if diagnosis.verdict == UNKNOWN else f"Careful: {diagnosis.misread}. "
        page.line((careful + MEND, ""), indent=1)
    if finding:
        page.blank()
        page.line((told.why, ""), indent=1)
    if told.earlier:
        page.line((told.earlier, ""), indent=1)
    if told.plainly:
        page.line((told.plainly, ""), indent=1)
    for text in known(diagnosis):
        page.line((text, ""), indent=1)
    if told.seen_as:
        page.line((f"Also seen as: {', '.join(told.seen_as)}.", "dim"), indent=1)
    if finding and finding.restart:
        page.line(*restart_line(finding.restart), indent=1)


def _summary(run: Run) -> str:
    logged = [loss] if (loss := run.get("loss")) is not None else list(run.series.values())
    first = min((int(series.steps[0]) for series in logged if len(series)), default=None)
    steps = "no steps" if first is None else f"{run.unit}s {first:,} to {run.last_step:,}"
    shown = ("loss", "eval_loss", "reward", "grad_norm", "lr", "loss_scale", "batch_id")
    known = [name for name in shown if run.get(name)]
    known += sorted({f"{name.split('/')[0]}/*" for name in run.series if "/" in name})
    dtype = run.setting("dtype")
    parts = [run.name, steps, *([str(dtype)] if dtype else []), *([f"{len(run.ranks)} ranks"] if run.ranks else [])]
    return " · ".join([*parts, ", ".join(known)])


def _path(page: Page, told: Report) -> None:
    page.heading("Path")
    turns = [turn for walk in told.walks for turn in walk.turns]
    widths = max([LEAST_ID, *(len(turn.id) + 2 for turn in turns)]), max([0, *(len(turn.answer) for turn in turns)]) + 2
    for place, walk in enumerate(told.walks):
        if place:
            # The worst finding was made by a later section: its turns are what the headline rests on.
            page.line(("and further, past the first diagnosis:", "dim"), indent=1)
        _walk(page, told, walk, widths)


def _walk(page: Page, told: Report, walk: Walk, widths: tuple[int, int]) -> None:
    section = ""
    for turn, *others in turn_groups(told, walk):
        if others:
            ids = ", ".join([turn.id, *(other.id for other in others)])
            text = f"{len(others) + 1} questions for a person ({ids}): --interactive asks them"
            page.rows([((turn.id, "id"), ("not asked", "dim"), (text, "dim"))], indent=3, widths=widths)
            continue
        if turn.section != section:
            section = turn.section
            page.line((told.diagnosis.tree.section(section).heading, "dim"), indent=1)
        _turn(page, turn, widths)
    page.line(("└─▶ ", "dim"), (walk.ends, "heading"), (f"  {walk.node} · {walk.leaf}", "dim"), indent=3)


def _turn(page: Page, turn: Turn, widths: tuple[int, int]) -> None:
    by = " (answered by a person)" if turn.by_person else ""
    told = [*turn.evidence[:MOST_EVIDENCE]]
    if len(turn.evidence) > MOST_EVIDENCE:
        told.append(f"and {len(turn.evidence) - MOST_EVIDENCE} more; --json lists all")
    page.rows(
        [
            ((turn.id, "id"), (turn.answer, "answer" if turn.checked else "dim"), (turn.ask + by, "")),
            *((("", ""), ("", ""), (text, "dim")) for text in told),
        ],
        indent=3,
        widths=widths,
    )


def _timeline(page: Page, events: Sequence[Happening]) -> None:
    """What happened, a line for all series of a group that did as much; nothing where only the trouble itself did."""
    groups: dict[str, list[Happening]] = {}
    for event in events:
        groups.setdefault(event.metric.partition("/")[0], []).append(event)
    if len(groups) < 2:
        return
    page.heading("What happened, in order")
    width = max(len(f"{event.step:,}") for event in events) + 6
    for earliest, *others in list(groups.values())[:MOST_EVENTS]:
        more = f" and {len(others)} more after it" if others else ""
        mark = [("  ◀ first", "first")] if earliest.first else []
        page.item(
            (f"{earliest.unit} {earliest.step:,}", "id"),
            [(f"{earliest.sentence}{more}", ""), *mark],
            indent=1,
            head_width=width + 1,
        )


def _causes(page: Page, rows: tuple[CauseRow, ...]) -> None:
    if not rows:
        return
    page.heading("Causes, by evidence")
    for row in rows[:MOST_CAUSES]:
        state, why = row.judged.state, [(f": {row.why}", "dim")] if row.why else []
        page.item(
            (f"{MARKS[state]} {state}", state),
            [(row.judged.cause.text, "dim" if state in SILENT else ""), *why],
            indent=1,
            head_width=17,
        )
    rest = Counter(str(row.judged.state) for row in rows[MOST_CAUSES:])
    if rest:
        told = ", ".join(f"{count} more {state}" for state, count in rest.items())
        page.line((f"and {told}; --json lists all", "dim"), indent=1)


def _fixes(page: Page, tree: Tree, finding: Finding) -> None:
    page.heading("Fix")
    told = ""
    for place, fix in enumerate(finding.first_fixes, 1):
        page.item((f"{place}.", "number"), [(fix.text, "")], indent=1, head_width=3)
        if fix.reason and fix.reason != told:
            page.line((f"because {fix.reason}", "dim"), indent=4)
        told = fix.reason
    if others := len(finding.fixes) - len(finding.first_fixes):
        page.line((f"and {others:,} more: stabtree explain {finding.leaf.id}", "dim"), indent=4)
    for link in finding.leaf.see:
        page.line(("see ", "dim"), page.link(reference_to(tree, link), link), indent=4)


def _monitor(page: Page, diagnosis: Diagnosis) -> None:
    if diagnosis.monitor is None:
        return
    page.heading("NaN monitor")
    for sentence in sentences(diagnosis.monitor, diagnosis.run.unit):
        page.item(("·", "dim"), [(sentence, "")], indent=1, head_width=2)


def _others(page: Page, others: tuple[Finding, ...]) -> None:
    if not others:
        return
    page.heading("Also found")
    for finding in others:
        page.item(
            (f" {LOOKS[finding.leaf.severity].word} ", finding.leaf.severity),
            [(f"{step_of(finding)}{finding.leaf.title}", ""), (f"  {finding.leaf.of} · {finding.leaf.id}", "dim")],
            indent=1,
            head_width=11,
        )
        for item in finding.evidence[:2]:
            page.line((item.text, "dim"), indent=12)


def _trees(page: Page, diagnosis: Diagnosis) -> None:
    """Which trees were walked, and which were not and why; where the first one is alone there is nothing to tell."""
    asked = diagnosis.trees[1:]
    if not asked:
        return
    page.heading("Trees")
    for head, walked in (("walked", True), ("not walked", False)):
        told = [f"{tree.name} ({tree.why})" for tree in asked if tree.walked is walked]
        first = [diagnosis.trees[0].name] if walked else []
        if first or told:
            page.item((head, "dim"), [("; ".join([*first, *told]), "dim")], indent=1, head_width=12)


def _notes(page: Page, diagnosis: Diagnosis) -> None:
    for head, notes in (("Your answers", diagnosis.said), ("Notes on the log", diagnosis.run.notes)):
        if notes:
            _list(page, head, notes)


def _list(page: Page, head: str, notes: tuple[str, ...]) -> None:
    page.heading(head)
    for note in notes:
        page.item(("·", "dim"), [(note, "dim")], indent=1, head_width=2)
