"""A diagnosis as a terminal screen."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from stabtree.answer import UNKNOWN
from stabtree.diagnosis.result import CauseState, Diagnosis, Finding, Happening, JudgedCause, Restart, Visit
from stabtree.render.figures import plots
from stabtree.render.monitor import sentences
from stabtree.render.page import Page
from stabtree.render.reference import reference_to
from stabtree.render.verdicts import LOOKS
from stabtree.text import clean
from stabtree.tree.model import Leaf, Severity

if TYPE_CHECKING:
    from stabtree.render.plot import Piece
    from stabtree.run import Run
    from stabtree.tree.model import Tree

MARKS = {
    CauseState.CONFIRMED: "●",
    CauseState.LIKELY: "◐",
    CauseState.POSSIBLE: "○",
    CauseState.NOT_CHECKABLE: "?",
    CauseState.RULED_OUT: "–",
}
MOST_EVIDENCE = 4
MOST_EVENTS = 6
TOO_LITTLE = "Too little was logged to judge this run"
MEND = "`stabtree inspect` shows which; write the log again with plain numbers in these places, and diagnose that."


def screen(diagnosis: Diagnosis, *, width: int = 100, color: bool = False) -> str:
    """The whole diagnosis for a terminal: verdict, path, plots, causes, fixes, restart, and what was not checked."""
    page = Page(width=width, color=color)
    _verdict(page, diagnosis)
    _path(page, diagnosis)
    main = main_finding(diagnosis)
    plots(page, diagnosis.run, main)
    if main:
        _timeline(page, diagnosis.timeline)
        _causes(page, main)
        _fixes(page, diagnosis.tree, main)
    _monitor(page, diagnosis)
    _others(page, diagnosis)
    _trees(page, diagnosis)
    _missing(page, diagnosis)
    _notes(page, diagnosis.run)
    return page.text()


def headline(diagnosis: Diagnosis, **_look: object) -> str:
    """The verdict in one line."""
    finding = main_finding(diagnosis)
    place = f" at step {finding.onset_step:,}" if finding and finding.onset_step is not None else ""
    leaf = f" [{finding.leaf.id}]" if finding else ""
    leaf = "; see stabtree inspect" if diagnosis.misread and not finding else leaf
    return clean(f"{LOOKS[diagnosis.verdict].word}  {diagnosis.run.name}: {title(diagnosis)}{place}{leaf}", 400)


def main_finding(diagnosis: Diagnosis) -> Finding | None:
    """The finding that the verdict rests on; none where the run could not be judged."""
    return diagnosis.findings[0] if diagnosis.findings and diagnosis.verdict != UNKNOWN else None


def title(diagnosis: Diagnosis) -> str:
    """What was found, in a few words."""
    if diagnosis.verdict == UNKNOWN:
        return f"The log was misread: {diagnosis.misread}" if diagnosis.misread else _too_little(diagnosis)
    finding = main_finding(diagnosis)
    return finding.leaf.title if finding else diagnosis.end.title


def _too_little(diagnosis: Diagnosis) -> str:
    """What could be judged, and what keeps the run from a verdict."""
    if not diagnosis.partial:
        return TOO_LITTLE
    judged = [f"§{section.id}" for section in diagnosis.answered if section.id[:1].isdigit()]
    entries = {item.section.entry: f"§{item.section.id}" for item in diagnosis.sections}
    first, *others = diagnosis.lacking
    lacks = " and ".join([entries.get(first.id, first.id), *(entries.get(item.id, item.id) for item in others)])
    return f"Nothing wrong in {', '.join(judged) or 'what was asked'}; {lacks} not judged: {first.reason}"


def _verdict(page: Page, diagnosis: Diagnosis) -> None:
    finding = main_finding(diagnosis)
    pieces: list[Piece] = [
        (f" {LOOKS[diagnosis.verdict].word} ", diagnosis.verdict),
        ("  ", ""),
        (title(diagnosis), "heading"),
    ]
    if finding and finding.onset_step is not None:
        pieces += [(" at step ", ""), (f"{finding.onset_step:,}", "number")]
    page.line(*pieces)
    page.line((_summary(diagnosis.run), "dim"), indent=1)
    if diagnosis.misread:
        page.blank()
        careful = "" if diagnosis.verdict == UNKNOWN else f"Careful: {diagnosis.misread}. "
        page.line((careful + MEND, ""), indent=1)
    if finding:
        page.blank()
        page.line((finding.leaf.why, ""), indent=1)
    if finding and finding.restart:
        page.line(("Restart from ", ""), *_restart(finding.restart, finding), indent=1)


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


def _restart(restart: Restart, finding: Finding) -> list[Piece]:
    about = f"checkpoints every {restart.every:,} steps" + (
        " assumed; set --checkpoint-every" if restart.assumed else ""
    )
    if restart.checkpoint_step is None:
        return [
            ("the beginning", "number"),
            (f": no checkpoint is older than the trouble ({about}); the whole run is lost", ""),
        ]
    before = f", before step {finding.onset_step:,}" if finding.onset_step is not None else ""
    return [
        (f"the checkpoint of step {restart.checkpoint_step:,}", "number"),
        (f"{before}; {restart.lost_steps:,} steps are run again ({about}){_fresh(restart)}", ""),
    ]


def _fresh(restart: Restart) -> str:
    if restart.fresh_step is None:
        return ""
    if restart.fresh_step == restart.checkpoint_step:
        return ". It was written right before the loss broke and is the oldest; if it breaks again, start over"
    return (
        f". Not from step {restart.fresh_step:,}: that one was written right before the loss broke, and may hold what "
        "broke it"
    )


def _path(page: Page, diagnosis: Diagnosis) -> None:
    page.heading("Path")
    _visits(page, diagnosis, diagnosis.path, diagnosis.end)
    main = main_finding(diagnosis)
    if main and main.leaf is not diagnosis.end:
        # The worst finding was made by a later section: its turns are what the headline rests on.
        walk = next(v for v in diagnosis.further if v and v[-1].question.section == main.section)
        page.line(("and on, past the first diagnosis:", "dim"), indent=1)
        _visits(page, diagnosis, walk, main.leaf)


def _visits(page: Page, diagnosis: Diagnosis, visits: tuple[Visit, ...], end: Leaf) -> None:
    section = ""
    width = max(len(_verdict_of(visit)) for visit in visits) + 2
    for unasked, group in groupby(visits, key=_unasked):
        chain = list(group)
        for visit in chain if not unasked or len(chain) == 1 else ():
            if visit.question.section != section:
                section = visit.question.section
                page.line((diagnosis.tree.section(section).heading, "dim"), indent=1)
            _visit(page, visit, width)
        if unasked and len(chain) > 1:
            ids = ", ".join(visit.question.id for visit in chain)
            told = f"{len(chain)} questions for a person ({ids}): --interactive asks them"
            page.rows(
                [((chain[0].question.id, "id"), ("not asked", "dim"), (told, "dim"))], indent=3, widths=(6, width)
            )
    title = end.title
    blind = any(visit.question.id in end.needs and visit.answer.verdict == UNKNOWN for visit in visits)
    if end.severity is Severity.OK and (diagnosis.verdict == UNKNOWN or blind):
        title = "nothing wrong in the little that could be checked"
    page.line(("└─▶ ", "dim"), (title, "heading"), (f"  {end.of} · {end.id}", "dim"), indent=3)


def _unasked(visit: Visit) -> bool:
    """Whether it is a question for a person that nobody answered."""
    return not visit.question.test and visit.answer.verdict == UNKNOWN


def _verdict_of(visit: Visit) -> str:
    return visit.answer.verdict.replace("_", " ") if visit.answer.verdict != UNKNOWN else "not checked"


def _visit(page: Page, visit: Visit, width: int) -> None:
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
                (_verdict_of(visit), "answer" if checked else "dim"),
                (visit.question.ask + by, ""),
            ),
            *((("", ""), ("", ""), (text, "dim")) for text in told),
        ],
        indent=3,
        widths=(6, width),
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
            [(f"{earliest.metric} {earliest.text}{more}", ""), *mark],
            indent=1,
            head_width=width + 1,
        )


def _causes(page: Page, finding: Finding) -> None:
    if not finding.causes:
        return
    page.heading("Causes, by evidence")
    for judged in finding.causes:
        page.item(
            (f"{MARKS[judged.state]} {judged.state}", judged.state),
            [(judged.cause.text, "" if judged.state != CauseState.RULED_OUT else "dim"), *_why(judged)],
            indent=1,
            head_width=17,
        )


def _why(judged: JudgedCause) -> list[Piece]:
    text = judged.evidence[0].text if judged.evidence else judged.reason
    return [(f": {text}", "dim")] if text else []


def _fixes(page: Page, tree: Tree, finding: Finding) -> None:
    page.heading("Fix")
    for place, fix in enumerate(finding.fixes, 1):
        page.item((f"{place}.", "number"), [(fix, "")], indent=1, head_width=3)
    for link in finding.leaf.see:
        page.line((f"see {reference_to(tree, link)}", "dim"), indent=4)


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
        place = f" at step {finding.onset_step:,}" if finding.onset_step is not None else ""
        page.item(
            (f" {LOOKS[finding.leaf.severity].word} ", finding.leaf.severity),
            [(f"{finding.leaf.title}{place}", ""), (f"  {finding.leaf.of} · {finding.leaf.id}", "dim")],
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


def _missing(page: Page, diagnosis: Diagnosis) -> None:
    if not diagnosis.missing:
        return
    page.heading("Not checked, and what to log next time")
    reasons: dict[tuple[str, str], list[str]] = {}
    for miss in diagnosis.missing:
        reasons.setdefault((miss.reason, miss.log), []).append(miss.id)
    for (reason, log), ids in reasons.items():
        # What has one reason stands on one line: else a chain of questions for a person would fill the screen.
        alone = len(ids) == 1 and len(ids[0]) < 6
        told = reason if alone else f"{', '.join(ids)}: {reason}"
        page.item(
            (ids[0] if alone else "·", "id"), [(told, ""), (f" → {log}" if log else "", "dim")], indent=1, head_width=6
        )


def _notes(page: Page, run: Run) -> None:
    if not run.notes:
        return
    page.heading("Notes on the log")
    for note in run.notes:
        page.item(("·", "dim"), [(note, "dim")], indent=1, head_width=2)
