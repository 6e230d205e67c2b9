"""Section 1: is the loss NaN or infinite, in which precision, and where did it begin?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.predicates.registry import Groups, predicate, seen
from stabtree.stats import stretches

if TYPE_CHECKING:
    from stabtree._lazy import Bools
    from stabtree.run import Run, Series

FP16_MAX = 65504.0
# Finite rows after which a run counts as having come back. Trainers that skip NaN steps show single ones;
# none of the labelled runs that died was finite for this long after its first NaN.
RECOVERED_ROWS = 20


def _name(value: float) -> str:
    return "NaN" if value != value else ("inf" if value > 0 else "-inf")  # noqa: PLR0124


def last_finite_before(series: Series, index: int) -> int | None:
    """The step of the last finite value before a row."""
    before = np.flatnonzero(np.isfinite(series.values[:index]))
    return int(series.steps[before[-1]]) if len(before) else None


def storm_start(bad: Bools) -> int:
    """Index at which the last group of bad rows begins; skipped NaN steps long before are not where it died."""
    rows = np.flatnonzero(bad)
    breaks = np.flatnonzero(np.diff(rows) > RECOVERED_ROWS)
    return int(rows[breaks[-1] + 1]) if len(breaks) else int(rows[0])


@predicate(source="phase19 Q1.1", labels=("yes", "skipped", "stops", "no"))
def nonfinite_loss(run: Run, loss: Series) -> Answer:
    """Is the loss NaN or infinite at any logged step?

    `skipped`: there were such steps, but the loss came back and stayed finite for at least the last 20
    rows: a trainer that skips bad updates goes on. `stops`: all that was logged is finite, but the loss
    is no longer logged while other series go on; pandas and JSON write a NaN as an empty cell or null,
    so this is never taken for health.
    """
    bad = ~np.isfinite(loss.values)
    rows = np.flatnonzero(bad)
    if not len(rows):
        return _all_finite(run, loss)
    came_back = len(bad) - 1 - int(rows[-1]) >= RECOVERED_ROWS
    start = int(rows[0]) if came_back else storm_start(bad)
    step, last_bad = int(loss.steps[start]), int(loss.steps[rows[-1]])
    text = f"loss is {_name(float(loss.values[start]))} at step {step:,}; {len(rows):,} of {len(bad):,} logged values"
    text += " are not finite"
    if came_back:
        longest = max(b - a for a, b in stretches(bad))
        text += f", at most {longest} in a row, none after step {last_bad:,}"
    else:
        text += f", the last at step {last_bad:,} of {int(loss.steps[-1]):,}"
    early = int((rows < start).sum())
    earlier = f"{early} single non-finite steps before that, from step {int(loss.steps[rows[0]]):,}, were got over"
    return Answer(
        "skipped" if came_back else YES,
        seen(
            Evidence(text, "loss", (step,), float(len(rows)), 0.0),
            Evidence(earlier, "loss", tuple(int(s) for s in loss.steps[rows[:5]])) if early else None,
            _first_rank(run, step),
        ),
        onset_step=step,
        last_good_step=last_finite_before(loss, start),
    )


def _all_finite(run: Run, loss: Series) -> Answer:
    gap = next((g for g in run.gaps if g.metric == "loss" and g.at_end), None)
    if gap:
        text = (
            f"loss is logged up to step {int(loss.steps[-1]):,}, then it is missing in {gap.rows:,} rows up to step "
            f"{gap.last_step:,}"
        )
        return Answer(
            "stops",
            (Evidence(text, "loss", (gap.first_step,), float(gap.rows), 0.0),),
            onset_step=gap.first_step,
            last_good_step=int(loss.steps[-1]),
        )
    return Answer(NO, (Evidence(f"all {len(loss):,} logged values of loss are finite", "loss", (), 0.0, 0.0),))


def _first_rank(run: Run, step: int) -> Evidence | None:
    """Which rank blew up first, for a run that logs its ranks."""
    firsts: dict[str, int] = {}
    for rank, series in run.ranks.items():
        loss = series.get("loss")
        if loss is not None and not np.isfinite(loss.values).all():
            firsts[rank] = int(loss.steps[~np.isfinite(loss.values)][0])
    if not firsts:
        return None
    rank = min(firsts, key=lambda r: firsts[r])
    others = len(run.ranks) - len(firsts)
    text = f"rank {rank} was first, at step {firsts[rank]:,}"
    text += f"; {others} of {len(run.ranks)} ranks stayed finite" if others else ""
    return Evidence(text, "loss", (firsts[rank], step))


@predicate(source="phase19 Q1.2", labels=("fp32", "fp16", "bf16", "fp8"))
def dtype_regime(run: Run, loss_scale: Series | None = None) -> Answer:
    """Which number format did the run train in?

    From the manifest or `--dtype`; else a loss scale that is logged and above 1 means fp16, since bf16
    and fp32 need none. A constant 1 or -1 is how trainers print "not in use" and proves nothing.
    """
    known = run.config.get("dtype")
    if known and str(known.value) in ("fp32", "fp16", "bf16", "fp8"):
        return Answer(str(known.value), (Evidence(f"dtype is {known.value} ({known.source})"),))
    if loss_scale is not None and len(loss_scale) and float(np.nanmax(loss_scale.values)) > 1:
        top = float(loss_scale.values[np.isfinite(loss_scale.values)].max(initial=0))
        text = f"inferred: a loss scale up to {top:,.6g} is logged, which only fp16 training uses"
        return Answer("fp16", (Evidence(text, "loss_scale", (), top, 1.0),))
    return unknown("no manifest and no --dtype says it, and no loss scale is logged", "dtype")


@predicate(source="phase19 Q1.3", labels=("layer", "backward", "forward"))
def nan_origin(
    loss: Series,
    grad_norm: Series | None = None,
    activation_finite: Groups | None = None,
    activation_max: Groups | None = None,
    *,
    exploding_factor: float = 10.0,
    window_rows: int = 50,
) -> Answer:
    """Where did the NaN begin: in a layer, in the forward pass, or in the backward pass?

    With per-layer columns: the first layer, in logging order, whose output is not finite while its
    input is. Else the order of events: `backward` when grad_norm was not finite before the loss, or
    stood above `exploding_factor` times its own median over the `window_rows` rows before; `forward`
    when grad_norm was ordinary up to the last finite loss.
    Factor 10: healthy labelled runs hardly reach 10 times their median grad_norm.
    """
    bad = ~np.isfinite(loss.values)
    if not bad.any():
        return unknown("the loss is finite throughout")
    index = storm_start(bad)
    step, good = int(loss.steps[index]), last_finite_before(loss, index)
    layer = _first_layer(activation_finite or {}, activation_max or {}, step)
    if layer:
        return Answer("layer", (layer,), onset_step=layer.steps[0], last_good_step=good)
    if grad_norm is None:
        return unknown(
            "grad_norm was not logged, so forward and backward pass look alike", "grad_norm", "activation_finite"
        )
    early = grad_norm.steps < step
    return _order_of_events(grad_norm, early, step, good, exploding_factor, window_rows)


def _order_of_events(
    grad_norm: Series, early: Bools, step: int, good: int | None, exploding_factor: float, window_rows: int
) -> Answer:
    steps, values = grad_norm.steps[early], grad_norm.values[early]
    recent = np.isfinite(values[-window_rows:])
    if not len(values) or not recent.any():
        return unknown(f"grad_norm has no finite value before step {step:,}", "grad_norm")
    if not np.isfinite(values[-1]):
        first = len(values) - int(np.flatnonzero(np.isfinite(values[::-1]))[0])
        text = (
            f"grad_norm is {_name(float(values[first]))} from step {int(steps[first]):,} on, the loss from {step:,} on"
        )
        at = int(steps[first])
        return Answer(
            "backward", (Evidence(text, "grad_norm", (at, step)),), onset_step=at, last_good_step=int(steps[first - 1])
        )
    usual = float(np.median(values[-window_rows:][recent]))
    ratios = values[-window_rows:] / usual if usual > 0 else np.ones(len(values[-window_rows:]))
    ratio = float(np.nan_to_num(ratios[-3:], nan=1.0, posinf=1e300).max())
    if ratio > exploding_factor:
        above = np.flatnonzero(ratios > exploding_factor)
        at = int(steps[-window_rows:][above[0]])
        text = f"grad_norm was {ratio:,.3g}× its median when the loss broke, above {exploding_factor:g}× from {at:,} on"
        found = Evidence(text, "grad_norm", (at, step), ratio, exploding_factor)
        before = steps[steps < at]
        return Answer("backward", (found,), onset_step=at, last_good_step=int(before[-1]) if len(before) else good)
    text = (
        f"grad_norm was ordinary up to the break: {values[-1]:.4g} at step {int(steps[-1]):,}, {ratio:.2g}× its median"
    )
    return Answer(
        "forward",
        (Evidence(text, "grad_norm", (int(steps[-1]), step), ratio, exploding_factor),),
        onset_step=step,
        last_good_step=good,
    )


def _first_layer(finite: Groups, largest: Groups, step: int) -> Evidence | None:
    """The first layer, in logging order, whose output broke at the earliest step at which any did."""
    broken: list[tuple[int, int, str, str]] = []
    for place, name in enumerate(dict.fromkeys([*finite, *largest])):
        flags, tops = finite.get(name), largest.get(name)
        starts = [int(flags.steps[flags.values != 1][0])] if flags is not None and (flags.values != 1).any() else []
        if tops is not None and not np.isfinite(tops.values).all():
            starts.append(int(tops.steps[~np.isfinite(tops.values)][0]))
        if starts:
            broken.append((min(starts), place, name, _top_before(tops, min(starts))))
    if not broken:
        return None
    at, _, name, top = min(broken)
    together = sum(start == at for start, *_ in broken)
    text = f"{name} is the first layer whose output is not finite, at step {at:,}{top}"
    text += f"; {together - 1} later layers follow in the same step" if together > 1 else ""
    return Evidence(text, f"activation_finite/{name}", (at, step))


def _top_before(tops: Series | None, step: int) -> str:
    if tops is None:
        return ""
    before = tops.values[(tops.steps < step) & np.isfinite(tops.values)]
    return f" (largest value just before: {before[-1]:.4g})" if len(before) else ""


@predicate(source="phase19 Q1.4")
def loss_is_infinite(loss: Series) -> Answer:
    """Did the loss first become infinite rather than NaN, as log(0) makes it?"""
    bad = np.flatnonzero(~np.isfinite(loss.values))
    if not len(bad):
        return unknown("the loss is finite throughout")
    value, step = float(loss.values[bad[0]]), int(loss.steps[bad[0]])
    text = f"the first value that is not finite is {_name(value)}, at step {step:,}"
    return Answer(YES if np.isinf(value) else NO, (Evidence(text, "loss", (step,)),))


@predicate(source="phase19 Q1.4")
def embedding_grad_infinite(grad_norm: Groups) -> Answer:
    """Is the gradient of an embedding infinite or NaN?

    Needs `grad_norm/<group>` with a group whose name contains `emb`, `wte` or `wpe`.
    """
    names = [name for name in grad_norm if any(part in name.lower() for part in ("emb", "wte", "wpe"))]
    if not names:
        return unknown("no grad_norm/<group> of an embedding was logged", "grad_norm")
    for name in names:
        series = grad_norm[name]
        bad = ~np.isfinite(series.values)
        if bad.any():
            step = int(series.steps[bad][0])
            value = _name(float(series.values[bad][0]))
            return Answer(
                YES, (Evidence(f"grad_norm/{name} is {value} at step {step:,}", f"grad_norm/{name}", (step,)),)
            )
    largest = max(float(grad_norm[name].values.max(initial=0)) for name in names)
    return Answer(
        NO, (Evidence(f"the embedding's gradient norm is finite, at most {largest:.4g}", "grad_norm", (), largest),)
    )


@predicate(source="phase19 Q1.4; IEEE 754 binary16")
def activation_overflow(activation_max: Groups, *, limit: float = FP16_MAX) -> Answer:
    """Does a layer's output exceed the largest fp16 number?"""
    tops = {name: series.values[~np.isnan(series.values)] for name, series in activation_max.items()}
    peaks = {name: float(values.max()) for name, values in tops.items() if len(values)}
    if not peaks:
        return unknown("activation_max holds no number", "activation_max")
    name = max(peaks, key=lambda key: peaks[key])
    peak, over = peaks[name], peaks[name] > limit
    text = f"the largest activation is {peak:,.6g} in {name}, {'above' if over else 'below'} {limit:,.0f}"
    observed = peak if np.isfinite(peak) else None
    return Answer(YES if over else NO, (Evidence(text, f"activation_max/{name}", (), observed, limit),))
