"""From the paths that a user names to runs: what is a run of its own, and what is proved to be a part of one."""

from __future__ import annotations

import glob
import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.loaders.assemble.ranks import RANK_NAME
from stabtree.loaders.folder import MAX_RUNS, entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.run import Run, Series

PROVING_ROWS = 20  # rows in which two logs of one gradient norm are the same; in 20 rows no two runs are by chance
ROUNDED = 5e-4  # how far a printed loss is off: four digits
# What stands in the name of a rank beside that of rank 0: `run.rank1.jsonl` beside `run.jsonl`.
_BESIDE = re.compile(r"\.rank\d+(?=(?:\.[^./\\]*)?$)")
# What differs between the ranks of one run, or says nothing of it.
OF_A_RANK = frozenset({"name", "checkpoints", "rank"})


def expanded(path: str) -> list[str]:
    """The paths that a pattern stands for, where the shell left it as it is; any other path as it is."""
    if path == "-" or not glob.has_magic(path) or Path(path).exists():
        return [path]
    return sorted(glob.glob(path, recursive=True)) or [path]  # noqa: PTH207 - a pattern may be absolute


def once(paths: Sequence[str | Path]) -> list[str | Path]:
    """The paths without those that name a file again, by a link or in other words."""
    first: dict[str, str | Path] = {}
    for path in paths:
        first.setdefault(_place(path), path)
    return list(first.values())


def _place(path: str | Path) -> str:
    try:
        return str(path) if str(path) == "-" else str(Path(path).resolve())
    except (OSError, RuntimeError, ValueError):
        return str(path)  # a link in a loop, or no path at all: opening it says so


def files_of(run: Run) -> frozenset[str]:
    """The files that a run was read from, wherever its paths led."""
    return frozenset(_place(source.path) for source in run.sources)


def below(folder: Path) -> tuple[list[Path], int]:
    """The folders in one in which runs may lie, and how many there are besides that nobody looks into."""
    inner = [folder / name for name in entries(folder)[0] if not name.startswith(".")]
    return inner[:MAX_RUNS], max(len(inner) - MAX_RUNS, 0)


def proved(paths: Sequence[str], runs: Sequence[Run]) -> list[list[int]]:
    """Which runs are one: groups of places, in order. Nothing else than a proof puts two of them together."""
    groups: list[list[int]] = []
    for place in range(len(runs)):
        for group in groups:
            if all(_one(paths, runs, place, other) for other in group):
                group.append(place)
                break
        else:
            groups.append([place])
    alone = [group[0] for group in groups]
    if len(groups) == len(runs) > 1 and _are_parts([runs[place] for place in alone]):
        return [sorted(alone, key=lambda place: _span(runs[place])[0])]
    return groups


def _one(paths: Sequence[str], runs: Sequence[Run], place: int, other: int) -> bool:
    """Whether two are ranks of one run: by their names, or by a gradient norm that was reduced over both."""
    named = _named_alike(paths[place], paths[other])
    return (named or _same_gradient(runs[place], runs[other])) and not contradict(runs[place], runs[other])


def _named_alike(one: str, other: str) -> bool:
    """Whether two paths differ in the number of a rank and in nothing else, or one is `run.jsonl`, whose rank is 0."""
    ranks = RANK_NAME.findall(one), RANK_NAME.findall(other)
    alike = RANK_NAME.sub("#", one) == RANK_NAME.sub("#", other) or _BESIDE.sub("", one) == _BESIDE.sub("", other)
    return ranks[0] != ranks[1] and alike


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
    if one is None or other is None:
        return None
    if np.array_equal(one.steps, other.steps):
        return one.values, other.values
    _, here, there = np.intersect1d(one.steps, other.steps, assume_unique=True, return_indices=True)
    return one.values[here], other.values[there]


def contradict(one: Run, other: Run) -> bool:
    """Whether two logs can't be of one run: their configurations or their learning rates differ."""
    keys = (one.config.keys() & other.config.keys()) - OF_A_RANK
    if any(one.setting(key) != other.setting(key) for key in keys):
        return True
    pair = _shared(one.get("lr"), other.get("lr"))
    return pair is not None and not np.allclose(*pair, rtol=1e-6, atol=0, equal_nan=True)


def retold(paths: Sequence[str], runs: Sequence[Run]) -> dict[int, int]:
    """Which runs another log of the same folder tells in full: their places, and the places of those that tell more.

    A trainer that writes a file of metrics prints the same losses, rounded.
    """
    found: dict[int, int] = {}
    for one, other in combinations(range(len(runs)), 2):
        beside = Path(paths[one]).parent == Path(paths[other]).parent
        if beside and not {one, other} & found.keys() and _tell_alike(runs[one], runs[other]):
            poorer, richer = sorted((one, other), key=lambda place: _told(runs[place]))
            found[poorer] = richer
    return found


def _tell_alike(one: Run, other: Run) -> bool:
    """Whether two logs of different formats hold the same losses row for row, in as many digits as are printed."""
    here, there = one.get("loss"), other.get("loss")
    if here is None or there is None or len(here) != len(there) or _format(one) == _format(other):
        return False
    if not all(_close(here.values[rows], there.values[rows]) for rows in (slice(PROVING_ROWS), slice(None))):
        return False
    return min(len(np.unique(here.values)), len(np.unique(there.values))) >= PROVING_ROWS


def _close(here: np.ndarray, there: np.ndarray) -> bool:
    return bool(np.isclose(here, there, ROUNDED, ROUNDED / 10, equal_nan=True).all())


def _format(run: Run) -> str:
    return run.sources[0].format.partition(",")[0]


def _told(run: Run) -> tuple[int, int]:
    """How much a log tells: of so many metrics, with so many different losses."""
    return len(run.series), len(np.unique(run.series["loss"].values))


def _are_parts(runs: Sequence[Run]) -> bool:
    """Whether logs hold one stretch of steps each, as those of a run that went on in a new file do."""
    if len({source.steps_from for run in runs for source in run.sources}) > 1:
        return False  # steps and epochs follow each other on no axis
    spans = sorted(_span(run) for run in runs)
    if any(last <= first for first, last in spans) or any(contradict(*pair) for pair in combinations(runs, 2)):
        return False
    return all(
        # A restart from a checkpoint repeats some steps, however many, and may leave a few out.
        first + 0.05 * (last - first) < begin <= last + 0.05 * (last - first) + 1 and end > last
        for (first, last), (begin, end) in pairwise(spans)
    )


def _span(run: Run) -> tuple[int, int]:
    steps = [series.steps for series in run.series.values() if len(series)]
    return min(int(s[0]) for s in steps), max(int(s[-1]) for s in steps)
