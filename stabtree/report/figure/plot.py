"""A series as one larger plot for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.report.figure.axis import LOG_RATIO, levels
from stabtree.report.figure.braille import BRAILLE, ink

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.report.text import Line
    from stabtree.run import Series

MARGIN = 9  # columns for the axis labels, the same for every plot so that stacked ones line up


def plot(
    series: Series, *, width: int, height: int, span: tuple[int, int], onset_step: int | None = None
) -> list[Line]:
    """Draw a series over a span of steps.

    Each column shows the range of the values that fall into it, so a single-step spike is never lost. Values
    that are not finite are crosses in a row of their own. Styles: `title`, `axis`, `curve`, `mark`.

    Args:
        series: the series; at least one value.
        width: columns in all, axis labels included.
        height: rows of the curve itself.
        span: the first and the last step of the axis, which may reach beyond the series.
        onset_step: drawn as a vertical line and named below.
    """
    columns = max(8, width - MARGIN - 1)
    first, last = span
    spread = max(last - first, 1)
    steps, values = _thinned(series, 2 * columns, first, spread)
    good = np.isfinite(values)
    dots = ((steps - first) * (2 * columns - 1) // spread).astype(np.int64)
    low, high, log = _scale(values[good])
    heights = levels(values[good], low, high, log=log) * (4 * height - 1)
    curve = _curve(dots[good], heights, np.flatnonzero(good), 2 * columns)
    mark = None
    if onset_step is not None and first <= onset_step <= last:
        mark = (onset_step - first) * (columns - 1) // spread
    lines: list[Line] = [[(series.metric, "title"), (" (log scale)" if log else "", "axis")]]
    if not good.all():
        lines.append(_crosses(dots[~good] // 2, columns))
    labels = {height - 1: _number(low), 0: _number(high)}
    for row, codes in enumerate(ink(*curve, height, BRAILLE)):
        label = labels.get(row, "")
        lines.append([(f"{label:>{MARGIN}}", "axis"), ("┤" if label else "│", "axis"), *_row(codes, mark)])
    lines.append([(" " * MARGIN + "└" + "─" * columns, "axis")])
    lines.append(_foot(span, columns, mark, onset_step))
    return lines


def _thinned(series: Series, width: int, first: int, spread: int) -> tuple[Ints, Floats]:
    """Return the lowest and the highest value of each of `width` dot columns, which is all that a long series shows.

    A series that is short, or holds values that are not finite, comes back as it is.
    """
    steps, values = series.steps, series.values
    if len(steps) <= 4 * width or not np.isfinite(values.min()) or not np.isfinite(values.max()):
        return steps, values
    edges = first - (-np.arange(width) * spread // (width - 1))
    starts = np.searchsorted(steps, edges)
    starts = starts[(np.diff(starts, prepend=-1) > 0) & (starts < len(steps))]
    if 2 * len(starts) < width:
        return steps, values
    pairs = np.column_stack((np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)))
    return np.repeat(steps[starts], 2), pairs.ravel()


def _scale(values: Floats) -> tuple[float, float, bool]:
    """Return the ends of the axis, and whether it is logarithmic."""
    if not len(values):
        return 0.0, 1.0, False
    low, high = float(values.min()), float(values.max())
    return low, high, low > 0 and high / low > LOG_RATIO


def _curve(dots: Ints, heights: Floats, rows: Ints, width: int) -> tuple[Floats, Floats]:
    """Return the lower and the upper end of the stroke in each column of dots: (width,) each, NaN where none is."""
    dots, heights = _joined(dots, heights, rows, width)
    lows, highs = np.full(width, np.nan), np.full(width, np.nan)
    np.fmin.at(lows, dots, heights)
    np.fmax.at(highs, dots, heights)
    return lows, highs


def _joined(dots: Ints, heights: Floats, rows: Ints, width: int) -> tuple[Ints, Floats]:
    """Fill the dot columns between neighbouring rows with a straight line, where there are fewer rows than columns.

    Rows with a value that is not finite between them stay apart.
    """
    if len(dots) >= width or len(dots) < 2:
        return dots, heights
    between = np.arange(int(dots[0]), int(dots[-1]) + 1)
    left = np.clip(np.searchsorted(dots, between, side="right") - 1, 0, len(dots) - 2)
    between = between[np.diff(rows)[left] == 1]
    return np.concatenate((dots, between)), np.concatenate((heights, np.interp(between, dots, heights)))


def _row(codes: list[int], mark: int | None) -> Line:
    text = "".join(BRAILLE.glyphs.get(code, " ") for code in codes)
    if mark is None:
        return [(text, "curve")]
    middle = text[mark] if codes[mark] else BRAILLE.line
    return [(text[:mark], "curve"), (middle, "mark"), (text[mark + 1 :], "curve")]


def _crosses(hit: Ints, columns: int) -> Line:
    cells = np.full(columns, " ")
    cells[np.clip(hit, 0, columns - 1)] = BRAILLE.bad
    return [(f"{'NaN/inf':>{MARGIN}} ", "axis"), ("".join(cells.tolist()), "mark")]


def _foot(span: tuple[int, int], columns: int, mark: int | None, onset_step: int | None) -> Line:
    """Return the row below the axis: its ends, which give way to the step of the onset."""
    left, right = (f"{step:,}" for step in span)
    if mark is None or onset_step is None:
        return [(" " * (MARGIN + 1) + left + right.rjust(columns - len(left)), "axis")]
    label = f"{BRAILLE.arrow} {onset_step:,}"
    start = min(MARGIN + 1 + mark, MARGIN + 1 + columns - len(label))
    before, after = start - MARGIN - 1, MARGIN + 1 + columns - start - len(label)
    if before < len(left) + 1:
        left = ""
    if after < len(right) + 1:
        right = ""
    return [(" " * (MARGIN + 1) + left.ljust(before), "axis"), (label, "mark"), (right.rjust(after), "axis")]


def _number(value: float) -> str:
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.1e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
