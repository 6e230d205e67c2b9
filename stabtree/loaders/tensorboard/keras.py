"""Event files of Keras: on which axis its tags are, and on which data they were measured."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from collections.abc import Collection

    from stabtree.loaders.points import Points

_BY_ITERATION = re.compile(r"evaluation_(.+)_vs_iterations")
_BY_EPOCH = re.compile(r"(eval_)?epoch_.+")


def by_epoch(points: Points) -> tuple[Points, tuple[str, ...]]:
    """Return the scalars of a file with each evaluation once, by epoch and under a name of held-out data; and a note.

    While it evaluates, Keras writes every value twice: by epoch, under the name of the training's, and by iteration.
    The second copy is on another axis, on which nothing else of the run is.
    """
    found = {_of_iterations(name) for name in points.names}
    twice = {name for name in found.intersection(points.names) if name}
    if not twice:
        return points, ()
    copies = [number for number, name in enumerate(points.names) if _of_iterations(name) in twice]
    keep = ~np.isin(points.name, copies)
    held_out = replace(
        points,
        names=tuple(f"eval_{name}" if name in twice else name for name in points.names),
        name=points.name[keep],
        step=points.step[keep],
        time=points.time[keep],
        value=points.value[keep],
    )
    text = "The epoch_... are of the validation data: only there does Keras write evaluation_..._vs_iterations too"
    return _without(held_out, copies), (f"{text}, the same values by iteration, which are left out.",)


def _without(points: Points, gone: Collection[int]) -> Points:
    """Return the points with the names that none of them has any more left out."""
    kept = [number for number in range(len(points.names)) if number not in gone]
    number_of = np.zeros(len(points.names), dtype=np.int64)
    number_of[kept] = np.arange(len(kept))
    return replace(points, names=tuple(points.names[number] for number in kept), name=number_of[points.name])


def counts_epochs(tags: Collection[str]) -> bool:
    """Return whether everything in the files of a run was logged by epoch."""
    return bool(tags) and all(_BY_EPOCH.fullmatch(tag) for tag in tags)


def _of_iterations(tag: str) -> str:
    """Return the name by epoch of what a tag holds by iteration; empty where it does not."""
    found = _BY_ITERATION.fullmatch(tag)
    return f"epoch_{found[1]}" if found else ""
