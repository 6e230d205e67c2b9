"""Spikes: whether there is one, what came first, and what caused it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, UNKNOWN, YES, Answer, Evidence, unknown
from stabtree.common.figures import against, as_factor, deviations, figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.shared import FARTHEST, ROWS_SHORT, above, whether
from stabtree.common.stats import interval, median, running_medians
from stabtree.measures.registry import Count, Unknown, finite, measure
from stabtree.measures.scores import many_spikes
from stabtree.measures.spike import end_level, rarest, rarity
from stabtree.profile.change import change_point

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.measures.batches import Batches
    from stabtree.measures.spike import Excursion, Spike
    from stabtree.run import Run, Series


LISTED = 8  # no limit: spikes listed one by one; the rest are counted


def _describe(spike: Excursion) -> str:
    if spike.recovered_step is None:
        back = f"not back at the mean before it ({figure(spike.mean, 4)}) by the end of the log"
    else:
        steps = spike.recovered_step - spike.step
        back = f"back after {steps:,} step{'s' if steps != 1 else ''}"
    peak = f"{figure(spike.peak, 4)}" + (f" at {spike.peak_step:,}" if spike.peak_step != spike.step else "")
    return f"the loss jumps by {deviations(spike.height_sigma)} at step {spike.step:,}, up to {peak}, {back}"


@measure(source="phase19 Q2.1")
def loss_spikes(loss: Series, spike: Spike) -> Answer:
    """Does the loss jump above its recent mean by more than noise explains?

    Document: loss[t] > mean + `sigma` sigma of the `window_steps` steps before t. On pure noise that fires by
    chance, on the labelled healthy runs in more than half of them, so a step must also be so high that the upper tail
    of the run's own scores makes fewer than `chance` such steps expected in the whole run. A level that shifts counts
    as well, however high the tail of single rows is: the median of `level_rows` rows above `shift_sigma`, and by
    `shift_share` of all that the loss covers. A chance of 1 is the document's own rule. Where a reward is logged, the
    loss of reinforcement learning bursts by nature, and the reward decides.
    """
    top, search = spike.top, spike.search
    text = f"{_describe(top)} (measured by the noise of {search.before(spike.params)})"
    height, bar = top.height_sigma, search.bar
    if top.shift_sigma:
        height, bar = top.shift_sigma, spike.params.shift_bar(search.rows)
        text += f"; the median of {spike.params.level_rows} rows stays {deviations(height)} higher"
    count = len(search.spikes)
    brief = f"{count:,} times, up to {figure(top.peak, 4)}" if count > 1 else ""
    first = Evidence(text, "loss", (top.step, top.peak_step), height, bar, brief)
    others = sorted((s for s in search.spikes if s is not top), key=lambda s: s.mean - s.peak)
    evidence = [
        Evidence(_describe(s), "loss", (s.step, s.peak_step), s.height_sigma, search.bar) for s in others[:LISTED]
    ]
    if len(others) > LISTED:
        evidence.append(Evidence(f"and {len(others) - LISTED:,} smaller ones", "loss"))
    strength = max(above(height, bar), 0.0)
    if spike.params.guarded and not top.shift_sigma:
        strength = max(above(spike.params.chance, top.expected), 0.0)
    found = (first, *evidence)
    onset, good = spike.onset(loss)
    return Answer(YES, found, onset_step=onset, last_good_step=good, strength=strength)


@measure(source="phase19 Q2.2", labels=("yes", "no", "climbs", "open"), absent=UNKNOWN)
def spike_recovers(
    loss: Series,
    spike: Spike,
    batches: Batches | Unknown,
    *,
    late_counts: bool,
    open_share: float = shared.SHARE_HALF,
    climb_rows: Count = 2,
) -> Answer:
    """Does the loss come back after the worst spike?

    Document: within mean + `back_sigma` sigma inside `horizon_steps`. One low point is no recovery (after an unclipped
    gradient under Adam the loss can touch normal once and drift up again), so the median of a few rows must be
    back. Many real recoveries take longer, so a later one counts, and so does a loss that stays up by no more than
    `lasting_share` of all that it ever moved. Where a stuck loader fed one batch before, the loss need only come back
    to its mean before that. Without `late_counts` the document's own rule decides instead of all these.
    `open`: the log ends too early to tell, after a rise by more than `open_share` of that range which chance does not
    explain (fewer than `rare` such steps expected), and with its last rows still above; else it is unknown.
    `climbs`: the loss took longer than `window_steps`, and more than `climb_rows` rows, for the first half of its way
    up, so it is a divergence and no spike: a jump that is logged every 100 steps takes one row, or two where rows are
    means. So it did where it had climbed for as long before the spike, and by more than the spike added.
    """
    top, params = spike.top, spike.params
    horizon_steps = params.horizon(loss)
    level = figure(spike.back_level, 4)
    if top.recovered_step is not None:
        took = top.recovered_step - top.step
        fast = took <= max(horizon_steps, interval(loss.steps))  # a sparse log can't show it any sooner
        text = f"the loss is back at {level} after {took:,} step{'s' if took != 1 else ''}"
        text += "" if fast else f", later than the {horizon_steps} allowed"
        found = (Evidence(text, "loss", (top.step, top.recovered_step), float(took), float(horizon_steps)),)
        return Answer(YES if fast or late_counts else NO, found, strength=FARTHEST)
    steps, values = finite(loss)
    last = int(steps[-1])
    if last - top.step < horizon_steps or int((steps > top.step).sum()) < ROWS_SHORT:
        if late_counts and (climb := _climbs(steps, values)):
            return climb
        reason = f"the log ends {last - top.step:,} steps after the spike, too early to tell"
        share, expected = spike.share(top.peak), rarest(loss, top, params)
        reason += f"; it rose by {against(share, open_share, '.0%')} of its range (limit {open_share:.0%})"
        found = (Evidence(reason, "loss", (top.step, last), share, open_share),)
        still = median(values[rows_upto(steps, top.peak_step) :][-ROWS_SHORT:]) > spike.back_level
        rare = above(params.rare, expected) if late_counts else FARTHEST
        strength = min(above(share, open_share), rare, whether(still or steps[-1] == top.peak_step))
        if strength < 0:
            return unknown(reason, "loss")
        return Answer("open", found, strength=strength)
    ends = end_level(spike, loss)
    text = f"the loss is not back at {level}: it ends at a level of {figure(ends, 4)}, {last - top.step:,} steps after "
    text += "the spike"
    plain = Evidence(text, "loss", (top.step, last), ends, spike.back_level)
    return _stayed_up(loss, spike, batches, ends, plain, climb_rows) if late_counts else Answer(NO, (plain,))


def _climbs(steps: Ints, values: Floats) -> Answer | None:
    """Answer `climbs` where the loss left its course row by row, for many rows up to its end."""
    left = change_point(steps, values)
    if left is None or left.at_once:
        return None
    after = values[rows_before(steps, left.first_bad_step) :]
    low, end = float(values.min()), median(after[-ROWS_SHORT:])
    beyond = float(after.max()) - low > shared.FACTOR_SMALL * (end - low)  # a row that the climb does not reach
    if len(after) < shared.ROWS_LONG or beyond or median(after[:ROWS_SHORT]) > (low + end) / 2:
        return None
    text = f"the loss climbs row by row from step {left.first_bad_step:,} on: a slow rise, not a spike"
    return Answer("climbs", (Evidence(text, "loss", (left.first_bad_step, int(steps[-1]))),))


def _stayed_up(
    loss: Series, spike: Spike, batches: Batches | Unknown, ends: float, plain: Evidence, climb_rows: int
) -> Answer:
    """Answer for a loss that is not back at the mean before the spike: it may still be well, or have climbed slowly."""
    steps, values = finite(loss)
    top, params = spike.top, spike.params
    share = spike.share(ends)
    if share <= params.lasting_share:
        text = f"the loss ends at a level of {figure(ends, 4)}, within {params.lasting_share:.0%} of its range above "
        text += f"the {figure(top.mean, 4)} before the spike"
        return Answer(YES, (Evidence(text, "loss", plain.steps, share, params.lasting_share),))
    repeats = None if isinstance(batches, Unknown) else batches.around(top.step, params.window_steps)
    if repeats and repeats.stuck and not isinstance(batches, Unknown):
        since = int(batches.series.steps[repeats.first])
        before = values[rows_before(steps, since - params.window_steps) : rows_before(steps, since)]
        if len(before) and ends <= float(before.mean()):
            text = f"the loss ends at {figure(ends, 4)}, below the {figure(before.mean(), 4)} before the loader got "
            text += f"stuck at step {since:,}"
            return Answer(YES, (Evidence(text, "loss", (since, top.step), ends, float(before.mean())),))
    start = int(np.searchsorted(steps, top.last_good_step))
    half = start + int(np.argmax(values[start:] >= (top.mean + ends) / 2))
    took, rows = int(steps[half]) - top.last_good_step, half - start
    if took > params.window_steps and rows > climb_rows:
        text = f"{plain.text}; the first half of its climb took {took:,} steps: a divergence, not a spike"
        window = float(params.window_steps)
        return Answer("climbs", (Evidence(text, "loss", plain.steps, float(took), window),))
    if (low_step := _climbed_before(loss, spike, ends, climb_rows)) is not None:
        text = f"{plain.text}; most of its climb, from step {low_step:,} on, came before that step: a divergence"
        return Answer("climbs", (Evidence(text, "loss", plain.steps, ends, spike.back_level),))
    return Answer(NO, (plain,))


def _climbed_before(loss: Series, spike: Spike, ends: float, climb_rows: int) -> int | None:
    """Return the step of the lowest level before a spike, where a long way up from it exceeds what the spike added."""
    steps, values = finite(loss)
    before = values[: rows_upto(steps, spike.top.last_good_step)]
    if len(before) < ROWS_SHORT:
        return None
    levels = running_medians(before, ROWS_SHORT)
    at = int(np.argmin(levels)) + ROWS_SHORT - 1
    took = spike.top.last_good_step - int(steps[at])
    slow = took > spike.params.window_steps and len(before) - 1 - at > climb_rows
    return int(steps[at]) if slow and spike.top.mean - float(levels.min()) > ends - spike.top.mean else None


USUAL_FACTOR = 5.0
"""How many times its usual change a rate must jump: a steep warm-up logged coarsely does not."""

# Names of schedules that raise the rate in jumps by design.
CYCLIC = ("restart", "cycl", "triang", "warm_restart", "sgdr")


def _lr_jumps_at_spike(run: Run, spike: Spike, lr: Series, *, lr_factor: float, lr_falls: bool) -> Answer:
    """Does the learning rate jump where the loss spikes?

    A jump is a rise (with `lr_falls` a fall as well) by more than `lr_factor` from one row to the next, within
    `ROWS_SHORT` rows of the spike, and more than `USUAL_FACTOR` times the usual change of the rows before, so that a
    steep warm-up logged coarsely is none. A schedule that jumps by design is no bug: by its name (restarts, cycles), or
    because it goes back to a rate that the run had before, hardly above it.
    Labelled schedule bugs multiply the rate by 3 and more; warm-ups past step 100 move it by less than 1.5 a row.
    """
    top, (steps, values) = spike.top, finite(lr)
    at = rows_before(steps, top.step)
    # What comes long after the onset is not its cause.
    start, end = max(at - ROWS_SHORT, 0), min(at + ROWS_SHORT, len(steps))
    if start < 1 or end - start < 2 or steps[-1] < top.step:
        return _same_on_both_sides(steps, values, top, lr_factor)
    changes = np.diff(np.log(np.maximum(values, 1e-300)))
    sizes = np.abs(changes) if lr_falls else changes
    near, before = sizes[start - 1 : end - 1], changes[: start - 1]
    usual = median(np.abs(before)) if len(before) else 0.0
    at = int(np.argmax(near))
    row = start + at
    jump, step = float(np.exp(np.clip(changes[row - 1], -690.0, 690.0))), int(steps[row])
    limit = max(float(np.log(max(lr_factor, 1e-300))), USUAL_FACTOR * usual)
    if near[at] <= limit:
        text = _continuous(steps[start:end], changes[start - 1 : end - 1], jump, lr_factor)
        allowed, loss = float(np.exp(min(limit, 690.0))), run.get("loss")
        # Where the rate was logged wherever the loss was, no jump can be missed.
        every = loss is not None and (loss.steps is lr.steps or bool(np.isin(loss.steps, lr.steps).all()))
        return Answer(NO, (Evidence(text, "lr", (step,), jump, allowed),), contrary=every)
    schedule = str(run.setting("lr_schedule") or "")
    planned = next((word for word in CYCLIC if word in schedule.lower()), "")
    if planned or (not lr_falls and values[row] <= (1 + shared.SHARE_SOME) * values[:row].max()):
        by = f"the schedule is {schedule!r}" if planned else "back to a rate that the run had before"
        planned_text = f"lr jumps ×{figure(jump)} at step {step:,} as planned: {by}"
        return Answer(NO, (Evidence(planned_text, "lr", (step,), jump, lr_factor),))
    text = f"lr jumps ×{against(jump, lr_factor)} at step {step:,} ({figure(values[row - 1])} → {figure(values[row])})"
    found = (Evidence(text, "lr", (step,), jump, lr_factor),)
    good, strength = int(steps[row - 1]), abs(above(jump, lr_factor))
    return Answer(YES, found, onset_step=step, last_good_step=good, strength=strength)


def _batch_repeats_at_spike(spike: Spike, batches: Batches) -> Answer:
    """Is a batch around the spike a duplicate of a recent one?

    Batches recur once per epoch, and around the turn of a reshuffled epoch a few come back early. A loader bug
    shows as batches that come back within `recent_steps`, although `others` times as many have been seen:
    a quarter of the rows before the spike (at least `stuck_rows`) confirm it, fewer make it likely.
    """
    top, series = spike.top, batches.series
    if series.steps[-1] < top.step or series.steps[0] >= top.step:
        return unknown("batch_id is not logged around the spike", "batch_id")
    found = batches.around(top.step, spike.params.window_steps)
    if found is None:
        before = int(batches.known[rows_before(series.steps, top.step) - 1])
        text = f"no batch around the spike repeats one of the {batches.recent_steps:,} steps before it "
        text += f"({before:,} different ones before)"
        # Where every step has its batch, and none ever came back, there is no repeat to look for.
        every = bool((np.diff(series.steps) == 1).all()) and not batches.since_steps.any()
        return Answer(NO, (Evidence(text, "batch_id", (top.step,), 0.0, 1.0),), contrary=every)
    step, back = int(series.steps[found.last]), int(batches.since_steps[found.last])
    since = int(series.steps[found.first])
    text = f"batches repeat from step {since:,} on: that of step {step:,} is that of step {step - back:,}, and "
    text += f"{found.rows:,} of the {found.window_rows:,} rows around the spike are early repeats"
    evidence = (Evidence(text, "batch_id", (since, step), float(found.rows), 1.0),)
    good = since - int(batches.since_steps[found.first])
    strength = above(found.rows, found.stuck_rows)
    verdict = YES if strength >= 0 else LIKELY
    return Answer(verdict, evidence, onset_step=step, last_good_step=good, strength=max(strength, 0.0))


def _grad_norm_at_spike(
    run: Run, spike: Spike, grad_norm: Series, *, grad_norm_factor: float, grad_norm_likely_factor: float
) -> Answer:
    """Is grad_norm before clipping far above its rolling mean at the spike?

    `grad_norm_factor` is the document's and confirms a bad batch. Measured on the labelled bad batches it
    catches about half. A grad_norm above `grad_norm_likely_factor` times its mean that its own noise does not
    explain (as `rare` as the spike must be) makes one likely: labelled bad batches lie below 1e-4, spikes of healthy
    runs that reach twice the mean above 0.02. No where the loss takes long to come back: one batch is over at once.
    """
    (top, factor), loss, at = (spike.top, grad_norm_factor), run.get("loss"), grad_norm.steps
    first, last = rows_before(at, spike.top.step - spike.params.window_steps), rows_before(at, spike.top.step)
    before = grad_norm.values[first:last]
    before = before[np.isfinite(before)]
    if at[-1] < top.step or not len(before) or float(before.mean()) <= 0:
        return unknown("grad_norm is not logged around the spike", "grad_norm")
    near = grad_norm.values[max(last - 1, 0) : last + ROWS_SHORT]
    highest = int(np.argmax(np.nan_to_num(near, nan=np.inf)))
    step = int(at[max(last - 1, 0) + highest])
    if not np.isfinite(near[highest]):
        if run.get("loss_scale") is not None or run.setting("dtype") == "fp16":
            return unknown(f"grad_norm is not finite at step {step:,}, which in fp16 may be an ordinary overflow")
        found = Evidence(f"grad_norm is not finite at step {step:,}", "grad_norm", (step,), None, factor)
        return Answer(YES, (found,))
    ratio = min(float(near[highest]) / float(before.mean()), 1e300)
    text = f"grad_norm is {against(ratio, factor)}× its rolling mean at step {step:,}; more than {factor:g}× confirms "
    text += "a bad batch"
    verdict = YES if ratio > factor else NO
    if verdict == NO and ratio > grad_norm_likely_factor:
        expected = rarity(grad_norm, step, spike.params, _spikes_with_loss(grad_norm, spike))
        verdict = LIKELY if expected < spike.params.rare else NO
        text += f"; its own noise has {figure(expected, 2)} rows as high (limit {spike.params.rare:g})"
    if spike.params.guarded and loss is not None and top.recovered_step is not None:
        took = spike.took(loss)
        if took > spike.quick(loss):
            text += f"; a single batch is over at once, the loss took {took:,} steps"
            verdict = NO
    return Answer(verdict, (Evidence(text, "grad_norm", (step,), ratio, factor),))


def _same_on_both_sides(steps: Ints, values: Floats, top: Excursion, factor: float) -> Answer:
    """Answer no where a rarely logged learning rate is the same before and after the spike, else unknown."""
    after = int(np.searchsorted(steps, top.step))
    if not 0 < after < len(steps) or values[after] != values[after - 1]:
        return unknown("lr is not logged around the spike", "lr")
    before, then = int(steps[after - 1]), int(steps[after])
    text = f"lr is {figure(values[after])} before the spike and after it (steps {before:,} and {then:,})"
    return Answer(NO, (Evidence(text, "lr", (before, then), 1.0, factor),))


def _continuous(steps: Ints, changes: Floats, jump: float, factor: float) -> str:
    """Describe that lr does not jump, with its fall, or a rise that is usual in this run, where there is one."""
    low = int(np.argmin(changes))
    fall = float(np.exp(np.clip(changes[low], -690.0, 690.0)))
    if jump > factor:
        text = f"lr rises by no more than in the rows before: by ×{figure(jump)} at most"
    elif fall * factor < 1:
        text = f"lr does not rise by more than ×{against(jump, factor)} around the spike (limit ×{factor:g})"
    else:
        largest = fall if fall * jump < 1 else jump
        return f"lr is continuous around the spike (largest change ×{against(largest, factor)}, limit ×{factor:g})"
    return f"{text}; it falls to ×{figure(fall)} at step {int(steps[low]):,}" if fall * factor < 1 else text


def _spikes_with_loss(grad_norm: Series, spike: Spike) -> bool:
    """Return whether most of many spikes of grad_norm come with one of the loss; pulses by themselves are its noise."""
    tops = [excursion.step for excursion in spike.search.spikes]
    many = [recovery.step for recovery in many_spikes(grad_norm)]
    rows = [np.searchsorted(grad_norm.steps, steps) for steps in (tops, many)]
    near = sum(bool(np.any(np.abs(rows[0] - row) <= ROWS_SHORT)) for row in rows[1])
    return near > len(many) / 2


@measure(
    source="phase19 Q2.3", labels=("lr_jump", "duplicate_batch", "bad_batch", "unexplained", "minor"), absent=UNKNOWN
)
def spike_cause(
    run: Run,
    loss: Series,
    spike: Spike,
    batches: Batches | Unknown,
    lr: Series | None = None,
    grad_norm: Series | None = None,
    *,
    lr_factor: float,
    lr_falls: bool,
    grad_norm_factor: float,
    grad_norm_likely_factor: float,
    far_share: float,
    start_factor: float = shared.FACTOR_SMALL,
) -> Answer:
    """What explains the spike: learning rate, batch or gradient norm?

    A jump of the learning rate and a repeated batch are causes; a high grad_norm is what a bad batch looks
    like, and what the other two look like as well, so it is asked last. A panel that confirms its cause decides (a
    high grad_norm only for a spike that is rare as well). Without one a spike counts only when it is rare (the run's
    own noise does not explain it: fewer than `rare` such steps expected in the whole run, and a rise by more than
    `far_share` of all that the loss ever moved, its 2nd to 98th percentile), and a panel makes its cause likely, or it
    rises by nearly as much as the loss covers in the whole run, or it goes above `start_factor` times the loss of the
    first rows, or it takes longer than `horizon_steps` and `ROWS_SHORT` rows to come back. One that goes so high and
    takes so long counts however often the run does it, and so does one that goes far above both the first rows and
    nine in ten of all. Anything less is `minor`: labelled healthy runs spike by themselves, up to 1.2 times their first
    loss, and are back within 25 steps. By the document's letter no spike is minor.
    """
    top, guarded = spike.top, spike.params.guarded
    panels: dict[str, Answer] = {
        "lr_jump": unknown("lr was not logged", "lr"),
        "duplicate_batch": unknown("batch_id was not logged", "batch_id"),
        "bad_batch": unknown("grad_norm was not logged", "grad_norm"),
    }
    if lr is not None:
        panels["lr_jump"] = _lr_jumps_at_spike(run, spike, lr, lr_factor=lr_factor, lr_falls=lr_falls)
    if not isinstance(batches, Unknown):
        panels["duplicate_batch"] = _batch_repeats_at_spike(spike, batches)
    if grad_norm is not None:
        limits = {"grad_norm_factor": grad_norm_factor, "grad_norm_likely_factor": grad_norm_likely_factor}
        panels["bad_batch"] = _grad_norm_at_spike(run, spike, grad_norm, **limits)
    notes = tuple(chain.from_iterable(panel.evidence for panel in panels.values()))
    gaps = tuple(chain.from_iterable(panel.missing for panel in panels.values()))
    rarely, beyond, seen = _weight(loss, spike, far_share, start_factor)
    rare = rarely >= 0
    # A gradient follows its loss, so by itself it confirms nothing about a spike that chance explains.
    strong = [n for n, panel in panels.items() if panel.verdict == YES and (n != "bad_batch" or rare or not guarded)]
    weak = [name for name, panel in panels.items() if panel.verdict == LIKELY and rare]
    onset, good = spike.onset(loss)
    if not strong and not weak:
        return Answer(
            "minor" if guarded and beyond < 0 else "unexplained",
            (*seen, *notes),
            missing=gaps,
            onset_step=onset,
            last_good_step=good,
            strength=beyond,
            near="unexplained",
        )
    label = (strong + weak)[0]
    panel = panels[label]
    evidence = (*panel.evidence, seen[0], *(e for e in notes if e not in panel.evidence))
    if label != "bad_batch":
        onset = top.step
        good = panel.last_good_step if panel.last_good_step is not None else top.last_good_step
    strength = max(rarely, 0.0) if label == "bad_batch" else panel.strength
    return Answer(label, evidence, missing=gaps, onset_step=onset, last_good_step=good, strength=strength)


def _weight(
    loss: Series, spike: Spike, far_share: float, start_factor: float
) -> tuple[float, float, tuple[Evidence, ...]]:
    """Return how strongly a spike exceeds the run's own noise, and what healthy runs do, with what was seen."""
    top, limit = spike.top, spike.params.rare
    share, expected = spike.share(top.peak), rarest(loss, top, spike.params)
    text = f"the jump covers {against(share, far_share, '.0%')} of the loss's range (limit {far_share:.0%})"
    known = expected < np.inf  # with too few rows before it, chance is left open
    text += f"; the run's own noise has {figure(expected, 2)} rows as high (limit {limit:g})" * known
    height = Evidence(text, "loss", (top.step,), *((expected, limit) if known else (share, far_share)))
    _, values = finite(loss)
    took, limit_steps = spike.took(loss), spike.quick(loss)
    start = float(max(values[0], median(values[:ROWS_SHORT])))
    times = min(top.peak / start, 1e300) if start > 0 else 0.0
    text = f"it reaches {as_factor(times)} the loss of the beginning (limit {start_factor:g}×) and "
    way, back = ("took", " to come back") if top.recovered_step is not None else ("is not back after", "")
    text += f"{way} {took:,} step{'s' if took != 1 else ''}{back} (limit {limit_steps:,})"
    found = Evidence(text, "loss", (top.step, top.peak_step), times, start_factor)
    rare = min(above(limit, expected), above(share, far_share))
    high, slow = above(times, start_factor), above(took, limit_steps)
    huge = min(high, above(top.peak, shared.FACTOR_HUGE * max(start, float(np.quantile(values, shared.SHARE_MOST)))))
    # A constant loss covers nothing, so any jump exceeds that.
    whole = above(share, shared.SHARE_MOST) if spike.covered > 0 else -above(1.0, 0.0)
    # However small each is: so many are no accident, and neither are so many rows above the level.
    many = [one for one in many_spikes(loss) if one.step >= spike.search.spikes[0].step]
    rows_lost = sum(recovery.rows or 1 for recovery in many)
    lasting = min(above(len(many), shared.FACTOR), above(rows_lost, shared.SHARE_SOME * len(values)))
    costs = max(above(len(many), shared.LEVELS / 2), lasting)
    beyond = max(huge, min(high, slow), min(rare, max(high, slow, whole, costs)))
    return rare, beyond, (height, found)
