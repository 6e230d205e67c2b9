"""Which event folders side by side are one run: a trainer that is resumed opens a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR_SMALL
from stabtree.common.stats import median

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stabtree.common.lazy import Ints
    from stabtree.loaders.points import Points

# A run from scratch logs its first row at step 0, at 1, or after one interval; a later first row is a resume's.
LATE = FACTOR_SMALL
# What a resume may change: how far it goes; the precision is that of the weights, which only a checkpoint shows.
CHANGES = frozenset({"name", "max_steps", "dtype", "checkpoints"})


class Stretch(NamedTuple):
    """What one event folder holds, or several that are one run.

    Attributes:
        points: its scalars in the order in which they were written.
        config: its hyperparameters.
    """

    points: Points
    config: Mapping[str, object]

    def steps_of(self, tag: str) -> Ints:
        """Return the steps at which a tag was logged."""
        steps: Ints = self.points.step[self.points.name == self.points.names.index(tag)]
        return steps

    @property
    def tags(self) -> dict[str, int]:
        """The tags that were logged more than once, with their counts, the most frequent first."""
        counts = np.bincount(self.points.name, minlength=len(self.points.names)).tolist()
        found = [(tag, count) for tag, count in zip(self.points.names, counts, strict=True) if count > 1]
        return dict(sorted(found, key=lambda item: -item[1]))


def begins_late(head: Stretch) -> bool:
    """Return whether what was logged first is not the first row of a run from scratch."""
    tag = next(iter(head.tags), None)
    if tag is None:
        return False
    steps = head.steps_of(tag)
    return bool(steps[0] > LATE * max(_interval(steps), 1.0))


def chained(
    heads: Mapping[tuple[str, ...], Stretch],
    whole: Callable[[Sequence[tuple[str, ...]]], Stretch],
) -> list[list[tuple[str, ...]]]:
    """Return the folders of each run in the order of time.

    Args:
        heads: by folder, how its events begin.
        whole: returns all events of some folders.
    """
    chains: list[list[tuple[str, ...]]] = []
    for home in sorted(heads, key=lambda home: _begins(heads[home])):
        fitting: list[list[tuple[str, ...]]] = []
        beside = [chain for chain in chains if chain[0][:-1] == home[:-1]]
        # Only what begins late is read whole, with those that it may resume.
        if beside and home and begins_late(heads[home]):
            own = whole([home])
            fitting = [chain for chain in beside if resumes(whole(chain), own)]
        if len(fitting) == 1:
            fitting[0].append(home)
        else:
            chains.append([home])
    order = {home: index for index, home in enumerate(heads)}
    return sorted(chains, key=lambda chain: order[chain[0]])


def resumes(first: Stretch, later: Stretch) -> bool:
    """Return whether the later stretch resumes the first: the same tags, from a step within it or right after it.

    Two that end at the same step were both trained to the end: branches, not a run and its resume.
    """
    tags, others = first.tags, later.tags
    shared = next((tag for tag in tags if tag in others), None)
    if shared is None or not (tags.keys() <= others.keys() or others.keys() <= tags.keys()):
        return False
    if _ends(first) > _begins(later):
        return False
    keys = (first.config.keys() & later.config.keys()) - CHANGES
    if any(first.config[key] != later.config[key] for key in keys):
        return False
    before, after = first.steps_of(shared), later.steps_of(shared)
    top = int(before.max())
    return bool(before[0] < after[0] <= top + LATE * _interval(before) and after.max() != top)


def _interval(steps: Ints) -> float:
    rises = np.diff(steps)
    rises = rises[rises > 0]
    if len(rises):
        return median(rises)
    return 0.0


def _begins(stretch: Stretch) -> float:
    times = stretch.points.time[np.isfinite(stretch.points.time)]
    if len(times):
        return float(times.min())
    return float("inf")


def _ends(stretch: Stretch) -> float:
    times = stretch.points.time[np.isfinite(stretch.points.time)]
    if len(times):
        return float(times.max())
    return float("inf")
