"""The loss scaler and the clip: what grad_norm, the scale and the skipped steps say about each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.facts.registry import finite
from stabtree.predicates.registry import predicate
from stabtree.stats import median

if TYPE_CHECKING:
    from stabtree._lazy import Floats
    from stabtree.run import Run, Series


def _paired(a: Series, b: Series) -> tuple[Floats, Floats]:
    """The finite positive values of two series at the steps that both have."""
    x, y = a.values, b.values
    if not np.array_equal(a.steps, b.steps):
        _, here, there = np.intersect1d(a.steps, b.steps, assume_unique=True, return_indices=True)
        x, y = x[here], y[there]
    keep = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0) & (x < 1e100) & (y < 1e100)
    return x[keep], y[keep]


@predicate(source="precision P7")
def norm_is_scaled(
    grad_norm: Series,
    loss_scale: Series,
    *,
    least_ratio: float,
    least_scale: float,
    moved_octaves: float,
    least_slope: float,
    least_rows: int,
) -> Answer:
    """Is the logged grad_norm that of gradients still multiplied by the loss scale?

    Yes when its median is of the order of the scale (more than `least_ratio` of it, and both above
    `least_scale`, below which the two look alike) and, where the scale moves by `moved_octaves` or more, the norm moves
    with it, with a slope above `least_slope`: an unscaled norm knows nothing of the scale.
    """
    norm, scale = _paired(grad_norm, loss_scale)
    if len(norm) < max(least_rows, 2):
        return unknown(f"grad_norm and loss_scale share {len(norm)} rows, {least_rows} are needed", "loss_scale")
    middle, level = float(median(norm)), float(median(scale))
    ratio = middle / level
    text = f"grad_norm has a median of {middle:,.4g}, the loss scale of {level:,.4g}: a ratio of {ratio:.2g}"
    found = [Evidence(text, "grad_norm", (), ratio, least_ratio)]
    large = ratio > least_ratio and min(middle, level) > least_scale
    logs = np.log2(scale)
    if large and float(np.ptp(logs)) >= moved_octaves:
        slope = float(np.polyfit(logs, np.log2(norm), 1)[0])
        text = f"when the scale doubles, the norm grows {2**slope:.2g}-fold (2 for a scaled one, 1 for an unscaled one)"
        found.append(Evidence(text, "loss_scale", (), slope, least_slope))
        large = slope > least_slope
    return Answer(YES if large else NO, tuple(found))


@predicate(source="precision P5 and P10", min_points=20)
def gradients_underflow(
    run: Run,
    grad_norm: Series,
    loss_scale: Series | None = None,
    *,
    zero_share: float,
    placeholder_share: float,
) -> Answer:
    """Do gradients vanish in fp16 for want of a loss scale?

    Yes in an fp16 run whose scale is 1 or not logged and whose grad_norm is exactly 0 in more than `zero_share` of the
    rows: without a scale, small gradients are flushed to 0. In more than `placeholder_share` of them it is not
    measured: Megatron writes 0.000 where it does not clip.
    """
    if run.setting("dtype") != "fp16":
        return unknown("nothing says that the run is fp16", "dtype")
    values = finite(grad_norm)[1]
    share = float(np.mean(values == 0))
    if share > placeholder_share:
        return unknown("grad_norm is 0 throughout, as where it is not measured", "grad_norm")
    scale = finite(loss_scale)[1] if loss_scale is not None else np.zeros(0)
    scaled = bool(len(scale)) and float(scale.max()) > 1
    about = f"a loss scale of up to {scale.max():,.6g}" if scaled else "no loss scale above 1"
    text = f"grad_norm is exactly 0 in {share:.1%} of the rows, with {about}"
    found = (Evidence(text, "grad_norm", (), share, zero_share),)
    return Answer(YES if share > zero_share and not scaled else NO, found)


@predicate(source="convergence O24; precision P10", min_points=20)
def scale_drifts_down(loss_scale: Series, *, octaves: float, late_halvings: int) -> Answer:
    """Does the loss scale keep drifting down?

    Yes when it ends `octaves` doublings below its highest value and lost `late_halvings` on balance in the second half
    of the run. A healthy scale calibrates early and then stays on a plateau of 2^13 to 2^16.
    """
    steps, values = finite(loss_scale)
    if values.min() <= 0 or (values == values[0]).all():
        text = f"the loss scale is {float(values[0]):,.6g} throughout, or a placeholder"
        return Answer(NO, (Evidence(text, "loss_scale", (), 0.0, octaves),))
    logs = np.log2(values)
    below, late = float(logs.max() - logs[-1]), float(logs[len(logs) // 2] - logs[-1])
    text = f"the loss scale ends at {values[-1]:,.4g}, {below:.0f} halvings below its highest; "
    text += f"{late:.0f} of them in the second half of the run"
    found = (Evidence(text, "loss_scale", (int(steps[-1]),), below, octaves),)
    yes = below >= octaves and late >= late_halvings
    top = int(steps[len(logs) - 1 - int(np.argmax(logs[::-1] == logs.max()))])
    return Answer(YES if yes else NO, found, onset_step=top if yes else None)


@predicate(source="precision P13", min_points=50)
def always_clipped(run: Run, grad_norm: Series, *, share: float, depth: float) -> Answer:
    """Is the gradient clipped at almost every step, and hard?

    Compared is grad_norm before clipping with the configured `grad_clip`, over the second half of the run. Clipping
    alone is no sign: 6 of 49 labelled healthy runs clip at 95% of their steps, with a median norm of up to 4.6 times
    the clip. Yes takes a median above `depth` times the clip.
    """
    clip = run.setting("grad_clip")
    if not isinstance(clip, int | float) or not 0 < clip < 1e100:
        return unknown("the configuration names no grad_clip")
    values = finite(grad_norm)[1]
    late = values[len(values) // 2 :]
    above = float(np.mean(late > clip))
    text = f"grad_norm lies above the clip of {clip:g} at {above:.0%} of the steps in the second half, its median is "
    middle = float(median(late)) / float(clip)
    found = (Evidence(f"{text}{min(middle, 1e100):.3g} times the clip", "grad_norm", (), min(middle, 1e100), depth),)
    return Answer(YES if above >= share and middle > depth else NO, found)


@predicate(source="precision P14", min_points=20)
def skips_rise(skipped_steps: Series, *, late_share: float, factor: float, least: int) -> Answer:
    """Are more and more steps skipped?

    The counter may be cumulative or per row. Yes when the second half has at least `least` skipped steps, in more than
    `late_share` of its steps, and more than `factor` times as many as the first half.
    """
    steps, values = finite(skipped_steps)
    cumulative = bool((np.diff(values) >= 0).all()) and float(values[-1]) > 1
    counts = np.maximum(np.diff(values, prepend=values[0]) if cumulative else values, 0.0)
    half = len(counts) // 2
    first, second = float(counts[:half].sum()), float(counts[half:].sum())
    taken = max(1.0, float(steps[-1] - steps[half]))
    share = min(second / taken, 1e100)
    text = f"{second:,.0f} steps skipped in the second half of the log ({share:.1%} of them), {first:,.0f} in the first"
    found = (Evidence(text, "skipped_steps", (int(steps[half]),), share, late_share),)
    yes = second >= least and share > late_share and second > factor * first
    return Answer(YES if yes else NO, found, onset_step=int(steps[half]) if yes else None)
