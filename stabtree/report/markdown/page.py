"""A report for a pull request or an issue: what it takes to act, the rest folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.markdown.text import escape, folded, listed, paged, table
from stabtree.report.model.build import report as report_of
from stabtree.report.model.words import accepted_notes, because, step_prefix
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.verdicts import BADGES, TICK_SIGNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.diagnosis.judged import Happening
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.report.model.report import Action, CauseRow, Open, Report, Walk
    from stabtree.report.verdicts import Tick


def markdown(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the report as GitHub and GitLab show it."""
    report = report_of(diagnosis, exit_code=options.exit_code)
    return paged(
        f"### {BADGES[report.badge].word}: {escape(report.title)}",
        escape(report.facts),
        *beside_the_title(report),
        quoted(report),
        escape(report.meaning),
        escape(report.also_seen),
        _part(*_why_not(diagnosis)),
        _part("Do now", listed(actions(report.do_now), "1.")),
        _part("Causes", causes(report.shown_causes)),
        _part("Log next", escape(report.log_next)),
        _part("Also found", listed(map(other, report.also))),
        " · ".join(_section(report, id_, tick) for id_, tick in report.ticks),
        *_folded(report),
        " · ".join(filter(None, [f"**{escape(report.closing)}**", _about(report)])),
    )


def _section(report: Report, id_: str, tick: Tick) -> str:
    return f"§{escape(id_)} {TICK_SIGNS[tick]} {escape(report.diagnosis.tree.section(id_).title)}"


def beside_the_title(report: Report) -> list[str]:
    """Return what came before the finding, what to be careful about, and what is accepted."""
    return [
        escape(report.earlier),
        f"**Careful:** {escape(report.misread)}" if report.misread else "",
        listed(map(escape, accepted_notes(report.diagnosis))),
    ]


def quoted(report: Report) -> str:
    """Return the rows of the log that show it; empty where none do."""
    if report.quoted is None:
        return ""
    found = report.quoted
    rows = [[f"{line.step:,}", *line.cells, escape(line.note)] for line in found.lines]
    return table((found.unit, *map(escape, found.metrics), ""), rows)


def actions(items: Sequence[Action]) -> Iterator[str]:
    """Yield what to do in order, each with its reason; below a question what may come out of it."""
    for item, reason in zip(items, because(items), strict=True):
        if reason:
            yield f"{_action(item)}<br>{escape(reason)}"
        else:
            yield _action(item)


def _action(item: Action) -> str:
    if item.branches:
        branches = [f"{escape(answer)} → {escape(do)}" for answer, do in item.branches]
        return "<br>".join([f"**{escape(item.text)}**", *branches])
    before, strong, after = item.parts()
    if not strong:
        return escape(before)
    # What was escaped at its end loses the blank that the next words need.
    gap, next_gap = " " * before.endswith(" "), " " * after.startswith(" ")
    return f"{escape(before)}{gap}**{escape(strong)}**{next_gap}{escape(after)}"


def event(item: Happening) -> str:
    """Return one thing that happened, and whether it was the first."""
    text = f"{item.unit} {item.step:,}: {escape(item.sentence)}"
    if item.first:
        return f"{text} (**first**)"
    return text


def causes(rows: Sequence[CauseRow]) -> str:
    """Return the causes beside their fixes; empty where there are none."""
    if not rows:
        return ""
    cells = [(row.word, row.judged.cause.text, row.why, " ".join(row.fixes)) for row in rows]
    return table(("state", "cause", "what the log says", "what fixes it"), [[*map(escape, row)] for row in cells])


def walk(item: Walk) -> str:
    """Return the questions of a walk with what decided each, and where it ended."""
    rows = [
        (escape(turn.id), escape(turn.ask), escape(turn.answer + turn.source), "<br>".join(map(escape, turn.evidence)))
        for turn in item.turns
    ]
    questions = table(("", "question", "answer", "what decided it"), rows)
    return f"{questions}\n\n→ {escape(item.ends)} ({escape(item.leaf)})"


def other(finding: Incident) -> str:
    """Return a further finding in a line."""
    severity = BADGES[finding.leaf.severity].word.lower()
    text = f"{severity}: {step_prefix(finding)}{finding.leaf.title} ({finding.leaf.id})"
    if finding.evidence:
        text += f": {finding.evidence[0].text}"
    return escape(text)


def unchecked(item: Open) -> str:
    """Return something that was not checked, and how to have it checked next time."""
    text = f"{item.text} → {', '.join(item.unlocks)}"
    if item.how:
        text += f"; {item.how}"
    if item.decides:
        text += f"; decides {'; '.join(item.decides)}"
    return escape(text)


def _why_not(diagnosis: Diagnosis) -> tuple[str, str]:
    """Return what led away from the node of `--why-not`."""
    if diagnosis.why_not is None:
        return "", ""
    heading, rows = diagnosis.why_not.described(diagnosis)
    items = [escape(f"{head}: {text}" if head else text) for head, text in rows]
    return escape(heading), listed(items)


def _about(report: Report) -> str:
    if report.finding and report.finding.leaf.page:
        return f"[about this failure]({report.finding.leaf.page})"
    return ""


def _part(head: str, inner: str) -> str:
    if inner:
        return f"**{head}**\n\n{inner}"
    return ""


def _folded(report: Report) -> Iterator[str]:
    """Yield what is not needed to act."""
    fixes: tuple[str, ...] = ()
    if report.finding:
        fixes = report.finding.fixes
    notes = (*report.diagnosis.answer_notes, *report.log_notes)
    turns = sum(len(item.turns) for item in report.walks)
    rest = [row for row in report.causes if row not in report.shown_causes]
    parts = (
        (f"The path: {turns} questions", "\n\n".join(map(walk, report.walks))),
        ("What happened, in order", listed(map(event, report.events))),
        (f"Further causes: {len(rest)}", causes(rest)),
        (f"All fixes: {len(fixes)}", listed(map(escape, fixes), "1.")),
        ("What the NaN monitor would have done", listed(map(escape, report.monitor))),
        (f"Not checked, and what to log next time: {len(report.open)}", listed(map(unchecked, report.open))),
        (f"Notes on the log: {len(notes)}", listed(map(escape, notes))),
    )
    yield from (folded(head, inner) for head, inner in parts if inner)
