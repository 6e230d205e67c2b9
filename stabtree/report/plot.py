"""The figure of a diagnosis: which series over one axis of steps, with what marked; and how a terminal draws it."""

from __future__ import annotations

import math
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.stats import quantiles
from stabtree.common.text import clean
from stabtree.metrics.metric import Role
from stabtree.metrics.role import describe_name
from stabtree.profile import profiles
from stabtree.report.rows import HASHES, distinct
from stabtree.report.words import by_group, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.report.page import Line, Piece
    from stabtree.run import Gap, Run, Series

    Ink = list[list[int]]
    """The dots of each cell, row by row; a dot is a bit, counted down and then across."""
    CellMark = tuple[int, str, str]
    """A mark on the terminal: its cell, its style and its label."""

LOG_RATIO = 30.0  # a series that spans more than this is drawn on a log axis
MAX_DIGITS = 7
LONGEST = 8  # characters of a number at the end of an axis
MULTIPLES = (1, 2, 5, 10)
MAX_STRIPS = 4
MAX_LOGGED = 8  # of a run in which nothing stands out
COLUMNS = 388  # of a picture
MAX_CHECKPOINTS = 80  # more of them hide the axis
# What a page draws of a run in which nothing stands out, in this order.
LOGGED = (Role.LOSS, Role.HELD_OUT_LOSS, Role.REWARD, Role.QUALITY, Role.RATE, Role.GRADIENT)
ROBUST = (0.005, 0.995)  # what lies within is always on the axis
FAR = 3.0  # how many times that range an end may reach beyond it
ROOM = 0.5  # the same where something began later than the first of so many parts of the rows
EARLY = 5
ROWS = 2  # text rows of a strip
MIN_NAME, MAX_NAME = 12, 18  # columns of a name
MIN_CELLS = 10
LINES = {"onset": "mark", "restart": "restart", "worse": "worse", "differs": "differs"}  # style by kind of mark
WORDS = {"mark": "onset", "restart": "restart", "worse": "worse from", "differs": "differs at"}  # before its step


class Strip(Struct, frozen=True):
    """One series, drawn into columns of equal width; what is far off most of it is drawn at the edge of the axis."""

    metric: str
    lows: Floats  # float64 (columns,), the lowest finite value of each column; NaN where none falls into it
    highs: Floats
    bad: Bools  # bool (columns,), whether a value that is not finite falls into the column
    joined: Bools  # bool (columns,), whether the line goes on from the last filled column: no such value and no gap
    low: float  # the ends of the axis
    high: float
    log: bool
    clipped: float | None = None  # the highest finite value where it is beyond the axis, and the lowest one
    clipped_low: float | None = None
    first: bool = False  # whether it moved before all others
    moved: bool = True  # whether something happened in it at the onset
    behind: Strip | None = None  # the course of other runs on the same axis
    tall: bool = False  # whether a picture gives it more room than the others


class Mark(Struct, frozen=True):
    """A step that is marked: `onset`, `restart`, `worse`, `differs`, `checkpoint`, or an `event` of a series.

    Some are stretches: `doubt`, from the last good step to the first bad one, and `trouble`, from there on.
    """

    step: int
    kind: str
    label: str = ""
    metric: str = ""
    until: int = 0


class Figure(Struct, frozen=True):
    """Strips over one axis of steps, the most important first, with what is marked by step."""

    first_step: int
    last_step: int  # at least one more
    columns: int  # of equal width
    strips: tuple[Strip, ...]
    marks: tuple[Mark, ...]
    unit: str = "step"  # what the axis counts: `step`, or `row`


class Frame(Struct, frozen=True):
    """The axis of steps, cut into columns, and where on it the trouble began."""

    first: int
    last: int
    columns: int
    onset: int | None = None


def column_of(steps: Ints, first: int, last: int, columns: int) -> Ints:
    """Return the column that each step falls into: int64 (steps,)."""
    share = (steps - first) / max(last - first, 1)
    found: Ints = np.clip((share * columns).astype(np.int64), 0, columns - 1)
    return found


