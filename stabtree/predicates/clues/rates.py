"""Arithmetic with the learning rate: what it explains, and which rate would be right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.figures import as_factor, as_share, figure
from stabtree.common.lazy import np
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.facts.registry import Groups
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series

WANTED_RATIO = 1e-3  # no limit: Phase 18: the usual size of an update relative to its weights
FARTHEST_FACTOR = 10.0  # no limit: a rate is changed by no more than that in one trial
DECAY_STEPS = 200  # no limit: Phase 19, Q4.3: the stretch over which a weight norm is compared


def shown_change(name: str, now: float, wanted: float) -> str:
    """Return a setting with its value now and the advised one, as one would type them."""
    return f"{name} {now:.3g} → {wanted:.3g}".replace("e-0", "e-").replace("e+0", "e")


@clue
def decay_share(_moment: Moment, run: Run, lr: Series | None = None) -> Seen | None:
    """Return which share of a weight decoupled decay removes in 200 steps: lr × weight decay × 200."""
    decay, rate = run.setting("weight_decay"), peak_rate(run, lr)
    if not isinstance(decay, int | float) or rate is None:
        return None
    share = rate * decay * DECAY_STEPS
    text = f"lr {figure(rate)} × weight decay {decay:g} × {DECAY_STEPS} steps shrinks weights by {as_share(share)}"
    return Seen(share, text, f"{share:.2%}", "lr")


@clue
def rate_for_update(_moment: Moment, run: Run, update_ratio: Groups, lr: Series | None = None) -> Seen | None:
    """Return the rate at which updates would be 1e-3 of the weights, at most ten times the present one or a tenth."""
    rate = peak_rate(run, lr)
    values = np.concatenate([finite(series)[1] for series in update_ratio.values()])
    if rate is None or not len(values) or np.median(values) <= 0:
        return None
    ratio = float(np.median(values))
    factor = WANTED_RATIO / ratio
    tried = min(max(factor, 1 / FARTHEST_FACTOR), FARTHEST_FACTOR)
    text = f"updates are {figure(ratio, 2)} of the weights; {WANTED_RATIO:g} is usual, {as_factor(factor)} as much"
    return Seen(factor, text, shown_change("lr", rate, rate * tried), "update_ratio")


@clue
def decay_over_run(moment: Moment, run: Run, lr: Series | None = None) -> Seen | None:
    """Return which share of a weight decoupled decay removes up to the trouble, or up to the end of the log."""
    seen = decay_share.func(moment, run, lr)
    steps = moment.onset_step or run.last_step
    if seen is None or not isinstance(seen.value, float) or not steps:
        return None
    share = -math.expm1(-seen.value / DECAY_STEPS * steps)
    decay = run.setting("weight_decay")
    text = f"weight decay {decay} alone shrinks each weight by up to {share:.0%} in {steps:,} steps"
    return Seen(share, text, f"{share:.0%} of each weight in {steps:,} steps", "lr")


def peak_rate(run: Run, lr: Series | None) -> float | None:
    """Return the highest logged rate, else the configured one; None where neither is known or above 0."""
    if lr is not None:
        values = finite(lr)[1]
        if len(values) and float(values.max()) > 0:
            return float(values.max())
    known = run.setting("lr")
    return float(known) if isinstance(known, int | float) and known > 0 else None
