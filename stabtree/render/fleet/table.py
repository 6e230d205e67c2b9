"""Many runs on a screen: how many of each verdict, the causes with what to do, the worst runs, a line each."""

from __future__ import annotations

import sys
from itertools import groupby
from textwrap import shorten, wrap
from typing import TYPE_CHECKING

from stabtree.common.text import clean, to_ascii
from stabtree.render.fleet.groups import HEALTHY, next_command, ordered, tally, word
from stabtree.render.fleet.spark import CELLS, spark
from stabtree.render.look import LOOK, Look
from stabtree.render.page import new_page, styled
from stabtree.render.report.words import counted
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.judging.record import Record
    from stabtree.render.fleet.groups import RunGroup, Tally
    from stabtree.render.page import Page
    from stabtree.render.plot import Line, Piece

FEW = 40  # runs that are all listed, healthy ones too
MOST_GROUPS = 30
WORST = 20  # of more runs, those that are listed
SHORTEST_NAME = 24  # characters that a run's name may always have
LEAST_TITLE = 18
NARROW = 72  # columns below which no small line is drawn
BADGE = 13  # columns of a badge with a space behind it
CHUNK = 200  # rows of a piece


def table(records: Iterable[Record], look: Look = LOOK, *, by: str = "leaf", worst: int | None = None) -> Iterator[str]:
    """The runs, worst first; of many the causes first, then the worst of them.

    Args:
        records: the runs, worst first.
        look: how it is to look.
        by: what many runs are grouped by: leaf, folder or verdict.
        worst: how many of many runs are listed.

    Raises:
        StabtreeError: for a `by` that does not exist.
    """
    listed = WORST if worst is None else worst
    told = tally(records, max(FEW, listed), by)
    page = new_page(look)
    few = told.total <= FEW
    page.line((told.told, "heading"), (f"  in {clean(told.folder)}" if told.folder else "", "dim"))
    if not few:
        _groups(page, told)
    yield page.text()
    rows = ordered(told.kept if few else [record for record in told.kept[:listed] if record.badge != HEALTHY])
    yield from _listed(rows, told, look)
    page = new_page(look)
    page.blank()
    _closing(page, told, len(rows))
    yield page.text()
    yield from _next(rows or told.kept, look)


def whole(records: Iterable[Record], look: Look = LOOK) -> Iterator[str]:
    """The table with every run that is not healthy: who names runs one by one wants to see each."""
    return table(records, look, worst=sys.maxsize)


def _groups(page: Page, told: Tally) -> None:
    """Up to three lines a group: what was found and from which steps on, in which runs, what to do about it."""
    groups = told.groups
    count = max(len(f"{group.count:,}") for group in groups)
    left = BADGE + count + 2
    room = max(LEAST_TITLE, page.width - left)
    page.blank()
    for group in groups[:MOST_GROUPS]:
        head: Line = [*_badge(group.badge), (f"{group.count:>{count},}  ", "number")]
        for place, pieces in enumerate(_beside(page, _headed(told, group), group.steps, room)):
            page.lines([[*(head if place == 0 else [(" " * left, "")]), *pieces]])
        if group.badge != HEALTHY:
            page.lines(_under(page, told, group, room), indent=left)
    if (rest := len(groups) - MOST_GROUPS) > 0:
        page.line((f"and {rest:,} more groups", "dim"), indent=left)


def _headed(told: Tally, group: RunGroup) -> str:
    """What a group is."""
    if told.by == "folder":
        shown = f"{group.key}/".removeprefix(told.folder) or told.folder or "./"
        return f"{clean(shown)}: {', '.join(f'{n:,} {word(badge)}' for badge, n in group.badges.items())}"
    return (group.causes if told.by == "verdict" else "") or group.told


def _beside(page: Page, text: str, right: str, room: int) -> Iterator[Line]:
    """A text, wrapped in what the words at the right margin leave of the room."""
    for place, line in enumerate(_wrapped(page, text, max(LEAST_TITLE, room - len(right) - 2))):
        width = max(len(right) + 1, room - styled([(line, "")]).cell_len)
        yield [(line, "title"), *([(f"{right:>{width}}", "dim")] if place == 0 and right else [])]


def _under(page: Page, told: Tally, group: RunGroup, room: int) -> Iterator[Line]:
    """Where to find the group and what to do about it; of a folder, what was found there."""
    if told.by == "folder":
        yield [(_short(page.plain(group.causes), room), "dim")]
        return
    id_ = f"{group.key} · " if group.key else ""
    names = told.examples(group, room - len(id_))
    yield [(page.plain(id_), "id"), (_tail(page.plain(names), max(LEAST_TITLE, room - len(id_))), "dim")]
    if group.first and told.by == "leaf":
        yield [(_short(page.plain(f"→ {group.first}"), room), "ok word")]