def whole_figure(diagnosis: Diagnosis, finding: Incident | None, against: Run | None = None) -> Figure | None:
    """Return the figure of a picture: with events, spans and checkpoints, the loss higher than the other series.

    Of a run in which nothing stands out it has each outcome, rate and gradient that was logged. The curves of a
    healthy run to hold it `against` lie behind.
    """
    alarm = finding if finding and finding.is_alarm and finding.onset_step is not None else None
    chosen = chosen_series(diagnosis, finding)
    if alarm is None:
        chosen = distinct([*logged(diagnosis.run), *chosen])[:MAX_LOGGED]
    drawn = figure(diagnosis, finding, COLUMNS, chosen)
    if drawn is None:
        return None
    events, leads, marks = enumerate(in_order(diagnosis.timeline), 1), "loss", [*drawn.marks]
    marks += (Mark(event.step, "event", f"{number}", event.metric) for number, (event, _) in events)
    if finding and finding.restart:
        marks += _checkpoints(finding.restart, drawn.first_step, drawn.last_step)
    if alarm:
        leads = alarm.metric
        marks += _stretches(alarm, drawn.first_step, drawn.last_step)
    strips = sorted(drawn.strips, key=lambda strip: (strip.metric != leads, strip.metric != "loss"))
    strips[0] = replace(strips[0], tall=True)
    if against is not None:
        frame = Frame(drawn.first_step, drawn.last_step, COLUMNS)
        strips = [_over(strip, against.find(strip.metric), frame) for strip in strips]
    return replace(drawn, strips=tuple(strips), marks=tuple(marks))


def _checkpoints(restart: Restart, first: int, last: int) -> list[Mark]:
    """Return a mark for each checkpoint between two steps; none where they would hide the axis."""
    shown: Sequence[int] = [step for step in restart.listed or () if first <= step <= last]
    if not restart.listed and restart.every > 1:
        begin = max(first + -first % restart.every, 0)
        shown = range(begin, last + 1, restart.every)  # of any length: it is not gone through
    if len(shown) > MAX_CHECKPOINTS:
        return []
    return [Mark(step, "checkpoint", f"{step:,}") for step in shown]


def _stretches(finding: Incident, first: int, last: int) -> Iterator[Mark]:
    """Yield the stretch in which a finding began, and the one from there on unless it came back."""
    onset = finding.onset_step or 0
    if finding.last_good_step is not None and not finding.turns:
        yield Mark(max(finding.last_good_step, first), "doubt", until=onset)
    if finding.open:
        yield Mark(onset, "trouble", until=last)


def _over(strip: Strip, series: Series | None, frame: Frame) -> Strip:
    """Return a strip over the course of a series of a healthy run, on an axis that fits both."""
    if series is None or not (inside := (series.steps >= frame.first) & (series.steps <= frame.last)).any():
        return strip
    behind = drawn_strip(replace(series, steps=series.steps[inside], values=series.values[inside]), frame)
    return replace(widest(strip, (strip, behind)), behind=behind)


def widest(strip: Strip, strips: Sequence[Strip]) -> Strip:
    """Return a strip on an axis that fits all of some strips."""
    low, high = min(other.low for other in strips), max(other.high for other in strips)
    clipped, clipped_low = strip.clipped, strip.clipped_low
    if clipped is not None and clipped <= high:
        clipped = None
    if clipped_low is not None and clipped_low >= low:
        clipped_low = None
    log = low > 0 and any(other.log for other in strips)
    return replace(strip, low=low, high=high, log=log, clipped=clipped, clipped_low=clipped_low)


def logged(run: Run) -> list[Series]:
    """Return the outcomes, rates and gradients of a run that have a course, the loss first."""
    held = [series for series in (*run.series.values(), *run.others.values()) if len(series) > 1]
    roles = [(describe_name(series.metric).role, series) for series in held if series.metric != HASHES]
    wanted = sorted((LOGGED.index(role), place) for place, (role, _) in enumerate(roles) if role in LOGGED)
    return [roles[place][1] for _, place in wanted]


