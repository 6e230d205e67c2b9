"""Where the run's checkpoints are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.facts.registry import Count, fact

if TYPE_CHECKING:
    from stabtree.run import Run, Series


class Checkpoints(NamedTuple):
    """Where checkpoints are, and which of them are too fresh.

    Attributes:
        listed: their steps, None where nobody lists them.
        every: steps between two of them; `assumed` when nothing says so.
        fresh_steps: a checkpoint from so few steps before the loss goes NaN holds the state that was about to break it.
        loss: the loss, in which the last step before some other is looked up.
        last_step: the last step of the log.
    """

    listed: tuple[int, ...] | None
    every: int
    assumed: bool
    fresh_steps: int
    loss: Series | None
    last_step: int | None

    def newest(self, limit: int) -> int | None:
        """The newest checkpoint up to a step, None when there is none; step 0 is the beginning, not a checkpoint."""
        known = [limit // self.every * self.every] if self.listed is None else [s for s in self.listed if s <= limit]
        return max((step for step in known if step > 0), default=None)

    def step_before(self, step: int) -> int | None:
        """The last step of the loss before some other."""
        before = self.loss.steps[self.loss.steps < step] if self.loss is not None else None
        return int(before[-1]) if before is not None and len(before) else None


@fact()
def checkpoints(run: Run, loss: Series | None = None, *, assumed_every_steps: Count, fresh_steps: int) -> Checkpoints:
    """Where the configuration says that checkpoints are, else every `assumed_every_steps` (the document's)."""
    every, listed = run.setting("checkpoint_every"), run.setting("checkpoints")
    period = every if isinstance(every, int) and every >= 1 else None
    steps = listed if isinstance(listed, tuple) else None
    return Checkpoints(
        listed=steps,
        every=period or assumed_every_steps,
        assumed=period is None and steps is None,
        fresh_steps=fresh_steps,
        loss=loss,
        last_step=run.last_step,
    )
