"""A report for a pull request or an issue: what it takes to act, the rest folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.look import LOOK, Look
from stabtree.render.markdown.text import escape, folded, listed, paged, table
from stabtree.render.report.build import report
from stabtree.render.report.model import Tick
from stabtree.render.report.words import known, step_of
from stabtree.render.sections.monitor import sentences
from stabtree.render.sections.why_not import COMES, rows
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis, Finding, Happening
    from stabtree.render.report.model import Action, CauseRow, Open, Report, Walk

TICKS = {Tick.PASSED: "✓", Tick.FOUND: "✗", Tick.OPEN: "?", Tick.SKIPPED: "–"}
MOST_CAUSES = 6  # beside what mends them; the rest is folded
MOST_EVENTS = 8


def markdown(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """The report as GitHub and GitLab show it."""
    told = report(diagnosis, exit_code=look.exit_code)
    return paged(
        f"### {LOOKS[told.badge].word}: {escape(told.title)}",
        escape(told.facts),
        escape(told.earlier),
        escape(told.plainly),
        f"**Careful:** {escape(told.careful)}" if told.careful else "",
        listed(map(escape, known(told.diagnosis))),
        escape(told.why),
        f"Also seen as: {escape(', '.join(told.seen_as))}." if told.seen_as else "",
        _part(*_asked_about(diagnosis)),
        _part("Do now", listed(actions(told.do_now), "1.")),
        _part("What happened", listed(map(event, told.events[:MOST_EVENTS]))),
        _part("Causes", causes(told.causes[:MOST_CAUSES])),
        _part("Also found", listed(map(other, told.also))),
        " · ".join(f"§{escape(id_)} {TICKS[tick]}" for id_, tick in told.ticks),
        *_folded(told),
        " · ".join(filter(None, [f"**{escape(told.closing)}**", _about(told)])),
    )


def actions(items: Iterable[Action]) -> Iterator[str]:
    """What to do in order, each with its reason; a reason that holds for several in a row is told once."""
    last = ""
    for item in items:
        because = f"<br>because {escape(item.reason)}" if item.reason not in ("", last) else ""
        yield _action(item) + because
        last = item.reason


def _action(item: Action) -> str:
    head, strong, rest = item.text.partition(item.strong) if item.strong else (item.text, "", "")
    text = escape(head)
    if strong:
        # What was escaped at its end loses the blank that the next words need.
        text = f"{text}{' ' * head.endswith(' ')}**{escape(strong)}**{' ' * rest.startswith(' ')}{escape(rest)}"
    return text


def event(item: Happening) -> str:
    """One thing that happened, and whether it was the first."""
    return f"{item.unit} {item.step:,}: {escape(item.sentence)}{' (**first**)' * item.first}"


def causes(rows: Sequence[CauseRow]) -> str:
    """The causes beside what mends them; nothing where there are none."""
    if not rows:
        return ""
    cells = [(str(row.judged.state), row.judged.cause.text, row.why, " ".join(row.mends)) for row in rows]
    return table(("state", "cause", "what the log says", "what mends it"), [[*map(escape, row)] for row in cells])


def walk(item: Walk) -> str:
    """The questions of a walk with what decided each, and where it ended."""
    rows = [
        (
            escape(turn.id),
            escape(turn.ask),
            escape(f"{turn.answer}{' (answered by a person)' * turn.by_person}"),
            "<br>".join(map(escape, turn.evidence)),
        )
        for turn in item.turns
    ]
    return (
        f"{table(('', 'question', 'answer', 'what decided it'), rows)}\n\n→ {escape(item.ends)} ({escape(item.leaf)})"
    )


def other(finding: Finding) -> str:
    """A further finding in a line."""
    severity = LOOKS[finding.leaf.severity].word.lower()
    seen = f": {finding.evidence[0].text}" if finding.evidence else ""
    return escape(f"{severity}: {step_of(finding)}{finding.leaf.title} ({finding.leaf.id}){seen}")


def unchecked(item: Open) -> str:
    """Something that was not checked, and how to have it checked next time."""
    how = f"; {item.how}" if item.how else ""
    decides = f"; decides {'; '.join(item.decides)}" if item.decides else ""
    return escape(f"{item.text} → {', '.join(item.unlocks)}{how}{decides}")


def _asked_about(diagnosis: Diagnosis) -> tuple[str, str]:
    """What led away from the node of `--why-not`."""
    told = diagnosis.why_not
    if told is None:
        return "", ""
    items = [escape(f"{head}: {text}" if head else text) for head, text in rows(diagnosis, told)]
    return f"{escape(told.node)}: {COMES[told.came]}", listed(items)


def _about(told: Report) -> str:
    page = told.finding.leaf.page if told.finding else ""
    return f"[about this failure]({page})" if page else ""


def _part(head: str, inner: str) -> str:
    return f"**{head}**\n\n{inner}" if inner else ""


def _folded(told: Report) -> Iterator[str]:
    """What is not needed to act."""
    fixes = told.finding.fixes if told.finding else ()
    notes = (*told.diagnosis.said, *told.diagnosis.run.notes)
    monitor = sentences(told.diagnosis.monitor, told.diagnosis.run.unit) if told.diagnosis.monitor else ()
    turns = sum(len(item.turns) for item in told.walks)
    late, rest = told.events[MOST_EVENTS:], told.causes[MOST_CAUSES:]
    parts = (
        (f"The path: {turns} questions", "\n\n".join(map(walk, told.walks))),
        (f"What happened besides: {len(late)}", listed(map(event, late))),
        (f"Further causes: {len(rest)}", causes(rest)),
        (f"All fixes: {len(fixes)}", listed(map(escape, fixes), "1.")),
        ("What the NaN monitor would have done", listed(map(escape, monitor))),
        (f"Not checked, and what to log next time: {len(told.open)}", listed(map(unchecked, told.open))),
        (f"Notes on the log: {len(notes)}", listed(map(escape, notes))),
    )
    yield from (folded(head, inner) for head, inner in parts if inner)
