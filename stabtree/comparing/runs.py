"""Runs in, a `Comparison` out: which rows are matched, how noise is told from a difference, who parted first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.comparing import noise
from stabtree.comparing.align import CLOCK, side_by_side
from stabtree.comparing.result import Axis, Comparison, Method, Parted, Unlike
from stabtree.comparing.seed import first_difference, largest, parting, same_seed
from stabtree.comparing.series import SCHEDULED, in_common

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.comparing.align import Rows
    from stabtree.comparing.result import Parting
    from stabtree.run import Run

IN_THE_DIGITS = 3.0  # times its own noise that a series may go off where nothing but rounding differs


def compare_runs(good: Sequence[Run], bad: Run, names: Sequence[str] = (), by: Axis = Axis.STEP) -> Comparison:
    """Where a run parts from runs that are well, beyond noise.

    Args:
        good: runs that are well.
        bad: the run that is not.
        names: what to call them, the bad one last; their own names when not given.
        by: what rows are matched by. Runs that are matched by tokens were read with the tokens as their steps.

    Raises:
        StabtreeError: where there is no good run, or a run without a clock is to be matched by time.
    """
    if not good:
        raise StabtreeError("nothing to compare with", hint="name a run that is well before the one that is not")
    named = tuple(names) or tuple(run.name for run in (*good, bad))
    blank = Comparison(tuple(good), bad, named, by, settings=unlike(good, bad))
    if by is Axis.TIME:
        _check_clocks((*good, bad), named)
    rows = [side_by_side(name, good, bad, by) for name in in_common(good, bad)]
    rows = [one for one in rows if len(one)]
    if not rows:
        return replace(blank, reason=_nothing_in_common(good, bad, by))
    span = [int(end) for one in rows for end in (one.steps[0], one.steps[-1])]
    longest = max(len(one) for one in rows)
    blank = replace(blank, rows=longest, first_step=min(span), last_step=max(span), notes=_ends(good, bad, by))
    with np.errstate(all="ignore"):  # what the largest numbers differ by may be infinite, which no bar is
        twin = _twin(rows, len(good))
        return _by_seed(blank, rows, twin) if twin is not None else _by_noise(blank, rows)


def _check_clocks(runs: Sequence[Run], names: Sequence[str]) -> None:
    for run, name in zip(runs, names, strict=True):
        if CLOCK not in run.series:
            hint = "compare by step, or name the column that holds the time: --column wall_time=NAME"
            raise StabtreeError("no clock was logged", where=name, hint=hint)


def _nothing_in_common(good: Sequence[Run], bad: Run, by: Axis) -> str:
    if not in_common(good, bad):
        return "they have no series in common"
    return f"they have no {'steps' if by is Axis.STEP else by.value} in common"


def _twin(rows: Sequence[Rows], runs: int) -> int | None:
    """The good run of the same seed, the one that stays alike for longest; None where there is none."""
    found = {}
    for run in range(runs):
        pairs = [one.only(run) for one in rows]
        if same_seed(pairs):
            ends = [first.place for one in pairs if (first := first_difference(one))]
            found[run] = min(ends, default=np.inf)
    return max(found, key=lambda run: found[run]) if found else None


def _by_seed(blank: Comparison, rows: Sequence[Rows], twin: int) -> Comparison:
    """Runs of one seed: any difference in what was printed is one."""
    pairs = [one.only(twin) for one in rows]
    found = [first for one in pairs if (first := first_difference(one))]
    stopped = _stopped(blank, pairs)
    partings = _ordered([*found, *stopped])
    measured = [one for one in pairs if one.metric not in SCHEDULED]
    later = {first.metric: first for first in found}
    in_digits = bool(found) and not stopped
    in_digits = in_digits and all(
        largest(one, later[one.metric]) < IN_THE_DIGITS for one in measured if one.metric in later
    )
    in_digits = in_digits and not any(first.metric in SCHEDULED for first in found)
    note = "Nowhere do they differ by more than their own noise: arithmetic that is not repeatable does as much."
    beside = "" if len(blank.good) == 1 else f"Compared with {blank.names[twin]}, which has the same seed."
    return replace(
        blank,
        method=Method.SEED,
        parted=Parted.YES if partings else Parted.NO,
        partings=partings,
        compared=tuple(one.metric for one in pairs),
        notes=(*filter(None, [note if in_digits else "", beside]), *blank.notes),
    )


def _by_noise(blank: Comparison, rows: Sequence[Rows]) -> Comparison:
    """Runs of different seeds: what chance does not do."""
    why = {one.metric: noise.comparable(one) or _otherwise_set(one) for one in rows}
    usable = [one for one in rows if not why[one.metric]]
    measured = [one for one in usable if one.metric not in SCHEDULED]
    several = len(blank.good) > 1
    left = tuple((metric, text) for metric, text in why.items() if text)
    if not measured:
        return replace(blank, reason=_incomparable(blank, left), left_out=left)
    test = partial(noise.by_envelope if several else noise.by_history, chance=noise.CHANCE / len(measured))
    found = [first_difference(one) if one.metric in SCHEDULED else _first(noise.lost(one), test(one)) for one in usable]
    partings = _ordered([*filter(None, found), *_stopped(blank, usable)])
    return replace(
        blank,
        method=Method.ENVELOPE if several else Method.HISTORY,
        parted=Parted.YES if partings else Parted.NO,
        partings=partings,
        compared=tuple(one.metric for one in usable),
        left_out=left,
        chance=noise.CHANCE,
    )


def _incomparable(blank: Comparison, left: Sequence[tuple[str, str]]) -> str:
    """Why nothing that was measured can be compared."""
    if blank.rows < noise.LEAST_ROWS:
        return f"too few rows in common: {blank.rows:,}, of which {noise.LEAST_ROWS} are needed"
    measured = [item for item in left if item[0] not in SCHEDULED]
    return f"{measured[0][0]}: {measured[0][1]}" if measured else "no series in common that was measured"


def _otherwise_set(rows: Rows) -> str:
    """Why a series that is set before the run tells nothing: it differs from the first row on."""
    first = first_difference(rows) if rows.metric in SCHEDULED else None
    return "it differs from the first row on" if first and first.last_alike is None else ""


def _first(*found: Parting | None) -> Parting | None:
    return min(filter(None, found), key=lambda one: one.place, default=None)


def _ordered(partings: Sequence[Parting]) -> tuple[Parting, ...]:
    """First to last; what was set before what was measured, and of each series its first."""
    firsts: dict[str, Parting] = {}
    for one in sorted(partings, key=lambda one: (one.place, one.metric not in SCHEDULED)):
        firsts.setdefault(one.metric, one)
    return tuple(firsts.values())


def _stopped(blank: Comparison, rows: Sequence[Rows]) -> list[Parting]:
    """Series that stop in the bad run alone while it goes on: often a NaN that was written as an empty cell."""
    if blank.by is Axis.TIME:
        return []
    usual = {gap.metric for run in blank.good for gap in run.gaps}
    known = {one.metric: one for one in rows}
    found = []
    for gap in blank.bad.gaps:
        if gap.metric in known and gap.metric not in usual:
            one = known[gap.metric]
            last = max(int(np.searchsorted(one.steps, gap.first_step)) - 1, 0)
            at = replace(parting(one, last, "stops"), step=gap.first_step, place=float(gap.first_step))
            found.append(replace(at, good=None, bad=None, last_alike=int(one.steps[last]), noises=None))
    return found


def _ends(good: Sequence[Run], bad: Run, by: Axis) -> tuple[str, ...]:
    """What is to be said of runs that end at different steps."""
    last, longest = bad.last_step, max(run.last_step or 0 for run in good)
    if last is None or last == longest or by is not Axis.STEP:
        return ()
    which = "bad run ends" if last < longest else "good runs end" if len(good) > 1 else "good run ends"
    return (f"The {which} at step {min(last, longest):,}, {max(last, longest) - min(last, longest):,} steps earlier.",)


def unlike(good: Sequence[Run], bad: Run) -> tuple[Unlike, ...]:
    """The settings in which the bad run differs from each of the good ones."""
    first, *others = [run.unlike(bad) for run in good]
    keys = [key for key in first if all(key in one for one in others)]
    held = {key: tuple(dict.fromkeys(run.config[key].value for run in good if key in run.config)) for key in keys}
    return tuple(Unlike(key, held[key], bad.config[key].value if key in bad.config else None) for key in keys)
