"""Several paths: which of them name one file, and which logs are proved to be of one run."""

from __future__ import annotations

import glob
import re
from itertools import chain, combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.loaders.assemble.ranks import RANK_NAME
from stabtree.loaders.folder import MAX_RUNS, entries

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from stabtree.run import Run, Series

PROVING_ROWS = 20  # rows in which two logs of one gradient norm are the same; in 20 rows no two runs are by chance
ROUNDED = 5e-4  # how far a printed loss is off: four digits
# What the name of a rank adds to that of rank 0: `run.rank1.jsonl` beside `run.jsonl`.
_RANK_SUFFIX = re.compile(r"\.rank\d+(?=(?:\.[^./\\]*)?$)")
# Settings that differ between the ranks of one run, or say nothing of it.
OF_A_RANK = frozenset({"name", "checkpoints", "rank"})
OVERLAP = 0.05  # the share of a part's steps that the next one may leave out, and must not have begun in


class RunLog(NamedTuple):
    """A path with the run that was read from it."""

    path: str
    run: Run


def expanded(path: str) -> list[str]:
    """Return the paths that match a pattern which the shell did not expand; any other path as it is."""
    if path == "-" or not glob.has_magic(path) or Path(path).exists():
        return [path]
    return sorted(glob.glob(path, recursive=True)) or [path]  # noqa: PTH207 - a pattern may be absolute


def deduplicated(paths: Sequence[str | Path]) -> list[str | Path]:
    """Return the paths without those that name a file again, by a link or in another spelling."""
    first: dict[str, str | Path] = {}
    for path in paths:
        first.setdefault(_resolved(path), path)
    return list(first.values())


def _resolved(path: str | Path) -> str:
    try:
        if str(path) == "-":
            return str(path)
        return str(Path(path).resolve())
    except (OSError, RuntimeError, ValueError):
        return str(path)  # a link in a loop, or no path at all: opening it says so


def files_of(run: Run) -> frozenset[str]:
    """Return the files that a run was read from, links resolved."""
    return frozenset(_resolved(source.path) for source in run.sources)


def folders_in(folder: Path) -> tuple[list[Path], int]:
    """Return the folders in one that may hold runs, and how many more there are that nobody looks into."""
    inner = [folder / name for name in entries(folder)[0] if not name.startswith(".")]
    return inner[:MAX_RUNS], max(len(inner) - MAX_RUNS, 0)


def group_into_runs(logs: Mapping[int, RunLog]) -> list[list[int]]:
    """Return the keys of logs grouped by run, in the order of its ranks or parts; only a proof puts two together."""
    groups: list[list[int]] = []
    for index, log in logs.items():
        for group in groups:
            if all(_same_run(log, logs[other]) for other in group):
                group.append(index)
                break
        else:
            groups.append([index])
    if len(groups) == len(logs) > 1 and _are_parts([log.run for log in logs.values()]):
        return [sorted(logs, key=lambda index: _span(logs[index].run)[0])]
    return groups


def _same_run(one: RunLog, other: RunLog) -> bool:
    """Whether two logs are ranks of one run: by their names, or by a gradient norm that was reduced over both."""
    proved = _named_alike(one.path, other.path) or _same_gradient(one.run, other.run)
    return proved and not _contradict(one.run, other.run)


def _named_alike(one: str, other: str) -> bool:
    """Whether two paths differ in the number of a rank and in nothing else, or one is `run.jsonl`, whose rank is 0."""
    if RANK_NAME.findall(one) == RANK_NAME.findall(other):
        return False
    patterns = ((RANK_NAME, "#"), (_RANK_SUFFIX, ""))
    return any(pattern.sub(mark, one) == pattern.sub(mark, other) for pattern, mark in patterns)


def _same_gradient(one: Run, other: Run) -> bool:
    """Whether two logs hold the same gradient norm, row for row, as ranks that reduce it do."""
    pair = _shared(one.get("grad_norm"), other.get("grad_norm"))
    if pair is None:
        return False
    here, there = pair
    good = np.isfinite(here) & np.isfinite(there)
    if (here[good][:PROVING_ROWS] != there[good][:PROVING_ROWS]).any():  # most differ from their first row on
        return False
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
    keys = (one.config.keys() & other.config.keys()) - OF_A_RANK
    if any(one.setting(key) != other.setting(key) for key in keys):
        return True
    pair = _shared(one.get("lr"), other.get("lr"))
    return pair is not None and not np.allclose(*pair, rtol=1e-6, atol=0, equal_nan=True)


def find_duplicates(logs: Mapping[int, RunLog]) -> dict[int, int]:
    """Return the keys of logs that another log of the same folder holds in full -> the key of that log.

    A trainer that writes a file of metrics prints the same losses, rounded.
    """
    found: dict[int, int] = {}
    folders = {index: Path(log.path).parent for index, log in logs.items()}
    for one, other in combinations(logs, 2):
        if folders[one] != folders[other] or {one, other} & found.keys():
            continue
        if _same_losses(logs[one].run, logs[other].run):
            poorer, richer = sorted((one, other), key=lambda index: _detail(logs[index].run))
            found[poorer] = richer
    return found


def _same_losses(one: Run, other: Run) -> bool:
    """Whether two logs of different formats hold the same losses row for row, in as many digits as are printed."""
    here, there = one.get("loss"), other.get("loss")
    if here is None or there is None or len(here) != len(there) or _format(one) == _format(other):
        return False
    for rows in (slice(PROVING_ROWS), slice(None)):  # most differ from their first row on
        if not np.isclose(here.values[rows], there.values[rows], ROUNDED, ROUNDED / 10, equal_nan=True).all():
            return False
    return min(len(np.unique(here.values)), len(np.unique(there.values))) >= PROVING_ROWS


def _format(run: Run) -> str:
    return run.sources[0].format.partition(",")[0]


def _detail(run: Run) -> tuple[int, int]:
    """Return how many metrics a log has, and how many different losses: rounding makes fewer."""
    return len(run.series), len(np.unique(run.series["loss"].values))


def _are_parts(runs: Collection[Run]) -> bool:
    """Whether logs hold one stretch of steps each, as those of a run that went on in a new file do."""
    sources = chain.from_iterable(run.sources for run in runs)
    if len({source.steps_from for source in sources}) > 1:
        return False  # steps and epochs share no axis
    spans = sorted(map(_span, runs))
    if any(last <= first for first, last in spans):
        return False
    if any(_contradict(*pair) for pair in combinations(runs, 2)):
        return False
    return all(_follows(begin, end, first, last) for (first, last), (begin, end) in pairwise(spans))


def _follows(begin: int, end: int, first: int, last: int) -> bool:
    """Whether the part from `begin` to `end` goes on from the one before, `first` to `last`.

    A restart from a checkpoint repeats some steps, however many, and may leave a few out.
    """
    slack = OVERLAP * (last - first)
    return first + slack < begin <= last + slack + 1 and end > last


def _span(run: Run) -> tuple[int, int]:
    """Return the first and last step of a run."""
    steps = [series.steps for series in run.series.values() if len(series)]
    return min(int(s[0]) for s in steps), max(int(s[-1]) for s in steps)