def figure(
    diagnosis: Diagnosis, finding: Incident | None, columns: int, chosen: Sequence[Series] = ()
) -> Figure | None:
    """Return the series that a diagnosis rests on over one axis of steps; None where there is nothing to draw."""
    chosen = chosen or chosen_series(diagnosis, finding)
    if not chosen:
        return None
    first = min(int(series.steps[0]) for series in chosen)
    last = max(int(series.steps[-1]) for series in chosen)
    if first == last:
        return None
    steps: dict[str, int | None] = {}
    if finding and finding.restart:
        steps["restart"] = finding.restart.checkpoint_step
    if finding:
        steps["onset"] = finding.onset_step
    onset, inside = steps.get("onset"), ((step, kind) for kind, step in steps.items() if step is not None)
    ordered = sorted(inside, key=itemgetter(0))
    marks = tuple(Mark(step, kind, f"{step:,}") for step, kind in ordered if first <= step <= last)
    drawn = tuple(_strips(diagnosis, chosen, Frame(first, last, columns, onset)))
    return Figure(first, last, columns, drawn, marks, diagnosis.run.unit)


def _strips(diagnosis: Diagnosis, chosen: Sequence[Series], frame: Frame) -> Iterator[Strip]:
    leader = ""
    if len(by_group(diagnosis.timeline)) > 1:  # alone a series moved before nothing
        leader = next((event.metric for event in diagnosis.timeline if event.first), "")
    moved = {event.metric for event in diagnosis.timeline}
    for worst in diagnosis.findings[:1]:
        moved |= {worst.metric, *(item.metric for item in worst.evidence)}
    for series in chosen:
        gaps = [gap for gap in diagnosis.run.gaps if gap.metric == series.metric]
        strip = drawn_strip(series, frame, gaps=gaps, leads=series.metric == leader)
        yield replace(strip, moved=series.metric in moved or bool(strip.bad.any()))


def chosen_series(diagnosis: Diagnosis, finding: Incident | None) -> list[Series]:
    """Return the series that moved and those that the finding rests on, with the loss."""
    run, own, far = diagnosis.run, list[str](), list[str]()
    if finding:
        own, far = [item.metric for item in finding.evidence], _far_off(run)
    first = [event.metric for event in diagnosis.timeline if event.first]
    named = dict.fromkeys([*own[:1], *first, *own, *(event.metric for event in diagnosis.timeline), *far])
    names = [name for name in named if name != HASHES and run.find(name)]
    # The loss comes last where it is none of them: a loss that did not move shows nothing.
    wanted = dict.fromkeys([*names[: MAX_STRIPS - 1], "loss", *names])
    held = [series for name in wanted if (series := run.find(name)) is not None]
    held = distinct(held or [series for series in run.series.values() if not np.isfinite(series.values).all()])
    # There is something to see in a series by itself: a course, or a row that is not finite.
    drawn = [series for series in held if len(series) > 1 or not np.isfinite(series.values).all()]
    if not drawn:
        return []
    point = [series for series in held if series.metric == "loss" and all(series is not one for one in drawn)]
    return [*point, *drawn][:MAX_STRIPS]


def _far_off(run: Run) -> list[str]:
    """Return the columns that nobody knows and that ended at ten times a level of theirs or a tenth, farthest first."""
    described, far = profiles(run), []
    for name in run.others:
        left = [item for item in described[name].departures if item.tenfold_step is not None]
        ratios = [abs(item.end / item.level) for item in left]
        if ratios and described[name].shows_training:
            far.append((-max(max(ratio, 1 / max(ratio, 1e-300)) for ratio in ratios), name))
    return [name for _, name in sorted(far)]


