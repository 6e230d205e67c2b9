"""Whether the learning rate is far above what its optimizer usually takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import LIKELY, NO, POSSIBLE, Evidence
from stabtree.common.figures import as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, rows_before
from stabtree.common.shared import SHARE_SOME
from stabtree.facts.registry import Unknown, fact, finite

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.conditions import Conditions
    from stabtree.run import Run, Series


class Rate(NamedTuple):
    """How likely the rate is too high.

    Attributes:
        too_high: likely, possible or no.
        evidence: what says so; only what is known, without a limit, where it is merely possible: it lies below that.
        bar: what its optimizer hardly ever takes; an advised rate is below it.
    """

    too_high: str
    evidence: tuple[Evidence, ...]
    bar: float


@fact()
def rate(
    run: Run,
    loss: Series,
    conditions: Conditions,
    lr: Series | None = None,
    *,
    adam: float,
    other: float,
    least: float,
    leap: float,
) -> Rate | Unknown:
    """Judge whether the rate is too high: by its value, or by a loss that it drove up at once.

    The highest rate of the first quarter of the rows (a later one is the schedule's doing), or of all up to where the
    loss breaks, else the configured one, above `adam` for the optimizers of the Adam family and above `other` for the
    rest; or a loss that reaches `leap` times its first value in its first rows. Possible down to a twentieth of that
    value, from `least` on for an unknown optimizer, and where no rate is known.
    """
    _, values = finite(loss)
    early = values[: max(3, int(SHARE_SOME * len(values)))]
    times = 0.0  # a loss without a finite value shows no leap
    if len(values) and values[0] > 0:
        times = float(np.clip(early.max() / values[0], -1e300, 1e300))
    text = f"the loss reaches {as_factor(times)} its first value in its first {len(early):,} rows (limit {leap:g}×)"
    jump = Evidence(text, "loss", (), times, leap)
    rates = _rates(lr, loss) if lr is not None else values[:0]
    known = run.setting("lr")
    top: float | None = None
    if len(rates):
        top = float(rates.max())
    elif isinstance(known, int | float):
        top = float(known)
    if top is None and not len(values):
        return Unknown("no learning rate is known, and the loss has no finite value", ("lr",))
    family = conditions.known["optimizer"]
    bar = adam if family.get("adam") else other
    if top is None and times <= leap:
        return Rate(POSSIBLE, (Evidence("no learning rate is known", "lr"),), bar)
    if top is None:
        return Rate(LIKELY, (jump,), bar)
    name = str(run.setting("optimizer") or "an unknown optimizer")
    text = f"lr is at most {figure(top)} with {name}"
    found = Evidence(f"{text}; above {bar:g} is far too high", "lr", (), top, bar)
    if top > bar or times > leap:
        return Rate(LIKELY, (found,) if top > bar else (jump,), bar)
    if top > SHARE_SOME * bar or (not family and top >= least):
        return Rate(POSSIBLE, (Evidence(text, "lr", (), top),), bar)
    return Rate(NO, (found,), bar)


def _rates(lr: Series, loss: Series) -> Floats:
    """Return the rates that count: those of the first rows, or all up to where the loss breaks."""
    steps, rates = finite(lr)
    broken = broken_rows(loss)
    end = rows_before(steps, loss.steps[broken[0]]) if len(broken) else len(rates) // 4
    return rates[: max(3, end)]
