"""Where the held-out loss goes while the training loss settles or rises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.shared import NOISE_TIMES, ROWS_SHORT, SHARE_SOME
from stabtree.common.stats import median
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Series


@clue
def eval_course(_moment: Moment, eval_loss: Series) -> Seen | None:
    """Return whether the held-out loss ends `falling`, `settled`, or `rising` above its best.

    The last third of its rows is compared with the third before, and with the best level of the log.
    """
    steps, values = finite(eval_loss)
    if len(values) < ROWS_SHORT:
        return None
    third = max(2, len(values) // 3)
    now, before = median(values[-third:]), median(values[-2 * third : -third])
    noise = median(np.abs(np.diff(values))) / 2
    bar = max(NOISE_TIMES * noise, SHARE_SOME * float(np.ptp(values)))
    best = int(np.argmin(values))
    lowest = f"{float(values[best]):.4g} at step {int(steps[best]):,}"
    since = int(steps[-2 * third])
    where = f"the eval loss ends at {float(values[-1]):.4g}, its lowest is {lowest}"
    if now < before - bar:
        return Seen("falling", f"the eval loss still falls; {where}", lowest, "eval_loss")
    if now > float(values[best]) + bar and now > before - bar and best < len(values) - third:
        return Seen("rising", f"the eval loss is past its best: {where}", lowest, "eval_loss", (int(steps[best]),))
    return Seen(
        "settled", f"the eval loss has not fallen since step {since:,}", f"step {since:,}", "eval_loss", (since,)
    )


@clue
def best_loss(_moment: Moment, loss: Series) -> Seen | None:
    """Return where the loss is lowest."""
    steps, values = finite(loss)
    if not len(values):
        return None
    best = int(np.argmin(values))
    step = int(steps[best])
    text = f"the loss is lowest at step {step:,}, {float(values[best]):.4g}, and ends at {float(values[-1]):.4g}"
    return Seen(float(step), text, f"step {step:,}, loss {float(values[best]):.4g}", "loss", (step,))
