"""How far the learning rate is from what runs of its kind take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.context import model
from stabtree.predicates.clues.rates import FARTHEST_FACTOR, peak_rate, shown_change
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series


USUAL_WEIGHT = 0.02  # the standard deviation that most models are initialised with
BF16_HALF_DIGIT = 2.0**-9


class _Usual(NamedTuple):
    """The lowest and the highest usual rate, and the kind of run that they are of."""

    low: float
    high: float
    kind: str


# From the SFT and RL guide, published configurations and the defaults of trainers.
_PREFERENCE = _Usual(2e-7, 5e-6, "preference training")
_GRPO = _Usual(2e-7, 1e-5, "GRPO")
_ADAPTER_PREFERENCE = _Usual(5e-7, 5e-5, "preference training with LoRA")
_REINFORCEMENT = _Usual(1e-4, 1e-3, "reinforcement learning")
_LORA = _Usual(5e-5, 5e-4, "LoRA")
_TUNED = _Usual(5e-6, 5e-5, "a full fine-tune")
_DIFFUSION = _Usual(1e-5, 5e-4, "diffusion")
_ADAM = _Usual(1e-4, 1e-3, "training from scratch with Adam")
_SGD = _Usual(1e-2, 0.5, "training with SGD")
_LANGUAGE = _Usual(5e-6, 1e-3, "a language model")
_ANY = _Usual(1e-5, 0.5, "training")
_BY_TASK = {
    model.PREFERENCE: _PREFERENCE,
    model.GRPO: _GRPO,
    model.ON_POLICY: _REINFORCEMENT,
    model.OFF_POLICY: _REINFORCEMENT,
    model.REINFORCEMENT: _REINFORCEMENT,
    model.DIFFUSION: _DIFFUSION,
}


def _usual(context: Context) -> _Usual:
    """Return the usual rates of a run, as narrow as what is known of it."""
    task, phase, optimizer = context.task.value or "", context.phase.value, context.optimizer.value or ""
    adapter = phase == model.LORA
    if task in (model.PREFERENCE, model.GRPO):
        return _ADAPTER_PREFERENCE if adapter else _BY_TASK[task]
    if task in _BY_TASK:
        return _BY_TASK[task]
    if adapter or phase == model.FINE_TUNE:
        return _LORA if adapter else _TUNED
    if "sgd" in optimizer:
        return _SGD
    if "adam" in optimizer:
        return _ADAM if phase == model.FROM_SCRATCH else _Usual(_TUNED.low, _ADAM.high, "Adam")
    return _LANGUAGE if task == model.LANGUAGE else _ANY


@clue
def rate_below_usual(_moment: Moment, run: Run, context: Context, lr: Series | None = None) -> Seen | None:
    """Return how many times the highest rate lies below the lowest usual one, and the rate to try, tenfold at most."""
    rate, usual = peak_rate(run, lr), _usual(context)
    if rate is None:
        return None
    text = f"lr is at most {rate:.3g}; {usual.kind} usually takes {usual.low:g} to {usual.high:g}"
    wanted = min(max(usual.low, rate), rate * FARTHEST_FACTOR)
    return Seen(usual.low / rate, text, shown_change("lr", rate, wanted), "lr")


@clue
def rate_above_usual(_moment: Moment, run: Run, context: Context, lr: Series | None = None) -> Seen | None:
    """Return how many times the highest rate lies above the highest usual one, and the rate to take."""
    rate, usual = peak_rate(run, lr), _usual(context)
    if rate is None:
        return None
    text = f"lr is up to {rate:.3g}; {usual.kind} usually takes {usual.low:g} to {usual.high:g}"
    wanted = min(rate / FARTHEST_FACTOR, usual.high)
    return Seen(rate / usual.high, text, shown_change("lr", rate, wanted), "lr")


@clue
def rates_to_try(_moment: Moment, run: Run, context: Context, lr: Series | None = None) -> Seen | None:
    """Return the rates of two short trials, ten times up and down, but no farther than is usual."""
    rate, usual = peak_rate(run, lr), _usual(context)
    if rate is None:
        return None
    trials = (min(rate * FARTHEST_FACTOR, usual.high), max(rate / FARTHEST_FACTOR, usual.low))
    wanted = [f"{trial:.2g}".replace("e-0", "e-") for trial in trials if max(trial / rate, rate / trial) >= 2]
    if not wanted:
        return None
    return Seen(rate, f"lr is {rate:.3g}", " and ".join(wanted), "lr")


@clue
def highest_rate(_moment: Moment, run: Run, lr: Series | None = None) -> Seen | None:
    """Return the highest logged learning rate, 0 too, else the configured one."""
    rate = peak_rate(run, lr)
    if rate is None and (lr is None or not len(lr) or bool(lr.values.any())):
        return None
    return Seen(rate or 0.0, f"lr is at most {rate or 0.0:.3g}", f"lr {rate or 0.0:.3g}", "lr")


@clue
def update_in_half_digits(_moment: Moment, run: Run, lr: Series | None = None) -> Seen | None:
    """Return how large an update of Adam, about lr, is beside half a digit of a usual weight in bf16."""
    rate = peak_rate(run, lr)
    if rate is None or "sgd" in str(run.setting("optimizer") or "").lower():
        return None
    half = USUAL_WEIGHT * BF16_HALF_DIGIT
    text = (
        f"Adam moves a weight by about lr = {rate:.3g}; half a digit of a bf16 weight of {USUAL_WEIGHT:g} is {half:.2g}"
    )
    return Seen(rate / half, text, f"{rate:.3g} against {half:.2g}", "lr")
