"""Section 3: mixed precision. Gradient overflow, the loss scale's history, and whose NaN it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.predicates.nonfinite import storm_start
from stabtree.predicates.registry import predicate, seen
from stabtree.stats import stretches

if TYPE_CHECKING:
    from stabtree._lazy import Bools
    from stabtree.run import Series


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
        text = f"grad_norm is not finite at {count:,} of {total:,} logged steps, first at step {step:,}, "
        text += f"at most {longest:,} in a row"
        good = int(grad_norm.steps[row - 1]) if row else None
        return Answer(
            YES, (Evidence(text, "grad_norm", (step,), float(count), 0.0),), onset_step=step, last_good_step=good
        )
    bad = ~np.isfinite(loss.values)
    if bad.any():
        step = int(loss.steps[bad][0])
        text = f"the loss is not finite at step {step:,}, so neither is its gradient"
        return Answer(YES, (Evidence(text, "loss", (step,), float(bad.sum()), 0.0),), onset_step=step)
    if grad_norm is None:
        return unknown("grad_norm was not logged", "grad_norm")
    return Answer(
        NO, (Evidence(f"all {len(grad_norm):,} logged values of grad_norm are finite", "grad_norm", (), 0.0, 0.0),)
    )


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
    net_halvings: float


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
        net_halvings=float(np.log2(max(values[len(values) // 2], 1e-300) / max(values[-1], 1e-300))),
    )


@predicate(source="phase19 Q3.2; torch.amp.GradScaler", labels=("collapsed", "constant", "backoff", "dynamic"))
def loss_scale_history(
    loss: Series,
    loss_scale: Series,
    grad_norm: Series | None = None,
    *,
    collapse_below: float = 1.0,
    net_halvings: int = 2,
    most_in_row: int = 3,
) -> Answer:
    """What does the loss scale's history show?

    `collapsed`: fell by at least three halvings, to below `collapse_below` (1, the document's).
    `constant`: never moved although gradients overflow late in the run. `backoff`: over the second half of
    the run the scale lost at most `net_halvings` on balance and never more than `most_in_row` logged steps
    in a row overflowed, and the loss is finite: healthy. `dynamic`: moves, and something is wrong all the
    same. The scale should double after N clean steps (N is measured and shown; torch's default is
    2,000) and halve on every overflow. Labelled healthy runs halve and double in turns.
    """
    history = _history(loss_scale)
    if history is None:
        return unknown("the loss scale is logged as a placeholder or only once", "loss_scale")
    every = f"doubles after {history.clean_steps:,} clean steps" if history.clean_steps else "never doubles"
    moves = f"loss scale {history.first:,.6g} → {history.last:,.6g}, lowest {history.lowest:,.4g} at step "
    moves += f"{history.lowest_step:,}; {history.rises} rises, {history.drops} falls, {every}"
    evidence = Evidence(moves, "loss_scale", (history.lowest_step,), history.lowest, collapse_below)
    overflows, in_row = _late_overflows(grad_norm if grad_norm is not None else loss)
    late = Evidence(
        f"second half of the run: {overflows:,} steps overflow, at most {in_row} in a row; "
        f"{history.net_halvings:.0f} halvings on balance",
        "grad_norm" if grad_norm is not None else "loss",
        (),
        float(in_row),
        float(most_in_row),
    )
    if history.lowest < collapse_below and history.drops >= 3 and history.lowest <= history.highest / 8:
        start = _last_fall(loss_scale)
        before = loss_scale.steps[loss_scale.steps < start]
        return Answer(
            "collapsed", (evidence, late), onset_step=start, last_good_step=int(before[-1]) if len(before) else None
        )
    if not history.drops and not history.rises:
        still = Evidence(f"loss scale is {history.first:,.6g} throughout", "loss_scale", (), history.first)
        return Answer("constant" if overflows else "backoff", (still, late))
    healthy = (
        in_row <= most_in_row and history.net_halvings <= net_halvings and bool(np.isfinite(loss.values[-20:]).all())
    )
    return Answer("backoff" if healthy else "dynamic", (evidence, late))


def _late_overflows(series: Series) -> tuple[int, int]:
    """How many values of the second half of the run are not finite, and how many of them in a row."""
    late = ~np.isfinite(series.values[len(series) // 2 :])
    return int(late.sum()), max((b - a for a, b in stretches(late)), default=0)


def _last_fall(loss_scale: Series) -> int:
    """The step at which the fall to the lowest value began: the last one at which the scale still rose or held."""
    values = loss_scale.values
    low = int(np.nanargmin(values))
    rises = np.flatnonzero(np.diff(values[: low + 1]) > 0)
    start = int(rises[-1]) + 1 if len(rises) else 0
    falls = np.flatnonzero(np.diff(values[start : low + 1]) < 0)
    return int(loss_scale.steps[start + int(falls[0]) + 1]) if len(falls) else int(loss_scale.steps[low])


@predicate(source="phase19 Q3.3", labels=("fp16_overflow", "fp32_nan", "transient"))
def overflow_fingerprint(loss: Series, grad_norm: Series | None = None, loss_scale: Series | None = None) -> Answer:
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
        _first_signal(grad_norm, grad_bad, broke),
        _scale_signal(loss_scale, broke),
        _forward_signal(grad_norm, grad_bad, broke),
    )
    score = sum(int(signal.observed or 0) for signal in signals)
    if not signals:
        return unknown("neither grad_norm nor loss_scale was logged", "grad_norm", "loss_scale")
    if score == 0:
        return unknown("the signals contradict each other: re-run one step in fp32 with the same data")
    onset, good = _storm(grad_norm, grad_bad, broke) if grad_norm is not None else (broke, None)
    return Answer("fp16_overflow" if score > 0 else "fp32_nan", signals, onset_step=onset, last_good_step=good)


def _storm(grad_norm: Series, grad_bad: Bools, broke: int) -> tuple[int, int | None]:
    """The unbroken series of non-finite gradients that ends in the loss's own, and the last step before the storm.

    A storm starts earlier than its unbroken end: overflows that come less than 20 rows apart belong to it,
    so that no checkpoint from between them is advised.
    """
    inside = grad_norm.steps <= broke
    steps, bad = grad_norm.steps[inside], grad_bad[inside]
    if not bad.any():
        return broke, None
    good = np.flatnonzero(~bad)
    start = int(good[-1]) + 1 if len(good) else 0
    first = storm_start(bad)
    return int(steps[start]) if start < len(steps) else broke, int(steps[first - 1]) if first else None


def _first_signal(grad_norm: Series | None, grad_bad: Bools, broke: int) -> Evidence | None:
    if grad_norm is None:
        return None
    first = grad_norm.steps[grad_bad]
    if len(first) and first[0] < broke:
        text = f"first non-finite value: grad_norm at step {int(first[0]):,}, the loss at {broke:,} (fp16 overflow)"
        return Evidence(text, "grad_norm", (int(first[0]), broke), 1.0, 0.0)
    text = f"first non-finite value: the loss itself at step {broke:,} (as in fp32)"
    return Evidence(text, "loss", (broke,), -1.0, 0.0)


def _scale_signal(loss_scale: Series | None, broke: int) -> Evidence | None:
    if loss_scale is None:
        return None
    before = loss_scale.values[loss_scale.steps <= broke]
    halved = int((before[1:] < 0.75 * before[:-1]).sum())
    text = (
        f"loss scale before that: {f'halved {halved} times (fp16 overflow)' if halved else 'never halved (as in fp32)'}"
    )
    return Evidence(text, "loss_scale", (broke,), 1.0 if halved else -1.0, 0.0)


def _forward_signal(grad_norm: Series | None, grad_bad: Bools, broke: int) -> Evidence | None:
    if grad_norm is None:
        return None
    alone = int((grad_bad & (grad_norm.steps < broke)).sum())
    if not alone:
        return None
    text = f"forward pass still finite in {alone} steps whose gradient was not (fp16 overflow)"
    return Evidence(text, "grad_norm", (broke,), 1.0, 0.0)
