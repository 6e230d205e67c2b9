"""Many runs as one page in one file: counts, causes, and a table, worst first; without a script, or the network."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stabtree._version import __version__
from stabtree.common.lazy import np
from stabtree.report import plot
from stabtree.report.html import CLOSING, NOTHING, Markup, badge, opening, table, tag
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import asset, counted
from stabtree.tools.fleet.record import WIDE, levels
from stabtree.tools.fleet.table import CAUSES, RUN, SEED, Summary, next_command, value_text, word
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stabtree.tools.fleet.record import Record

MAX_ROWS = 2000
APART = 40  # of the names of two values
HEIGHT = 26  # of a small line
WIDTH, TALL, LEFT, TOP, BOTTOM = 340, 190, 46, 26, 36  # of a plot, and of its margins
MARKS: Mapping[str, str] = {Severity.CRITICAL: "×", Severity.WARNING: "▲"}
KEY = "A point a run: × critical, ▲ warning, ● other. At the top: the loss is not finite at the end."


def page(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield the page in pieces, each a line or more, of the runs, worst first."""
    summary = Summary(records)
    rows = summary.records[:MAX_ROWS]
    causes, rest = summary.causes(), len(summary.records) - len(rows)
    left_out = f"and {rest:,} more runs, none worse than these: --output csv=runs.csv"
    closing = [tag("strong", summary.headline), tag("code", next_command(rows[0]) if rows else "")]
    sheet = Markup(asset("style.css") + asset("page.css", "stabtree.tools.fleet"))
    pieces = [
        opening(f"{summary.headline} · stabtree", sheet, ""),
        tag("a", "Skip to the runs", href="#runs", class_="skip"),
        Markup('<main id="report">'),
        _header(summary),
        _settings(summary),
        tag("h2", "Causes", id="causes") if causes else NOTHING,
        table(CAUSES, [(badge(verdict), *cells) for verdict, *cells in causes], "Causes", class_="causes"),
        tag("h2", "Runs", id="runs"),
        tag("p", left_out, class_="careful") if rest else NOTHING,
        _runs(summary, rows),
        tag("p", *closing, class_="closing"),
        Markup("</main>"),
        CLOSING,
    ]
    for piece in filter(None, pieces):
        yield f"{piece}\n"


def _header(summary: Summary) -> Markup:
    counts = [tag("li", badge(verdict), " ", tag("b", f"{count:,}")) for verdict, count in summary.counts.items()]
    return tag(
        "header",
        badge(next(iter(summary.counts), Severity.OK)),
        tag("h1", summary.title),
        tag("p", " · ".join(filter(None, (summary.where, f"judged by stabtree {__version__}"))), class_="facts"),
        tag("ul", *counts, class_="counts", aria_label="Runs by verdict"),
        *(tag("p", note, class_="quiet") for note in summary.notes),
    )


def _settings(summary: Summary) -> Markup:
    """Return what splits the runs, and each setting that varies against the loss at the end."""
    plots = [_plot(summary, key) for key in summary.varied if key != SEED]
    if not any(plots):
        return NOTHING
    told = [tag("p", tag("b", f"{sentence[0].upper()}{sentence[1:]}")) for sentence in summary.splits.values()]
    drawn = tag("div", *plots, class_="plots")
    head = tag("h2", "What varies", id="varied")
    return tag("section", head, *told, drawn, tag("p", KEY, class_="quiet"), aria_labelledby="varied")


