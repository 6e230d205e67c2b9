"""A watch for NaN inside a training loop: which steps to skip, and when to stop the run.

Needs nothing but Python, and takes floats or anything that `float()` takes, a tensor of one element for instance.
`stabtree.measures.batches` runs the same rule over a log.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Literal, SupportsFloat, get_args

from msgspec import Struct, field

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_CONSECUTIVE = 10  # bad steps in a row after which a run doesn't come back by itself
MAX_NAN_STEPS = 100

Action = Literal["warn", "skip", "count", "raise"]

_log = logging.getLogger(__name__)


class NonFiniteError(StabtreeError, RuntimeError):
    """What `action="raise"` raises, on every rank alike: the loss or a gradient is NaN or infinite."""


class MonitorState(Struct):
    """What the monitor has seen so far.

    Attributes:
        consecutive: bad steps in a row up to now; a good one makes it 0.
        total: bad steps in all.
        last_good_loss: the last finite loss of this rank at a step at which no rank was bad and no check failed; None
            before the first.
        last_good_step: its step.
        nan_steps: the bad steps, the first 100 of them.
    """

    consecutive: int = 0
    total: int = 0
    last_good_loss: float | None = None
    last_good_step: int | None = None
    nan_steps: list[int] = field(default_factory=list)


class NaNMonitor:
    """Counts the steps at which the loss or a gradient is NaN or infinite, and says when to stop.

    Call `check_loss` once a step, before the optimizer's, and leave the update out where it returns False. A step
    counts once, however many checks it fails. Stop where `should_rollback` is true, and don't go on from the newest
    checkpoint: it may have been written on the way into the trouble.

    On several ranks `sync` keeps them together; if one skipped its update alone, the weights would drift apart.
    It is called once in every check, on every rank, and returns whether any rank is bad. With torch:

        def sync(bad: bool) -> bool:
            flag = torch.tensor(float(bad), device="cuda")
            torch.distributed.all_reduce(flag)  # a sum: above 0 as soon as one rank is bad
            return flag.item() > 0

    Args:
        action: `warn` logs each bad step; `skip` logs only the first in a row and the one that should stop the
            run, for trainers that skip as a matter of course; `count` logs nothing; `raise` raises on the first one.
            The checks return False for all that do not raise.
        max_consecutive: bad steps in a row at which `should_rollback` turns true, at least 1.
        sync: returns whether it is true on any rank; None for a run of one rank.

    Raises:
        StabtreeError: for an unknown action, or a `max_consecutive` below 1.
    """

    def __init__(
        self,
        action: Action = "warn",
        max_consecutive: int = MAX_CONSECUTIVE,
        *,
        sync: Callable[[bool], bool] | None = None,
    ) -> None:
        if action not in get_args(Action):
            hint = f"actions: {', '.join(get_args(Action))}"
            raise StabtreeError(f"{action!r} is not an action", where="NaNMonitor", hint=hint)
        if max_consecutive < 1:
            hint = f"type max_consecutive={MAX_CONSECUTIVE}"
            raise StabtreeError(f"max_consecutive is {max_consecutive}, below 1", where="NaNMonitor", hint=hint)
        self.action = action
        self.max_consecutive = max_consecutive
        self.state = MonitorState()
        self.sync = sync
        self._step: int | None = None
        self._bad = False
        self._before: tuple[int, float | None, int | None] = (0, None, None)

    @property
    def should_rollback(self) -> bool:
        """Whether `max_consecutive` steps in a row were bad: stop, and restart from an older checkpoint."""
        return self.state.consecutive >= self.max_consecutive

    def check_loss(self, loss: SupportsFloat, step: int) -> bool:
        """Return whether the loss is finite on all ranks.

        Args:
            loss: the loss of this rank; of a tensor on a GPU, `float()` waits for the GPU.
            step: the optimizer step.

        Raises:
            NonFiniteError: with `action="raise"`, where it is not.
        """
        value = as_float(loss)
        problem = "" if math.isfinite(value) else f"the loss is {value}"
        good = self._check(problem, step, f"the loss is finite here, {value:.6g}")
        if good and not self._bad:
            self.state.last_good_loss, self.state.last_good_step = value, step
        return good

    def check_gradients(self, gradients: Mapping[str, SupportsFloat], step: int) -> bool:
        """Return whether all gradients are finite on all ranks.

        Args:
            gradients: one number per parameter, as a rule its gradient's norm:
                `{name: p.grad.norm() for name, p in model.named_parameters() if p.grad is not None}`.
            step: the optimizer step.

        Raises:
            NonFiniteError: with `action="raise"`, where they are not.
        """
        bad = [(name, value) for name, item in gradients.items() if not math.isfinite(value := as_float(item))]
        problem = "".join(f"the gradient of {name} is {value}" for name, value in bad[:1])
        if len(bad) > 1:
            problem += f", and {len(bad) - 1} more"
        return self._check(problem, step, "the gradients are finite here")

    def _check(self, problem: str, step: int, fine: str) -> bool:
        """Count one check; `problem` says what is wrong on this rank, `fine` what to say when nothing is."""
        bad = bool(problem) if self.sync is None else bool(self.sync(bool(problem)))
        state = self.state
        if step != self._step:
            self._step, self._bad = step, False
            self._before = state.consecutive, state.last_good_loss, state.last_good_step
        if not bad:
            if not self._bad:
                state.consecutive = 0
            return True
        is_new = not self._bad
        if is_new:
            # An earlier check of this step may have passed and ended the row: the step is bad all the same.
            self._bad = True
            before, state.last_good_loss, state.last_good_step = self._before
            state.consecutive = before + 1
            state.total += 1
            if len(state.nan_steps) < MAX_NAN_STEPS:
                state.nan_steps.append(step)
        self._react(problem or f"not finite on another rank; {fine}", step, is_new=is_new)
        return False

    def _react(self, what: str, step: int, *, is_new: bool) -> None:
        """Log or raise what is wrong, as `action` says."""
        state, last_good = self.state, "no step was good before"
        if state.last_good_step is not None:
            last_good = f"the last good loss was {state.last_good_loss:.6g}, at step {state.last_good_step}"
        if self.action == "raise":
            hint = "go back to a checkpoint from well before; `stabtree diagnose` on the log names the cause"
            raise NonFiniteError(f"{what}; {last_good}", where=f"step {step}", hint=hint)
        if self.action == "warn" or (self.action == "skip" and state.consecutive == 1):
            _log.warning("step %d: %s; leave this update out (%d in a row)", step, what, state.consecutive)
        if self.action != "count" and is_new and state.consecutive == self.max_consecutive:
            message = "step %d: %d bad steps in a row: stop, and restart from a checkpoint from well before; %s"
            _log.error(message, step, self.max_consecutive, last_good)


def as_float(value: SupportsFloat) -> float:
    """Return a number as a float; arrays and tensors of one element are numbers, whatever their shape."""
    item = getattr(value, "item", None)
    return float(item() if item else value)
