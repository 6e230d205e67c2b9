"""The loss scale of a scaler: its history, and what it can't help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import LIKELY, NO, POSSIBLE, Answer, Evidence, measured, unknown
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, rows_before
from stabtree.common.shared import ROWS_SHORT
from stabtree.common.strength import FARTHEST, above, weakest
from stabtree.facts.loss_break import Break
from stabtree.facts.registry import Absent, Unknown, finite, highest, lowest
from stabtree.facts.scale import SMALLEST
from stabtree.predicates.precision.overflow import ONLY_OVERFLOWS, Overflows, late_overflows, only_overflows
from stabtree.predicates.registry import predicate

if TYPE_CHECKING:
    from stabtree.facts.scale import ScaleHistory
    from stabtree.run import Series


@predicate(source="phase19 Q3.2; torch.amp.GradScaler", labels=("collapsed", "constant", "backoff", "dynamic"))
def loss_scale_history(
    loss_scale: Series,
    scale: ScaleHistory | Unknown,
    loss_break: Break | Absent | Unknown,
    loss: Series | None = None,
    grad_norm: Series | None = None,
    *,
    collapse_below: float,
    net_halvings: int,
    max_in_row: int,
    forgiving: bool,
) -> Answer:
    """What does the loss scale's history show?

    `collapsed`: ends below `collapse_below` (the document's), or ends in `ROWS_SHORT` and more overflows in a row
    after more than `net_halvings`: a scaler with a floor, since no scaler that finds its level makes so many.
    `constant`: never moved although something overflows late in
    the run. `backoff`: over the second half of the run the scale lost at most `net_halvings` on balance, never
    more than `max_in_row` logged steps in a row overflowed, and the loss is finite at the end: healthy.
    `dynamic`: moves, and something is wrong all the same. The scale should double after N clean steps (N is
    measured and shown; torch's default is 2,000) and halve on every overflow. The labelled healthy runs halve and
    double in turns, with one overflow at a time. Without `forgiving`, the document's own rule, a scale that was
    ever below `collapse_below` has collapsed, and one that never moves is constant.
    """
    if loss is None and only_overflows(grad_norm):
        return unknown(ONLY_OVERFLOWS, "loss")
    if isinstance(scale, Unknown):
        once = _lowered_once(loss, loss_scale, grad_norm) if forgiving else None
        return once or unknown(scale.reason, *scale.missing)
    late = late_overflows(loss, grad_norm)
    evidence = _history_evidence(scale, late, collapse_below, max_in_row)
    fallen = scale.last if forgiving else scale.lowest
    sound = not isinstance(loss_break, Break) or loss_break.ends_finite
    halved = scale.drops > net_halvings and scale.last <= scale.highest / 2 ** (net_halvings + 1)
    floored = sound and halved and late.at_end >= ROWS_SHORT
    if (fallen < collapse_below and scale.drops) or (forgiving and floored):
        before = loss_scale.steps[: rows_before(loss_scale.steps, scale.fall_step)]
        good = int(before[-1]) if len(before) else None
        strength = above(collapse_below, fallen) if fallen < collapse_below else 0.0
        return Answer("collapsed", evidence, onset_step=scale.fall_step, last_good_step=good, strength=strength)
    if not scale.drops and not scale.rises:
        return Answer("backoff" if sound and forgiving and not late.total else "constant", evidence)
    healthy = sound and late.in_row <= max_in_row and scale.net_halvings <= net_halvings
    return Answer("backoff" if healthy else "dynamic", evidence)


def _lowered_once(loss: Series | None, loss_scale: Series, grad_norm: Series | None) -> Answer | None:
    """Answer `backoff` for a log that shows the scale only where it is lowered, and shows that once."""
    bad = 0 if grad_norm is None else len(broken_rows(grad_norm))
    if loss is None or len(broken_rows(loss)):
        return None
    if len(loss_scale) != 1 or not loss_scale.values[0] > 1 or bad > 1:
        return None
    step, value = int(loss_scale.steps[0]), float(loss_scale.values[0])
    text = f"the scaler is logged once, at step {step:,} with a scale of {figure(value, 6)}, and the loss stays finite"
    return Answer("backoff", (Evidence(text, "loss_scale", (step,), value),))


def _history_evidence(
    history: ScaleHistory, late: Overflows, collapse_below: float, max_in_row: int
) -> tuple[Evidence, ...]:
    text = f"second half of the run: {late.total:,} steps overflow, at most {late.in_row:,} in a row"
    if not history.drops and not history.rises:
        still = f"loss scale is {figure(history.first, 6)} throughout"
        moves = Evidence(still, "loss_scale", (), history.first)
    else:
        every = f"doubles after {history.clean_steps:,} clean steps" if history.clean_steps else "never doubles"
        history_text = f"loss scale {figure(history.first, 6)} → {figure(history.last, 6)}, lowest "
        history_text += f"{figure(history.lowest, 4)} at step {history.lowest_step:,}; {history.rises} rises, "
        history_text += f"{history.drops} falls, {every}"
        moves = Evidence(history_text, "loss_scale", (history.lowest_step,), history.lowest, collapse_below)
        spent = history.last < SMALLEST and not history.net_halvings
        text += "; the scale is 0 by then" if spent else f"; {history.net_halvings:.0f} halvings on balance"
    return moves, Evidence(text, "grad_norm", (), float(late.in_row), float(max_in_row))


@predicate(source="apex#318; torch.amp.GradScaler", labels=(LIKELY, POSSIBLE, NO))
def no_scale_helps(
    loss: Series, grad_norm: Series, loss_scale: Series, scale: ScaleHistory | Unknown, *, min_scale: float
) -> Answer:
    """Is the gradient itself NaN, whatever the scale?

    Likely where the scale fell below `min_scale` and every row from the beginning of its fall to the end of the log
    has no finite gradient, while the loss is finite in all of them. A scaled gradient that passes fp16's maximum does
    so no longer once the scale is small enough; a NaN that the backward pass makes is there at any scale. Only possible
    where the loss is broken as well: then the forward pass may have passed that maximum.
    """
    if isinstance(scale, Unknown):
        return unknown(scale.reason, *scale.missing)
    start, lowest = scale.fall_step, float(finite(loss_scale)[1][-1])
    gradients, losses = (one.values[rows_before(one.steps, start) :] for one in (grad_norm, loss))
    if not len(gradients) or not len(losses):
        return unknown(f"loss and grad_norm were not both logged from step {start:,} on", "loss", "grad_norm")
    sound, broken = int(np.isfinite(gradients).sum()), int((~np.isfinite(losses)).sum())
    text = f"the scale fell to {figure(lowest, 4)}; from step {start:,} on {sound:,} of {len(gradients):,} rows have "
    text += f"a finite grad_norm, and {len(losses) - broken:,} of {len(losses):,} a finite loss"
    found = (Evidence(text, "loss_scale", (start,), lowest, min_scale),)
    if lowest >= min_scale or sound:
        return Answer(NO, found)
    return Answer(POSSIBLE if broken else LIKELY, found)


@predicate(source="convergence O24; precision P10", min_points=2)
def scale_drifts_down(loss_scale: Series, *, octaves: float, late_halvings: int) -> Answer:
    """Does the loss scale keep falling?

    Yes when it ends `octaves` doublings below its highest value and lost `late_halvings` on balance in the second half
    of the run. A healthy scale calibrates early and then stays on a plateau of 2^13 to 2^16.
    """
    steps, values = finite(loss_scale)
    still = lowest(loss_scale) == highest(loss_scale)
    if lowest(loss_scale) <= 0 or still:
        text = (
            f"the loss scale is {figure(values[0], 6)} throughout"
            if still
            else "the loss scale is 0 in places: no drift"
        )
        return Answer(NO, (Evidence(text, "loss_scale", (), 0.0, octaves),), strength=-FARTHEST)
    logs = np.log2(values)
    below, late = float(logs.max() - logs[-1]), float(logs[len(logs) // 2] - logs[-1])
    text = f"the loss scale ends at {figure(values[-1], 4)}, {below:.0f} halvings below its highest; "
    text += f"{late:.0f} of them in the second half of the run"
    found = (Evidence(text, "loss_scale", (int(steps[-1]),), below, octaves),)
    strength = weakest(above(below, octaves), above(late, late_halvings))
    top = len(logs) - 1 - int(np.argmax(logs[::-1] == logs.max()))
    first = min(top + 1, len(logs) - 1)
    return measured(strength, found, onset_step=int(steps[first]), last_good_step=int(steps[top]))