def _plot(summary: Summary, key: str) -> Markup:
    """Return a setting against the loss at the end, a point a run."""
    runs = [run for run in summary.records if run.spark and key in run.settings][:MAX_ROWS]
    ends = [run.spark[-1] for run in runs]
    finite = [end for end in ends if end is not None]
    if not finite:
        return NOTHING
    if key in summary.numbers:
        across, ticks = _placed([float(run.settings[key]) for run in runs], LEFT + 8, WIDTH - 24, ratio=4)
    else:
        across, ticks = _side_by_side([value_text(run.settings[key]) for run in runs], LEFT, WIDTH)
    up, levels = _placed(finite, TALL - BOTTOM - 8, TOP + 14, ratio=WIDE)
    heights: dict[float | None, int] = dict(zip(finite, up, strict=True))
    points = []
    for run, end, x in zip(runs, ends, across, strict=True):
        y = heights.get(end, TOP)
        about = f"{summary.name(run)}: {key} {value_text(run.settings[key])}, {word(run.badge)}"
        points.append(_label(MARKS.get(run.badge, "●"), x, y, f"point {run.badge}", tag("title", about)))
    about = f"{key} against the loss at the end, {counted(len(runs), 'run')}"
    axes = [
        tag("path", d=f"M{LEFT} {TOP - 10}V{TALL - BOTTOM}H{WIDTH}", class_="frame"),
        *(_label(text, x, TALL - BOTTOM + 14) for text, x in ticks),
        *(_label(text, LEFT - 5, y, "up") for text, y in levels),
        _label(key, (LEFT + WIDTH) // 2, TALL - 6, "name"),
        _label("loss at the end", 0, 9, "first"),
    ]
    return tag("svg", *axes, *points, viewBox=f"0 0 {WIDTH} {TALL}", role="img", aria_label=about)


def _placed(values: Sequence[float], start: int, end: int, *, ratio: float) -> tuple[list[int], list[tuple[str, int]]]:
    """Return where values lie between two places, by orders of magnitude where they span many, and the ends so."""
    low, high = min(values), max(values)
    shares = plot.levels(np.array([*values, low, high]), low, high, log=low > 0 and high / low >= ratio)
    *places, first, last = [round(start + (end - start) * share) for share in shares.tolist()]
    named = plot.apart((low, high)) or [plot.short(low), plot.short(high)]
    ticks = dict(zip(named, (first, last), strict=True))
    for value, place in sorted(set(zip(values, places, strict=True))):
        if ratio < WIDE and all(abs(place - other) > APART for other in ticks.values()):
            ticks[value_text(value)] = place
    return places, [*ticks.items()]


def _side_by_side(words: Sequence[str], start: int, end: int) -> tuple[list[int], list[tuple[str, int]]]:
    """Return where words lie between two places, equal ones beside each other, and each word with its middle."""
    count, seen = Counter(words), Counter[str]()
    room = (end - start) / len(count)
    begin = {word: start + room * index for index, word in enumerate(sorted(count))}
    places = []
    for each in words:
        seen[each] += 1
        places.append(round(begin[each] + room * seen[each] / (count[each] + 1)))
    return places, [(each[: int(room / 7)], round(place + room / 2)) for each, place in begin.items()]


def _label(text: str, x: int, y: int, kind: str = "", *children: Markup) -> Markup:
    return tag("text", text, *children, x=str(x), y=str(y), class_=kind or False)


def _runs(summary: Summary, records: Sequence[Record]) -> Markup:
    """Return the table of the runs, with the loss of each behind the settings that vary."""
    before = 2 + len(summary.varied)
    heads = [*RUN[:2], *summary.varied, "loss", *RUN[2:]]
    rows = []
    for record in records:
        verdict, *cells = summary.run(record)
        rows.append([badge(verdict), *cells[: before - 1], _line(record), *cells[before - 1 :]])
    return table(heads, rows, "Runs", class_="runs")


def _line(record: Record) -> Markup:
    """Return the loss as a small line, another colour from the finding on, with a dash below what was not finite."""
    drawn = levels(record.spark, HEIGHT)
    paths = {"curve": "", "mark": ""}
    for x, level in enumerate(drawn):
        path = "mark" if record.mark is not None and x >= record.mark else "curve"
        if level is None:
            paths["mark"] += f"M{x} {HEIGHT + 1}h1"
        else:
            begins = x in (0, record.mark) or drawn[x - 1] is None
            paths[path] += f"{'M' if begins else 'L'}{x} {HEIGHT - level}"
    lines = [tag("path", d=path, class_=name) for name, path in paths.items() if path]
    box = f"0 0 {max(len(drawn), 1)} {HEIGHT + 2}"
    shown = tag("svg", *lines, class_="spark", viewBox=box, preserveAspectRatio="none", aria_hidden="true")
    return shown if lines else NOTHING
