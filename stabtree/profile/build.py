"""From series to their profiles: those of equal length are measured together, in linear time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from stabtree.common.lazy import Later, np
from stabtree.common.passes import broken_rows, sound_rows, stretches_of
from stabtree.common.stats import LARGEST
from stabtree.metrics.role import describe_name
from stabtree.profile.blocks import Blocked, blocks_of, ends, extreme_rows, middle, row_noise, smoothed
from stabtree.profile.departures import Staircase, departures, tails
from stabtree.profile.model import Nonfinite, Point, Profile, Segment, Swings
from stabtree.profile.quantum import quanta
from stabtree.profile.segments import level_scatter, levels_of
from stabtree.profile.spikes import spikes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.profile.model import LeftLevel
    from stabtree.run import Run, Series

TOGETHER = 1 << 17  # no limit: cells that are measured in one go: 4 MB, about a processor's cache
TREND_LEVELS = 16  # no limit: levels of Kendall's score, which is quadratic; any steady trend shows in them
ROUNDING = 16 * 2.0**-53  # no limit: the share of a value by which equal numbers may differ


class _Rows(NamedTuple):
    """The finite rows of a series."""

    series: Series
    steps: Ints
    values: Floats
    nonfinite: Nonfinite


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
    """Return the profile of one series; made once and kept."""
    if series not in _KNOWN:
        _measure([series])
    return _profile(series, *_KNOWN[series])


class Scatter(NamedTuple):
    """The scatter of single rows around their local level, and the smallest step of the numbers: see `Profile`."""

    level_noise: float
    quantum: float


def scatter_of(series: Series) -> Scatter:
    """Return what the profile of a series says of its scatter; it takes a fraction of the time."""
    if series in _KNOWN:
        found = _KNOWN[series][1]
        return Scatter(found.noise, found.quantum) if found else Scatter(0.0, 0.0)
    values = _finite(series).values[None]
    if not values.size:
        return Scatter(0.0, 0.0)
    with np.errstate(all="ignore"):
        _, blocked, quantum = _blocked(values)
        return Scatter(float(_noise(blocked, quantum)[0]), float(quantum[0]))


def _measure(wanted: Iterable[Series]) -> None:
    groups: dict[int, list[_Rows]] = {}
    for series in wanted:
        rows = _finite(series)
        groups.setdefault(len(rows.values), []).append(rows)
    with np.errstate(all="ignore"):
        for length, alike in groups.items():
            together = max(1, TOGETHER // max(length, 1))
            for begin in range(0, len(alike), together):
                part = alike[begin : begin + together]
                measured: Sequence[_Measured | None] = _measure_alike(part) if length else [None] * len(part)
                for rows, found in zip(part, measured, strict=True):
                    _KNOWN[rows.series] = rows.nonfinite, found


def _finite(series: Series) -> _Rows:
    """Return the finite rows, values beyond `LARGEST` cut to it so that their squares stay finite."""
    steps, values = series.steps, series.values
    bad, good = broken_rows(series), sound_rows(series)
    if not len(bad):
        return _Rows(series, steps, values, Nonfinite())
    groups = len(stretches_of(bad)[0])
    lost = Nonfinite(len(bad), int(steps[bad[0]]), groups, to_the_end=bool(bad[-1] == len(values) - 1))
    return _Rows(series, steps[good], values[good], lost)


def _measure_alike(rows: list[_Rows]) -> list[_Measured]:
    """Measure series of as many rows each."""
    values = rows[0].values[None] if len(rows) == 1 else np.stack([item.values for item in rows])
    values, blocked, quantum = _blocked(values)
    noise = _noise(blocked, quantum)
    first, last = ends(values)
    # The search for changes takes longest, and few ask for it.
    stairs = Later(lambda: tuple(_staircases(blocked, noise, first, last)))
    local = smoothed(blocked.medians)
    every = zip(
        rows,
        range(len(rows)),
        *(extreme_rows(blocked, highest=highest) for highest in (False, True)),
        first.tolist(),
        last.tolist(),
        noise.tolist(),
        spikes(blocked, noise, [item.steps for item in rows]),
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
            lowest=Point(int(item.steps[bottom]), float(item.values[bottom])),
            highest=Point(int(item.steps[top]), float(item.values[top])),
            quantum=step,
            segments=_segments(stairs, place, item.steps),
            departures=_departures(stairs, place, item.values, item.steps),
            spikes=swings,
            trend=trend,
        )
        for item, place, bottom, top, begin, end, scatter, swings, step, low, high, trend in every
    ]


def _blocked(values: Floats) -> tuple[Floats, Blocked, Floats]:
    """Return the values, (k, n), none of them beyond `LARGEST`, their blocks, and the smallest step of each series."""
    blocked = blocks_of(values)
    if max(float(blocked.highs.max()), -float(blocked.lows.min())) > LARGEST:
        values = np.clip(values, -LARGEST, LARGEST)
        blocked = blocks_of(values)
    return values, blocked, quanta(values)


def _staircases(blocked: Blocked, noise: Floats, first: Floats, last: Floats) -> list[Staircase]:
    """Return the levels of each series; `first` and `last`, (k,), are those of its ends."""
    with np.errstate(all="ignore"):
        scatter = np.maximum(level_scatter(blocked, noise), np.finfo(np.float64).tiny)
        found = levels_of(blocked, noise, scatter)
        tail = tails(blocked, found.level[found.ends - 1], noise)
    parts = [slice(begin, end) for begin, end in pairwise([0, *found.ends.tolist()])]
    rows, flat = found.rows.tolist(), found.level.tolist()
    each = zip(parts, scatter.tolist(), noise.tolist(), first.tolist(), last.tolist(), tail, strict=True)
    return [Staircase(rows[part], flat[part], *own) for part, *own in each]


def _noise(blocked: Blocked, quantum: Floats) -> Floats:
    """Return the scatter of single rows, (k,): half a step of the numbers at least, 0 for constant series."""
    low, high = blocked.lows.min(axis=1), blocked.highs.max(axis=1)
    rounding = ROUNDING * np.maximum(np.abs(low), np.abs(high))
    noise = np.maximum(row_noise(blocked), np.maximum(quantum / 2, rounding))
    found: Floats = np.where(low == high, 0.0, noise)
    return found


# What is found later holds arrays and never a series, which would be known for ever.
def _departures(found: Sequence[Staircase], place: int, values: Floats, steps: Ints) -> Sequence[LeftLevel]:
    return Later(lambda: departures(values, found[place], steps))


def _segments(found: Sequence[Staircase], place: int, steps: Ints) -> Sequence[Segment]:
    return Later(lambda: _parts(found[place], steps))


def _parts(stairs: Staircase, steps: Ints) -> tuple[Segment, ...]:
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


def _profile(series: Series, nonfinite: Nonfinite, found: _Measured | None) -> Profile:
    """Return the profile of a series, with what its name says of it."""
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
