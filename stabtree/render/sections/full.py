"""The whole of a diagnosis, as `--full` prints it."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from stabtree.answer import UNKNOWN
from stabtree.diagnosis.result import SILENT, CauseState, Diagnosis, Finding, Happening, JudgedCause, Visit
from stabtree.render.look import LOOK, Look
from stabtree.render.page import new_page
from stabtree.render.report.build import MEND, seen_as
from stabtree.render.report.words import answer_of, main_finding, step_of, title, unasked
from stabtree.render.sections.figures import plots
from stabtree.render.sections.monitor import sentences
from stabtree.render.sections.not_checked import not_checked
from stabtree.render.sections.restart import restart_line
from stabtree.render.sections.rows import rows_around
from stabtree.render.trees.reference import reference_to
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Leaf, Severity

if TYPE_CHECKING:
    from stabtree.render.page import Page
    from stabtree.render.plot import Piece
    from stabtree.run import Run
    from stabtree.tree.model import Tree

MARKS = {
    CauseState.CONFIRMED: "●",
    CauseState.LIKELY: "◐",
    CauseState.POSSIBLE: "○",
    CauseState.NOT_CONFIRMED: "·",
    CauseState.NOT_CHECKABLE: "?",
    CauseState.RULED_OUT: "–",
}
MOST_EVIDENCE = 4
LEAST_ID = 6
MOST_CAUSES = 3
MOST_EVENTS = 6


def full(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """All of it: verdict, path, plots, the rows around the onset, causes, fixes, and what was not checked."""
    page = new_page(look)
    _verdict(page, diagnosis)
    _path(page, diagnosis)
    main = main_finding(diagnosis)
    if look.plots and not look.ascii:
        plots(page, diagnosis.run, main)
    rows_around(page, diagnosis, main)
    if main:
        _timeline(page, diagnosis.timeline)
        _causes(page, main)
        _fixes(page, diagnosis.tree, main)
    _monitor(page, diagnosis)
    _others(page, diagnosis)
    _trees(page, diagnosis)
    not_checked(page, diagnosis)
    _notes(page, diagnosis)
    return page.text()


def _verdict(page: Page, diagnosis: Diagnosis) -> None:
    finding = main_finding(diagnosis)
    pieces: list[Piece] = [
        (f" {LOOKS[diagnosis.verdict].word} ", diagnosis.verdict),
        ("  ", ""),
        (step_of(finding), "number"),
        (title(diagnosis), "heading"),
    ]
    page.line(*pieces)
    page.line((_summary(diagnosis.run), "dim"), indent=1)
    if diagnosis.misread:
        page.blank()
        careful = "" if diagnosis.verdict == UNKNOWN else f"Careful: {diagnosis.misread}. "
        page.line((careful + MEND, ""), indent=1)
    if finding:
        page.blank()
        page.line((finding.leaf.why, ""), indent=1)
    if finding and (also := ", ".join(seen_as(finding))):
        page.line((f"Also seen as: {also}.", "dim"), indent=1)
    if finding and finding.restart:
        page.line(*restart_line(finding.restart), indent=1)


def _summary(run: Run) -> str:
    logged = [loss] if (loss := run.get("loss")) is not None else list(run.series.values())
    first = min((int(series.steps[0]) for series in logged if len(series)), default=None)
    steps = "no steps" if first is None else f"steps {first:,} to {run.last_step:,}"
    shown = ("loss", "eval_loss", "reward", "grad_norm", "lr", "loss_scale", "batch_id")
    known = [name for name in shown if run.get(name)]
    known += sorted({f"{name.split('/')[0]}/*" for name in run.series if "/" in name})
    dtype = run.setting("dtype")
    parts = [run.name, steps, *([str(dtype)] if dtype else []), *([f"{len(run.ranks)} ranks"] if run.ranks else [])]
    return " · ".join([*parts, ", ".join(known)])


def _path(page: Page, diagnosis: Diagnosis) -> None:
    page.heading("Path")
    _visits(page, diagnosis, diagnosis.path, diagnosis.end)
    main = main_finding(diagnosis)
    if main and main.leaf is not diagnosis.end:
        # The worst finding was made by a later section: its turns are what the headline rests on.
        walks = [v for v in diagnosis.further if v and v[-1].question.section == main.section]
        # A walk from a person's answer shares its section with another one.
        walk = next((v for v in walks if main.leaf.id in v[-1].question.go.values()), walks[0])
        page.line(("and further, past the first diagnosis:", "dim"), indent=1)
        _visits(page, diagnosis, walk, main.leaf)


def _visits(page: Page, diagnosis: Diagnosis, visits: tuple[Visit, ...], end: Leaf) -> None:
    section = ""
    widths = (
        max([LEAST_ID, *(len(visit.question.id) + 2 for visit in visits)]),
        max(len(answer_of(visit)) for visit in visits) + 2,
    )
    for open_, group in groupby(visits, key=unasked):
        chain = list(group)
        for visit in chain if not open_ or len(chain) == 1 else ():
            if visit.question.section != section:
                section = visit.question.section
                page.line((diagnosis.tree.section(section).heading, "dim"), indent=1)
            _visit(page, visit, widths)
        if open_ and len(chain) > 1:
            ids = ", ".join(visit.question.id for visit in chain)
            told = f"{len(chain)} questions for a person ({ids}): --interactive asks them"
            page.rows([((chain[0].question.id, "id"), ("not asked", "dim"), (told, "dim"))], indent=3, widths=widths)
    title = end.title
    blind = any(visit.question.id in end.needs and visit.answer.verdict == UNKNOWN for visit in visits)
    if end.severity is Severity.OK and (diagnosis.verdict == UNKNOWN or blind):
        title = "nothing wrong in the little that could be checked"
    elif end.severity is Severity.OK and diagnosis.findings and diagnosis.findings[0].leaf.severity.rank > 1:
        title = f"nothing wrong on this path; found on another one: {diagnosis.findings[0].leaf.title}"
    page.line(("└─▶ ", "dim"), (title, "heading"), (f"  {end.of} · {end.id}", "dim"), indent=3)


def _visit(page: Page, visit: Visit, widths: tuple[int, int]) -> None:
    answer = visit.answer
    checked = answer.verdict != UNKNOWN
    by = " (answered by a person)" if visit.given_by == "person" else ""
    told = [item.text for item in answer.evidence[:MOST_EVIDENCE]] if checked else [answer.reason]
    if len(answer.evidence) > MOST_EVIDENCE:
        told.append(f"and {len(answer.evidence) - MOST_EVIDENCE} more; --json lists all")
    page.rows(
        [
            (
                (visit.question.id, "id"),
                (answer_of(visit), "answer" if checked else "dim"),
                (visit.question.ask + by, ""),
            ),
            *((("", ""), ("", ""), (text, "dim")) for text in told),
        ],
        indent=3,
        widths=widths,
    )


def _timeline(page: Page, events: tuple[Happening, ...]) -> None:
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
        mark = [("  first", "number")] if earliest.first else []
        page.item(
            (f"step {earliest.step:,}", "id"),
            [(f"{earliest.sentence}{more}", ""), *mark],
            indent=1,
            head_width=width + 1,
        )


def _causes(page: Page, finding: Finding) -> None:
    if not finding.causes:
        return
    page.heading("Causes, by evidence")
    for judged in finding.causes[:MOST_CAUSES]:
        page.item(
            (f"{MARKS[judged.state]} {judged.state}", judged.state),
            [(judged.cause.text, "dim" if judged.state in SILENT else ""), *_why(judged)],
            indent=1,
            head_width=17,
        )
    rest = Counter(str(judged.state) for judged in finding.causes[MOST_CAUSES:])
    if rest:
        told = ", ".join(f"{count} {state}" for state, count in rest.items())
        page.line((f"and {sum(rest.values())} more: {told}; --json lists all", "dim"), indent=1)


def _why(judged: JudgedCause) -> list[Piece]:
    text = judged.evidence[0].text if judged.evidence else judged.reason
    return [(f": {text}", "dim")] if text else []


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
    for sentence in sentences(diagnosis.monitor):
        page.item(("·", "dim"), [(sentence, "")], indent=1, head_width=2)


def _others(page: Page, diagnosis: Diagnosis) -> None:
    # Under a real failure a mere note ("the loss has settled") is noise; --json has it.
    others = [
        f
        for f in diagnosis.findings[1:]
        if f.leaf.severity.rank >= Severity.WARNING.rank or diagnosis.verdict == Severity.NOTE
    ]
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