def drawn_strip(series: Series, frame: Frame, *, gaps: Sequence[Gap] = (), leads: bool = False) -> Strip:
    """Return a series as it is drawn into the columns of a frame."""
    good = np.isfinite(series.values)
    columns, values = column_of(series.steps, frame.first, frame.last, frame.columns), series.values[good]
    low, high, log = _axis(values, series.steps, frame.onset if good.all() else None)
    lows, highs = np.full(frame.columns, np.nan), np.full(frame.columns, np.nan)
    bottom, top = low, high
    if len(values):
        bounds = np.searchsorted(columns[good], np.arange(frame.columns + 1))
        filled = np.diff(bounds) > 0
        lows[filled] = np.minimum.reduceat(values, bounds[:-1][filled])
        highs[filled] = np.maximum.reduceat(values, bounds[:-1][filled])
        bottom, top = float(values.min()), float(values.max())
    bad = np.zeros(frame.columns, dtype=bool)
    bad[columns[~good]] = True
    # The line breaks behind a value that is not finite, and behind a gap.
    joined = ~np.isnan(highs)
    joined[columns[good & ~np.append(False, good[:-1])]] = False
    after_gaps = np.searchsorted(series.steps, [gap.first_step for gap in gaps])
    joined[columns[after_gaps[after_gaps < len(columns)]]] = False
    return Strip(
        metric=series.metric,
        lows=lows,
        highs=highs,
        bad=bad,
        joined=joined,
        low=low,
        high=high,
        log=log,
        clipped=top if top > high else None,
        clipped_low=bottom if bottom < low else None,
        first=leads,
    )


