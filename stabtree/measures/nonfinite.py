"""Values that are not finite: where they begin, and what they come from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import LIKELY, NO, POSSIBLE, YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, row_of, rows_before, rows_upto
from stabtree.common.shared import FACTOR_LARGE, FARTHEST, ROWS_LONG, ROWS_SHORT, SHARE_MOST, above, whether
from stabtree.common.stats import interval, median, stretches
from stabtree.common.text import first_few, in_words
from stabtree.measures.batches import broken_ranks
from stabtree.measures.movers import last_finite_before
from stabtree.measures.registry import Absent, Count, Groups, finite, measure, seen
from stabtree.metrics.metric import Role
from stabtree.metrics.names import counts_broken
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import words
from stabtree.profile.change import change_point
from stabtree.run import PRECISIONS, WIDE

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools
    from stabtree.context.model import Context, Known
    from stabtree.measures.movers import Break
    from stabtree.run import Run, Series


def name_of(value: float) -> str:
    """Return the name of a value that is not finite."""
    if math.isnan(value):
        return "NaN"
    return "inf" if value > 0 else "-inf"


@measure(source="phase19 Q1.1", labels=("yes", "skipped", "stops", "exploded", "no"))
def nonfinite_loss(
    run: Run, loss: Series, loss_break: Break | Absent, grad_norm: Series | None = None, *, forgiving: bool
) -> Answer:
    """Is the loss NaN or infinite at any logged step?

    `skipped`: fewer than half of the values are not finite, and the loss came back and stayed finite for at
    least the last `recovered_rows` rows, or ends with no more bad rows in a row than it had come back from before: a
    trainer that skips bad updates goes on. `stops`: all that was logged is
    finite, but the loss is no longer logged while other series go on; pandas and JSON write a NaN as an empty cell or
    null, so this is never taken for health; only a last row of the last planned step, with no broken grad_norm, is what
    a trainer writes when it is done. `exploded`: so it stops after it rose to more than `FACTOR_LARGE` times its level.
    A loss that is missing for a while and comes back is `skipped` too.
    Without `forgiving`, the document's own rule, any such value is a yes.
    """
    if isinstance(loss_break, Absent):
        if forgiving and any(gap.metric == "loss" for gap in run.gaps):
            return _missing(run, loss, grad_norm)
        return Answer(NO, loss_break.evidence, strength=loss_break.strength)
    rows, came_back = loss_break.rows, forgiving and loss_break.healed
    start = int(rows[0]) if came_back else loss_break.row
    step, last_bad = int(loss.steps[start]), int(loss.steps[rows[-1]])
    value = name_of(float(loss.values[start]))
    text = f"loss is {value} at step {step:,}; {len(rows):,} of {len(loss):,} logged "
    text += "values are not finite"
    if came_back:
        longest = max(b - a for a, b in stretches(~np.isfinite(loss.values)))
        text += f", at most {longest} in a row, none after step {last_bad:,}"
    else:
        text += f", the last at step {last_bad:,} of {int(loss.steps[-1]):,}"
    early = int((rows < start).sum())
    brief = value
    if len(rows) == len(loss) and run.excerpt_from is None:
        brief = f"{value} from its first row on"
    if came_back:
        brief = f"{value} in {len(rows):,} of {len(loss):,} rows"
    earlier = f"the run recovered from {early} non-finite steps before that, from step {int(loss.steps[rows[0]]):,} on"
    ranks, first, terms = broken_ranks(run), None, which_terms(run, step)
    if ranks:
        rank = min(ranks, key=lambda r: ranks[r])
        others = len(run.ranks) - len(ranks)
        of_rank = f"rank {rank} was first, at step {ranks[rank]:,}"
        of_rank += f"; {others} of {len(run.ranks)} ranks stayed finite" if others else ""
        first = Evidence(of_rank, "loss", (ranks[rank], step))
    return Answer(
        "skipped" if came_back else YES,
        seen(
            Evidence(text, "loss", (step,), float(len(rows)), 0.0, brief),
            Evidence(terms, "loss", (step,)) if terms else None,
            Evidence(earlier, "loss", tuple(int(s) for s in loss.steps[rows[:5]])) if early else None,
            first,
        ),
        onset_step=step,
        last_good_step=last_finite_before(loss, start),
        storm=True,
        strength=FARTHEST,
    )


def which_terms(run: Run, step: int) -> str:
    """Say which terms of the loss are not finite at a step at which others are; empty where none or all are."""
    broken, sound = terms_at(run, step)
    if not broken or not sound:
        return ""
    verb = "is" if len(broken) == 1 else "are"
    values = [f"{one.metric} ({figure(float(one.values[row_of(one.steps, step)][0]))})" for one in sound]
    text = f"of the terms of the loss {first_few([one.metric for one in broken], NAMED)} {verb} not finite, while "
    return f"{text}{first_few(values, NAMED)} {'is' if len(sound) == 1 else 'are'}"


def terms_at(run: Run, step: int) -> tuple[list[Series], list[Series]]:
    """Return the terms of the loss that are not finite at a step, and those that are, but for ones that are 0."""
    broken, sound = [], []
    for name, series in {**run.series, **run.others}.items():
        value = series.values[row_of(series.steps, step)]
        if name in ASKED or not len(value) or describe_name(name).role not in TERMS:
            continue
        if not np.isfinite(value[0]):
            broken.append(series)
        elif value[0]:
            sound.append(series)
    return broken, sound


def _missing(run: Run, loss: Series, grad_norm: Series | None) -> Answer:
    gaps = [gap for gap in run.gaps if gap.metric == "loss"]
    gap, last = next((gap for gap in gaps if gap.at_end), gaps[0]), int(loss.steps[-1])
    if gap.at_end and gap.rows == 1 and gap.last_step >= run.planned_step and _sound_at(grad_norm, gap.last_step):
        text = f"loss is missing in the last row only, of step {gap.last_step:,}, the last one that was planned"
        return Answer(NO, (Evidence(text, "loss", (gap.first_step,), 1.0, 1.0),))
    if gap.at_end and (exploded := rose(loss, gap.first_step, FACTOR_LARGE)):
        return replace(exploded, verdict="exploded", storm=True)
    if gap.at_end:
        text = f"loss is logged up to step {last:,}, then it is missing in {gap.rows:,} rows up to step "
        found = Evidence(f"{text}{gap.last_step:,}", "loss", (gap.first_step,), float(gap.rows), 0.0)
        return Answer("stops", (found,), onset_step=gap.first_step, last_good_step=last, storm=True, strength=FARTHEST)
    text = f"loss is missing in {gap.rows:,} rows of steps {gap.first_step:,} to {gap.last_step:,}"
    found = Evidence(text, "loss", (gap.first_step,), float(gap.rows), 0.0)
    return Answer("skipped", (found,), onset_step=gap.first_step, storm=True, strength=FARTHEST)


def _sound_at(grad_norm: Series | None, step: int) -> bool:
    """Return whether grad_norm is finite at a step, or was not logged."""
    return grad_norm is None or bool(np.isfinite(grad_norm.values[row_of(grad_norm.steps, step)]).all())


@measure(source="stabtree", min_points=2)
def last_row_alone(run: Run, loss: Series, grad_norm: Series | None = None) -> Answer:
    """Is the loss missing in the very last row only, with no other sign of a NaN?

    Not where its grad_norm is not finite, nor where the losses before it came with one and it is missing as well, at a
    step that was due.
    """
    gaps = [gap for gap in run.gaps if gap.metric == "loss"]
    last = next((gap for gap in gaps if gap.at_end), None)
    if last is None or last.rows > 1:
        text = f"loss is missing in {sum(gap.rows for gap in gaps):,} rows"
        return Answer(NO, (Evidence(text, "loss", (), float(sum(gap.rows for gap in gaps)), 1.0),))
    step = last.last_step
    if not _sound_at(grad_norm, step):
        return Answer(NO, (Evidence(f"grad_norm of step {step:,} is not finite", "grad_norm", (step,)),))
    due = step - loss.steps[-1] == loss.steps[-1] - loss.steps[-2]
    if grad_norm is not None and due and np.array_equal(grad_norm.steps[-2:], loss.steps[-2:]):
        return Answer(NO, (Evidence(f"the row of step {step:,} lacks grad_norm as well", "grad_norm", (step,)),))
    beside = "" if grad_norm is None else ", its grad_norm is finite"
    text = f"only the row of step {step:,} holds no loss{beside}"
    return Answer(YES, (Evidence(text, "loss", (step,), 1.0, 1.0),))


@measure(source="phase19 Q1.2", labels=PRECISIONS, sets="dtype")
def dtype_regime(run: Run, precision: Known[str]) -> Answer:
    """Which number format did the run train in?

    From the manifest or `--dtype`; else a loss scale that is logged and above 1 means fp16, since bf16
    and fp32 need none. A constant 1 or -1 is how trainers print "not in use" and proves nothing. A loss of which every
    value is a number of bf16 was computed in it.
    """
    known = run.config.get("dtype")
    if known and str(known.value) in PRECISIONS:
        return Answer(str(known.value), (Evidence(f"dtype is {known.value} ({known.source})"),))
    if precision.value:
        return Answer(precision.value, (Evidence(f"inferred: {precision.why}"),))
    return unknown("neither the log nor a configuration names it, and no loss scale is logged", "dtype")


@measure(source="phase19 Q1.1, asked of the eval loss")
def nonfinite_eval(eval_loss: Series) -> Answer:
    """Is the eval loss NaN or infinite at its end, or more than once?

    A single value in between may be one broken batch of the held-out data, which the next evaluation leaves behind.
    """
    bad = np.flatnonzero(~np.isfinite(eval_loss.values))
    if not len(bad):
        text = f"all {len(eval_loss):,} logged values of eval_loss are finite"
        clean = Evidence(text, "eval_loss", (int(eval_loss.steps[0]),), 0.0, 0.0)
        return Answer(NO, (clean,), strength=-FARTHEST)
    first = int(eval_loss.steps[bad[0]])
    text = f"{len(bad):,} of {len(eval_loss):,} values of eval_loss are not finite, the first is "
    text += f"{name_of(float(eval_loss.values[bad[0]]))} at step {first:,}"
    found = (Evidence(text, "eval_loss", (first,), float(len(bad)), 1.0),)
    if len(bad) == 1 and bad[0] < len(eval_loss) - 1:
        return Answer(NO, found, strength=-1.0)
    good = int(eval_loss.steps[bad[0] - 1]) if bad[0] else None
    return Answer(YES, found, onset_step=first, last_good_step=good, strength=FARTHEST)


RISE_SHARE = 0.25  # no limit: of its lowest value; a smaller rise is within the scatter of most losses
CROSS_ENTROPY = frozenset(("language-model", "classification", "segmentation"))
FP16_MAX = 65504.0  # no limit: IEEE 754 binary16


@measure(source="phase19 Q1.3", labels=("layer", "logger", "backward", "forward"), sets="nan_begins")
def nan_origin(
    loss: Series,
    loss_break: Break,
    run: Run,
    context: Context,
    grad_norm: Series | None = None,
    activation_finite: Groups | None = None,
    activation_max: Groups | None = None,
    eval_loss: Series | None = None,
    *,
    exploding_factor: float,
    sparse_steps: int,
    outlive_rows: Count = ROWS_SHORT,
    outlive_share: float = SHARE_MOST,
    rise_share: float = RISE_SHARE,
) -> Answer:
    """Where did the NaN begin: in a layer, in the forward pass, in the backward pass, or in the logger alone?

    With per-layer columns: the first layer, in logging order, whose output broke no later than the loss.
    Else the order of events: `backward` when grad_norm broke before the loss, or when grad_norm or the loss
    was above `exploding_factor` times its usual state right before the break, or the loss had left its lowest value by
    `rise_share` of that; `logger` where the gradient stays
    finite ever after (`gradient_outlives`) and no evaluation breaks; `forward` when grad_norm was ordinary up to the
    last finite loss.
    Logged every `sparse_steps` or more, as the mean of several steps, or after clipping (the same value row
    after row), an ordinary grad_norm proves nothing.
    Healthy labelled runs hardly reach 10 times their median grad_norm.
    """
    broke = loss_break
    layer = _first_layer(activation_finite or {}, activation_max or {}, broke)
    if layer:
        return Answer("layer", (layer,), onset_step=layer.steps[0], last_good_step=broke.good_step)
    if grad_norm is not None:
        first = _grad_broke_first(grad_norm, broke)
        # A mean may hide a NaN for as long as one row.
        since = first.onset_step if first and first.onset_step is not None else broke.step
        hidden = _averaged(run, context, loss) and ((loss.steps >= since) & (loss.steps < broke.step)).sum() <= 1
        if first and not hidden:
            return first
    climbed = rose(loss, broke.step, rise_share)
    exploded = _exploded(grad_norm, broke, exploding_factor) if grad_norm is not None else None
    if climbed or exploded:
        return min((item for item in (climbed, exploded) if item), key=lambda item: item.onset_step or 0)
    if grad_norm is not None:
        evals = loss.values[:0]
        if eval_loss is not None:
            evals = eval_loss.values[rows_before(eval_loss.steps, broke.step) :]
        alive = gradient_outlives.func(loss, grad_norm, outlive_rows=outlive_rows, outlive_share=outlive_share)
        if alive.verdict == LIKELY and np.isfinite(evals).all():  # no logger's mean breaks an evaluation
            return Answer("logger", alive.evidence, onset_step=broke.step, last_good_step=broke.good_step)
        if _averaged(run, context, loss):
            text = f"each row is the mean of {interval(loss.steps):.0f} steps: what broke first within one is not seen"
            return unknown(text, "grad_norm")
    return _ordinary(grad_norm, loss, broke, exploding_factor, sparse_steps)


@measure(source="transformers: a NaN in the mean of the logged loss", labels=(LIKELY, NO))
def gradient_outlives(
    loss: Series,
    grad_norm: Series,
    *,
    outlive_rows: Count = ROWS_SHORT,
    outlive_share: float = SHARE_MOST,
) -> Answer:
    """Does the gradient stay finite after the loss no longer is?

    In at least `outlive_share` of the rows of grad_norm after the last finite loss, in `outlive_rows` of them at least,
    and not the same number in all: weights that hold a NaN give no such gradient, so it is the logged loss that holds
    one. No where the loss is infinite there, which log(0) makes of sound weights.
    """
    good = loss.steps[np.isfinite(loss.values)]
    last = int(good[-1]) if len(good) else int(loss.steps[0]) - 1
    after = grad_norm.values[rows_upto(grad_norm.steps, last) :]
    sound = after[np.isfinite(after) & (after > 0)]
    alive = len(sound) if len(np.unique(sound)) > 1 else 0
    text = f"grad_norm is finite and above 0 in {alive:,} of its {len(after):,} rows after the last finite loss"
    found = (Evidence(text, "grad_norm", (last,), float(alive), float(outlive_rows)),)
    enough = alive >= outlive_rows and alive >= outlive_share * len(after)
    infinite = bool(np.isinf(loss.values[rows_upto(loss.steps, last) :]).any())
    return Answer(LIKELY if enough and not infinite else NO, found)


def _averaged(run: Run, context: Context, loss: Series) -> bool:
    """Return whether a row of the loss is the mean of several steps."""
    from stabtree.context.find import logs_means

    return interval(loss.steps) > 1 and logs_means(run, context)


def _grad_broke_first(grad_norm: Series, broke: Break) -> Answer | None:
    early = grad_norm.steps < broke.step
    steps, values = grad_norm.steps[early], grad_norm.values[early]
    if not len(values) or np.isfinite(values[-1]):
        return None
    good = np.flatnonzero(np.isfinite(values))
    row = int(good[-1]) + 1 if len(good) else 0
    at = int(steps[row])
    value = name_of(float(values[row]))
    text = f"grad_norm is {value} from step {at:,} on, the loss from {broke.step:,} on"
    found = (Evidence(text, "grad_norm", (at, broke.step), brief=f"The gradient was {value} before the loss"),)
    return Answer("backward", found, onset_step=at, last_good_step=int(steps[row - 1]) if row else None)


def _exploded(series: Series, broke: Break, factor: float) -> Answer | None:
    """Answer `backward` where the gradient was far above its usual state right before the break."""
    name = series.metric
    found = broke.rise_before(series)
    if found is None or found[0] <= factor:
        return None
    ratio, usual = found
    steps, values = finite(series)
    below = np.flatnonzero((values <= factor * usual) & (steps < broke.step))
    row = min(int(below[-1]) + 1 if len(below) else 0, len(steps) - 1)
    at = int(steps[row])
    text = f"{name} was {figure(ratio)}× its usual value when the loss broke, above {factor:g}× from step {at:,} on"
    evidence = (Evidence(text, name, (at, broke.step), ratio, factor, "The gradient blew up before the loss"),)
    good = int(steps[row - 1]) if row else broke.good_step
    return Answer("backward", evidence, onset_step=at, last_good_step=good, strength=above(ratio, factor))


def rose(loss: Series, step: int, share: float = RISE_SHARE) -> Answer | None:
    """Answer `backward` where the loss had left its course upwards before a step, by `share` of its level or more."""
    steps, values = finite(loss)
    rows = rows_before(steps, step)
    left = change_point(steps[:rows], values[:rows])
    if left is None:
        return None
    turn = rows_upto(steps, left.last_good_step)
    level, end = median(values[max(0, turn - ROWS_LONG) : max(turn, 1)]), median(values[max(turn, rows - 3) : rows])
    if end - level < share * abs(level):
        return None
    at, good = left.first_bad_step, left.last_good_step
    text = f"the loss had risen from {figure(level, 4)} at step {good:,} to {figure(values[rows - 1], 4)} when it broke"
    times = (end - level) / abs(level) if level else share
    found = (Evidence(text, "loss", (at, step), min(times, 1e300), share, "The loss rose before it"),)
    return Answer("backward", found, onset_step=at, last_good_step=good, strength=above(times, share))


def _ordinary(grad_norm: Series | None, loss: Series, broke: Break, factor: float, sparse_steps: int) -> Answer:
    """Answer `forward`, unless the log is too sparse to rule the backward pass out."""
    if grad_norm is None:
        return unknown(
            "grad_norm was not logged, so forward and backward pass look alike", "grad_norm", "activation_finite"
        )
    rise = broke.rise_before(grad_norm)
    steps, values = finite(grad_norm)
    values = values[: rows_before(steps, broke.step)]
    if rise is None:
        return unknown(f"grad_norm has too few finite values before step {broke.step:,}", "grad_norm")
    last = int(steps[: rows_before(steps, broke.step)][-1])
    ordinary = f"{figure(values[-1], 4)} at step {last:,}, {figure(rise[0], 2)}× its usual value"
    if interval(loss.steps) >= sparse_steps:
        between = f"the {broke.step - last - 1:,} steps from there up to the break were not logged"
        return unknown(f"grad_norm was ordinary ({ordinary}); {between}", "grad_norm")
    recent = values[-broke.recovered_rows :]
    if len(recent) >= ROWS_SHORT and float(np.ptp(recent)) <= 1e-6 * abs(float(recent[-1])):
        return unknown(f"grad_norm is {figure(recent[-1], 4)} row after row: it is logged after clipping", "grad_norm")
    text = f"grad_norm was ordinary up to the break: {ordinary}"
    found = (Evidence(text, "grad_norm", (last, broke.step), rise[0], factor, name_of(broke.value)),)
    return Answer("forward", found, onset_step=broke.step, last_good_step=broke.good_step)


def _first_layer(flags: Groups, largest: Groups, broke: Break) -> Evidence | None:
    """Return the first layer, in logging order, whose output broke at the earliest step at which any did.

    Only breaks after the last finite loss count, and none that was logged later than the loss's own: by then
    every layer is broken.
    """
    after = broke.good_step if broke.good_step is not None else -1
    broken: list[tuple[int, int, str, str]] = []
    for order, name in enumerate(dict.fromkeys([*flags, *largest])):
        marks, tops = flags.get(name), largest.get(name)
        steps = [int(s) for s in marks.steps[marks.values != 1]] if marks is not None else []
        steps += [int(s) for s in tops.steps[~np.isfinite(tops.values)]] if tops is not None else []
        inside = [step for step in steps if after < step <= broke.step]
        if inside:
            before = np.zeros(0)
            if tops is not None:
                before = tops.values[(tops.steps < min(inside)) & np.isfinite(tops.values)]
            top = f" (largest value just before: {figure(before[-1], 4)})" if len(before) else ""
            broken.append((min(inside), order, name, top))
    if not broken:
        return None
    at, _, name, top = min(broken)
    together = sum(start == at for start, *_ in broken)
    text = f"{name} is the first layer, in logging order, whose output is not finite, at step {at:,}{top}"
    text += f"; {together - 1} later layers follow in the same step" if together > 1 else ""
    return Evidence(text, f"activation_finite/{name}", (at, broke.step))


@measure(source="phase19 Q1.4", labels=("yes", "likely", "possible", "no"))
def loss_became_infinite(loss: Series, loss_break: Break, run: Run, context: Context, precision: Known[str]) -> Answer:
    """Did an ordinary loss become infinite from one row to the next, as log(0) does?

    Yes in a run that is known to compute a cross-entropy in fp32, where nothing else does that; likely where the format
    is not known. No when the loss had been exploding before: then it overflowed. A NaN shows nothing, since 0·log(0) is
    one too.
    """
    from stabtree.context.find import tasks_of

    rise = loss_break.rise_before(loss)
    if rise is not None and rise[0] > FACTOR_LARGE:
        text = f"the loss was at {figure(rise[0])}× its usual value before it broke: it likely overflowed"
        return Answer(NO, (Evidence(text, "loss", (loss_break.step,), rise[0], FACTOR_LARGE),))
    if not np.isinf(loss_break.value):
        text = f"the loss became NaN at step {loss_break.step:,}, which log(0) may or may not have made"
        return Answer(POSSIBLE, (Evidence(text, "loss", (loss_break.step,)),))
    text = f"an ordinary loss became {name_of(loss_break.value)} at step {loss_break.step:,}"
    proved = precision.value == "fp32" and not CROSS_ENTROPY.isdisjoint(tasks_of(run, context))
    return Answer(YES if proved else LIKELY, (Evidence(text, "loss", (loss_break.step,)),))


@measure(source="phase19 Q1.4")
def embedding_grad_infinite(grad_norm: Groups, loss_break: Break | Absent) -> Answer:
    """Did the gradient of an embedding become infinite before the loss broke?

    Needs `grad_norm/<group>` with a group whose name contains `emb`, `wte` or `wpe`.
    """
    names = [name for name in grad_norm if any(part in name.lower() for part in ("emb", "wte", "wpe"))]
    if not names:
        return unknown("no grad_norm/<group> of an embedding was logged", "grad_norm/<group>")
    end, largest = math.inf if isinstance(loss_break, Absent) else loss_break.step, 0.0
    for name in names:
        steps, values = (part[grad_norm[name].steps < end] for part in (grad_norm[name].steps, grad_norm[name].values))
        if np.isinf(values).any():
            step = int(steps[np.isinf(values)][0])
            text = f"grad_norm/{name} is infinite at step {step:,}, before the loss broke"
            return Answer(YES, (Evidence(text, f"grad_norm/{name}", (step,)),))
        largest = max(largest, float(values[np.isfinite(values)].max(initial=0)))
    text = f"the embedding's gradient norm is finite before the loss broke, at most {figure(largest, 4)}"
    return Answer(NO, (Evidence(text, "grad_norm", (), largest),))


@measure(source="phase19 Q1.4; IEEE 754 binary16", labels=(YES, POSSIBLE, NO))
def activation_overflow(run: Run, loss_break: Break | Absent, activation_max: Groups | None = None) -> Answer:
    """Did a layer's output pass the largest fp16 number, up to the step at which the loss broke?

    Unknown in bf16 and fp32, which hold numbers up to about 3e38; possible in fp16 where no activation was logged.
    """
    dtype = run.setting("dtype")
    if dtype in WIDE:
        return inapplicable(f"{dtype} holds numbers up to 3e38, far beyond fp16's 65504")
    if not activation_max and dtype == "fp16":
        text = f"the run is fp16, which ends at {FP16_MAX:,.0f}; activation_max/<group> was not logged"
        return Answer(POSSIBLE, (Evidence(text),), missing=("activation_max",))
    if not activation_max:
        return unknown("activation_max/<group> was not logged", "activation_max")
    broke = None if isinstance(loss_break, Absent) else loss_break
    peaks: dict[str, float] = {}
    for name, series in activation_max.items():
        early = series.values[: rows_upto(series.steps, broke.step)] if broke else series.values
        usable = early[~np.isnan(early)]
        if len(usable):
            peaks[name] = float(usable.max())
    if not peaks:
        return unknown("activation_max holds no number", "activation_max")
    name = max(peaks, key=lambda key: peaks[key])
    peak, over = peaks[name], peaks[name] > FP16_MAX
    text = f"the largest activation is {figure(peak, 6)} in {name}, {'above' if over else 'below'} {FP16_MAX:,.0f}"
    observed = peak if np.isfinite(peak) else None
    return Answer(YES if over else NO, (Evidence(text, f"activation_max/{name}", (), observed, FP16_MAX),))


@measure(source="precision P11", labels=("data", "numerics", "gone", NO))
def nan_returns(run: Run, loss: Series) -> Answer:
    """Does the NaN come back at the same step when the run must be rerun?

    `data`: the loss breaks at the same step in the run and its rerun, and on the same batch where batches were logged;
    `numerics`: at another step or batch; `gone`: only one of them breaks; `no`: neither does. A rerun with another
    configuration can't distinguish these.
    """
    again = run.rerun.get("loss") if run.rerun else None
    if run.rerun is None or again is None:
        return unknown("no rerun was given (--rerun), or it has no loss", "rerun")
    broken = [int(one.steps[rows[0]]) if len(rows := broken_rows(one)) else None for one in (loss, again)]
    here, there = broken
    if here is None and there is None:
        return Answer(NO, (Evidence("the loss is finite in both runs", "loss", (), 0.0, 0.0),))
    if changed := run.trained_otherwise(run.rerun):
        return unknown(f"the rerun was trained otherwise ({in_words(changed)}): it shows nothing about chance", "rerun")
    if here is None or there is None:
        step = max(-1 if at is None else at for at in broken)  # one of them is None
        where = f"at step {step:,} in the {'run' if there is None else 'rerun'} alone"
        return Answer("gone", (Evidence(f"the loss breaks {where}", "loss", (step,)),))
    batches = [_batch_at(run, here), _batch_at(run.rerun, there)]
    known = None not in batches
    same = here == there if not known else batches[0] == batches[1]
    about = f", on {'the same batch' if same else 'different batches'}" if known else ""
    text = f"the loss breaks at step {here:,} in the run and at step {there:,} in its rerun{about}"
    return Answer("data" if same else "numerics", (Evidence(text, "loss", (here, there)),), onset_step=here)


def _batch_at(run: Run, step: int) -> float | None:
    batch = run.get("batch_id")
    values = np.empty(0) if batch is None else batch.values[batch.steps == step]
    return float(values[0]) if len(values) and np.isfinite(values[0]) else None


MEASURED, GONE = "measured", "gone"
# Questions of their own ask whether these are finite.
ASKED = frozenset(("loss", "eval_loss", "grad_norm"))
# What a step of training computes from the weights: after a NaN there, the weights are likely lost as well.
COMPUTED = frozenset((Role.LOSS, Role.HELD_OUT_LOSS, Role.PART, Role.VALUE, Role.POLICY, Role.ENTROPY))
COMPUTED |= {Role.GRADIENT, Role.NORM, Role.RATE}
LOSSES = frozenset((Role.LOSS, Role.PART, Role.VALUE, Role.POLICY))
TERMS = frozenset((Role.LOSS, Role.PART))
NAMED = 3  # no limit


@measure(
    source="stabtree",
    labels=(YES, MEASURED, GONE, NO),
    rule=(
        "yes: a loss, a gradient, a norm, an entropy or a rate is not finite from some row to its end; measured: "
        "another series, a loss in some rows only, or a count or flag says so of what it counts; gone: a series is no "
        "longer logged while others are, or half of the steps of the log are missing in one place"
    ),
)
def series_breaks(run: Run) -> Answer:
    """Does another series than the loss stop being finite?

    Before its first finite value a series was not defined yet, and one that is no loss need not be defined in each row.
    Not asked where the loss itself is lost, which Q1.1 judges.
    """
    loss = run.get("loss")
    if loss is not None and len(loss) and not np.isfinite(loss.values[-1]):
        return Answer(NO, (Evidence("the loss itself is not finite at its end", "loss"),))
    verdicts: dict[str, list[Series]] = {}
    for name, series in {**run.series, **run.others}.items():
        verdicts.setdefault(broken_as(name, series), []).append(series)
    for verdict in (YES, MEASURED):
        if verdict in verdicts:
            return _found(verdict, sorted(verdicts[verdict], key=_first_step))
    if gaps := [gap for gap in run.gaps if gap.metric == "step" or (gap.at_end and gap.metric != "loss")]:
        metric, first, last, rows = gaps[0].metric, gaps[0].first_step, gaps[0].last_step, gaps[0].rows
        brief = f"Some {rows:,} rows are missing" if metric == "step" else f"{metric} is no longer logged"
        found = Evidence(f"{brief}: steps {first:,} to {last:,}", metric, (first, last), float(rows), 0.0, brief)
        return Answer(GONE, (found,), onset_step=first)
    text = f"{len(verdicts.get(NO, ())):,} series end with a finite value, or never had one"
    return Answer(NO, (Evidence(text),), strength=whether(False))


def broken_as(name: str, series: Series) -> str:
    """Return how a series breaks, as one of the verdicts of `series_breaks`: no where it need not be defined there.

    It is lost where it is not finite from some row to its end, for longer than ever before: a rate without a case in
    some of the rows is undefined there, and may be so in the last one.
    """
    sound = not len(broken_rows(series))
    if name in ASKED or (sound and counts_broken(name) is None):
        return NO
    spans, role = stretches(_broken(series)) or [(0, 0)], describe_name(name).role
    begin, end = spans[-1]
    if sound and end - begin < ROWS_SHORT:  # a scaler that backs off counts a few
        return NO
    if begin == 0:  # it was not defined yet: only an infinite loss is a value that was computed
        lost = end == len(series) and role in LOSSES and np.isinf(series.values).all()
        return YES if lost and not {"best", "min", "lowest"} & set(words(name)) else NO
    if end == len(series) and end - begin > max((end - begin for begin, end in spans[:-1]), default=0):
        return YES if role in COMPUTED else MEASURED
    return MEASURED if role in LOSSES else NO


def _broken(series: Series) -> Bools:
    """Return the rows that are not finite, or in which a count or a flag says so of what it counts."""
    broken, values = counts_broken(series.metric), series.values
    if broken is None or describe_name(series.metric).role in LOSSES or not ((values >= 0) & (values % 1 == 0)).all():
        return ~np.isfinite(values)
    return values > 0 if broken else values == 0


def _found(verdict: str, broken: list[Series]) -> Answer:
    evidence = [_evidence(series) for series in broken[:NAMED]]
    if len(broken) > NAMED:
        evidence.append(Evidence(f"so do {len(broken) - NAMED} more series"))
    first = broken[0]
    onset = _first_step(first)
    good = last_finite_before(first, int(np.searchsorted(first.steps, onset)))
    return Answer(verdict, tuple(evidence), strength=whether(True), onset_step=onset, last_good_step=good)


def _first_step(series: Series) -> int:
    """Return the first step after its first finite value at which a series is not finite."""
    sound = ~_broken(series)
    begin = int(np.argmax(sound))
    return int(series.steps[begin + np.argmin(sound[begin:])])


def _evidence(series: Series) -> Evidence:
    name, step = series.metric, _first_step(series)
    if np.isfinite(series.values).all():
        brief = f"{name} is {figure(float(series.values[-1]))}"
        return Evidence(f"{brief} from step {step:,} on", name, (step,), float(series.values[-1]), 0.0, brief)
    count = int(np.count_nonzero(~np.isfinite(series.values[rows_before(series.steps, step) :])))
    value = name_of(float(series.values[row_of(series.steps, step)][0]))
    text = f"{name} is {value} from step {step:,} on, in {count:,} of its {len(series):,} rows"
    if np.isfinite(series.values[-1]):
        last = int(series.steps[~np.isfinite(series.values)][-1])
        text, brief = f"{text}, and finite again after step {last:,}", f"{name} is not finite"
        return Evidence(text, name, (step,), float(count), 0.0, brief=brief)
    return Evidence(f"{text}, to its end", name, (step,), float(count), 0.0, brief=f"{name} is not finite")
