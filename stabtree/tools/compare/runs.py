"""Runs in, a `Comparison` out: which rows are matched, what is more than noise, which series parted first."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR
from stabtree.loaders.json.rows import SEVERAL_RUNS
from stabtree.metrics.metric import Role
from stabtree.metrics.table import with_role
from stabtree.tools.compare import noise
from stabtree.tools.compare.align import CLOCK, side_by_side
from stabtree.tools.compare.result import Axis, Comparison, DigitsApart, Method, Parted, Unlike
from stabtree.tools.compare.seed import first_difference, largest, only_rounded, parting, same_seed
from stabtree.tools.compare.series import SCHEDULED, in_common

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stabtree.run import Run
    from stabtree.tools.compare.align import Rows
    from stabtree.tools.compare.result import Parting

ROUNDING_NOISES = FACTOR  # times its own noise that a series may move if nothing but rounding differs


def compare_runs(good: Sequence[Run], bad: Run, names: Sequence[str] = (), by: Axis = Axis.STEP) -> Comparison:
    """Find where a run parts from healthy runs, beyond noise.

    Args:
        good: the healthy runs.
        bad: the bad run.
        names: what to call them, the bad one last; their own names if not given.
        by: what rows are matched by. Runs that are matched by tokens were read with the tokens as their steps.

    Raises:
        StabtreeError: if there is no good run, or a run without a clock is to be matched by time.
    """
    if not good:
        raise StabtreeError("nothing to compare with", hint="name a healthy run before the bad one")
    named = tuple(names) or tuple(run.name for run in (*good, bad))
    blank = Comparison(tuple(good), bad, named, by, settings=config_differences(good, bad))
    if by is Axis.TIME:
        _check_clocks((*good, bad), named)
    rows = [side_by_side(name, good, bad, by) for name in in_common(good, bad)]
    rows = [one for one in rows if len(one)]
    if not rows:
        return replace(blank, reason=_nothing_in_common(good, bad, by))
    blank = replace(
        blank,
        rows=max(len(one) for one in rows),
        first_step=min(int(one.steps[0]) for one in rows),
        last_step=max(int(one.steps[-1]) for one in rows),
        notes=(*_last_of_several((*good, bad), named), *_ends(good, bad, by)),
    )
    with np.errstate(all="ignore"):  # the largest numbers may differ by infinity, which no bar is
        apart = [_digits_apart(run, bad, [one.only(index) for one in rows]) for index, run in enumerate(good)]
        same = _same_seed_run(rows, apart)
        if same is not None:
            return _by_seed(blank, rows, same)
        return _by_noise(replace(blank, digits_apart=apart[0]), rows)


def _check_clocks(runs: Sequence[Run], names: Sequence[str]) -> None:
    for run, name in zip(runs, names, strict=True):
        if CLOCK not in run.series:
            hint = "compare by step, or name the column that holds the time: --column wall_time=NAME"
            raise StabtreeError("no clock was logged", where=name, hint=hint)


def _nothing_in_common(good: Sequence[Run], bad: Run, by: Axis) -> str:
    if not in_common(good, bad):
        return "they have no series in common"
    if by is Axis.STEP:
        return "they have no steps in common"
    return f"they have no {by} in common"


def _digits_apart(good: Run, bad: Run, pairs: Sequence[Rows]) -> DigitsApart:
    """Return why the digits of two runs differ from the start, or that they do not."""
    for key, why in (("seed", DigitsApart.SEED), ("dtype", DigitsApart.PRECISION)):
        values = good.setting(key), bad.setting(key)
        if None not in values and values[0] != values[1]:
            return why
    if not same_seed(pairs):
        return DigitsApart.UNKNOWN
    if only_rounded(pairs):
        return DigitsApart.ROUNDING
    return DigitsApart.NO


def _same_seed_run(rows: Sequence[Rows], apart: Sequence[DigitsApart]) -> int | None:
    """Return the index of the good run of the same seed that stays equal for longest; None if there is none."""
    found = {}
    for run, why in enumerate(apart):
        if why is DigitsApart.NO:
            differences = filter(None, (first_difference(one.only(run)) for one in rows))
            found[run] = min((first.place for first in differences), default=np.inf)
    return max(found, key=lambda run: found[run], default=None)


def _by_seed(blank: Comparison, rows: Sequence[Rows], same: int) -> Comparison:
    """Compare with the good run of the same seed: any difference in what was printed counts."""
    pairs = [one.only(same) for one in rows]
    found = list(filter(None, map(first_difference, pairs)))
    stopped = _stopped(blank, pairs)
    partings = _ordered([*found, *stopped])
    notes = list(blank.notes)
    if len(blank.good) > 1:
        notes.insert(0, f"Compared with {blank.names[same]}, which has the same seed.")
    if not stopped and _is_rounding(pairs, found):
        notes.insert(0, "They never differ by more than their own noise: non-deterministic arithmetic can do as much.")
    return replace(
        blank,
        method=Method.SEED,
        parted=Parted.YES if partings else Parted.NO,
        partings=partings,
        compared=tuple(one.metric for one in pairs),
        notes=tuple(notes),
    )


def _is_rounding(pairs: Sequence[Rows], found: Sequence[Parting]) -> bool:
    """Return whether series differ, but none by more than rounding can make of it, and none that is scheduled."""
    by_metric = {first.metric: first for first in found}
    if not by_metric or SCHEDULED & by_metric.keys():
        return False
    return all(largest(one, by_metric[one.metric]) < ROUNDING_NOISES for one in pairs if one.metric in by_metric)


def _by_noise(blank: Comparison, rows: Sequence[Rows]) -> Comparison:
    """Compare runs of different seeds: only differences larger than chance makes count."""
    why = _why_left_out(rows)
    usable = [one for one in rows if one.metric not in why]
    measured = [one for one in usable if one.metric not in SCHEDULED]
    left = tuple(why.items())
    if not measured:
        return replace(blank, reason=_incomparable(blank, left), left_out=left)
    method, test = Method.HISTORY, noise.by_history
    if len(blank.good) > 1:
        method, test = Method.ENVELOPE, noise.by_envelope
    found = _beyond_chance(usable, test, noise.CHANCE / len(measured))
    partings = _ordered([*found, *_stopped(blank, usable)])
    return replace(
        blank,
        method=method,
        parted=Parted.YES if partings else Parted.NO,
        partings=partings,
        compared=tuple(one.metric for one in usable),
        left_out=left,
        chance=noise.CHANCE,
    )


def _why_left_out(rows: Sequence[Rows]) -> dict[str, str]:
    """Return why series can't be compared, for each that can't."""
    why = {one.metric: noise.comparable(one) or _differs_from_start(one) for one in rows}
    return {metric: text for metric, text in why.items() if text}


def _beyond_chance(
    usable: Sequence[Rows], test: Callable[[Rows, float], Parting | None], chance: float
) -> list[Parting]:
    """Find where series part: a scheduled one at any difference, a measured one where chance does not make it."""
    found: list[Parting | None] = []
    for one in usable:
        if one.metric in SCHEDULED:
            found.append(first_difference(one))
        else:
            found += noise.lost(one), test(one, chance)
    return list(filter(None, found))


def _incomparable(blank: Comparison, left: Sequence[tuple[str, str]]) -> str:
    """Return why nothing that was measured can be compared."""
    if blank.rows < noise.MIN_ROWS:
        return f"too few rows in common: {blank.rows:,}, of which {noise.MIN_ROWS} are needed"
    measured = [item for item in left if item[0] not in SCHEDULED]
    if measured:
        return f"{measured[0][0]}: {measured[0][1]}"
    return "no series in common that was measured"


def _differs_from_start(rows: Rows) -> str:
    """Return why a scheduled series can't show where runs part: it differs from the first row on."""
    if rows.metric in SCHEDULED:
        first = first_difference(rows)
        if first and first.last_alike is None:
            return "it differs from the first row on"
    return ""


