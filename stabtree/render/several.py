"""Several runs at once: a table, worst first, a line each, or JSON."""

from __future__ import annotations

import shlex
from collections import Counter
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any

from stabtree.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert
from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.outcome import ORDER, UNREAD, Outcome, worst
from stabtree.render import screen
from stabtree.render.data import machine
from stabtree.render.look import LOOK, Look
from stabtree.render.page import new_page, styled
from stabtree.render.report.words import badge, headline, main_finding, title
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.render.page import Page


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


def _badge(outcome: Outcome) -> str:
    """The verdict that it is told with: `ok` where what was found are notes that call for nothing."""
    return badge(outcome.found) if isinstance(outcome.found, Diagnosis) else UNREAD


def counted(outcomes: Sequence[Outcome]) -> str:
    """How many runs there are of each verdict, in a line."""
    verdicts = [_badge(outcome) for outcome in outcomes]
    parts = [f"{verdicts.count(verdict)} {WORDS[verdict]}" for verdict in ORDER if verdict in verdicts]
    return f"{len(verdicts):,} runs: {', '.join(parts)}"


def table(outcomes: Sequence[Outcome], look: Look = LOOK) -> str:
    """The runs, worst first, a line each; those that ended at one leaf stand together."""
    page, width = new_page(look), look.width
    folder = _folder([outcome.name for outcome in outcomes])
    longest = max(SHORTEST_NAME, width * 2 // 5)
    ordered = _ordered(outcomes)
    rows = [(_tail(outcome.name.removeprefix(folder), longest), *_told(outcome.found)) for outcome in ordered]
    widths = tuple(max(styled([(row[column], "")]).cell_len for row in (TITLES, *rows)) for column in range(3))
    _lines(page, [TITLES], widths, styles=("dim",) * 4)
    for verdict, members in groupby(zip(ordered, rows, strict=True), key=lambda item: _badge(item[0])):
        lines = [row for _, row in members]
        word, style = ("NOT READ", UNKNOWN) if verdict == UNREAD else (LOOKS[verdict].word, verdict)
        page.blank()
        page.line((f" {word} ", style), (f"  {len(lines):,} run{'s' if len(lines) != 1 else ''}", "dim"))
        _lines(page, lines, widths, styles=("", "number", "dim", ""))
    page.blank()
    page.line((counted(outcomes), "heading"), (f"  in {clean(folder)}" if folder else "", "dim"))
    page.line((f"one of them in full: stabtree diagnose {_typed(ordered[0])}", "dim"))
    for note in _shared_notes(outcomes):
        page.item(("·", "dim"), [(note, "dim")], indent=0, head_width=2)
    return page.text()


def _ordered(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The runs worst first, those of one leaf together, the leaf of most runs first."""
    keys = [(ORDER.index(_badge(outcome)), _told(outcome.found)[2]) for outcome in outcomes]
    count = Counter(keys)
    first = {key: place for place, key in reversed([*enumerate(keys)])}
    places = sorted(range(len(keys)), key=lambda place: (keys[place][0], -count[keys[place]], first[keys[place]]))
    return [outcomes[place] for place in places]


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


def _lines(page: Page, rows: Sequence[Row], widths: tuple[int, ...], *, styles: Sequence[str]) -> None:
    name, step, more = widths
    aligned = [(row[0], f"{row[1]:>{step}}", f"{row[2]:>{more}}", row[3]) for row in rows]
    cells = [list(zip(row, styles, strict=True)) for row in aligned]
    page.rows(cells, indent=2, widths=(name + 2, step + 2, more + 2))


def _told(found: Diagnosis | StabtreeError) -> tuple[str, str, str]:
    """The step, how much more was found, and what was found."""
    if isinstance(found, StabtreeError):
        return "", "", clean(found.problem, MOST_PROBLEM)
    main = main_finding(found)
    step = f"{main.onset_step:,}" if main and main.onset_step is not None else "–"
    more = f"+{len(found.findings) - 1}" if main and len(found.findings) > 1 else ""
    return step, more, headline(found) if badge(found) == Severity.OK else title(found)


def _typed(outcome: Outcome) -> str:
    """What to type to diagnose a run: its path, and its name where a file holds several runs."""
    name, found = outcome.name, outcome.found
    paths = [source.path for source in found.run.sources] if isinstance(found, Diagnosis) else []
    path = next((path for path in paths if name.startswith(f"{path} ")), "")
    if path:
        return f"{shlex.quote(path)} --run {shlex.quote(name.removeprefix(f'{path} '))}"
    return name if shlex.quote(name) == name else "PATH"


def _shared_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """What was noted of every run that was judged."""
    judged = [outcome.found.run.notes for outcome in outcomes if isinstance(outcome.found, Diagnosis)]
    return [note for note in judged[0] if all(note in notes for notes in judged)] if judged else []


def headlines(outcomes: Sequence[Outcome], look: Look = LOOK) -> str:
    """A line a run, in the order of the paths, each with its path."""
    return "\n".join(_line(outcome, look) for outcome in outcomes)


def _line(outcome: Outcome, look: Look) -> str:
    if isinstance(outcome.found, StabtreeError):
        return inert(clean(f"NOT READ  {outcome.name}: {outcome.found.problem}", 400))
    return screen.one_line(outcome.found, outcome.name, look)


def to_json(outcomes: Sequence[Outcome], _look: Look = LOOK) -> str:
    """`{"schema": 1, "verdict": worst, "runs": [...]}`, each as alone, with its `path`; a bad log has an `error`."""
    runs: list[dict[str, Any]] = []
    for outcome in outcomes:
        found = outcome.found
        held = machine.to_dict(found) if isinstance(found, Diagnosis) else machine.error(found)
        runs.append({"path": outcome.name, **held})
    verdict = worst(outcomes)
    whole = {"schema": machine.SCHEMA, "verdict": UNKNOWN if verdict == UNREAD else verdict, "runs": runs}
    return machine.written(whole)
