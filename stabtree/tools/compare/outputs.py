"""A comparison on one screen, in a line, as JSON and in Markdown; and its figure, the bad run over the good ones."""

from __future__ import annotations

import json
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.text import clean, to_ascii
from stabtree.report.markdown import code, escape, listed, paged, table
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import BADGES, new_page
from stabtree.report.plot import Figure, Frame, Mark, columns_for, drawn_strip, strips
from stabtree.tools.compare import report as words
from stabtree.tools.compare.result import Axis, Parted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.report.page import Page
    from stabtree.report.plot import Strip
    from stabtree.tools.compare.result import Comparison

MAX_PARTINGS = 6
MAX_SETTINGS = 8
MAX_LEFT_OUT = 3
MAX_NAME = 32
INDENT = 2
MAX_LINE = 400
MAX_STRIPS = 3
MAX_ROWS = 20  # partings in Markdown


def screen(comparison: Comparison, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return a comparison for a terminal."""
    page = new_page(look)
    word, style = words.WORDS[comparison.parted]
    page.line((f" {word} ", style), ("  ", ""), (words.title(comparison), "heading"))
    for text in filter(None, (words.basis(comparison), *comparison.notes)):
        page.line((text, "dim"))
    _partings(page, comparison, _limit(MAX_PARTINGS, look))
    _strips(page, comparison, look)
    _settings(page, comparison, _limit(MAX_SETTINGS, look))
    _verdicts(page, comparison)
    _left_out(page, comparison, _limit(MAX_LEFT_OUT, look))
    page.blank()
    page.line((words.closing(comparison), "critical word" if comparison.parted is Parted.YES else ""))
    page.lines([[(f"next: {words.next_command(comparison)}", "dim")]])
    return page.text()


def _limit(max_rows: int, look: RenderOptions) -> int | None:
    """Return how many rows to show; None for all of them."""
    if look.full:
        return None
    return max_rows


def _partings(page: Page, comparison: Comparison, limit: int | None) -> None:
    rows = words.partings(comparison)
    if not rows:
        return
    page.heading("Who parted first")
    shown = rows[:limit]
    at, metric, good, bad = _widths(page, (*shown, ("", "", "good", "bad")), 4)
    metric = min(metric, MAX_NAME)
    head = f"{'':<{at}}  {'':<{metric}}  {'good':>{good}}  {'bad':>{bad}}"
    page.lines([[(head, "dim")]], indent=INDENT)
    for row in shown:
        name = row.metric
        if len(name) > metric:
            name = f"{name[: metric - 1]}…"
        cells = [
            (f"{row.at:<{at}}  ", "number"),
            (f"{name:<{metric}}  ", "first" if row is rows[0] else ""),
            (f"{row.good:>{good}}  ", "behind"),
            (f"{row.bad:>{bad}}  ", "mark"),
            (row.how, "dim"),
        ]
        page.lines([cells], indent=INDENT)
    _more(page, len(rows) - len(shown), f", the last at {rows[-1].at}")


def _widths(page: Page, rows: Sequence[Sequence[str]], columns: int) -> list[int]:
    """Return the width of the widest cell of each column."""
    return [max(len(page.plain(row[column])) for row in rows) for column in range(columns)]


def _more(page: Page, count: int, detail: str = "") -> None:
    """Show how many rows are left out, if any."""
    if count:
        page.line((f"and {count} more{detail}: --full", "dim"), indent=INDENT)


def _strips(page: Page, comparison: Comparison, look: RenderOptions) -> None:
    if not look.plots:
        return
    drawn = overlay(comparison, columns_for(look.width))
    if drawn is None:
        return
    page.blank()
    page.lines(strips(drawn, look.width - INDENT, ascii=look.ascii), indent=INDENT)
    good = "the good run"
    if len(comparison.good) > 1:
        good = f"the {len(comparison.good)} good runs"
    page.line(("solid: the bad run", "curve"), (" · ", "dim"), (f"dotted: {good}", "behind"), indent=INDENT)


def _settings(page: Page, comparison: Comparison, limit: int | None) -> None:
    if not comparison.settings:
        return
    page.heading("Settings that differ")
    rows = [words.setting(item) for item in comparison.settings]
    key_width, good_width = _widths(page, (*rows, ("", "good")), 2)
    widths = min(key_width + 2, MAX_NAME), min(good_width + 2, page.width // 3)
    cells = [[("", ""), ("good", "dim"), ("bad", "dim")]]
    shown = rows[:limit]
    cells += [[(key, ""), (good, "behind"), (bad, "mark")] for key, good, bad in shown]
    page.rows(cells, indent=INDENT, widths=widths)
    _more(page, len(rows) - len(shown))


def _verdicts(page: Page, comparison: Comparison) -> None:
    rows = words.verdicts(comparison)
    if not rows:
        return
    page.heading("Verdict of each run")
    badges = max(len(BADGES[row.badge].word) for row in rows) + 4
    name = min(max(len(page.plain(row.name)) for row in rows), MAX_NAME) + 2
    for row in rows:
        word = f" {BADGES[row.badge].word} "
        shown = row.name
        if len(shown) >= name - 1:
            shown = f"…{shown[3 - name :]}"
        lead = [(word, row.badge), (" " * (badges - len(word)), ""), (f"{shown:<{name}}", "")]
        beside = page.width - INDENT - badges - name
        if len(page.plain(row.text)) <= beside:
            page.lines([[*lead, (row.text, "dim")]], indent=INDENT)
        else:
            page.lines([lead], indent=INDENT)
            page.line((row.text, "dim"), indent=INDENT + badges)
    apart = words.findings_apart(comparison)
    if apart:
        page.line((apart[:1].upper() + apart[1:], "dim"), indent=INDENT)


def _left_out(page: Page, comparison: Comparison, limit: int | None) -> None:
    if not comparison.left_out:
        return
    page.heading("Not compared")
    shown = comparison.left_out[:limit]
    for metric, why in shown:
        page.line((f"{clean(metric)}: {why}", "dim"), indent=INDENT)
    _more(page, len(comparison.left_out) - len(shown))


def headline(comparison: Comparison, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the comparison in one line, with the name of the bad run."""
    word, _ = words.WORDS[comparison.parted]
    text = clean(f"{word}  {comparison.names[-1]}: {words.title(comparison)}", MAX_LINE)
    if look.ascii:
        return to_ascii(text)
    return text


def to_json(comparison: Comparison, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the comparison as JSON."""
    return json.dumps(comparison.to_dict(), indent=2, allow_nan=False) + "\n"


def markdown(comparison: Comparison, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the comparison in Markdown."""
    word, _ = words.WORDS[comparison.parted]
    rows = words.partings(comparison)
    verdicts = ((BADGES[row.badge].word, row.name, row.text) for row in words.verdicts(comparison))
    return paged(
        f"### {word}: {escape(words.title(comparison))}",
        escape(words.basis(comparison)),
        listed(map(escape, comparison.notes)),
        _part("Who parted first", ("where", "series", "good", "bad", ""), rows[:MAX_ROWS]),
        f"And {len(rows) - MAX_ROWS} more." if len(rows) > MAX_ROWS else "",
        _part("Settings that differ", ("setting", "good", "bad"), map(words.setting, comparison.settings)),
        _part("Verdict of each run", ("verdict", "run", "what was found"), verdicts),
        escape(words.findings_apart(comparison)),
        _part("Not compared", ("series", "why"), comparison.left_out),
        f"**{escape(words.closing(comparison))}**",
        code(words.next_command(comparison)),
    )


def _part(head: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [list(map(escape, row)) for row in rows]
    if cells:
        return f"#### {head}\n\n{table(heads, cells)}"
    return ""


def overlay(comparison: Comparison, columns: int, max_strips: int = MAX_STRIPS) -> Figure | None:
    """Return the figure of the loss and the series that part first; None if there is nothing to draw.

    Args:
        comparison: the comparison.
        columns: how many points wide.
        max_strips: how many series.
    """
    names = _chosen(comparison)[:max_strips]
    runs = (comparison.bad, *comparison.good)
    series = [run.series[name] for name, run in product(names, runs)]
    first = min((int(one.steps[0]) for one in series), default=0)
    last = max((int(one.steps[-1]) for one in series), default=0)
    if first == last or comparison.by is Axis.TIME:  # no two runs have the same clock
        return None
    frame = Frame(first, last, columns)
    strips = []
    for name in names:
        bad, *good = (drawn_strip(run.series[name], frame) for run in runs)
        leads = comparison.first is not None and comparison.first.metric == name
        strips.append(replace(_over(bad, _band(good)), first=leads))
    marks = tuple(Mark(item.step, "parting", f"{item.step:,}") for item in comparison.partings[:1])
    return Figure(first, last, columns, tuple(strips), marks, comparison.bad.unit)


def _chosen(comparison: Comparison) -> list[str]:
    names = ["loss", *(item.metric for item in comparison.partings), "grad_norm"]
    known = {*comparison.compared, *(item.metric for item in comparison.partings)} - {"batch_id"}
    return [name for name in dict.fromkeys(names) if name in known]


def _band(strips: Sequence[Strip]) -> Strip:
    """Return all good runs as one strip, from the lowest to the highest in each column."""
    return replace(
        _widest(strips[0], strips),
        lows=reduce(np.fmin, [strip.lows for strip in strips]),
        highs=reduce(np.fmax, [strip.highs for strip in strips]),
        joined=reduce(np.logical_and, [strip.joined for strip in strips]),
    )


def _over(bad: Strip, good: Strip) -> Strip:
    """Return the bad run with the good ones behind it, on one axis that fits both."""
    both = _widest(bad, (bad, good))
    return replace(both, behind=_widest(good, (bad, good)))


def _widest(strip: Strip, strips: Sequence[Strip]) -> Strip:
    """Return a strip on an axis that fits all of them."""
    low, high = min(one.low for one in strips), max(one.high for one in strips)
    log = low > 0 and any(one.log for one in strips)
    clipped, clipped_low = strip.clipped, strip.clipped_low
    if clipped is not None and clipped <= high:
        clipped = None
    if clipped_low is not None and clipped_low >= low:
        clipped_low = None
    return replace(strip, low=low, high=high, log=log, clipped=clipped, clipped_low=clipped_low)
