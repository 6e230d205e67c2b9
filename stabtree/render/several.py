"""Several runs at once: a table, worst first, a line each, or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.answer import UNKNOWN
from stabtree.diagnosis.result import Diagnosis
from stabtree.errors import StabtreeError
from stabtree.render import machine, screen
from stabtree.render.page import Page
from stabtree.render.verdicts import LOOKS
from stabtree.text import clean
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.render.plot import Piece

UNREAD = "unread"
ORDER = (Severity.CRITICAL, Severity.WARNING, UNREAD, UNKNOWN, Severity.NOTE, Severity.OK)
"""Of verdicts, worst first; a log that can't be read may hide anything."""
WORDS = {
    Severity.CRITICAL: "critical",
    Severity.WARNING: "warning",
    UNREAD: "not read",
    UNKNOWN: "not judged",
    Severity.NOTE: "note",
    Severity.OK: "ok",
}
MOST_NAMES = 60  # characters of a run's name in the table


class Outcome(NamedTuple):
    """What became of one of several runs: its name, and its diagnosis or why it can't be read."""

    name: str
    found: Diagnosis | StabtreeError

    @property
    def verdict(self) -> str:
        """The verdict, `unread` for a log that can't be read."""
        return str(self.found.verdict) if isinstance(self.found, Diagnosis) else UNREAD


def worst(outcomes: Sequence[Outcome]) -> str:
    """The worst verdict of several runs."""
    return min((outcome.verdict for outcome in outcomes), key=ORDER.index)


def counted(outcomes: Sequence[Outcome]) -> str:
    """How many runs there are of each verdict, in a line."""
    verdicts = [outcome.verdict for outcome in outcomes]
    parts = [f"{verdicts.count(verdict)} {WORDS[verdict]}" for verdict in ORDER if verdict in verdicts]
    return f"{len(verdicts):,} runs: {', '.join(parts)}"


def table(outcomes: Sequence[Outcome], *, width: int, color: bool) -> str:
    """The runs, worst first, those that ended at one leaf together."""
    page = Page(width=width, color=color)
    groups: dict[tuple[int, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((ORDER.index(outcome.verdict), _head(outcome)), []).append(outcome)
    names = max(len(clean(outcome.name, MOST_NAMES)) for outcome in outcomes)
    for (rank, head), members in sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1]))):
        verdict = ORDER[rank]
        word, style = ("NOT READ", UNKNOWN) if verdict == UNREAD else (LOOKS[verdict].word, verdict)
        count = f"  {len(members)} runs" if len(members) > 1 else ""
        page.line((f" {word} ", style), ("  ", ""), (head, "heading"), (count, "dim"))
        for outcome in members:
            page.item((clean(outcome.name, MOST_NAMES), ""), _detail(outcome), indent=2, head_width=names + 2)
        page.blank()
    page.line((counted(outcomes), "heading"))
    page.line(("one of them in full: stabtree diagnose PATH", "dim"))
    return page.text()


def _head(outcome: Outcome) -> str:
    found = outcome.found
    if isinstance(found, StabtreeError):
        return "The log can't be read"
    return screen.title(found)


def _detail(outcome: Outcome) -> list[Piece]:
    found = outcome.found
    if isinstance(found, StabtreeError):
        return [(clean(found.problem, 200), "")]
    main = screen.main_finding(found)
    if main is None:
        return [("", "")]
    place = [("step ", "dim"), (f"{main.onset_step:,}", "number")] if main.onset_step is not None else []
    more = len(found.findings) - 1
    others = [(f"  and {more} more", "dim")] if more else []
    return [(f"{main.leaf.id}  ", "id"), *place, *others]


def headlines(outcomes: Sequence[Outcome], **_look: object) -> str:
    """A line a run, in the order of the paths, each with its path."""
    return "\n".join(_line(outcome) for outcome in outcomes)


def _line(outcome: Outcome) -> str:
    if isinstance(outcome.found, StabtreeError):
        return clean(f"NOT READ  {outcome.name}: {outcome.found.problem}", 400)
    word, _, rest = screen.headline(outcome.found).partition("  ")
    return clean(f"{word}  {outcome.name}  {rest}", 400)


def to_json(outcomes: Sequence[Outcome], **_look: object) -> str:
    """`{"schema": 1, "verdict": worst, "runs": [...]}`, each as alone, with its `path`; a bad log has an `error`."""
    runs: list[dict[str, Any]] = []
    for outcome in outcomes:
        found = outcome.found
        held = machine.to_dict(found) if isinstance(found, Diagnosis) else machine.error(found)
        runs.append({"path": outcome.name, **held})
    verdict = worst(outcomes)
    whole = {"schema": machine.SCHEMA, "verdict": UNKNOWN if verdict == UNREAD else verdict, "runs": runs}
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"
