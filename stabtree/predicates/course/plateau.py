"""Whether a loss still falls at the end, has settled, or is on its way up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import Answer, Evidence
from stabtree.common.stats import median, span
from stabtree.facts.levels import turned
from stabtree.facts.registry import Absent, Unknown, finite
from stabtree.facts.rise import Rise
from stabtree.predicates.registry import Groups, predicate

if TYPE_CHECKING:
    from stabtree.facts.batches import Batches
    from stabtree.run import Series


@predicate(source="phase19 Q4.1 and Q4.4, closing lines", labels=("rising", "flat", "falling"), min_points=2)
def settled(
    loss: Series,
    rise: Rise | Absent,
    batches: Batches | Unknown,
    eval_loss: Series | None = None,
    reward: Series | None = None,
    lr: Series | None = None,
    weight_norm: Groups | None = None,
    grad_norm: Series | None = None,
    *,
    strict: bool,
    still_falling_share: float,
) -> Answer:
    """Is the loss still falling, flat, or on its way up?

    `rising` as in `loss_rising`. `falling`: the second half of the run lowers the loss, or the eval loss
    where logged, by more than `still_falling_share` of the range it covers: a share that is seen on a plot and
    above the scatter of the labelled plateaus. Otherwise `flat`: done training, or stuck. Where a reward is logged,
    its rise counts instead of the loss's fall. With `strict`, the document's own rule, a run whose loss rises is at
    a plateau when neither lr, nor the weights, nor grad_norm moves; where one of them was not logged it rises. Any
    other is healthy.
    """
    if strict:
        if isinstance(rise, Absent):
            return Answer("falling", rise.evidence)
        missing = None in (lr, weight_norm, grad_norm)
        return Answer("rising" if missing else "flat", (rise.evidence,))
    if isinstance(rise, Rise) and rise.course:
        text = f"the last level of the loss lies {rise.course.rise:.3g} above its lowest, at step {rise.low_step:,}"
        times = Evidence(text, "loss", (rise.low_step,), rise.course.times, rise.limits.noise_factor)
        return Answer("rising", (times,))
    loss = loss if isinstance(batches, Unknown) else batches.fresh(loss)
    gains = {"loss": _late_gain(loss), "eval_loss": _late_gain(eval_loss) if eval_loss is not None else None}
    better = _late_gain(turned(reward)) if reward is not None else None
    if better is not None:
        gains = {"reward": better}
    evidence = tuple(
        Evidence(_gain_text(name, share), name, (), share, still_falling_share)
        for name, share in gains.items()
        if share is not None
    )
    fallen = any(share is not None and share > still_falling_share for share in gains.values())
    return Answer("falling" if fallen else "flat", evidence)


def _gain_text(name: str, share: float) -> str:
    if share == 0:
        return f"{name} does not change in the second half of the run"
    way = "falls" if (share > 0) != (name == "reward") else "rises"
    return f"{name} {way} by {abs(share):.1%} of its range in the second half of the run"


def _late_gain(series: Series) -> float | None:
    """Return the share of its range that a series loses in the second half of the run; None below 8 values."""
    _, values = finite(series)
    if len(values) < 8:
        return None
    part = max(1, len(values) // 8)
    middle = median(values[len(values) // 2 - part // 2 : len(values) // 2 + part])
    end = median(values[-part:])
    covered = span(values)
    return (middle - end) / covered if covered > 0 else 0.0
