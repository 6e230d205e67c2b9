"""Section 4: silent divergence. The loss creeps up, and what creeps with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.predicates.registry import Groups, finite, per_series, predicate
from stabtree.stats import NORMAL_MAD, blocks, kendall_z

if TYPE_CHECKING:
    from stabtree._lazy import Floats, Ints
    from stabtree.run import Series

MOST_BLOCKS = 40
ROWS_PER_BLOCK = 5  # least rows whose median is a level
LEAST_BLOCKS = 8


class Course(NamedTuple):
    """The loss as block medians, from its lowest level to its end.

    `rise` is how far the end stands above the lowest level, `noise` the scatter between neighbouring
    blocks, `span` the range of all levels, `trend_z` the Mann-Kendall score from the low on.
    """

    low_step: int
    low: float
    end: float
    rise: float
    noise: float
    span: float
    trend_z: float


@per_series
def course(loss: Series) -> Course | None:
    """The loss's course, None when it has too few rows for eight levels of five rows each."""
    steps, values = finite(loss)
    count = min(MOST_BLOCKS, len(values) // ROWS_PER_BLOCK)
    if count < LEAST_BLOCKS:
        return None
    levels, starts = blocks(values, count)
    smooth = np.array([np.median(levels[max(0, i - 1) : i + 2]) for i in range(count)])
    low = int(np.argmin(smooth))
    changes = np.diff(levels)
    noise = NORMAL_MAD * float(np.median(np.abs(changes - np.median(changes)))) / 2**0.5
    end = float(np.median(levels[-3:]))
    span = float(np.subtract(*np.quantile(levels, [0.98, 0.02])))
    return Course(
        int(steps[starts[low]]), float(smooth[low]), end, end - float(smooth[low]), noise, span, kendall_z(levels[low:])
    )


def _window(loss: Series, window_steps: int) -> tuple[int, int]:
    """The stretch that section 4 looks at: from the loss's lowest level, at least the last `window_steps`."""
    last = int(loss.steps[-1])
    found = course(loss)
    start = last - window_steps
    return (min(start, found.low_step) if found and found.trend_z > 0 else start), last


def _within(series: Series, start: int, end: int) -> tuple[Ints, Floats]:
    steps, values = finite(series)
    keep = (steps >= start) & (steps <= end)
    return steps[keep], values[keep]


@predicate(source="phase19 Q4.1; Mann 1945, Kendall 1975", min_points=2)
def loss_rising(
    loss: Series,
    *,
    window_steps: int = 200,
    strict: bool = False,
    trend_z: float = 2.33,
    noise_factor: float = 2.0,
    range_share: float = 0.1,
) -> Answer:
    """Has the loss been rising, slowly and to the end?

    Document: monotonic over the last `window_steps` steps (`strict`), which no noisy loss ever is. The
    default tests the trend of block medians from the lowest level to the end of the run: a Mann-Kendall
    score above `trend_z` (2.33: 1 in 100 without a trend), an end that is `noise_factor` times the blocks'
    own scatter above the low, and at least `range_share` of all that the loss ever moved. Labelled healthy
    runs reach 1.5, 1.4 and 0.11; all three at once none.
    """
    if strict:
        return _strictly_rising(loss, window_steps)
    found = course(loss)
    if found is None:
        return unknown(
            f"the loss has {len(loss):,} rows, {LEAST_BLOCKS * ROWS_PER_BLOCK} are needed to see a trend", "loss"
        )
    share = found.rise / found.span if found.span > 0 else 0.0
    times = found.rise / found.noise if found.noise > 0 else (1e300 if found.rise > 0 else 0.0)
    rising = found.trend_z > trend_z and times > noise_factor and share > range_share
    last = int(loss.steps[-1])
    if rising:
        text = (
            f"from {found.low:.4g} around step {found.low_step:,} up to {found.end:.4g} at the end (step {last:,}): "
            f"trend z {found.trend_z:.1f}, {min(times, 1e6):.3g}× the scatter, {share:.0%} of the loss's range"
        )
        return Answer(
            YES,
            (Evidence(text, "loss", (found.low_step, last), found.trend_z, trend_z),),
            onset_step=found.low_step,
            last_good_step=found.low_step,
        )
    text = (
        f"lowest level {found.low:.4g} around step {found.low_step:,}, {found.end:.4g} at the end: trend z "
        f"{found.trend_z:.1f} (takes {trend_z:g}), {times:.2g}× the scatter (takes {noise_factor:g}), "
        f"{share:.1%} of the range (takes {range_share:.0%})"
    )
    return Answer(NO, (Evidence(text, "loss", (found.low_step, last), found.trend_z, trend_z),))


def _strictly_rising(loss: Series, window_steps: int) -> Answer:
    steps, values = finite(loss)
    if steps[-1] - steps[0] < window_steps:
        return unknown(f"the loss spans {int(steps[-1] - steps[0]):,} steps, {window_steps} are needed", "loss")
    inside = values[steps >= steps[-1] - window_steps]
    share = float(np.mean(np.diff(inside) > 0)) if len(inside) > 1 else 0.0
    start = int(steps[-1]) - window_steps
    text = f"{share:.0%} of the last {window_steps} steps' changes are rises; monotonic means all"
    found = (Evidence(text, "loss", (start, int(steps[-1])), share, 1.0),)
    if len(inside) > 1 and share == 1.0:
        return Answer(YES, found, onset_step=start, last_good_step=start)
    return Answer(NO, found)


def _ratio(begin: float, end: float) -> float:
    """End over beginning of something that should be positive, bounded so that it can be shown."""
    if begin <= 0:
        return 1e300 if end > 0 else 1.0
    return float(np.clip(end / begin, -1e300, 1e300))


@predicate(source="phase19 Q4.2", min_points=2)
def lr_rising(loss: Series, lr: Series, *, window_steps: int = 200, least_factor: float = 1.05) -> Answer:
    """Has the learning rate risen while the loss rose?

    Compared are the medians of the first and the last tenth of the stretch over which the loss rises (at
    least `window_steps`); a rise is more than `least_factor` (5%, above any rounding of a logged rate).
    """
    start, last = _window(loss, window_steps)
    steps, values = _within(lr, start, last)
    if len(values) < 2:
        return unknown(f"lr has fewer than two points in steps {start:,} to {last:,}", "lr")
    part = max(1, len(values) // 10)
    begin, end = float(np.median(values[:part])), float(np.median(values[-part:]))
    ratio = _ratio(begin, end)
    text = f"lr goes from {begin:.3g} to {end:.3g} ({ratio:.3g}×) over steps {int(steps[0]):,} to {int(steps[-1]):,}"
    found = (Evidence(text, "lr", (int(steps[0]), int(steps[-1])), ratio, least_factor),)
    return Answer(YES if ratio > least_factor else NO, found)


@predicate(source="phase19 Q4.3", labels=("up", "down", "no"))
def weight_norm_change(
    loss: Series, weight_norm: Groups, *, window_steps: int = 200, factor: float = 2.0, anywhere: bool = True
) -> Answer:
    """Has any parameter group's weight norm changed by more than 2× within 200 steps?

    `up`: the decay is too low, `down`: too high. Asked only once the loss rises, since early growth of
    that size is true of a quarter of healthy runs. The document looks at the last `window_steps`; with
    `anywhere` every such window of the stretch over which the loss rises counts.
    """
    start, last = _window(loss, window_steps) if anywhere else (int(loss.steps[-1]) - window_steps, int(loss.steps[-1]))
    best: tuple[float, float, int, int, str] | None = None
    for name, series in weight_norm.items():
        steps, values = _within(series, start - window_steps * anywhere, last)
        keep = values > 0
        change = _largest_change(steps[keep], np.log(values[keep]), window_steps)
        if change and (best is None or abs(change[0]) > abs(best[0])):
            best = (change[0], float(np.exp(np.clip(change[0], -690, 690))), change[1], change[2], name)
    if best is None:
        return unknown(f"weight norms have fewer than two points in steps {start:,} to {last:,}", "weight_norm")
    log_ratio, ratio, at, to, name = best
    text = f"{name}: {ratio:.3g}× from step {at:,} to {to:,}, the largest change of a group within {window_steps} steps"
    found = (Evidence(text, f"weight_norm/{name}", (at, to), ratio, factor if log_ratio > 0 else 1 / factor),)
    return Answer("no" if abs(log_ratio) <= np.log(factor) else "up" if log_ratio > 0 else "down", found)


def _largest_change(steps: Ints, logs: Floats, window_steps: int) -> tuple[float, int, int] | None:
    """Largest change between a row and the first row at most `window_steps` before it."""
    if len(steps) < 2:
        return None
    first = np.searchsorted(steps, steps - window_steps)
    change = logs - logs[first]
    at = int(np.argmax(np.abs(change)))
    return float(change[at]), int(steps[first[at]]), int(steps[at])


@predicate(source="phase19 Q4.4", min_points=2)
def grad_norm_rising(
    loss: Series, grad_norm: Series, *, window_steps: int = 200, trend_z: float = 2.33, least_factor: float = 1.2
) -> Answer:
    """Is the rolling mean of grad_norm trending up while the loss rises?

    Block medians over the stretch over which the loss rises: Mann-Kendall above `trend_z` and an end at
    least `least_factor` times the beginning. Alone it says little, healthy gradients grow too; with a
    rising loss it means that the landscape is getting harder.
    """
    start, last = _window(loss, window_steps)
    steps, values = _within(grad_norm, start, last)
    count = min(MOST_BLOCKS // 2, len(values) // 2)
    if count < 4:
        return unknown(
            f"grad_norm has {len(values)} finite points in steps {start:,} to {last:,}, 8 are needed", "grad_norm"
        )
    levels, _ = blocks(values, count)
    score = kendall_z(levels)
    begin, end = float(np.median(levels[:3])), float(np.median(levels[-3:]))
    ratio = _ratio(begin, end)
    text = f"grad_norm goes from {begin:.3g} to {end:.3g} ({ratio:.3g}×) over steps {int(steps[0]):,} to "
    text += f"{int(steps[-1]):,}, trend z {score:.1f}"
    found = (Evidence(text, "grad_norm", (int(steps[0]), int(steps[-1])), score, trend_z),)
    return Answer(YES if score > trend_z and ratio > least_factor else NO, found)


@predicate(source="phase19 Q4.1 and Q4.4, closing lines", labels=("rising", "flat", "falling"), min_points=2)
def settled(
    loss: Series,
    eval_loss: Series | None = None,
    *,
    trend_z: float = 2.33,
    noise_factor: float = 2.0,
    range_share: float = 0.1,
    still_falling_share: float = 0.02,
) -> Answer:
    """Is the loss still falling, flat, or on its way up?

    `rising` as in `loss_rising`. `falling`: the second half of the run lowers the loss, or the eval loss
    where logged, by more than `still_falling_share` of what it covers. Otherwise `flat`: done training,
    or stuck.
    """
    found = course(loss)
    if found is None:
        return unknown(
            f"the loss has {len(loss):,} rows, {LEAST_BLOCKS * ROWS_PER_BLOCK} are needed to see a trend", "loss"
        )
    if found.trend_z > trend_z and found.rise > noise_factor * found.noise and found.rise > range_share * found.span:
        text = f"the loss ends {found.rise:.3g} above its lowest level of step {found.low_step:,}"
        return Answer("rising", (Evidence(text, "loss", (found.low_step,), found.rise, noise_factor * found.noise),))
    told = [_late_gain(loss, "loss"), _late_gain(eval_loss, "eval_loss") if eval_loss is not None else None]
    gains = [gain for gain in told if gain is not None]
    evidence = tuple(
        Evidence(
            f"{name} falls by {share:.1%} of its range in the second half of the run",
            name,
            (),
            share,
            still_falling_share,
        )
        for name, share in gains
    )
    falling = any(share > still_falling_share for _, share in gains)
    return Answer("falling" if falling else "flat", evidence)


def _late_gain(series: Series, name: str) -> tuple[str, float] | None:
    """How much of its range a series loses between the middle and the end of the run."""
    _, values = finite(series)
    if len(values) < 8:
        return None
    part = max(1, len(values) // 8)
    middle = float(np.median(values[len(values) // 2 - part // 2 : len(values) // 2 + part]))
    end = float(np.median(values[-part:]))
    span = float(np.subtract(*np.quantile(values, [0.98, 0.02])))
    return name, (middle - end) / span if span > 0 else 0.0
