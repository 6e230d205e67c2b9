"""A learning rate that leaps right before the trouble, and who set it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.shared import FACTOR_SMALL
from stabtree.predicates.clues.registry import Seen, clue
from stabtree.predicates.schedule import largest_leap

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series

SAME = 0.02  # no limit: two rates that differ by less than this share are one


@clue
def lr_leap(moment: Moment, run: Run, lr: Series) -> Seen | None:
    """Return by how much the rate leaps from one row to the next in the last rows up to the trouble; 1 without a leap.

    A warm-up is none: there the row before had risen as well.
    """
    found = _leap(moment, lr)
    if found is None:
        return None
    step, old, new = found
    if new <= FACTOR_SMALL * old:
        return Seen(1.0, f"lr does not leap: {_rate(old)} → {_rate(new)} at step {step:,}", "", "lr", (step,))
    factor = new / old
    text = f"lr leaps ×{factor:.3g} at step {step:,}, {_rate(old)} → {_rate(new)}"
    known = run.setting("lr")
    if isinstance(known, int | float) and known > 0:
        text += f" ({_rate(float(known))} is configured)"
    return Seen(factor, text, f"lr {_rate(old)} → {_rate(new)} at step {step:,}", "lr", (step,))


@clue
def rate_is_logged(_moment: Moment, run: Run) -> Seen:
    """Return whether the learning rate is logged: `yes` or `no`."""
    if run.has("lr"):
        return Seen("yes", "lr is logged", "", "lr")
    return Seen("no", "lr is not logged, so it may have jumped", "", "lr")


@clue
def to_compare(_moment: Moment, run: Run) -> Seen:
    """Return what a person compares around a jump: the rate only where the log does not show it."""
    logged = run.has("lr")
    return Seen(float(logged), "", "20 samples" if logged else "20 samples and the learning rate", "lr")


@clue
def leapt_to_configured(moment: Moment, run: Run, lr: Series) -> Seen | None:
    """Return whether the rate that it leaps to is the configured one: `yes` or `no`."""
    found, known = _leap(moment, lr), run.setting("lr")
    if found is None or not isinstance(known, int | float) or known <= 0:
        return None
    same = abs(found[2] - known) <= SAME * known
    text = f"the configured rate is {_rate(float(known))}"
    return Seen("yes" if same else "no", text, _rate(float(known)), "lr", (found[0],))


def _leap(moment: Moment, lr: Series) -> tuple[int, float, float] | None:
    return None if moment.onset_step is None else largest_leap(lr, moment.onset_step)


def _rate(value: float) -> str:
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")
