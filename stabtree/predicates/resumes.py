"""Resumes: does the run go on where it had left off?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import LIKELY, NO, Answer, Evidence
from stabtree.predicates.registry import predicate

if TYPE_CHECKING:
    from stabtree.facts.seam import Seam
    from stabtree.run import Series


@predicate(source="what users ask for: loss continuity after a resume", labels=("jump", "gain", "no"))
def resume_seam(seam: Seam, lr: Series | None = None, loss_scale: Series | None = None, *, lr_factor: float) -> Answer:
    """Does the loss change where the run was resumed?

    `jump`: it is higher than the rows before let expect: an optimizer state, a schedule or weights that were not
    restored. `gain`: it is lower, as when data that were seen already come again. A rate that changes by more than
    `lr_factor` at the seam, or a scale that starts anew, is told with it.
    """
    told = [seam.told]
    for series, name, factor in ((lr, "lr", lr_factor), (loss_scale, "loss_scale", 1.0)):
        told += _moved(series, name, seam.step, factor)
    verdict = "jump" if seam.change > 0 else "gain"
    return Answer(verdict, tuple(told), onset_step=seam.step, last_good_step=seam.good_step)


@predicate(source="prime-diloco#97, apex#480, torchtitan#1213", labels=(LIKELY, NO))
def jump_at_resume(seam: Seam) -> Answer:
    """Does the loss jump with the first steps after a resume?"""
    return Answer(LIKELY if seam.change > 0 else NO, (seam.told,))


def _moved(series: Series | None, name: str, step: int, factor: float) -> list[Evidence]:
    """The change of a series from the row before a step to the row at it, where it is more than a factor."""
    if series is None:
        return []
    at = int(np.searchsorted(series.steps, step))
    if not 0 < at < len(series):
        return []
    old, new = float(series.values[at - 1]), float(series.values[at])
    if not (old > 0 and new > 0) or max(old / new, new / old) <= factor:
        return []
    return [Evidence(f"{name} goes from {old:.3g} to {new:.3g} there", name, (step,), new / old, factor)]
