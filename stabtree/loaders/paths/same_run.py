"""Which logs are proved to be of one run: its ranks, its parts, or the same values written twice."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain, combinations, pairwise
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.shared import ROWS_LONG, SHARE_SOME
from stabtree.common.stats import median
from stabtree.loaders.assemble.printed import alike, begin_alike, rounding
from stabtree.loaders.assemble.ranks import RANK_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.run import Run, Series

PROVING_ROWS = ROWS_LONG  # rows in which two logs of one gradient norm are the same; no two runs are by chance
# What the name of a rank adds to that of rank 0: `run.rank1.jsonl` beside `run.jsonl`.
_RANK_SUFFIX = re.compile(r"\.rank\d+(?=(?:\.[^./\\]*)?$)")
# Settings that differ between the ranks of one run, or say nothing of it.
OF_A_RANK = frozenset({"name", "checkpoints", "rank"})
MIN_WHOLE = 2  # different values that prove a log a copy, of which each row is in the other log at its step
DISTINCTIVE = ("loss", "reward", "eval_loss", "grad_norm")
"""What two runs never have in common row for row; a learning rate they may."""
CLOCKS = frozenset({"wall_time", "step_time", "throughput", "gpu_memory", "batch_id"})
"""What each logger measures, or numbers, on its own."""
OVERLAP = SHARE_SOME  # the share of a part's steps that the next one may leave out, and must not have begun in


class RunLog(NamedTuple):
    """A path with the run that was read from it."""

    path: str
    run: Run


class Alignment(NamedTuple):
    """How the rows of one log lie among those of another one: the steps of the same rows in both.

    Attributes:
        here: int64 (n,), rising, in the log that others are added to.
        there: int64 (n,), rising, in the other log.
    """

    here: Ints
    there: Ints

    def moved(self, steps: Ints) -> Ints:
        """Return steps of the other log as steps of this one; beyond the shared rows at their usual distance."""
        if np.array_equal(self.here, self.there):
            return steps
        found = np.interp(steps, self.there, self.here)
        for outside, at in ((steps < self.there[0], 0), (steps > self.there[-1], -1)):
            found = np.where(outside, self.here[at] + (steps - self.there[at]) * self._ratio, found)
        return np.rint(found).astype(np.int64)

    @property
    def _ratio(self) -> float:
        return float(median(np.diff(self.here)) / max(median(np.diff(self.there)), 1))


def named_ranks(logs: Mapping[int, RunLog]) -> list[list[int]]:
    """Return the keys of logs grouped by run, ranks of one by their names."""
    return _grouped(logs, lambda one, other: _named_alike(one.path, other.path))


def proved_ranks(logs: Mapping[int, RunLog]) -> list[list[int]]:
    """Return the keys of logs grouped by run: ranks of one, or its parts in their order; only a proof joins two.

    Ranks reduce one gradient norm over all of them. Parts of a run are all logs, or all of one folder.
    """
    groups = _grouped(logs, lambda one, other: _same_gradient(one.run, other.run))
    if len(groups) < len(logs):
        return groups
    return _parts(logs) or groups


def _grouped(logs: Mapping[int, RunLog], same: Callable[[RunLog, RunLog], bool]) -> list[list[int]]:
    """Return the keys of logs in groups in which each is the same run as every other and contradicts none."""
    groups: list[list[int]] = []
    for index, log in logs.items():
        for group in groups:
            if all(same(log, logs[other]) and not _contradict(log.run, logs[other].run) for other in group):
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def _parts(logs: Mapping[int, RunLog]) -> list[list[int]]:
    """Return the keys of logs grouped by run, where these are parts that follow each other."""
    folders: dict[Path, list[int]] = {}
    for index, log in logs.items():
        folders.setdefault(Path(log.path).parent, []).append(index)
    for groups in ([list(logs)], list(folders.values())):
        proved = [len(group) > 1 and _are_parts([logs[index].run for index in group]) for group in groups]
        if any(proved):
            return [
                part
                for group, whole in zip(groups, proved, strict=True)
                for part in ([sorted(group, key=lambda index: span(logs[index].run)[0])] if whole else _each(group))
            ]
    return []


def _each(group: Sequence[int]) -> list[list[int]]:
    return [[index] for index in group]


def _named_alike(one: str, other: str) -> bool:
    """Whether two paths differ in the number of a rank and in nothing else, or one is `run.jsonl`, whose rank is 0."""
    (rank, *plain), (other_rank, *other_plain) = _without_rank(one), _without_rank(other)
    return rank != other_rank and any(map(eq, plain, other_plain))


@lru_cache(maxsize=256)
def _without_rank(path: str) -> tuple[str, str, str]:
    """Return the numbers of a rank in a path, and the path without them, by each way to name ranks."""
    return "\0".join(map(str, RANK_NAME.findall(path))), RANK_NAME.sub("#", path), _RANK_SUFFIX.sub("", path)


def _same_gradient(one: Run, other: Run) -> bool:
    """Whether two logs hold the same gradient norm, row for row, as ranks that reduce it do."""
    pair = _shared(one.get("grad_norm"), other.get("grad_norm"))
    if pair is None:
        return False
    here, there = pair
    good = np.isfinite(here[:PROVING_ROWS]) & np.isfinite(there[:PROVING_ROWS])
    if (here[:PROVING_ROWS][good] != there[:PROVING_ROWS][good]).any():  # most differ from their first row on
        return False
    good = np.isfinite(here) & np.isfinite(there)
    several = int(good.sum()) >= PROVING_ROWS and len(np.unique(here[good])) >= PROVING_ROWS
    return several and bool((here[good] == there[good]).all())


def _shared(one: Series | None, other: Series | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the values of two series at the steps that both have."""
    if one is None or other is None:
        return None
    if np.array_equal(one.steps, other.steps):
        return one.values, other.values
    _, here, there = np.intersect1d(one.steps, other.steps, assume_unique=True, return_indices=True)
    return one.values[here], other.values[there]


