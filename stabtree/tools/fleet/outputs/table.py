"""Many runs on a screen: how many of each verdict, the causes with what to do, the worst runs, a line each."""

from __future__ import annotations

import sys
from itertools import groupby
from textwrap import shorten, wrap
from typing import TYPE_CHECKING

from stabtree.common.text import clean, to_ascii
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import new_page, styled
from stabtree.report.text import counted
from stabtree.report.verdicts import BADGES
from stabtree.tools.fleet.outputs.groups import HEALTHY, count_runs, next_command, word
from stabtree.tools.fleet.outputs.spark import CELLS, spark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.report.page import Page
    from stabtree.report.text import Line, Piece
    from stabtree.tools.fleet.outputs.groups import RunGroup, Tally
    from stabtree.tools.fleet.record import Record

FEW = 40  # runs that are all listed, healthy ones too
MAX_GROUPS = 30
WORST = 20  # of more runs, those that are listed
SHORTEST_NAME = 24  # characters that a run's name may always have
MIN_TITLE = 18
NARROW = 72  # columns below which no small line is drawn
BADGE = 13  # columns of a badge with a space behind it
CHUNK = 200  # rows of a piece


def table(
    records: Iterable[Record], look: RenderOptions = DEFAULT_OPTIONS, *, by: str = "leaf", worst: int | None = None
) -> Iterator[str]:
    """Yield the runs, worst first; of many the causes first, then the worst of them.

    Args:
        records: the runs, worst first.
        look: how it is to look.
        by: what many runs are grouped by: leaf, folder or verdict.
        worst: how many of many runs are listed.

    Raises:
        StabtreeError: for a `by` that does not exist.
    """
    if worst is None:
        worst = WORST
    tally = count_runs(records, max(FEW, worst), by)
    page = new_page(look)
    head = [(tally.summary, "heading")]
    if tally.folder:
        head.append((f"  in {clean(tally.folder)}", "dim"))
    page.line(*head)
    if tally.total > FEW:
        _groups(page, tally)
    yield page.text()
    rows = tally.listed(FEW, worst)
    yield from _listed(rows, tally, look)
    page = new_page(look)
    page.blank()
    _closing(page, tally, len(rows))
    yield page.text()
    yield from _next(rows or tally.kept, look)


