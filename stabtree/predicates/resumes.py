"""Resumes: does the run go on where it had left off?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, Answer, Evidence
from stabtree.facts.registry import finite
from stabtree.predicates.registry import predicate
from stabtree.stats import span

if TYPE_CHECKING:
    from stabtree._lazy import Floats
    from stabtree.run import Run, Series

SEAM_ROWS = 20
LEAST_SEAM_ROWS = 3


@predicate(source="what users ask for: loss continuity after a resume", labels=("jump", "gain", "no"), min_points=2)
def resume_seam(
    run: Run,
    loss: Series,
    lr: Series | None = None,
    loss_scale: Series | None = None,
    *,
    sigma: float = 5.0,
    range_share: float = 0.1,
    lr_factor: float = 1.5,
) -> Answer:
    """Does the loss change where the run was resumed?

    Compared is the median of up to 20 rows after each seam with what the 20 rows before let expect. `jump`: it is
    higher by more than `sigma` times the scatter of the rows before and by more than `range_share` of all that the
    loss ever moved: an optimizer state, a schedule or weights that were not restored.
    `gain`: it is lower by as much, as when data that were seen already come again. A rate that changes by more than
    `lr_factor` at the seam, or a scale that starts anew, is told with it.
    """
    steps, values = finite(loss)
    covered = span(values)
    worst: tuple[float, int, float, float] | None = None
    for resume in run.resumes:
        at = int(np.searchsorted(steps, resume.to_step))
        before, after = values[max(0, at - SEAM_ROWS) : at], values[at : at + SEAM_ROWS]
        if len(before) < LEAST_SEAM_ROWS or len(after) < LEAST_SEAM_ROWS:
            continue
        level, change = _expected(before, after)
        noise = float(np.median(np.abs(np.diff(before)))) or float(np.std(before))
        if abs(change) > max(sigma * noise, range_share * covered) and (worst is None or abs(change) > abs(worst[0])):
            worst = (change, resume.to_step, level, float(np.median(after)))
    count = len(run.resumes)
    if worst is None:
        text = f"the loss goes on at its level after each of {count} resumes" if count else "the log never goes back"
        return Answer(NO, (Evidence(text, "loss", tuple(r.to_step for r in run.resumes[:5])),))
    change, step, level, now = worst
    text = f"resumed at step {step:,}, the loss goes on at {now:.4g} instead of {level:.4g}"
    told = [Evidence(text, "loss", (step,), change, range_share * covered)]
    for series, name, factor in ((lr, "lr", lr_factor), (loss_scale, "loss_scale", 1.0)):
        told += _moved(series, name, step, factor)
    good = steps[steps < step]
    return Answer(
        "jump" if change > 0 else "gain",
        tuple(told),
        onset_step=step,
        last_good_step=int(good[-1]) if len(good) else None,
    )


def _expected(before: Floats, after: Floats) -> tuple[float, float]:
    """The level to expect after a seam, and how far the loss is off it.

    A falling loss may go on falling or level off: anything between its last level and its trend drawn on is expected.
    """
    level, now = float(np.median(before)), float(np.median(after))
    slope, start = np.polyfit(np.arange(len(before)), before, 1)
    ahead = float(start + slope * (len(before) + len(after) / 2))
    low, high = min(level, ahead), max(level, ahead)
    return level, now - high if now > high else min(now - low, 0.0)


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
