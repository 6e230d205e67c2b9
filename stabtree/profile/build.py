"""Make the profile of a series."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from stabtree.common import shared
from stabtree.common.lazy import Later, np
from stabtree.common.passes import broken_rows, sound_rows, stretches_of
from stabtree.common.shared import FACTOR, FACTOR_LARGE
from stabtree.common.stats import LARGEST
from stabtree.metrics.role import describe_name
from stabtree.profile.model import LeftLevel, Nonfinite, Point, Profile, Segment, Swings, quanta
from stabtree.profile.segments import (
    Blocked,
    blocks_of,
    ends,
    extreme_rows,
    far,
    level_scatter,
    levels_of,
    middle,
    row_noise,
    smoothed,
    spikes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.run import Run, Series


NEAR = FACTOR  # in scatters of a level: levels so close are one
TENFOLD = FACTOR_LARGE
MIN_ROWS = 2  # a single last row may be a spike


class Staircase(NamedTuple):
    """The levels of one series.

    Attributes:
        rows: the row at which each begins.
        level: each of them.
        scatter: the standard deviation of a block median.
        noise: that of a single row.
        first: the level of the first rows.
        end: the level of the last rows.
        tails: how many of the last rows are above the last level, and how many below.
    """

    rows: list[int]
    level: list[float]
    scatter: float
    noise: float
    first: float
    end: float
    tails: tuple[int, int]


def departures(found: Sequence[Staircase], place: int, values: Floats, steps: Ints) -> tuple[LeftLevel, ...]:
    """Return the lowest level that a series left upwards for good, and the highest that it left downwards, by step."""
    if not found[place].noise > 0:
        return ()
    left = [_left(values, found[place], steps, side) for side in (1, -1)]
    return tuple(sorted((item for item in left if item), key=lambda item: item.step))


def _left(values: Floats, stairs: Staircase, steps: Ints, side: int) -> LeftLevel | None:
    """Return where a series left its lowest level (side 1) or its highest one (side -1) for good."""
    level = [side * value for value in stairs.level]
    near = min(level) + NEAR * stairs.scatter
    home = len(level) - 1
    while level[home] > near:
        home -= 1
    tail = stairs.tails[(1 - side) // 2]
    if home < len(level) - 1:
        row, end = stairs.rows[home + 1], stairs.end
    elif tail >= MIN_ROWS:
        row = len(values) - tail
        end = float(np.sort(values[row:])[tail // 2])
    else:
        return None
    left = stairs.level[home]
    times = (end - left) / stairs.noise
    if side * times <= 0:
        return None
    scatters = (end - left) / stairs.scatter
    # The first step from which on every row is ten times as far from 0; see `LeftLevel`.
    bar, tenfold = TENFOLD * left if side > 0 else left / TENFOLD, None
    inside = side * values[row:] < side * bar
    if left > 0 and not inside[-1]:
        tenfold = int(steps[row + 1 + int(np.append(-1, np.flatnonzero(inside))[-1])])
    return LeftLevel(int(steps[row]), left, end, times, scatters, tenfold)


TOGETHER = 1 << 17  # no limit: cells that are measured in one go: 4 MB, about a processor's cache
TREND_LEVELS = 16  # no limit: levels of Kendall's score, which is quadratic; any steady trend shows in them
ROUNDING = 16 * 2.0**-53  # no limit: the share of a value by which equal numbers may differ


class _Measured(NamedTuple):
    """What is measured of the finite rows of one series; `best_low` is its lowest level, `best_high` its highest."""

    first: float
    end: float
    noise: float
    best_low: float
    best_high: float
    lowest: Point
    highest: Point
    quantum: float
    segments: Sequence[Segment]
    departures: Sequence[LeftLevel]
    spikes: Swings
    trend: float


# A profile refers to its series, and would keep it for ever; what was measured does not.
_KNOWN: WeakKeyDictionary[Series, tuple[Nonfinite, _Measured | None]] = WeakKeyDictionary()


def profiles(run: Run) -> dict[str, Profile]:
    """Return the profile of every series of a run, by the names of `series` and `others`; made once and kept."""
    every = {**run.others, **run.series}
    _measure(series for series in every.values() if series not in _KNOWN)
    return {name: profile_of(series) for name, series in every.items()}


def profile_of(series: Series) -> Profile:
    """Return the profile of one series, with what its name says of it; measured once and kept."""
    if series not in _KNOWN:
        _measure([series])
    nonfinite, found = _KNOWN[series]
    name = describe_name(series.metric)
    span = (int(series.steps[0]), int(series.steps[-1])) if len(series) else None
    if found is None:
        return Profile(series, name.role, name.better, len(series), span, nonfinite=nonfinite)
    point = {"lower": found.lowest, "higher": found.highest}.get(name.better)
    return Profile(
        series=series,
        role=name.role,
        better=name.better,
        rows=len(series),
        span=span,
        first=found.first,
        best={"lower": found.best_low, "higher": found.best_high}.get(name.better, np.nan),
        best_step=point.step if point else None,
        last=found.end,
        lowest=found.lowest,
        highest=found.highest,
        level_noise=found.noise,
        quantum=found.quantum,
        constant=found.lowest.value == found.highest.value,
        nonfinite=nonfinite,
        segments=found.segments,
        departures=found.departures,
        spikes=found.spikes,
        trend=found.trend,
    )


def scatter_of(series: Series) -> tuple[float, float]:
    """Return the `level_noise` and the `quantum` of the profile of a series, in a fraction of the time."""
    if series in _KNOWN:
        found = _KNOWN[series][1]
        return (found.noise, found.quantum) if found else (0.0, 0.0)
    _, values, _ = _finite(series)
    if not len(values):
        return 0.0, 0.0
    with np.errstate(all="ignore"):
        _, quantum, noise = _scattered(values[None])
        return float(noise[0]), float(quantum[0])


def _measure(wanted: Iterable[Series]) -> None:
    groups: dict[int, list[tuple[Series, Ints, Floats, Nonfinite]]] = {}
    for series in wanted:
        steps, values, nonfinite = _finite(series)
        groups.setdefault(len(values), []).append((series, steps, values, nonfinite))
    with np.errstate(all="ignore"):
        for length, alike in groups.items():
            together = max(1, TOGETHER // max(length, 1))
            for begin in range(0, len(alike), together):
                part = alike[begin : begin + together]
                measured: Sequence[_Measured | None] = [None] * len(part)
                if length:
                    measured = _measure_alike([item[1] for item in part], [item[2] for item in part])
                for (series, _, _, nonfinite), found in zip(part, measured, strict=True):
                    _KNOWN[series] = nonfinite, found


def _finite(series: Series) -> tuple[Ints, Floats, Nonfinite]:
    """Return the steps and values of the finite rows, and what there is of others."""
    steps, values = series.steps, series.values
    bad, good = broken_rows(series), sound_rows(series)
    if not len(bad):
        return steps, values, Nonfinite()
    groups = len(stretches_of(bad)[0])
    return steps[good], values[good], Nonfinite(len(bad), int(steps[bad[0]]), groups)


def _measure_alike(steps: list[Ints], rows: list[Floats]) -> list[_Measured]:
    """Measure series of as many rows each."""
    blocked, quantum, noise = _scattered(rows[0][None] if len(rows) == 1 else np.stack(rows))
    first, last = ends(blocked.values)
    # The search for changes takes longest, and few ask for it.
    stairs = Later(lambda: tuple(_staircases(blocked, noise, first, last)))
    local = smoothed(blocked.medians)
    every = zip(
        steps,
        rows,
        range(len(rows)),
        *(extreme_rows(blocked, highest=highest) for highest in (False, True)),
        first.tolist(),
        last.tolist(),
        noise.tolist(),
        spikes(blocked, noise, steps),
        quantum.tolist(),
        local.min(axis=1).tolist(),
        local.max(axis=1).tolist(),
        _trend(blocked.medians).tolist(),
        strict=True,
    )
    return [
        _Measured(
            first=begin,
            end=end,
            noise=scatter,
            best_low=min(begin, end, low),
            best_high=max(begin, end, high),
            lowest=Point(int(at[bottom]), float(own[bottom])),
            highest=Point(int(at[top]), float(own[top])),
            quantum=step,
            # These hold arrays and never a series, which would be known for ever.
            segments=Later(partial(_parts, stairs, place, at)),
            departures=Later(partial(departures, stairs, place, own, at)),
            spikes=swings,
            trend=trend,
        )
        for at, own, place, bottom, top, begin, end, scatter, swings, step, low, high, trend in every
    ]


def _staircases(blocked: Blocked, noise: Floats, first: Floats, last: Floats) -> list[Staircase]:
    """Return the levels of each series; `first` and `last`, (k,), are those of its ends."""
    with np.errstate(all="ignore"):
        scatter = np.maximum(level_scatter(blocked, noise), np.finfo(np.float64).tiny)
        begins, level, behind = levels_of(blocked, noise, scatter)
        # How many of the last rows, of two blocks at the most, are far above the last level, and how many below.
        off = (blocked.values[:, -2 * blocked.size :] - level[behind - 1][:, None])[:, ::-1]
        reach = far(blocked.values.shape[1]) * noise[:, None]
        counts = [np.where(out.all(axis=1), out.shape[1], out.argmin(axis=1)) for out in (off > reach, off < -reach)]
        tail = list(zip(*(side.tolist() for side in counts), strict=True))
    parts = [slice(begin, end) for begin, end in pairwise([0, *behind.tolist()])]
    rows, flat = begins.tolist(), level.tolist()
    each = zip(parts, scatter.tolist(), noise.tolist(), first.tolist(), last.tolist(), tail, strict=True)
    return [Staircase(rows[part], flat[part], *own) for part, *own in each]


def _scattered(values: Floats) -> tuple[Blocked, Floats, Floats]:
    """Return blocks of series, (k, n), without a value beyond `LARGEST`, their quanta, and the scatter of single rows.

    That is half a step of the numbers at least, and 0 for constant series.
    """
    blocked = blocks_of(values)
    if max(float(blocked.highs.max()), -float(blocked.lows.min())) > LARGEST:
        blocked = blocks_of(np.clip(values, -LARGEST, LARGEST))
    quantum = quanta(blocked.values)
    low, high = blocked.lows.min(axis=1), blocked.highs.max(axis=1)
    rounding = ROUNDING * np.maximum(np.abs(low), np.abs(high))
    noise = np.maximum(row_noise(blocked), np.maximum(quantum / 2, rounding))
    return blocked, quantum, np.where(low == high, 0.0, noise)


def _parts(found: Sequence[Staircase], place: int, steps: Ints) -> tuple[Segment, ...]:
    stairs = found[place]
    bounds = [*stairs.rows, len(steps)]
    first, last = steps[stairs.rows].tolist(), steps[np.array(bounds[1:]) - 1].tolist()
    sizes = [end - begin for begin, end in pairwise(bounds)]
    return tuple(map(Segment, first, last, sizes, stairs.level))


def _trend(medians: Floats) -> Floats:
    """Return the Mann-Kendall score of each series, (k,), by up to `TREND_LEVELS` levels; ties make it smaller."""
    series, count = medians.shape
    size = max(1, count // TREND_LEVELS)
    count //= size
    if count < 4:
        return np.zeros(series)
    level = middle(np.sort(medians[:, -count * size :].reshape(series, count, size), axis=-1))
    later, earlier = np.triu_indices(count, 1)[::-1]
    score = np.sign(level[:, later] - level[:, earlier]).sum(axis=1)
    deviation = (count * (count - 1) * (2 * count + 5) / 18) ** 0.5
    found: Floats = (score - np.sign(score)) / deviation
    return found


def lasts_from(bad: Bools) -> int | None:
    """Return the first bad row from which on nearly all rows are bad; None where the series does not end so."""
    shares = np.cumsum(bad[::-1])[::-1] / np.arange(len(bad), 0, -1)
    rows = np.flatnonzero(bad & (shares >= shared.SHARE_MOST))
    return int(rows[0]) if len(rows) else None