def _contradict(one: Run, other: Run) -> bool:
    """Whether two logs can't be of one run: their configurations or their learning rates differ."""
    if _other_settings(one, other):
        return True
    pair = _shared(one.get("lr"), other.get("lr"))
    return pair is not None and not np.allclose(*pair, rtol=1e-6, atol=0, equal_nan=True)


def _other_settings(one: Run, other: Run) -> bool:
    keys = (one.config.keys() & other.config.keys()) - OF_A_RANK
    return any(one.setting(key) != other.setting(key) for key in keys)


def are_copies(one: Run, other: Run) -> bool:
    """Whether two logs hold the same and nothing else, with settings that are the same as far as both have them."""
    if one.series.keys() != other.series.keys() or _other_settings(one, other):
        return False
    pairs = [(one.series[name], other.series[name]) for name in one.series]
    if max((_distinct(here.values) for here, _ in pairs), default=0) < PROVING_ROWS:
        return False
    return all(
        np.array_equal(here.steps, there.steps) and np.array_equal(here.values, there.values, equal_nan=True)
        for here, there in pairs
    )


def aligned(one: Run, other: Run) -> Alignment | None:
    """Return how two logs hold the same values; None where that is not proved, or some value differs.

    Either each of the shared steps has the same values, and these are many or all of one log; or the rows are the
    same from the first on, as where one log counts steps and the other one none.
    """
    if one.ranks or other.ranks:
        return None
    for metric in DISTINCTIVE:
        here, there = one.get(metric), other.get(metric)
        if here is None or there is None or not (len(here) and len(there)):
            continue
        begins = begin_alike(here, there)
        if not begins and np.array_equal(here.steps, there.steps):
            return None
        found = _by_step(one, other, here, there) or (_by_row(here, there) if begins else None)
        if found is None or not all(_agree(found, one.series[name], other.series[name]) for name in _both(one, other)):
            return None
        return found
    return None


def _both(one: Run, other: Run) -> list[str]:
    return [name for name in one.series.keys() & other.series.keys() if name not in CLOCKS]


def _by_step(one: Run, other: Run, here: Series, there: Series) -> Alignment | None:
    """Return the steps that two logs share, where their values show that they are of one run."""
    if one.by_row or other.by_row or one.by_epoch != other.by_epoch:
        return None
    steps, mine, theirs = np.intersect1d(here.steps, there.steps, assume_unique=True, return_indices=True)
    if not alike(here.values[mine], there.values[theirs]):
        return None
    whole = len(steps) == min(len(here), len(there))
    distinct = min(_distinct(here.values[mine]), _distinct(there.values[theirs]))
    if distinct < (MIN_WHOLE if whole else PROVING_ROWS):
        return None
    return Alignment(steps, steps)


def _by_row(here: Series, there: Series) -> Alignment | None:
    """Return the steps of the rows that two logs share from the first on, where they are many."""
    count = min(len(here), len(there))
    if count < PROVING_ROWS or not alike(here.values[:PROVING_ROWS], there.values[:PROVING_ROWS]):
        return None
    if not alike(here.values[:count], there.values[:count]):
        return None
    if min(_distinct(here.values[:count]), _distinct(there.values[:count])) < PROVING_ROWS:
        return None
    return Alignment(here.steps[:count], there.steps[:count])


def _agree(found: Alignment, here: Series, there: Series) -> bool:
    """Whether a metric has the same value wherever both logs hold it."""
    _, mine, theirs = np.intersect1d(here.steps, found.moved(there.steps), return_indices=True)
    return not len(mine) or alike(here.values[mine], there.values[theirs])


def _distinct(values: Floats) -> int:
    return len(np.unique(values[np.isfinite(values)]))


def detail(run: Run) -> tuple[bool, int, float, int]:
    """Return how much a log says of its run: whether it has steps, its metrics, the digits of its loss, its rows."""
    loss = run.get("loss")
    values = np.zeros(0) if loss is None else loss.values
    return not run.by_row, len(run.series), -float(rounding(values).max(initial=0.0)), len(values)


def _are_parts(runs: Collection[Run]) -> bool:
    """Whether logs hold one stretch of steps each, as those of a run that went on in a new file do."""
    sources = chain.from_iterable(run.sources for run in runs)
    if len({source.steps_from for source in sources}) > 1:
        return False  # steps and epochs share no axis
    spans = sorted(map(span, runs))
    if any(last <= first for first, last in spans):
        return False
    if not all(follows(begin, end, first, last) for (first, last), (begin, end) in pairwise(spans)):
        return False
    return not any(_contradict(*pair) for pair in combinations(runs, 2))


def follows(begin: int, end: int, first: int, last: int) -> bool:
    """Whether the part from `begin` to `end` goes on from the one before, `first` to `last`.

    A restart from a checkpoint repeats some steps, however many, and may leave a few out.
    """
    slack = OVERLAP * (last - first)
    return first + slack < begin <= last + slack + 1 and end > last


def span(run: Run) -> tuple[int, int]:
    """Return the first and last step of a run."""
    steps = [series.steps for series in run.series.values() if len(series)]
    return min(int(s[0]) for s in steps), max(int(s[-1]) for s in steps)