def _ordered(partings: Sequence[Parting]) -> tuple[Parting, ...]:
    """Return the first parting of each series, first to last."""
    firsts: dict[str, Parting] = {}
    for one in sorted(partings, key=_rank):
        firsts.setdefault(one.metric, one)
    return tuple(firsts.values())


def _rank(item: Parting) -> tuple[float, ...]:
    """Return what orders partings: at one place scheduled series, then the reward, then what moved furthest.

    A series within its noise comes last: it follows from another one, or from nothing.
    """
    noises = item.noises
    if noises is None:
        noises = math.inf
    return (
        item.place,
        item.metric not in SCHEDULED,
        noises < 1,
        item.metric not in with_role(Role.REWARD),
        item.how != "not finite",
        -noises,
    )


def _stopped(blank: Comparison, rows: Sequence[Rows]) -> list[Parting]:
    """Find series that stop only in the bad run while it goes on: often a NaN that was written as an empty cell."""
    if blank.by is Axis.TIME:
        return []
    usual = {gap.metric for gap in chain.from_iterable(run.gaps for run in blank.good)}
    known = {one.metric: one for one in rows}
    found = []
    for gap in blank.bad.gaps:
        if gap.metric in known and gap.metric not in usual:
            one = known[gap.metric]
            last = max(int(np.searchsorted(one.steps, gap.first_step)) - 1, 0)
            at = replace(parting(one, last, "stops"), step=gap.first_step, place=float(gap.first_step))
            found.append(replace(at, good=None, bad=None, last_alike=int(one.steps[last]), noises=None))
    return found


def _last_of_several(runs: Sequence[Run], names: Sequence[str]) -> Iterator[str]:
    """Yield a note on each run whose file holds earlier ones, which are not compared."""
    for run, name in zip(runs, names, strict=True):
        yield from (f"{name}: {note}" for note in run.notes if note.startswith(SEVERAL_RUNS))


def _ends(good: Sequence[Run], bad: Run, by: Axis) -> tuple[str, ...]:
    """Return a note if the runs end at different steps."""
    last, longest = bad.last_step, max(run.last_step or 0 for run in good)
    if last is None or last == longest or by is not Axis.STEP:
        return ()
    if last < longest:
        which = "bad run ends"
    elif len(good) > 1:
        which = "good runs end"
    else:
        which = "good run ends"
    return (f"The {which} at step {min(last, longest):,}, {abs(last - longest):,} steps earlier.",)


def config_differences(good: Sequence[Run], bad: Run) -> tuple[Unlike, ...]:
    """Return the settings in which the bad run differs from each of the good ones."""
    first, *others = [run.unlike(bad) for run in good]
    found = []
    for key in first:
        if all(key in one for one in others):
            values = dict.fromkeys(run.config[key].value for run in good if key in run.config)
            setting = bad.config.get(key)
            found.append(Unlike(key, tuple(values), setting.value if setting else None))
    return tuple(found)
