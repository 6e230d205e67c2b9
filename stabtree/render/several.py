"""Several runs at once: a table, worst first, a line each, or JSON."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from itertools import takewhile
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
SHORTEST_NAME = 24  # characters that a run's name may always have in the table
MOST_PROBLEM = 90
TITLES = ("run", "step", "more", "what was found")
Row = tuple[str, str, str, str]


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
    """The runs, worst first, a line each; those that ended at one leaf stand together."""
    page = Page(width=width, color=color)
    folder = _folder([outcome.name for outcome in outcomes])
    longest = max(SHORTEST_NAME, width * 2 // 5)
    names = [_tail(outcome.name.removeprefix(folder), longest) for outcome in outcomes]
    parts = {
        verdict: [item for item in zip(names, outcomes, strict=True) if item[1].verdict == verdict] for verdict in ORDER
    }
    found = {verdict: _rows(_by_leaf(members)) for verdict, members in parts.items() if members}
    rows = [TITLES, *(row for members in found.values() for row in members)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    _lines(page, [TITLES], widths, styles=("dim", "dim", "dim", "dim"))
    for verdict, members in found.items():
        word, style = ("NOT READ", UNKNOWN) if verdict == UNREAD else (LOOKS[verdict].word, verdict)
        page.blank()
        count = f"  {len(members):,} run{'s' if len(members) != 1 else ''}"
        page.line((f" {word} ", style), (count, "dim"))
        _lines(page, members, widths, styles=("", "number", "dim", ""))
    page.blank()
    page.line((counted(outcomes), "heading"), (f"  in {clean(folder)}" if folder else "", "dim"))
    page.line((f"one of them in full: stabtree diagnose {_first(outcomes)}", "dim"))
    for note in _shared_notes(outcomes):
        page.item(("·", "dim"), [(note, "dim")], indent=0, head_width=2)
    return page.text()


def _folder(names: Sequence[str]) -> str:
    """The folder in which all paths lie, to be told once; nothing where there is none."""
    above = zip(*(name.split("/")[:-1] for name in names), strict=False)
    shared = [parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, above)]
    folder = "/".join([*shared, ""]) if any(shared) else ""
    return folder if all(len(name) > len(folder) for name in names) else ""


def _tail(name: str, longest: int) -> str:
    """The end of a long path: that is where the names of runs differ."""
    text = clean(name, 1000)
    return text if len(text) <= longest else f"…{text[1 - longest :]}"


def _lines(page: Page, rows: Sequence[Row], widths: Sequence[int], *, styles: tuple[str, ...]) -> None:
    name, step, more = widths
    for row in rows:
        head, at, others, told = row
        cells = [(head, styles[0]), (f"{at:>{step}}", styles[1]), (f"{others:>{more}}", styles[2]), (told, styles[3])]
        page.rows([cells], indent=2, widths=(name + 2, step + 2, more + 2))


def _by_leaf(members: list[tuple[str, Outcome]]) -> list[tuple[str, Outcome]]:
    """The members with those of one leaf together, the leaf of most runs first."""
    count = Counter(_head(outcome) for _, outcome in members)
    first = {head: place for place, head in reversed(list(enumerate(_head(outcome) for _, outcome in members)))}
    return sorted(members, key=lambda item: (-count[_head(item[1])], first[_head(item[1])]))


def _rows(members: list[tuple[str, Outcome]]) -> list[Row]:
    return [_row(name, outcome.found) for name, outcome in members]


def _row(name: str, found: Diagnosis | StabtreeError) -> Row:
    if isinstance(found, StabtreeError):
        return name, "", "", clean(found.problem, MOST_PROBLEM)
    main = screen.main_finding(found)
    step = f"{main.onset_step:,}" if main and main.onset_step is not None else "–"
    more = f"+{len(found.findings) - 1}" if main and len(found.findings) > 1 else ""
    return name, step, more, screen.title(found)


def _first(outcomes: Sequence[Outcome]) -> str:
    """The worst run's path, as it can be typed; `PATH` where a file holds several."""
    first = min(outcomes, key=lambda outcome: ORDER.index(outcome.verdict)).name
    return first if shlex.quote(first) == first else "PATH"


def _shared_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """What was noted of every run that was judged."""
    judged = [outcome.found.run.notes for outcome in outcomes if isinstance(outcome.found, Diagnosis)]
    return [note for note in judged[0] if all(note in notes for notes in judged)] if judged else []


def _head(outcome: Outcome) -> str:
    found = outcome.found
    return "" if isinstance(found, StabtreeError) else screen.title(found)


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
