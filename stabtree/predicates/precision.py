"""Section 3: mixed precision. Gradient overflow, the loss scale's history, and whose NaN it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.facts.registry import finite, seen
from stabtree.predicates.nonfinite import RECOVERED_ROWS, got_over, storm_start
from stabtree.predicates.registry import predicate
from stabtree.run import UNSCALED
from stabtree.stats import stretches, true_at_end

if TYPE_CHECKING:
    from stabtree.run import Run, Series

# A scaler doubles or halves; these bounds lie between the factors 1/2, 1 and 2 and forgive a logged mean.
ROSE, FELL = 1.5, 0.75
# Overflows in a row at the end that no scaler finding its level makes: it would have halved by 1,000 by then.
FLOORED_ROWS = 10


@predicate(source="phase19 Q3.1")
def nonfinite_grad(loss: Series, grad_norm: Series | None = None, loss_scale: Series | None = None) -> Answer:
    """Is there a step whose grad_norm is infinite or NaN?

    Where the loss itself is not finite the gradient of that step cannot be either, and a loss scale that is
    halved has met one: the scaler halves it for no other reason. Logged or not.
    """
    if grad_norm is not None and not np.isfinite(grad_norm.values).all():
        return _logged_overflow(grad_norm)
    bad = ~np.isfinite(loss.values)
    if bad.any():
        step = int(loss.steps[bad][0])
        text = f"the loss is not finite at step {step:,}, so neither is its gradient"
        return Answer(YES, (Evidence(text, "loss", (step,), float(bad.sum()), 0.0),), onset_step=step)
    history = _history(loss_scale) if loss_scale is not None else None
    if history and history.drops:
        text = (
            f"the loss scale was lowered {history.drops} times, first at step {history.first_drop:,}: an overflow each"
        )
        found = Evidence(text, "loss_scale", (history.first_drop,), float(history.drops), 0.0)
        return Answer(YES, (found,), onset_step=history.first_drop)
    if grad_norm is None:
        return unknown("grad_norm was not logged", "grad_norm")
    text = f"all {len(grad_norm):,} logged values of grad_norm are finite"
    return Answer(NO, (Evidence(text, "grad_norm", (), 0.0, 0.0),))


def _logged_overflow(grad_norm: Series) -> Answer:
    bad = ~np.isfinite(grad_norm.values)
    row, count = int(np.flatnonzero(bad)[0]), int(bad.sum())
    step = int(grad_norm.steps[row])
    text = f"grad_norm is not finite at {count:,} of {len(bad):,} logged steps, first at step {step:,}, "
    text += f"at most {max(b - a for a, b in stretches(bad)):,} in a row"
    good = int(grad_norm.steps[row - 1]) if row else None
    found = Evidence(text, "grad_norm", (step,), float(count), 0.0)
    return Answer(YES, (found,), onset_step=step, last_good_step=good)


MOST_SINGLE, SINGLE_SHARE = 5, 0.05


class ScaleHistory(NamedTuple):
    """What the loss scale did: how often it rose and fell, and its extremes.

    `clean_steps` is the median wait before a rise, `net_halvings` what the second half of the run lost on balance.
    """

    drops: int
    rises: int
    first: float
    last: float
    lowest: float
    highest: float
    lowest_step: int
    first_drop: int
    clean_steps: int | None
    net_halvings: float


def _history(loss_scale: Series) -> ScaleHistory | None:
    """The history, None for a placeholder: fewer than two values, or none above 0, or 1 throughout."""
    steps, values = finite(loss_scale)
    if len(values) < 2 or values.max() <= 0 or (values == 1).all():
        return None
    moves = np.flatnonzero(values[1:] != values[:-1])  # few: most steps leave the scale as it is
    ratio = values[moves + 1] / np.where(values[moves] == 0, np.nan, values[moves])
    rises, drops = moves[ratio > ROSE], moves[ratio < FELL]
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
        first_drop=int(steps[drops[0] + 1]) if len(drops) else int(steps[0]),
        clean_steps=int(np.median(waits)) if waits else None,
        net_halvings=float(np.log2(max(values[len(values) // 2], 1e-300) / max(values[-1], 1e-300))),
    )


class Overflows(NamedTuple):
    """Steps of the second half of the run without a finite gradient: how many, in a row, in a row at the very end."""

    total: int
    in_row: int
    at_end: int


def _late_overflows(loss: Series, grad_norm: Series | None) -> Overflows:
    """Overflows of the second half; a step counts when its loss or its grad_norm is not finite."""
    bad = set(loss.steps[~np.isfinite(loss.values)].tolist())
    steps = loss.steps
    if grad_norm is not None:
        bad |= set(grad_norm.steps[~np.isfinite(grad_norm.values)].tolist())
        steps = steps if steps is grad_norm.steps else np.union1d(steps, grad_norm.steps)
    late = steps[len(steps) // 2 :]
    flags = np.isin(late, np.fromiter(bad, dtype=np.int64, count=len(bad)))
    return Overflows(int(flags.sum()), max((b - a for a, b in stretches(flags)), default=0), true_at_end(flags))


@predicate(source="phase19 Q3.2; torch.amp.GradScaler", labels=("collapsed", "constant", "backoff", "dynamic"))
def loss_scale_history(
    loss: Series,
    loss_scale: Series,
    grad_norm: Series | None = None,
    *,
    collapse_below: float = 1.0,
    net_halvings: int = 2,
    most_in_row: int = 3,
    forgiving: bool = True,
) -> Answer:
    """What does the loss scale's history show?

    `collapsed`: ends below `collapse_below` (1, the document's), or ends in 10 and more overflows in a row
    after three halvings: a scaler with a floor. `constant`: never moved although something overflows late in
    the run. `backoff`: over the second half of the run the scale lost at most `net_halvings` on balance, never
    more than `most_in_row` logged steps in a row overflowed, and the loss is finite at the end: healthy.
    `dynamic`: moves, and something is wrong all the same. The scale should double after N clean steps (N is
    measured and shown; torch's default is 2,000) and halve on every overflow. The labelled healthy runs halve and
    double in turns, with one overflow at a time. Without `forgiving`, the document's letter, a scale that was
    ever below `collapse_below` has collapsed, and one that never moves is constant.
    """
    history = _history(loss_scale)
    if history is None:
        once = _lowered_once(loss, loss_scale, grad_norm) if forgiving else None
        return once or unknown("the loss scale is logged as a placeholder or only once", "loss_scale")
    late = _late_overflows(loss, grad_norm)
    evidence = _told(history, late, collapse_below, most_in_row)
    fallen = history.last if forgiving else history.lowest
    sound = bool(np.isfinite(loss.values[-RECOVERED_ROWS:]).all())
    floored = sound and late.at_end >= FLOORED_ROWS and history.drops >= 3 and history.last <= history.highest / 8
    if (fallen < collapse_below and history.drops) or (forgiving and floored):
        start = _last_fall(loss_scale)
        before = loss_scale.steps[loss_scale.steps < start]
        good = int(before[-1]) if len(before) else None
        return Answer("collapsed", evidence, onset_step=start, last_good_step=good)
    if not history.drops and not history.rises:
        return Answer("backoff" if sound and forgiving and not late.total else "constant", evidence)
    healthy = sound and late.in_row <= most_in_row and history.net_halvings <= net_halvings
    return Answer("backoff" if healthy else "dynamic", evidence)


def _lowered_once(loss: Series, loss_scale: Series, grad_norm: Series | None) -> Answer | None:
    """The backoff of a log that shows the scale only where it is lowered, and shows that once."""
    bad = 0 if grad_norm is None else int(np.count_nonzero(~np.isfinite(grad_norm.values)))
    if len(loss_scale) != 1 or not loss_scale.values[0] > 1 or bad > 1 or not np.isfinite(loss.values).all():
        return None
    step, value = int(loss_scale.steps[0]), float(loss_scale.values[0])
    text = f"the scaler is heard of once, at step {step:,} with a scale of {value:,.6g}, and the loss stays finite"
    return Answer("backoff", (Evidence(text, "loss_scale", (step,), value),))


def _told(history: ScaleHistory, late: Overflows, collapse_below: float, most_in_row: int) -> tuple[Evidence, ...]:
    text = f"second half of the run: {late.total:,} steps overflow, at most {late.in_row:,} in a row"
    if not history.drops and not history.rises:
        still = f"loss scale is {history.first:,.6g} throughout"
        moves = Evidence(still, "loss_scale", (), history.first)
    else:
        every = f"doubles after {history.clean_steps:,} clean steps" if history.clean_steps else "never doubles"
        told = f"loss scale {history.first:,.6g} → {history.last:,.6g}, lowest {history.lowest:,.4g} at step "
        told += f"{history.lowest_step:,}; {history.rises} rises, {history.drops} falls, {every}"
        moves = Evidence(told, "loss_scale", (history.lowest_step,), history.lowest, collapse_below)
        text += f"; {history.net_halvings:.0f} halvings on balance"
    return moves, Evidence(text, "grad_norm", (), float(late.in_row), float(most_in_row))


def _last_fall(loss_scale: Series) -> int:
    """The step at which the fall to the lowest value began: the last one at which the scale still rose or held."""
    steps, values = finite(loss_scale)
    low = int(np.argmin(values))
    rises = np.flatnonzero(np.diff(values[: low + 1]) > 0)
    start = int(rises[-1]) + 1 if len(rises) else 0
    falls = np.flatnonzero(np.diff(values[start : low + 1]) < 0)
    return int(steps[start + int(falls[0]) + 1]) if len(falls) else int(steps[low])


@predicate(source="phase19 Q3.3", labels=("fp16_overflow", "fp32_nan", "isolated", "transient"))
def overflow_fingerprint(
    run: Run,
    loss: Series,
    grad_norm: Series | None = None,
    loss_scale: Series | None = None,
    *,
    most_in_row: int = 3,
) -> Answer:
    """Does the fingerprint read fp16 overflow, or a NaN that fp32 would have had as well?

    Two signals from the document's table, both read in the storm that ends in the loss's own break, so that a
    scaler finding its level at the start says nothing: what broke first (gradient: overflow, loss: structural),
    and whether the scale was halved before (overflow) or not (structural). When they agree, or one alone was
    logged, they decide; else unknown, and re-running one step in fp32 with the same data settles it. In bf16
    and fp32 nothing can pass fp16's maximum: `fp32_nan`. `transient`: the loss never broke, or got over it;
    `isolated` in fp16, where single overflows are how a scaler works, if late in the run never more than `most_in_row`
    came in a row and in all at most 5% of the steps (five in a short log).
    """
    loss_bad = ~np.isfinite(loss.values)
    if not loss_bad.any() or got_over(loss_bad):
        bad = int((~np.isfinite(grad_norm.values)).sum()) if grad_norm is not None else 0
        text = f"the loss is finite at the end; grad_norm is not at {bad:,} steps"
        late = _late_overflows(loss, grad_norm)
        few = late.in_row <= most_in_row and late.total <= max(MOST_SINGLE, SINGLE_SHARE * len(loss) / 2)
        if run.setting("dtype") == "fp16" and bad and few and not loss_bad.any():
            text += f", in the second half of the run at {late.total:,}, at most {late.in_row:,} in a row"
            return Answer("isolated", (Evidence(text, "grad_norm", (), float(late.in_row), float(most_in_row)),))
        return Answer("transient", (Evidence(text, "grad_norm", (), float(bad), 0.0),))
    broke = int(loss.steps[storm_start(loss_bad)])
    dtype = run.setting("dtype")
    if dtype in UNSCALED or (dtype is None and loss_scale is None):
        text = f"dtype is {dtype}: fp16's maximum is no limit there" if dtype else "nothing says that the run is fp16"
        return Answer("fp32_nan", (Evidence(text, "loss", (broke,)),), onset_step=broke)
    storm = _storm(grad_norm, broke) if grad_norm is not None else None
    signals = seen(storm.signal if storm else None, _scale_signal(loss_scale, storm, broke))
    score = sum(int(signal.observed or 0) for signal in signals)
    if not signals:
        return unknown("neither grad_norm nor loss_scale was logged", "grad_norm", "loss_scale")
    if score == 0:
        return unknown("the signals contradict each other: re-run one step in fp32 with the same data")
    onset = storm.onset if storm else broke
    verdict = "fp16_overflow" if score > 0 else "fp32_nan"
    return Answer(verdict, signals, onset_step=onset, last_good_step=storm.good if storm else None)


class Storm(NamedTuple):
    """The overflows that end in the loss's break.

    `first` is the first of them, less than 20 rows apart from the next; `onset` the start of their unbroken end;
    `good` the last step before `first`, so that no checkpoint from between them is advised.
    """

    first: int
    onset: int
    good: int | None
    signal: Evidence


def _storm(grad_norm: Series, broke: int) -> Storm:
    inside = grad_norm.steps < broke
    steps, bad = grad_norm.steps[inside], ~np.isfinite(grad_norm.values[inside])
    rows = np.flatnonzero(bad)
    if not len(rows) or len(bad) - 1 - int(rows[-1]) > RECOVERED_ROWS:
        text = f"the loss broke first, at step {broke:,}, with no overflow in the rows before (as in fp32)"
        good = int(steps[-1]) if len(steps) else None
        return Storm(broke, broke, good, Evidence(text, "loss", (broke,), -1.0, 0.0))
    first = storm_start(bad)
    onset = len(bad) - true_at_end(bad)
    text = f"grad_norm broke first, at step {int(steps[first]):,}, the loss at {broke:,} (fp16 overflow)"
    signal = Evidence(text, "grad_norm", (int(steps[first]), broke), 1.0, 0.0)
    start = int(steps[onset]) if onset < len(steps) else broke
    return Storm(int(steps[first]), start, int(steps[first - 1]) if first else None, signal)


def _scale_signal(loss_scale: Series | None, storm: Storm | None, broke: int) -> Evidence | None:
    """Whether the scale was halved on the way into the break: in the storm, or in the 20 rows before."""
    if loss_scale is None or _history(loss_scale) is None:
        return None
    steps, values = finite(loss_scale)
    rows = np.flatnonzero(steps <= broke)[-RECOVERED_ROWS:]
    start = min(int(rows[0]) if len(rows) else 0, int(np.searchsorted(steps, storm.first)) if storm else len(steps))
    before = values[max(start - 1, 0) :][steps[max(start - 1, 0) :] <= broke]
    halved = int((before[1:] < FELL * before[:-1]).sum())
    told = f"was halved {halved} times (fp16 overflow)" if halved else "was not halved (as in fp32)"
    text = f"the loss scale {told} on the way into the break"
    return Evidence(text, "loss_scale", (broke,), 1.0 if halved else -1.0, 0.0)
