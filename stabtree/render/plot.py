"""A series as a small braille plot: lines of (text, style) pieces, for any renderer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.run import Series

Piece = tuple[str, str]
Line = list[Piece]

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
MARGIN = 9  # columns for the axis labels, the same for every plot so that stacked ones line up
_LOG_RATIO = 30.0  # a series that spans more than this is drawn on a log axis


def plot(
    series: Series, *, width: int, height: int, span: tuple[int, int], onset_step: int | None = None
) -> list[Line]:
    """Draw a series over a span of steps.

    Each column shows the range of the values that fall into it, so a single-step spike is never lost. Values
    that are not finite stand as crosses in a row of their own. Styles: `title`, `axis`, `curve`, `mark`.

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
    low, high, log = _scale(values[good])
    labels = (_short(high), _short(low))
    dots = ((steps - first) * (2 * columns - 1) // spread).astype(np.int64)
    levels = _levels(values[good], low, high, log, height)
    grid = _grid(*_joined(dots[good], levels, np.flatnonzero(good), 2 * columns), columns, height)
    mark = None
    if onset_step is not None and first <= onset_step <= last:
        mark = (onset_step - first) * (columns - 1) // spread
    scale = " (log scale)" if log else ""
    lines: list[Line] = [[(series.metric, "title"), (scale, "axis")]]
    if not good.all():
        lines.append(_crosses(dots[~good] // 2, columns))
    for row in range(height):
        label = labels[0] if row == 0 else labels[1] if row == height - 1 else ""
        lines.append([(f"{label:>{MARGIN}}", "axis"), ("┤" if label else "│", "axis"), *_cells(grid[row], mark)])
    lines.append([(" " * MARGIN + "└" + "─" * columns, "axis")])
    lines.append(_foot(span, columns, mark, onset_step))
    return lines


def _thinned(series: Series, width: int, first: int, spread: int) -> tuple[Ints, Floats]:
    """The lowest and the highest value of each of `width` dot columns, which is all that a long series shows.

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
    if not len(values):
        return 0.0, 1.0, False
    low, high = float(values.min()), float(values.max())
    return low, high, low > 0 and high / low > _LOG_RATIO


def _levels(values: Floats, low: float, high: float, log: bool, height: int) -> Floats:
    with np.errstate(all="ignore"):
        if log:
            values, low, high = np.log(values), float(np.log(low)), float(np.log(high))
        share = (values / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.full(len(values), 0.5)
    return np.clip(np.nan_to_num(share), 0, 1) * (4 * height - 1)


def _joined(dots: Ints, levels: Floats, rows: Ints, width: int) -> tuple[Ints, Floats]:
    """Fill the dot columns between neighbouring rows with a straight line, where there are fewer rows than columns.

    Rows with a value that is not finite between them stay apart.
    """
    if len(dots) >= width or len(dots) < 2:
        return dots, levels
    between = np.arange(int(dots[0]), int(dots[-1]) + 1)
    left = np.clip(np.searchsorted(dots, between, side="right") - 1, 0, len(dots) - 2)
    between = between[np.diff(rows)[left] == 1]
    all_dots = np.concatenate((dots, between))
    all_levels = np.concatenate((levels, np.interp(between, dots, levels)))
    order = np.argsort(all_dots, kind="stable")
    return all_dots[order], all_levels[order]


def _grid(dots: Ints, levels: Floats, columns: int, height: int) -> list[list[int]]:
    """Braille codes of each cell: a stroke from the lowest to the highest value of each dot column.

    `dots` are the dot columns of the values, in increasing order.
    """
    cells = [[0] * columns for _ in range(height)]
    if not len(dots):
        return cells
    starts = np.concatenate(([0], np.flatnonzero(np.diff(dots)) + 1))
    order = dots[starts]
    lows, highs = np.minimum.reduceat(levels, starts), np.maximum.reduceat(levels, starts)
    for dot, low, high in zip(order.tolist(), lows.tolist(), highs.tolist(), strict=True):
        for level in range(round(low), round(high) + 1):
            row = 4 * height - 1 - level
            cells[row // 4][dot // 2] |= _DOTS[row % 4][dot % 2]
    return cells


def _cells(codes: list[int], mark: int | None) -> Line:
    text = "".join(chr(0x2800 + code) if code else " " for code in codes)
    if mark is None:
        return [(text, "curve")]
    middle = text[mark] if codes[mark] else "┊"
    return [(text[:mark], "curve"), (middle, "mark"), (text[mark + 1 :], "curve")]


def _crosses(columns_hit: Ints, columns: int) -> Line:
    hit: Bools = np.zeros(columns, dtype=bool)
    hit[np.clip(columns_hit, 0, columns - 1)] = True
    return [(f"{'NaN/inf':>{MARGIN}} ", "axis"), ("".join("×" if h else " " for h in hit), "mark")]


def _foot(span: tuple[int, int], columns: int, mark: int | None, onset_step: int | None) -> Line:
    first, last = (f"{step:,}" for step in span)
    line = list(" " * (MARGIN + 1 + columns))
    line[MARGIN + 1 : MARGIN + 1 + len(first)] = first
    line[-len(last) :] = last
    if mark is None or onset_step is None:
        return [("".join(line), "axis")]
    label = f"▲ {onset_step:,}"
    start = min(max(MARGIN + 1 + mark, 0), len(line) - len(label))
    if start < MARGIN + 1 + len(first) + 1:
        line[MARGIN + 1 : MARGIN + 1 + len(first)] = " " * len(first)
    if start + len(label) > len(line) - len(last) - 1:
        line[-len(last) :] = " " * len(last)
    text = "".join(line)
    return [(text[:start], "axis"), (label, "mark"), (text[start + len(label) :], "axis")]


def _short(value: float) -> str:
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.1e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
