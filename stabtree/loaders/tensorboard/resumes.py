"""Which event folders side by side are one run: a trainer that is resumed opens a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR_SMALL
from stabtree.common.stats import median
from stabtree.loaders.points import Points, merge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Ints

# A run from scratch logs its first row at step 0, at 1, or after one interval; a later first row is a resume's.
LATE = FACTOR_SMALL
# What a resume may change: how far it goes; the precision is that of the weights, which only a checkpoint shows.
CHANGES = frozenset({"name", "max_steps", "dtype", "checkpoints"})


class Stretch(NamedTuple):
    """The scalars of an event folder, or of several that are one run, as they were written, and its hyperparameters."""

    points: Points
    config: Mapping[str, object]

    @property
    def steps(self) -> dict[str, Ints]:
        """The steps of each tag that was logged more than once, the most frequent first."""
        steps = {tag: self.points.step[self.points.name == at] for at, tag in enumerate(self.points.names)}
        several = [(tag, own) for tag, own in steps.items() if len(own) > 1]
        return dict(sorted(several, key=lambda item: -len(item[1])))

    @property
    def times(self) -> tuple[float, float]:
        """When its first and its last value were written."""
        times = self.points.time[np.isfinite(self.points.time)]
        return (float(times.min()), float(times.max())) if len(times) else (float("inf"), float("inf"))


def chained(stretches: Mapping[tuple[str, ...], Stretch]) -> list[list[tuple[str, ...]]]:
    """Return the folders of each run in the order of time, the runs in the order of their first folders."""
    chains: list[list[tuple[str, ...]]] = []
    whole: list[Stretch] = []
    for home in sorted(stretches, key=lambda home: stretches[home].times):
        own = stretches[home]
        beside = [at for at, chain in enumerate(chains) if home and chain[0][:-1] == home[:-1]]
        resumed = [at for at in beside if _resumes(whole[at], own)]
        if len(resumed) == 1:
            first = whole[resumed[0]]
            chains[resumed[0]].append(home)
            whole[resumed[0]] = Stretch(merge([first.points, own.points]), {**own.config, **first.config})
        else:
            chains.append([home])
            whole.append(own)
    order = list(stretches)
    return sorted(chains, key=lambda chain: order.index(chain[0]))


def _resumes(first: Stretch, later: Stretch) -> bool:
    """Return whether the later stretch resumes the first: the same tags, from a step within it or right after it.

    Two that end at the same step were both trained to the end: branches, not a run and its resume.
    """
    tags, others = first.steps, later.steps
    shared = next((tag for tag in tags if tag in others), None)
    if shared is None or not (tags.keys() <= others.keys() or others.keys() <= tags.keys()):
        return False
    keys = (first.config.keys() & later.config.keys()) - CHANGES
    if first.times[1] > later.times[0] or any(first.config[key] != later.config[key] for key in keys):
        return False
    before, after = tags[shared], others[shared]
    top = before.max()
    begins_late = after[0] > LATE * max(_interval(after), 1.0)
    return bool(begins_late and before[0] < after[0] <= top + LATE * _interval(before) and after.max() != top)


def _interval(steps: Ints) -> float:
    rises = np.diff(steps)
    return median(rises[rises > 0]) if (rises > 0).any() else 0.0
