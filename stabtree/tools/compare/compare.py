"""`stabtree.compare`: runs in, a `Comparison` out.

Says which rows are matched, what is more than noise, which series parted first, and which settings differ.
"""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR
from stabtree.common.text import near
from stabtree.loaders.json.rows import SEVERAL_RUNS
from stabtree.metrics.metric import Role, names
from stabtree.metrics.table import normalize, with_role
from stabtree.run import Run
from stabtree.tools.compare.noise import (
    CHANCE,
    MIN_ROWS,
    by_envelope,
    by_history,
    comparable,
    first_difference,
    largest,
    lost,
    only_rounded,
    parting,
    same_seed,
)
from stabtree.tools.compare.result import Axis, Comparison, DigitsApart, Method, Parted, Unlike
from stabtree.tools.compare.rows import CLOCK, SCHEDULED, in_common, side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tools.compare.result import Parting
    from stabtree.tools.compare.rows import Rows

COUNTERS = frozenset(
    names(
        "tokens num_tokens n_tokens total_tokens tokens_total num_tokens_total tokens_seen seen_tokens tokens_so_far "
        "consumed_tokens tokens_consumed trained_tokens train_tokens tokens_trained processed_tokens tokens_processed "
        "cumulative_tokens num_input_tokens_seen train_num_tokens train_num_input_tokens_seen train_tokens_seen "
        "throughput_total_tokens total_tokens_seen"
    )
)
ROUNDING_NOISES = FACTOR  # times its own noise that a series may move if nothing but rounding differs


def compare(*runs: Any, by: str = "step", diagnosed: bool = True, **options: Any) -> Comparison:
    """Find where a run parts from healthy runs, beyond noise, and what else differs.

    Args:
        runs: the healthy runs first, the bad run last: each a `Run`, or what `load_run` reads.
        by: what the rows are matched by: `step`, `tokens` (of logs that count them) or `time`.
        diagnosed: whether to diagnose each run too, which also shows whether too much of its log was misread.
        options: how logs are read, as `load_run` takes them.

    Raises:
        StabtreeError: if a log can't be read, there is nothing to compare with, or the axis is unknown.

    >>> import stabtree
    >>> stabtree.compare("good.csv", "bad.csv").first  # doctest: +SKIP
    """
    from stabtree.diagnosis.walk import diagnose
    from stabtree.loaders import load_run

    axis = axis_of(by)
    loaded = [one if isinstance(one, Run) else load_run(one, **options) for one in runs]
    names = [str(one) if isinstance(one, str | Path) else run.name for one, run in zip(runs, loaded, strict=True)]

    def by_tokens(index: int, column: str) -> Run:
        if isinstance(runs[index], Run):
            hint = "read it with load_run(..., step_column=NAME)"
            raise StabtreeError(
                "a run that was read by steps can't be counted in tokens", where=names[index], hint=hint
            )
        return load_run(runs[index], **{**options, "step_column": column})

    return compared(loaded, names, axis, by_tokens, diagnose if diagnosed else None)


def axis_of(by: str) -> Axis:
    """Return the axis of that name.

    Raises:
        StabtreeError: if there is none.
    """
    if by not in tuple(Axis):
        close = near(by, tuple(Axis)).removeprefix("; ")
        raise StabtreeError(f"{by!r} is not an axis", where="--by", hint=close or f"one of {', '.join(Axis)}")
    return Axis(by)


def compared(
    runs: Sequence[Run],
    names: Sequence[str],
    by: Axis,
    by_tokens: Callable[[int, str], Run],
    diagnose: Callable[[Run], Diagnosis] | None,
) -> Comparison:
    """Compare runs, the bad one last, and diagnose each.

    Args:
        runs: the runs as they were read, by steps.
        names: what to call them.
        by: what rows are matched by.
        by_tokens: reads a run again, by its index, with a column in place of its steps.
        diagnose: what judges a run; None to judge none.
    """
    matched = list(runs)
    if by is Axis.TOKENS:
        matched = [by_tokens(index, token_column(run)) for index, run in enumerate(runs)]
    found = compare_runs(matched[:-1], matched[-1], names, by)
    if diagnose is None:
        return found
    return _unless_misread(replace(found, diagnoses=tuple(map(diagnose, runs))))


def _unless_misread(found: Comparison) -> Comparison:
    """Return the comparison, undecided if it found no parting and the bad run or all good runs were misread."""
    *good, bad = [one.misread for one in found.diagnoses]
    if found.parted is not Parted.NO or not (bad or all(good)):
        return found
    if bad:
        reason = f"the bad run was misread: {bad}"
    elif len(good) > 1:
        reason = f"the good runs were misread: {good[0]}"
    else:
        reason = f"the good run was misread: {good[0]}"
    return replace(found, parted=Parted.UNKNOWN, reason=reason)


def token_column(run: Run) -> str:
    """Return the name of the column that counts tokens.

    Raises:
        StabtreeError: if no column has such a name.
    """
    for source in run.sources:
        for column in source.columns:
            if normalize(column.name) in COUNTERS:
                return column.name
    where = run.sources[0].path if run.sources else run.name
    raise StabtreeError("no column counts tokens", where=where, hint="name it: --step-column NAME")


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
    rows = [one for one in rows if one.size]
    if not rows:
        return replace(blank, reason=_nothing_in_common(good, bad, by))
    blank = replace(
        blank,
        rows=max(one.size for one in rows),
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
    method, test = Method.HISTORY, by_history
    if len(blank.good) > 1:
        method, test = Method.ENVELOPE, by_envelope
    found = _beyond_chance(usable, test, CHANCE / len(measured))
    partings = _ordered([*found, *_stopped(blank, usable)])
    return replace(
        blank,
        method=method,
        parted=Parted.YES if partings else Parted.NO,
        partings=partings,
        compared=tuple(one.metric for one in usable),
        left_out=left,
        chance=CHANCE,
    )


def _why_left_out(rows: Sequence[Rows]) -> dict[str, str]:
    """Return why series can't be compared, for each that can't."""
    why = {one.metric: comparable(one) or _differs_from_start(one) for one in rows}
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
            found += lost(one), test(one, chance)
    return list(filter(None, found))


def _incomparable(blank: Comparison, left: Sequence[tuple[str, str]]) -> str:
    """Return why nothing that was measured can be compared."""
    if blank.rows < MIN_ROWS:
        return f"too few rows in common: {blank.rows:,}, of which {MIN_ROWS} are needed"
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