def whole(records: Iterable[Record], look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Return the table with every run that is not healthy: who names runs one by one wants to see each."""
    return table(records, look, worst=sys.maxsize)


def _groups(page: Page, tally: Tally) -> None:
    """Up to three lines a group: what was found and from which steps on, in which runs, what to do about it."""
    groups = tally.groups
    count = max(len(f"{group.count:,}") for group in groups)
    left = BADGE + count + 2
    room = max(MIN_TITLE, page.width - left)
    page.blank()
    for group in groups[:MAX_GROUPS]:
        head: Line = [*_badge(group.badge), (f"{group.count:>{count},}  ", "number")]
        for pieces in _beside(page, _headed(tally, group), group.steps, room):
            page.lines([[*head, *pieces]])
            head = [(" " * left, "")]
        if group.badge != HEALTHY:
            page.lines(_under(page, tally, group, room), indent=left)
    if (rest := len(groups) - MAX_GROUPS) > 0:
        page.line((f"and {rest:,} more groups", "dim"), indent=left)


def _headed(tally: Tally, group: RunGroup) -> str:
    """Return what a group is."""
    if tally.by == "folder":
        shown = f"{group.key}/".removeprefix(tally.folder) or tally.folder or "./"
        return f"{clean(shown)}: {', '.join(f'{n:,} {word(badge)}' for badge, n in group.badges.items())}"
    if tally.by == "verdict" and group.leaves:
        return group.causes
    return group.heading


def _beside(page: Page, text: str, right: str, room: int) -> Iterator[Line]:
    """Yield a text, wrapped in what the words at the right margin leave of the room."""
    for line in _wrapped(page, text, max(MIN_TITLE, room - len(right) - 2)):
        pieces: Line = [(line, "title")]
        if right:
            width = max(len(right) + 1, room - styled([(line, "")]).cell_len)
            pieces.append((f"{right:>{width}}", "dim"))
            right = ""  # beside the first line alone
        yield pieces


def _under(page: Page, tally: Tally, group: RunGroup, room: int) -> Iterator[Line]:
    """Yield where to find the group and what to do about it; of a folder, what was found there."""
    if tally.by == "folder":
        yield [(_short(page.plain(group.causes), room), "dim")]
        return
    id_ = ""
    if group.key:
        id_ = f"{group.key} · "
    names = tally.examples(group, room - len(id_))
    yield [(page.plain(id_), "id"), (_tail(page.plain(names), max(MIN_TITLE, room - len(id_))), "dim")]
    if group.first and tally.by == "leaf":
        yield [(_short(page.plain(f"→ {group.first}"), room), "ok word")]


def _short(text: str, room: int) -> str:
    """Return the first sentence, or as many of its words as there is room for."""
    sentence = text.partition(". ")[0].removesuffix(".")
    if len(sentence) <= room:
        return sentence
    return shorten(sentence, room, placeholder=" …", break_on_hyphens=False)


def _wrapped(page: Page, text: str, room: int) -> list[str]:
    return wrap(page.plain(text), room, break_long_words=False, break_on_hyphens=False) or [""]


def _badge(badge: str) -> Line:
    shown = f" {BADGES[badge].word} "
    return [(shown, badge), (" " * (BADGE - len(shown)), "")]


def _listed(rows: Sequence[Record], tally: Tally, look: RenderOptions) -> Iterator[str]:
    """Yield the heads and a line a run, those of one verdict below its badge."""
    if not rows:
        return
    page = new_page(look)
    longest = max(SHORTEST_NAME, look.width * 2 // 5)
    names = [_tail(page.plain(tally.name(record)), longest) for record in rows]
    steps = [_steps(record) for record in rows]
    widths = [max(styled([(text, "")]).cell_len for text in ("run", *names)), max(map(len, ("step", *steps)))]
    drawn = look.width >= NARROW and any(record.spark for record in rows)
    page.blank()
    line: Line = []
    if drawn:
        line = [(f"{'loss':<{CELLS}}", "")]
    heads = _row(("run", "step"), widths, line, [("what was found", "")])
    page.lines([[(text, "dim") for text, _ in heads]])
    counts = tally.badges
    cells = zip(rows, names, steps, strict=True)
    for badge, members in groupby(cells, key=lambda cell: cell[0].badge):
        page.blank()
        page.lines([[*_badge(badge), (counted(counts[badge], "run"), "dim")]])
        for index, (record, name, step) in enumerate(members, 1):
            if drawn:
                line = spark(record.spark, record.mark, ascii=look.ascii)
            else:
                line = []
            _run(page, (name, step), record, widths, line)
            if index % CHUNK == 0:
                yield page.text()
                page = new_page(look)
    yield page.text()


def _run(page: Page, cells: tuple[str, str], record: Record, widths: Sequence[int], line: Line) -> None:
    left = styled(_row(cells, widths, line)).cell_len
    below = page.width - left < MIN_TITLE  # a narrow screen shows what was found below the name
    if below:
        left = 4
    more = f"+{record.more}" * bool(record.more)
    lines = _wrapped(page, f"{record.title} {more}", max(MIN_TITLE, page.width - left))
    found: list[Line] = [[(text, "")] for text in lines]
    if more:
        found[-1] = [(lines[-1].removesuffix(more), ""), (more, "dim")]
    beside: Line = []
    if not below:
        beside = found.pop(0)
    page.lines([_row(cells, widths, line, beside)])
    page.lines(found, indent=left)


def _row(cells: tuple[str, str], widths: Sequence[int], line: Line, title: Sequence[Piece] = ()) -> Line:
    """Return a line of the table."""
    name, step = cells
    fill = " " * (widths[0] - styled([(name, "")]).cell_len + 2)
    row: Line = [(f"  {name}{fill}", ""), *line]
    if line:
        row.append(("  ", ""))
    return [*row, (f"{step:>{widths[1]}}  ", "number"), *title]


def _steps(record: Record) -> str:
    if record.onset_step is not None:
        return f"{record.onset_step:,}"
    if record.verdict == "unread":
        return ""
    return "–"


def _tail(name: str, longest: int) -> str:
    """Return the end of a long name: that is where the names of runs differ."""
    if len(name) <= longest:
        return name
    return f"…{name[1 - longest :]}"


def _closing(page: Page, tally: Tally, listed: int) -> None:
    """What is not listed, what was noted of all, and what to type next."""
    rest = tally.calling - listed
    if tally.total > FEW and rest > 0:
        page.line((f"and {rest:,} more that are not healthy: --worst {tally.calling}, or --output csv=runs.csv", ""))
    for note in tally.notes or ():
        page.item(("·", "dim"), [(note, "dim")], indent=0, head_width=2)


def _next(rows: Sequence[Record], look: RenderOptions) -> Iterator[str]:
    """Yield what to type to see the worst in full, in one line however long it is: it is there to be copied."""
    if not rows:
        return
    page, command = new_page(look), next_command(rows[0])
    if len(command) + 6 > look.width:
        if look.ascii:
            command = to_ascii(command)
        yield f"next  {command}\n"
        return
    page.lines([[("next  ", "dim"), (command, "id")]])
    yield page.text()
