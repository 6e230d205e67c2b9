"""Section 3: mixed precision. Gradient overflow, the loss scale's history, and whose NaN it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.predicates.registry import predicate, seen
from stabtree.stats import stretches

if TYPE_CHECKING:
    from stabtree.run import Run, Series


@predicate(source="phase19 Q3.1")
def nonfinite_grad(loss: Series, grad_norm: Series | None = None) -> Answer:
    """Is there a step whose grad_norm is infinite or NaN?

    Where the loss itself is not finite the gradient of that step cannot be either, logged or not.
    """
    if grad_norm is not None and not np.isfinite(grad_norm.values).all():
        bad = ~np.isfinite(grad_norm.values)
        count, total = int(bad.sum()), len(bad)
        step = int(grad_norm.steps[bad][0])
        row = int(np.flatnonzero(bad)[0])
        longest = max(b - a for a, b in stretches(bad))
        text = f"grad_norm is not finite at {count:,} of {total:,} logged steps, first at step {step:,}, at most {longest:,} in a row"
        good = int(grad_norm.steps[row - 1]) if row else None
        return Answer(YES, (Evidence(text, "grad_norm", (step,), float(count), 0.0),), onset_step=step, last_good_step=good)
    bad = ~np.isfinite(loss.values)
    if bad.any():
        step = int(loss.steps[bad][0])
        text = f"the loss is not finite at step {step:,}, so neither is its gradient"
        return Answer(YES, (Evidence(text, "loss", (step,), float(bad.sum()), 0.0),), onset_step=step)
    if grad_norm is None:
        return unknown("grad_norm was not logged", "grad_norm")
    return Answer(NO, (Evidence(f"all {len(grad_norm):,} logged values of grad_norm are finite", "grad_norm", (), 0.0, 0.0),))


class ScaleHistory(NamedTuple):
    """What the loss scale did: rows of its rises and falls, and the extremes."""

    drops: int
    rises: int
    first: float
    last: float
    lowest: float
    highest: float
    lowest_step: int
    clean_steps: int | None


def _history(loss_scale: Series) -> ScaleHistory | None:
    keep = np.isfinite(loss_scale.values)
    steps, values = loss_scale.steps[keep], loss_scale.values[keep]
    if len(values) < 2 or values.max() <= 0:
        return None
    ratio = values[1:] / np.where(values[:-1] == 0, np.nan, values[:-1])
    rises, drops = np.flatnonzero(ratio > 1.5), np.flatnonzero(ratio < 0.75)
    marks = np.concatenate(([0], np.sort(np.concatenate((rises, drops))) + 1))
    waits = [int(steps[r + 1] - steps[marks[np.searchsorted(marks, r + 1) - 1]]) for r in rises[:200]]
    low = int(np.argmin(values))
    return ScaleHistory(
        drops=len(drops),
        rises=len(rises),
        first=float(values[0]),
        last=float(values[-1]),
        lowest=float(values[low]),
        highest=float(values.max()),
        lowest_step=int(steps[low]),
        clean_steps=int(np.median(waits)) if waits else None,
    )


@predicate(source="phase19 Q3.2; torch.amp.GradScaler", labels=("collapsed", "constant", "backoff", "dynamic"))
def loss_scale_history(
    loss: Series,
    loss_scale: Series,
    grad_norm: Series | None = None,
    *,
    collapse_below: float = 1.0,
    busy_share: float = 0.1,
) -> Answer:
    """What does the loss scale's history show?

    `collapsed`: below `collapse_below` (1, the document's) at the end or after a fall of at least three
    halvings. `constant`: never moved although gradients overflowed. `backoff`: moves at the scaler's own
    rhythm, the loss stays finite and fewer than `busy_share` of the later steps overflow: healthy.
    `dynamic`: moves, and something is wrong all the same. The scale should double after N clean steps
    (N is measured and shown; torch's default is 2,000) and halve on every overflow.
    """
    history = _history(loss_scale)
    if history is None:
        return unknown("the loss scale is logged as a placeholder or only once", "loss_scale")
    overflows = _late_overflows(grad_norm, loss)
    every = f"doubles after {history.clean_steps:,} clean steps" if history.clean_steps else "never doubles"
    moves = f"loss scale {history.first:,.6g} → {history.last:,.6g}, lowest {history.lowest:,.4g} at step {history.lowest_step:,}; "
    moves += f"{history.rises} rises, {history.drops} falls, {every}"
    evidence = Evidence(moves, "loss_scale", (history.lowest_step,), history.lowest, collapse_below)
    share = Evidence(f"{overflows:.1%} of the later steps overflow", "grad_norm", (), overflows, busy_share)
    if history.lowest < collapse_below and history.drops >= 3 and history.lowest <= history.first / 8:
        return Answer("collapsed", seen(evidence, share), onset_step=_last_fall(loss_scale))
    if not history.drops and not history.rises:
        if overflows == 0:
            return Answer("backoff", (Evidence(f"loss scale is {history.first:,.6g} throughout, and nothing overflows late", "loss_scale"),))
        return Answer("constant", (Evidence(f"loss scale is {history.first:,.6g} throughout", "loss_scale"), share))
    healthy = bool(np.isfinite(loss.values[-20:]).all()) and overflows < busy_share
    return Answer("backoff" if healthy else "dynamic", (evidence, share))


def _late_overflows(grad_norm: Series | None, loss: Series) -> float:
    """Share of steps with a gradient that is not finite, in the last half of the run."""
    series = grad_norm if grad_norm is not None else loss
    late = series.values[len(series) // 2 :]
    return float(np.mean(~np.isfinite(late))) if len(late) else 0.0


def _last_fall(loss_scale: Series) -> int:
    """The step at which the fall to the lowest value began: the last one at which the scale still rose or held."""
    values = loss_scale.values
    low = int(np.nanargmin(values))
    rises = np.flatnonzero(np.diff(values[: low + 1]) > 0)
    start = int(rises[-1]) + 1 if len(rises) else 0
    falls = np.flatnonzero(np.diff(values[start : low + 1]) < 0)
    return int(loss_scale.steps[start + int(falls[0]) + 1]) if len(falls) else int(loss_scale.steps[low])


@predicate(source="phase19 Q3.3", labels=("fp16_overflow", "fp32_nan", "transient"))
def overflow_fingerprint(
    run: Run, loss: Series, grad_norm: Series | None = None, loss_scale: Series | None = None
) -> Answer:
    """Does the fingerprint read fp16 overflow, or a NaN that fp32 would have had as well?

    Three signals from the document's table: what went non-finite first (gradient: overflow; loss:
    structural), whether the scale halved before the loss broke (overflow), and whether the loss
    stayed finite in steps whose gradient did not (overflow). `transient`: the loss never broke.
    More signals for one side than for the other decide; a tie is unknown, and re-running one step
    in fp32 with the same data settles it.
    """
    loss_bad = ~np.isfinite(loss.values)
    grad_bad = ~np.isfinite(grad_norm.values) if grad_norm is not None else np.zeros(0, dtype=bool)
    if not loss_bad.any():
        text = f"the loss is finite throughout; grad_norm is not at {int(grad_bad.sum()):,} steps"
        return Answer("transient", (Evidence(text, "grad_norm", (), float(grad_bad.sum()), 0.0),))
    broke = int(loss.steps[loss_bad][0])
    signals = seen(
        _first_signal(grad_norm, grad_bad, broke), _scale_signal(loss_scale, broke), _forward_signal(grad_norm, grad_bad, broke)
    )
    score = sum(int(signal.observed or 0) for signal in signals)
    if not signals:
        return unknown("neither grad_norm nor loss_scale was logged", "grad_norm", "loss_scale")
    if score == 0:
        return unknown("the signals contradict each other: re-run one step in fp32 with the same data")
    return Answer("fp16_overflow" if score > 0 else "fp32_nan", signals, onset_step=_onset(grad_norm, grad_bad, broke))


def _onset(grad_norm: Series | None, grad_bad: np.typing.NDArray[np.bool_], broke: int) -> int:
    """First step of the unbroken series of non-finite gradients that ends in the loss's own."""
    if grad_norm is None:
        return broke
    before = grad_norm.steps <= broke
    good = np.flatnonzero(~grad_bad[before])
    start = int(good[-1]) + 1 if len(good) else 0
    return int(grad_norm.steps[start]) if start < len(grad_norm) and grad_norm.steps[start] <= broke else broke


def _first_signal(grad_norm: Series | None, grad_bad: np.typing.NDArray[np.bool_], broke: int) -> Evidence | None:
    if grad_norm is None:
        return None
    first = grad_norm.steps[grad_bad]
    if len(first) and first[0] < broke:
        text = f"first non-finite value: grad_norm at step {int(first[0]):,}, before the loss at step {broke:,} (fp16 overflow)"
        return Evidence(text, "grad_norm", (int(first[0]), broke), 1.0, 0.0)
    text = f"first non-finite value: the loss itself at step {broke:,} (as in fp32)"
    return Evidence(text, "loss", (broke,), -1.0, 0.0)


def _scale_signal(loss_scale: Series | None, broke: int) -> Evidence | None:
    if loss_scale is None:
        return None
    before = loss_scale.values[loss_scale.steps <= broke]
    halved = int((before[1:] < 0.75 * before[:-1]).sum())
    text = f"loss scale before that: {f'halved {halved} times (fp16 overflow)' if halved else 'never halved (as in fp32)'}"
    return Evidence(text, "loss_scale", (broke,), 1.0 if halved else -1.0, 0.0)


def _forward_signal(grad_norm: Series | None, grad_bad: np.typing.NDArray[np.bool_], broke: int) -> Evidence | None:
    if grad_norm is None:
        return None
    alone = int((grad_bad & (grad_norm.steps < broke)).sum())
    if not alone:
        return None
    text = f"forward pass still finite in {alone} steps whose gradient was not (fp16 overflow)"
    return Evidence(text, "grad_norm", (broke,), 1.0, 0.0)
