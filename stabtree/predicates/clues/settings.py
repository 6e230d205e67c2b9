"""What the configuration of a run amounts to over its steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.predicates.clues.rates import DECAY_STEPS, decay_share
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series


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
    return Seen(share, text, f"{share:.0%}", "lr")