def _short(text: str, room: int) -> str:
    """The first sentence, or as many of its words as there is room for."""
    sentence = text.partition(". ")[0].removesuffix(".")
    return sentence if len(sentence) <= room else shorten(sentence, room, placeholder=" …", break_on_hyphens=False)


def _wrapped(page: Page, text: str, room: int) -> list[str]:
    return wrap(page.plain(text), room, break_long_words=False, break_on_hyphens=False) or [""]


def _badge(badge: str) -> Line:
    shown = f" {LOOKS[badge].word} "
    return [(shown, badge), (" " * (BADGE - len(shown)), "")]


def _listed(rows: Sequence[Record], told: Tally, look: Look) -> Iterator[str]:
    """The heads and a line a run, those of one verdict below its badge."""
    if not rows:
        return
    page = new_page(look)
    longest = max(SHORTEST_NAME, look.width * 2 // 5)
    names = [_tail(page.plain(told.name(record)), longest) for record in rows]
    steps = [_steps(record) for record in rows]
    widths = [max(styled([(text, "")]).cell_len for text in ("run", *names)), max(map(len, ("step", *steps)))]
    drawn = look.width >= NARROW and any(record.spark for record in rows)
    page.blank()
    page.lines(
        [
            _row(
                ("run", "step"),
                widths,
                [(f"{'loss':<{CELLS}}", "")] if drawn else [],
                [("what was found", "")],
                head=True,
            )
        ]
    )
    counts = told.badges
    cells = zip(rows, names, steps, strict=True)
    for badge, members in groupby(cells, key=lambda cell: cell[0].badge):
        page.blank()
        page.lines([[*_badge(badge), (counted(counts[badge], "run"), "dim")]])
        for place, (record, name, step) in enumerate(members, 1):
            line = spark(record.spark, record.mark, ascii=look.ascii) if drawn else []
            _run(page, (name, step), record, widths, line)
            if place % CHUNK == 0:
                yield page.text()
                page = new_page(look)
    yield page.text()


def _run(page: Page, cells: tuple[str, str], record: Record, widths: Sequence[int], line: Line) -> None:
    left = styled(_row(cells, widths, line)).cell_len
    below = page.width - left < LEAST_TITLE  # on a narrow screen what was found stands below the name
    left = 4 if below else left
    more = f"+{record.more}" if record.more else ""
    lines = _wrapped(page, f"{record.title} {more}", max(LEAST_TITLE, page.width - left))
    told: list[Line] = [[(text, "")] for text in lines]
    if more:
        told[-1] = [(lines[-1].removesuffix(more), ""), (more, "dim")]
    page.lines([_row(cells, widths, line, [] if below else told[0])])
    page.lines(told if below else told[1:], indent=left)


def _row(
    cells: tuple[str, str], widths: Sequence[int], line: Line, title: Sequence[Piece] = (), *, head: bool = False
) -> Line:
    """A line of the table; its heads are all quiet."""
    name, step = cells
    fill = " " * (widths[0] - styled([(name, "")]).cell_len + 2)
    row: Line = [
        (f"  {name}{fill}", ""),
        *line,
        ("  " if line else "", ""),
        (f"{step:>{widths[1]}}  ", "number"),
        *title,
    ]
    return [(text, "dim") for text, _ in row] if head else row


def _steps(record: Record) -> str:
    if record.onset_step is not None:
        return f"{record.onset_step:,}"
    return "" if record.verdict == "unread" else "–"


def _tail(name: str, longest: int) -> str:
    """The end of a long name: that is where the names of runs differ."""
    return name if len(name) <= longest else f"…{name[1 - longest :]}"


def _closing(page: Page, told: Tally, listed: int) -> None:
    """What is not listed, what was noted of all, and what to type next."""
    rest = told.calling - listed if told.total > FEW else 0
    if rest > 0:
        page.line((f"and {rest:,} more that are not healthy: --worst {told.calling}, or --output csv=runs.csv", ""))
    for note in told.notes or ():
        page.item(("·", "dim"), [(note, "dim")], indent=0, head_width=2)


def _next(rows: Sequence[Record], look: Look) -> Iterator[str]:
    """What to type to see the worst in full, in one line however long it is: it is there to be copied."""
    if not rows:
        return
    page, command = new_page(look), next_command(rows[0])
    if len(command) + 6 > look.width:
        yield f"next  {to_ascii(command) if look.ascii else command}\n"
        return
    page.lines([[("next  ", "dim"), (command, "id")]])
    yield page.text()
