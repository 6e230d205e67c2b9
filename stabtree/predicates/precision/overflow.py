"""Gradient overflow: where it is, whose NaN it is, and the steps that are skipped for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, Evidence, measured, unknown
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows
from stabtree.common.stats import interval, is_counter, stretches, true_at_end
from stabtree.common.strength import FARTHEST, above, beyond, weakest
from stabtree.facts.loss_break import Break, storm_start
from stabtree.facts.registry import Absent, Unknown, finite, seen
from stabtree.facts.scale import FELL
from stabtree.predicates.registry import predicate
from stabtree.run import UNSCALED

if TYPE_CHECKING:
    from stabtree.facts.scale import ScaleHistory
    from stabtree.run import Run, Series


@predicate(source="phase19 Q3.1")
def nonfinite_grad(
    scale: ScaleHistory | Unknown, loss: Series | None = None, grad_norm: Series | None = None
) -> Answer:
    """Is there a step whose grad_norm is infinite or NaN?

    Where the loss itself is not finite the gradient of that step cannot be either, and a loss scale that is
    halved has met one: the scaler halves it for no other reason. Logged or not.
    """
    if loss is None and only_overflows(grad_norm):
        return unknown(ONLY_OVERFLOWS, "loss")
    if grad_norm is not None and len(broken_rows(grad_norm)):
        return _logged_overflow(grad_norm)
    if loss is not None and len(broken_rows(loss)):
        step = int(loss.steps[broken_rows(loss)[0]])
        text = f"the loss is not finite at step {step:,}, so neither is its gradient"
        found = Evidence(text, "loss", (step,), float(len(broken_rows(loss))), 0.0)
        return Answer(YES, (found,), onset_step=step, strength=FARTHEST)
    if not isinstance(scale, Unknown) and scale.drops:
        text = f"the loss scale was lowered {scale.drops} times, first at step {scale.first_drop:,}: one overflow each"
        found = Evidence(text, "loss_scale", (scale.first_drop,), float(scale.drops), 0.0)
        return Answer(YES, (found,), onset_step=scale.first_drop, strength=FARTHEST)
    if grad_norm is None:
        return unknown("grad_norm was not logged", "grad_norm")
    text = f"all {len(grad_norm):,} logged values of grad_norm are finite"
    return Answer(NO, (Evidence(text, "grad_norm", (), 0.0, 0.0),), strength=-FARTHEST)


ONLY_OVERFLOWS = "only overflows are logged, not how many steps went well between them"


def only_overflows(grad_norm: Series | None) -> bool:
    """Return whether a log reports nothing but overflows."""
    return grad_norm is not None and len(broken_rows(grad_norm)) == len(grad_norm)


def _logged_overflow(grad_norm: Series) -> Answer:
    bad = ~np.isfinite(grad_norm.values)
    row, count = int(np.flatnonzero(bad)[0]), int(bad.sum())
    step = int(grad_norm.steps[row])
    text = f"grad_norm is not finite at {count:,} of {len(bad):,} logged steps, first at step {step:,}, "
    text += f"at most {max(b - a for a, b in stretches(bad)):,} in a row"
    good = int(grad_norm.steps[row - 1]) if row else None
    found = Evidence(text, "grad_norm", (step,), float(count), 0.0)
    return Answer(YES, (found,), onset_step=step, last_good_step=good, strength=FARTHEST)


class Overflows(NamedTuple):
    """Steps of the second half of the run without a finite gradient: how many, in a row, in a row at the very end."""

    total: int
    in_row: int
    at_end: int


def late_overflows(loss: Series | None, grad_norm: Series | None) -> Overflows:
    """Count the overflows of the second half: steps whose loss or grad_norm is not finite."""
    bad: set[int] = set()
    steps = np.zeros(0, dtype=np.int64)
    for series in (loss, grad_norm):
        if series is not None:
            bad |= set(series.steps[broken_rows(series)].tolist())
            steps = series.steps if not len(steps) or steps is series.steps else np.union1d(steps, series.steps)
    if not bad:
        return Overflows(0, 0, 0)
    late = steps[len(steps) // 2 :]
    flags = np.isin(late, np.fromiter(bad, dtype=np.int64, count=len(bad)))
    return Overflows(int(flags.sum()), max((b - a for a, b in stretches(flags)), default=0), true_at_end(flags))


@predicate(source="phase19 Q3.3", labels=("fp16_overflow", "fp32_nan", "isolated", "transient"))
def overflow_fingerprint(
    run: Run,
    loss: Series,
    loss_break: Break | Absent,
    scale: ScaleHistory | Unknown,
    grad_norm: Series | None = None,
    loss_scale: Series | None = None,
    *,
    max_in_row: int,
) -> Answer:
    """Do the signs point to fp16 overflow, or to a NaN that fp32 would have had as well?

    Two signals from the document's table, both read in the storm that ends in the loss's own break, so that a
    scaler finding its level at the start says nothing: what broke first (gradient: overflow, loss: structural),
    and whether the scale was halved before (overflow) or not (structural). When they agree, or one alone was
    logged, they decide; else unknown, and re-running one step in fp32 with the same data settles it. What breaks first
    within one row that covers several steps is not seen. In bf16 and fp32 nothing can pass fp16's maximum:
    `fp32_nan`. `transient`: the loss never broke, or got over it; `isolated` in fp16, where single overflows are how a
    scaler works, and where nothing says that the run is not, if late in the run never more than `max_in_row` came in a
    row and in all at most a twentieth of the steps (`ROWS_SHORT` in a short log).
    """
    if isinstance(loss_break, Absent) or loss_break.healed:
        bad = len(broken_rows(grad_norm)) if grad_norm is not None else 0
        text = f"the loss is finite at the end; grad_norm is not at {bad:,} steps"
        late = late_overflows(loss, grad_norm)
        few = late.in_row <= max_in_row and late.total <= max(shared.ROWS_SHORT, shared.SHARE_SOME * len(loss) / 2)
        if run.setting("dtype") in ("fp16", None) and bad and few and isinstance(loss_break, Absent):
            text += f", in the second half of the run at {late.total:,}, at most {late.in_row:,} in a row"
            return Answer("isolated", (Evidence(text, "grad_norm", (), float(late.in_row), float(max_in_row)),))
        return Answer("transient", (Evidence(text, "grad_norm", (), float(bad), 0.0),))
    broke = loss_break.step
    dtype = run.setting("dtype")
    if dtype in UNSCALED or (dtype is None and loss_scale is None):
        text = (
            f"dtype is {dtype}: the limit of fp16 does not apply" if dtype else "it is not known that the run is fp16"
        )
        return Answer("fp32_nan", (Evidence(text, "loss", (broke,)),), onset_step=broke)
    storm = _storm(grad_norm, loss_break) if grad_norm is not None and not _unordered(loss, grad_norm, broke) else None
    signals = seen(
        storm.signal if storm else None,
        _scale_signal(loss_scale, storm, loss_break) if not isinstance(scale, Unknown) and loss_scale else None,
    )
    score = sum(int(signal.observed or 0) for signal in signals)
    if score == 0:
        return _undecided(loss, grad_norm, broke, contradict=bool(signals))
    onset = storm.onset if storm else broke
    verdict = "fp16_overflow" if score > 0 else "fp32_nan"
    return Answer(verdict, signals, onset_step=onset, last_good_step=storm.good if storm else None)


def _undecided(loss: Series, grad_norm: Series | None, broke: int, *, contradict: bool) -> Answer:
    if contradict:
        return unknown("the signs contradict each other: run that step again in fp32 on the same batch")
    if grad_norm is None:
        return unknown("neither grad_norm nor loss_scale was logged", "grad_norm", "loss_scale")
    text = f"loss and grad_norm broke in one row, that of step {broke:,}, which stands for "
    return unknown(f"{text}{interval(loss.steps):.0f} steps: which was first is not seen", "loss_scale")


class Storm(NamedTuple):
    """The overflows that end in the loss's break.

    `first` is the first of them, `recovered_rows` or fewer apart from the next; `onset` the start of their unbroken
    end; `good` the last step before `first`, so that no checkpoint from between them is advised.
    """

    first: int
    onset: int
    good: int | None
    signal: Evidence


def _unordered(loss: Series, grad_norm: Series, broke: int) -> bool:
    """Return whether grad_norm breaks in the same row as the loss, and a row is several steps: no order is visible."""
    bad = ~np.isfinite(grad_norm.values)
    here = bad & (grad_norm.steps == broke)
    return interval(loss.steps) > 1 and bool(here.any()) and not bad[grad_norm.steps < broke].any()


def _storm(grad_norm: Series, loss_break: Break) -> Storm:
    broke, recovered_rows = loss_break.step, loss_break.recovered_rows
    inside = grad_norm.steps < broke
    steps, bad = grad_norm.steps[inside], ~np.isfinite(grad_norm.values[inside])
    rows = np.flatnonzero(bad)
    if not len(rows) or len(bad) - 1 - int(rows[-1]) > recovered_rows:
        text = f"the loss broke first, at step {broke:,}, with no overflow in the rows before (as in fp32)"
        good = int(steps[-1]) if len(steps) else None
        return Storm(broke, broke, good, Evidence(text, "loss", (broke,), -1.0, 0.0))
    first = storm_start(rows, recovered_rows)
    onset = len(bad) - true_at_end(bad)
    text = f"grad_norm broke at step {int(steps[first]):,}, the loss at {broke:,} (fp16 overflow)"
    signal = Evidence(text, "grad_norm", (int(steps[first]), broke), 1.0, 0.0)
    start = int(steps[onset]) if onset < len(steps) else broke
    return Storm(int(steps[first]), start, int(steps[first - 1]) if first else None, signal)


def _scale_signal(loss_scale: Series, storm: Storm | None, loss_break: Break) -> Evidence:
    """Return whether the scale was halved on the way into the break: in the storm, or in the rows before."""
    broke = loss_break.step
    steps, values = finite(loss_scale)
    rows = np.flatnonzero(steps <= broke)[-loss_break.recovered_rows :]
    start = min(int(rows[0]) if len(rows) else 0, int(np.searchsorted(steps, storm.first)) if storm else len(steps))
    before = values[max(start - 1, 0) :][steps[max(start - 1, 0) :] <= broke]
    halved = int((before[1:] < FELL * before[:-1]).sum())
    change = f"was halved {halved} times (fp16 overflow)" if halved else "was not halved (as in fp32)"
    text = f"the loss scale {change} before the break"
    return Evidence(text, "loss_scale", (broke,), 1.0 if halved else -1.0, 0.0)


@predicate(source="precision P14", min_points=2)
def skips_rise(
    skipped_steps: Series,
    *,
    late_share: float = shared.SHARE_SOME,
    factor: float = shared.FACTOR,
    least: int = shared.ROWS_SHORT,
) -> Answer:
    """Are more and more steps skipped?

    The counter may be cumulative or per row; one that never falls is cumulative. Yes when the second half has at least
    `least` skipped steps, in more than `late_share` of its steps, and more than `factor` times as many as the first
    half.
    """
    steps, values = finite(skipped_steps)
    counts = values
    if is_counter(values):
        counts = np.diff(values, prepend=values[0])
    counts = np.maximum(counts, 0.0)
    half = min(max(1, int(np.searchsorted(steps, (steps[0] + steps[-1]) / 2))), len(steps) - 1)
    first, second = float(counts[:half].sum()), float(counts[half:].sum())
    taken = float(steps[-1] - steps[half - 1])  # a row counts the steps since the one before
    share = min(second / taken, 1.0)  # a counter of micro-batches may count several a step
    text = f"{second:,.0f} steps skipped in the second half of the log ({share:.1%} of them), {first:,.0f} in the first"
    found = (Evidence(text, "skipped_steps", (int(steps[half]),), share, late_share),)
    strength = weakest(above(second, least), beyond(share, late_share), beyond(second, factor * first))
    return measured(strength, found, onset_step=int(steps[half]))