def _axis(values: Floats, steps: Ints, onset: int | None) -> tuple[float, float, bool]:
    """Return the ends of the axis, and whether it is logarithmic: the whole range where most of the series reach it."""
    if not len(values):
        return 0.0, 1.0, False
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low > LOG_RATIO:
        return low, high, True
    usual, times = values, FAR
    # The early fall does not flatten what began late in the run.
    if onset is not None and onset > steps[len(values) // EARLY]:
        usual, times = values[len(values) // EARLY :], ROOM
    inner_low, inner_high = quantiles(usual, *ROBUST)
    room = times * (inner_high - inner_low)
    if room > 0:
        low, high = max(low, inner_low - room), min(high, inner_high + room)
    return low, high, False


def levels(values: Floats, low: float, high: float, *, log: bool) -> Floats:
    """Return the height of finite values between the ends of an axis, 0 to 1; beyond an end is at the end."""
    if not high > low:
        return np.full(len(values), 0.5)
    with np.errstate(all="ignore"):
        if log:
            values, low, high = np.log(values), float(np.log(low)), float(np.log(high))
        # Halved first: the distance of the largest numbers from each other overflows a float.
        share = (values / 2 - low / 2) / (high / 2 - low / 2)
    found: Floats = np.clip(np.nan_to_num(share), 0, 1)
    return found


def short(value: float, digits: int = 3) -> str:
    """Return a number in few characters: `2.31`, `65536`, `1.2e-5`."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.0f}" if abs(value) >= 10.0**digits else f"{value:.{digits}g}"
    decimals = digits - 1 if digits > 3 else int(1e-99 <= abs(value) < 1e99)
    mantissa, _, exponent = f"{value:.{decimals}e}".partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"


def apart(values: Iterable[float], longest: int = MAX_DIGITS + 6) -> list[str]:
    """Return numbers in as many digits as it takes for them to differ, where that has room; none where it has not."""
    wanted = [*values]
    tries = ([short(value, digits) for value in wanted] for digits in range(3, MAX_DIGITS + 1))
    return next((texts for texts in tries if len({*texts}) == len(texts) and max(map(len, texts)) <= longest), [])


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` multiples of 1, 2 or 5 times a power of ten between two ends; the ends where none fits."""
    rough = high / most - low / most
    if not (math.isfinite(rough) and rough > 0) or rough < 1e-300 or max(abs(low), abs(high)) / rough > 1e12:
        return [low, high] if high > low else [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((power * times for times in MULTIPLES if power * times >= rough), power * 10)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [count * step for count in range(first, last + 1)] or [low, high]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return the powers of ten between two ends, evenly spread where there are more than `most`."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        return [low, high]
    stride = math.ceil((last - first + 1) / most)
    return [10.0**power for power in range(first, last + 1, stride) if power > -308]


def step_ticks(first: int, last: int, most: int) -> list[int]:
    """Return whole numbers along the axis of steps, its first one among them."""
    found = [round(value) for value in linear_ticks(float(first), float(last), most)]
    return [*dict.fromkeys(step for step in found if first <= step <= last)] or [first, last]


class Pen(Struct, frozen=True):
    """What a curve is drawn with."""

    across: int  # dots of a cell from left to right
    down: int
    glyphs: Mapping[int, str]  # the dots of a cell -> the character


_BITS = (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)  # counted down, then across
_BRAILLE = {
    dots: chr(0x2800 + sum(bit for index, bit in enumerate(_BITS) if dots >> index & 1)) for dots in range(1, 256)
}
BRAILLE = Pen(2, 4, _BRAILLE)
ASCII = Pen(1, 2, {1: "'", 2: ".", 3: "*"})  # a page in ASCII spells all other signs


def columns_for(width: int) -> int:
    """Return into how many columns a figure is to be cut for a screen of that width."""
    return BRAILLE.across * _cells(width, MIN_NAME)


def strips(figure: Figure, width: int, *, ascii: bool = False, height: int = ROWS) -> list[Line]:  # noqa: A002 - as in `RenderOptions`
    """Draw the strips, each as high as asked, and a last row with the steps.

    A column shows the range of the values that fall into it. Styles: `title`, `axis`, `curve`; `mark` for an onset
    and for values that are not finite, `restart`, and `first` for what moved before all others.
    """
    pen = ASCII if ascii else BRAILLE
    room = max(MIN_NAME, min(MAX_NAME, max(len(strip.metric) for strip in figure.strips), width // 4))
    cells = _cells(width, room)
    at = column_of(np.array([mark.step for mark in figure.marks], np.int64), figure.first_step, figure.last_step, cells)
    pairs = zip(at.tolist(), figure.marks, strict=True)
    marks = [(cell, LINES[mark.kind], mark.label) for cell, mark in pairs if mark.kind in LINES]
    styles = {cell: style for cell, style, _ in marks}
    still = {cell: style for cell, style in styles.items() if style != LINES["onset"]}
    lines: list[Line] = []
    for strip in figure.strips:
        left = _left(strip, room, height)
        right = _rows(strip, cells, styles if strip.moved else still, height, pen)
        lines += [[*label, *drawn] for label, drawn in zip(left, right, strict=True)]
    lines.append([(" " * (room + LONGEST + 2), ""), *_steps(figure, marks, cells)])
    return lines


def _cells(width: int, room: int) -> int:
    return max(MIN_CELLS, width - room - LONGEST - 2)


def _left(strip: Strip, room: int, height: int) -> list[Line]:
    """Return its name and the upper end of its axis; below, its notes and the lower end."""
    low, high = apart((strip.low, strip.high), LONGEST) or map(short, (strip.low, strip.high))
    if np.isnan(strip.highs).all():
        low = high = ""
    elif strip.low == strip.high:
        low = ""
    name, kept = clean(strip.metric), room - 1
    if len(name) > room:
        name = name[: kept // 2] + "…" + name[len(name) - (kept - kept // 2) :]
    first = "◀ first " if strip.first else ""
    notes = [] if strip.clipped is None else [f"max {short(strip.clipped)}"]
    notes += [] if strip.clipped_low is None else [f"min {short(strip.clipped_low)}"]
    note = " ".join([*notes, *(["(log)"] if strip.log else [])])[: room - len(first)]
    return [
        [(f"{name:<{room}} ", "title"), (f"{high:>{LONGEST}} ", "axis")],
        *([[(" " * (room + LONGEST + 2), "")]] * (height - 2)),
        [(first, "first"), (f"{note:<{room - len(first)}} ", "axis"), (f"{low:>{LONGEST}} ", "axis")],
    ]


def _rows(strip: Strip, cells: int, marks: Mapping[int, str], height: int, pen: Pen) -> list[Line]:
    """Draw the rows of a strip: the curve, over it what is not finite or beyond the axis, behind it marked steps."""
    columns = np.arange(len(strip.lows)) * cells // len(strip.lows)
    rows: list[dict[int, Piece]] = [{cell: ("┊", style) for cell, style in marks.items()} for _ in range(height)]
    kept = (1 << pen.down) - 1  # every second column of dots, so that a curve behind differs without colours too
    for curve, style in ((strip.behind, "behind"), (strip, "curve")):
        for row, codes in zip(rows, _ink(curve, cells, height, pen) if curve else [], strict=False):
            for cell, code in enumerate(codes):
                dots = code & kept if pen.across > 1 else code * (cell % 2)
                if shown := code if curve is strip else dots:
                    row[cell] = (pen.glyphs[shown], style)
    rows[-1].update(dict.fromkeys(columns[strip.lows < strip.low].tolist(), ("↓", "curve")))
    rows[0].update(dict.fromkeys(columns[strip.highs > strip.high].tolist(), ("↑", "curve")))
    rows[0].update(dict.fromkeys(columns[strip.bad].tolist(), ("×", "mark")))
    return [_merged([row.get(cell, (" ", "")) for cell in range(cells)]) for row in rows]


def _merged(line: Line) -> Line:
    """Return a line with neighbours of one style as one piece."""
    return [("".join(text for text, _ in group), style) for style, group in groupby(line, key=itemgetter(1))]


def _ink(strip: Strip, width: int, height: int, pen: Pen) -> Ink:
    """Return the dots of each cell: a stroke over the range of each column of dots, lines between what is joined."""
    dots, top = width * pen.across, height * pen.down - 1
    filled = np.flatnonzero(~np.isnan(strip.highs))
    columns = filled * dots // len(strip.highs)
    lows, highs = np.full(dots, np.nan), np.full(dots, np.nan)
    low = levels(strip.lows[filled], strip.low, strip.high, log=strip.log) * top
    high = levels(strip.highs[filled], strip.low, strip.high, log=strip.log) * top
    np.fmin.at(lows, columns, low)
    np.fmax.at(highs, columns, high)
    middles = (low + high) / 2
    for at in np.flatnonzero(strip.joined[filled]).tolist():
        left, right = int(columns[at - 1]), int(columns[at])
        edges = np.clip(np.arange(left, right + 2) - 0.5, left, right)
        line = np.interp(edges, (left, right), (middles[at - 1], middles[at]))
        between = slice(left, right + 1)
        lows[between] = np.fmin(lows[between], np.minimum(line[:-1], line[1:]))
        highs[between] = np.fmax(highs[between], np.maximum(line[:-1], line[1:]))
    cells = [[0] * width for _ in range(height)]
    for dot in np.flatnonzero(~np.isnan(lows)).tolist():
        for level in range(round(lows[dot]), round(highs[dot]) + 1):
            row, down = divmod(top - level, pen.down)
            cells[row][dot // pen.across] |= 1 << (dot % pen.across * pen.down + down)
    return cells


def _steps(figure: Figure, marks: Sequence[CellMark], cells: int) -> Line:
    """Return the marks, each with its word and step where these have room, and the first and the last step."""
    row: Line = [(" ", "")] * cells
    first, last = f"{figure.first_step:,}", f"{figure.last_step:,}"
    room = cells - len(last) - 1
    for cell, style, _ in marks:
        row[cell] = ("▲", style)
    for cell, style, label in marks:
        for text in (f"{WORDS[style]} {label}", label):
            sides = [cell + 2, cell - 1 - len(text)]
            if style == "restart" or sides[0] + len(text) > room:
                sides.reverse()
            if any(_put(row, start, text, style) for start in sides):
                break
    _put(row, cells - len(last), last, "axis")
    _put(row, 0, first, "axis")
    return _merged(row)


def _put(row: Line, start: int, text: str, style: str) -> bool:
    """Write a text where it touches no other; return whether it found room."""
    end = start + len(text)
    if start < 0 or end > len(row) or any(char != " " for char, _ in row[max(0, start - 1) : end + 1]):
        return not text
    row[start:end] = [(char, style) for char in text]
    return True
