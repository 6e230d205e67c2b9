"""What a run in half precision logs: overflows, the history of its loss scale, and the traces of known NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, rows_before
from stabtree.common.shared import FARTHEST, ROWS_SHORT, above, beyond, whether
from stabtree.common.stats import interval, is_counter, median, stretches, true_at_end
from stabtree.measures.movers import Break, storm_start, suffers
from stabtree.measures.progress import FELL, SMALLEST
from stabtree.measures.registry import Absent, Unknown, finite, highest, lowest, measure, seen
from stabtree.profile.change import left_course
from stabtree.run import UNSCALED

if TYPE_CHECKING:
    from stabtree.measures.progress import ScaleHistory
    from stabtree.run import Run, Series


@measure(source="phase19 Q3.1")
def nonfinite_grad(
    scale: ScaleHistory | Unknown,
    loss: Series | None = None,
    grad_norm: Series | None = None,
    loss_scale: Series | None = None,
) -> Answer:
    """Is there a step whose grad_norm is infinite or NaN?

    Where the loss itself is not finite the gradient of that step cannot be either, and a loss scale that is
    halved has met one: the scaler halves it for no other reason. Logged or not.
    """
    if loss is None and only_overflows(grad_norm) and not is_spent(loss_scale):
        return unknown(ONLY_OVERFLOWS, "loss")
    if grad_norm is not None and len(broken_rows(grad_norm)):
        bad = ~np.isfinite(grad_norm.values)
        row, count = int(np.flatnonzero(bad)[0]), int(bad.sum())
        step = int(grad_norm.steps[row])
        text = f"grad_norm is not finite at {count:,} of {len(bad):,} logged steps, first at step {step:,}, "
        text += f"at most {max(b - a for a, b in stretches(bad)):,} in a row"
        good = int(grad_norm.steps[row - 1]) if row else None
        found = Evidence(text, "grad_norm", (step,), float(count), 0.0)
        return Answer(YES, (found,), onset_step=step, last_good_step=good, strength=FARTHEST)
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


LEAST_SCALE = 2.0  # no limit: a gradient that overflows at it is above half of fp16's maximum


def is_spent(loss_scale: Series | None) -> bool:
    """Return whether a loss scale is at its floor: 1 or below, and the same after a further overflow."""
    if loss_scale is None or len(loss_scale) < 2:
        return False
    return bool(loss_scale.values[-2] == loss_scale.values[-1] <= 1)


def late_overflows(loss: Series | None, grad_norm: Series | None) -> tuple[int, int, int]:
    """Count the steps of the second half whose loss or grad_norm is not finite: all, in a row, in a row at the end."""
    bad: set[int] = set()
    steps = np.zeros(0, dtype=np.int64)
    for series in (loss, grad_norm):
        if series is not None:
            bad |= set(series.steps[broken_rows(series)].tolist())
            steps = series.steps if not len(steps) or steps is series.steps else np.union1d(steps, series.steps)
    if not bad:
        return 0, 0, 0
    every = np.isin(steps, np.fromiter(bad, dtype=np.int64, count=len(bad)))
    flags = every[len(steps) // 2 :]
    return int(flags.sum()), max((b - a for a, b in stretches(flags)), default=0), true_at_end(every)


@measure(source="phase19 Q3.3", labels=("fp16_overflow", "fp32_nan", "isolated", "transient"))
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
        overflows = len(broken_rows(grad_norm)) if grad_norm is not None else 0
        text = f"the loss is finite at the end; grad_norm is not at {overflows:,} steps"
        total, in_row, _ = late_overflows(loss, grad_norm)
        few = in_row <= max_in_row and total <= max(shared.ROWS_SHORT, shared.SHARE_SOME * len(loss) / 2)
        if grad_norm is not None and suffers(loss, grad_norm):
            text += f", and the loss of the last one, {figure(loss.values[-1], 4)}, is far above all before"
        elif run.setting("dtype") in ("fp16", None) and overflows and few and isinstance(loss_break, Absent):
            text += f", in the second half of the run at {total:,}, at most {in_row:,} in a row"
            return Answer("isolated", (Evidence(text, "grad_norm", (), float(in_row), float(max_in_row)),))
        return Answer("transient", (Evidence(text, "grad_norm", (), float(overflows), 0.0),))
    broke = loss_break.step
    dtype = run.setting("dtype")
    if dtype in UNSCALED or (dtype is None and loss_scale is None):
        text = (
            f"dtype is {dtype}: the limit of fp16 does not apply" if dtype else "it is not known that the run is fp16"
        )
        return Answer("fp32_nan", (Evidence(text, "loss", (broke,)),), onset_step=broke)
    storm = None
    if grad_norm is not None:
        bad = ~np.isfinite(grad_norm.values)
        together = (bad & (grad_norm.steps == broke)).any() and not bad[grad_norm.steps < broke].any()
        # What breaks first within one row that stands for several steps is not seen.
        storm = None if interval(loss.steps) > 1 and together else _storm(grad_norm, loss_break)
    first, onset, good, signal = storm or (None, broke, None, None)
    scaled = None if isinstance(scale, Unknown) else loss_scale
    signals = seen(signal, _scale_signal(scaled, first, loss_break) if scaled else None)
    score = sum(int(signal.observed or 0) for signal in signals)
    if score == 0:
        return _undecided(loss, grad_norm, broke, contradict=bool(signals))
    verdict = "fp16_overflow" if score > 0 else "fp32_nan"
    return Answer(verdict, signals, onset_step=onset, last_good_step=good)


def _undecided(loss: Series, grad_norm: Series | None, broke: int, *, contradict: bool) -> Answer:
    if contradict:
        return unknown("the signs contradict each other: run that step again in fp32 on the same batch")
    if grad_norm is None:
        return unknown("neither grad_norm nor loss_scale was logged", "grad_norm", "loss_scale")
    text = f"loss and grad_norm broke in one row, that of step {broke:,}, which stands for "
    return unknown(f"{text}{interval(loss.steps):.0f} steps: which was first is not seen", "loss_scale")


def _storm(grad_norm: Series, loss_break: Break) -> tuple[int, int, int | None, Evidence]:
    """Return the overflows that end in the loss's break: the first, the start of their unbroken end, the step before.

    They are `recovered_rows` or fewer apart, and no checkpoint from between them is advised.
    """
    broke, recovered_rows = loss_break.step, loss_break.recovered_rows
    inside = grad_norm.steps < broke
    steps, bad = grad_norm.steps[inside], ~np.isfinite(grad_norm.values[inside])
    rows = np.flatnonzero(bad)
    if not len(rows) or len(bad) - 1 - int(rows[-1]) > recovered_rows:
        text = f"the loss broke first, at step {broke:,}, with no overflow in the rows before (as in fp32)"
        good = int(steps[-1]) if len(steps) else None
        return broke, broke, good, Evidence(text, "loss", (broke,), -1.0, 0.0)
    first = storm_start(rows, recovered_rows)
    onset = len(bad) - true_at_end(bad)
    text = f"grad_norm broke at step {int(steps[first]):,}, the loss at {broke:,} (fp16 overflow)"
    signal = Evidence(text, "grad_norm", (int(steps[first]), broke), 1.0, 0.0)
    start = int(steps[onset]) if onset < len(steps) else broke
    return int(steps[first]), start, int(steps[first - 1]) if first else None, signal


def _scale_signal(loss_scale: Series, storm: int | None, loss_break: Break) -> Evidence:
    """Return whether the scale was halved on the way into the break: in the storm, or in the rows before."""
    broke = loss_break.step
    steps, values = finite(loss_scale)
    rows = np.flatnonzero(steps <= broke)[-loss_break.recovered_rows :]
    start = min(int(rows[0]) if len(rows) else 0, rows_before(steps, storm) if storm is not None else len(steps))
    before = values[max(start - 1, 0) :][steps[max(start - 1, 0) :] <= broke]
    halved = int((before[1:] < FELL * before[:-1]).sum())
    change = f"was halved {halved} times (fp16 overflow)" if halved else "was not halved (as in fp32)"
    text = f"the loss scale {change} before the break"
    return Evidence(text, "loss_scale", (broke,), 1.0 if halved else -1.0, 0.0)


@measure(source="precision P14", min_points=2)
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
    half. It begins where more are skipped than the first half would lead to.
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
    left = left_course(steps, np.cumsum(counts - first / half))
    found = (Evidence(text, "skipped_steps", (left.first_bad_step,), share, late_share),)
    strength = min(above(second, least), beyond(share, late_share), beyond(second, factor * first))
    return measured(strength, found, onset_step=left.first_bad_step, last_good_step=left.last_good_step)


@measure(source="phase19 Q3.2; torch.amp.GradScaler", labels=("collapsed", "constant", "backoff", "dynamic"))
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
    if loss is None and only_overflows(grad_norm) and is_spent(loss_scale):
        rows, step, last = len(loss_scale), int(loss_scale.steps[0]), float(loss_scale.values[-1])
        text = f"{rows:,} overflows, and no step with a finite gradient is logged; the scale is {figure(last)} by then"
        spent = Evidence(text, "loss_scale", (step,), last, 1.0)
        return Answer("collapsed", (spent,), onset_step=step, strength=FARTHEST)
    if loss is None and only_overflows(grad_norm):
        return unknown(ONLY_OVERFLOWS, "loss")
    if isinstance(scale, Unknown):
        bad = 0 if grad_norm is None else len(broken_rows(grad_norm))
        sound = forgiving and loss is not None and not len(broken_rows(loss)) and bad < 2
        if not sound or len(loss_scale) != 1 or not loss_scale.values[0] > 1:
            return unknown(scale.reason, *scale.missing)
        # A log that shows the scale only where it is lowered, and shows that once.
        step, value = int(loss_scale.steps[0]), float(loss_scale.values[0])
        text = f"the scaler is logged once, at step {step:,} with a scale of {figure(value, 6)}, and the loss stays "
        return Answer("backoff", (Evidence(f"{text}finite", "loss_scale", (step,), value),))
    total, in_row, at_end = late_overflows(loss, grad_norm)
    evidence = _history_evidence(scale, (total, in_row), collapse_below, max_in_row)
    fallen = scale.last if forgiving else scale.lowest
    sound = not isinstance(loss_break, Break) or loss_break.ends_finite
    halved = scale.drops > net_halvings and scale.last <= scale.highest / 2 ** (net_halvings + 1)
    used_up = only_overflows(grad_norm) and len(loss_scale) >= ROWS_SHORT and scale.last <= LEAST_SCALE
    floored = sound and halved and (at_end >= ROWS_SHORT or used_up)
    if (fallen < collapse_below and scale.drops) or (forgiving and floored):
        before = loss_scale.steps[: rows_before(loss_scale.steps, scale.fall_step)]
        good = int(before[-1]) if len(before) else None
        strength = above(collapse_below, fallen) if fallen < collapse_below else 0.0
        return Answer("collapsed", evidence, onset_step=scale.fall_step, last_good_step=good, strength=strength)
    if not scale.drops and not scale.rises:
        return Answer("backoff" if sound and forgiving and not total else "constant", evidence)
    healthy = sound and in_row <= max_in_row and scale.net_halvings <= net_halvings
    return Answer("backoff" if healthy else "dynamic", evidence)


def _history_evidence(
    history: ScaleHistory, late: tuple[int, int], collapse_below: float, max_in_row: int
) -> tuple[Evidence, ...]:
    text = f"second half of the run: {late[0]:,} steps overflow, at most {late[1]:,} in a row"
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
    return moves, Evidence(text, "grad_norm", (), float(late[1]), float(max_in_row))


@measure(source="convergence O24; precision P10", min_points=2)
def scale_drifts_down(loss_scale: Series, *, octaves: float, late_halvings: int) -> Answer:
    """Does the loss scale keep falling?

    Yes when it ends `octaves` doublings below its highest value and lost `late_halvings` on balance in the second half
    of the run. A healthy scale calibrates early and then stays on a plateau of 2^13 to 2^16.
    """
    steps, values = finite(loss_scale)
    still = lowest(loss_scale) == highest(loss_scale)
    if lowest(loss_scale) <= 0 or still:
        text = "the loss scale is 0 in places: no drift"
        if still:
            text = f"the loss scale is {figure(values[0], 6)} throughout"
        return Answer(NO, (Evidence(text, "loss_scale", (), 0.0, octaves),), strength=-FARTHEST)
    logs = np.log2(values)
    below, late = float(logs.max() - logs[-1]), float(logs[len(logs) // 2] - logs[-1])
    text = f"the loss scale ends at {figure(values[-1], 4)}, {below:.0f} halvings below its highest; "
    text += f"{late:.0f} of them in the second half of the run"
    found = (Evidence(text, "loss_scale", (int(steps[-1]),), below, octaves),)
    strength = min(above(below, octaves), above(late, late_halvings))
    top = len(logs) - 1 - int(np.argmax(logs[::-1] == logs.max()))
    first = min(top + 1, len(logs) - 1)
    return measured(strength, found, onset_step=int(steps[first]), last_good_step=int(steps[top]))


@measure(source="fairseq#515 and #1895", labels=("likely", "no"), min_points=4)
def falls_despite_scale(loss: Series, loss_scale: Series) -> Answer:
    """Does the loss go on falling although the loss scale is below 1?

    Compared are the first and the last quarter of the rows from the first such scale on. A loss that is summed over
    many tokens is large, and its scale small: no collapse. Where every step is skipped the loss does not move.
    """
    at, scales = finite(loss_scale)
    low = at[scales < 1]
    steps, values = finite(loss)
    after = values[steps >= low[0]] if len(low) else values[:0]
    if len(after) < 4 or not np.isfinite(loss.values).all():
        text = f"the loss has {len(after):,} rows at a scale below 1, or rows that are not finite"
        return Answer(NO, (Evidence(text, "loss_scale", (), float(scales.min()) if len(scales) else None, 1.0),))
    part = max(1, len(after) // 4)
    first, end = median(after[:part]), median(after[-part:])
    noise = median(np.abs(np.diff(after)))
    text = f"the loss goes from {figure(first, 4)} to {figure(end, 4)} while the loss scale goes down to "
    text += figure(float(scales.min()))
    found = Evidence(text, "loss_scale", (int(low[0]), int(steps[-1])), first - end, noise)
    return measured(min(above(first - end, noise), whether(end <= median(after))), (found,), LIKELY)
