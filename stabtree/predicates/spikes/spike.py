"""Section 2: does the loss spike, does it come back, did grad_norm rise before?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, UNKNOWN, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, deviations, figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.shared import ROWS_SHORT, SHARE_HALF
from stabtree.common.stats import NORMAL_MAD, interval, median, running_medians
from stabtree.common.strength import FARTHEST, above, weakest, whether
from stabtree.facts.registry import Unknown, finite
from stabtree.facts.spike import end_level
from stabtree.facts.spikes.rarity import rarest
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.facts.batches import Batches
    from stabtree.facts.spike import Spike
    from stabtree.facts.spikes.excursions import Excursion
    from stabtree.run import Series

LISTED = 8  # no limit: spikes listed one by one; the rest are counted


def _describe(spike: Excursion) -> str:
    if spike.recovered_step is None:
        back = f"not back at the mean before it ({figure(spike.mean, 4)}) by the end of the log"
    else:
        steps = spike.recovered_step - spike.step
        back = f"back after {steps:,} step{'s' if steps != 1 else ''}"
    peak = f"{figure(spike.peak, 4)}" + (f" at {spike.peak_step:,}" if spike.peak_step != spike.step else "")
    return f"the loss jumps by {deviations(spike.height_sigma)} at step {spike.step:,}, up to {peak}, {back}"


@predicate(source="phase19 Q2.1")
def spike(spike: Spike) -> Answer:
    """Does the loss jump above its recent mean by more than noise explains?

    Document: loss[t] > mean + `sigma` sigma of the `window_steps` steps before t. On pure noise that fires by
    chance, on the labelled healthy runs in more than half of them, so a step must also be so high that the upper tail
    of the run's own scores makes fewer than `chance` such steps expected in the whole run. A level that shifts counts
    as well, however high the tail of single rows is: the median of `level_rows` rows above `shift_sigma`, and by
    `shift_share` of all that the loss covers. A chance of 1 is the document's own rule. Where a reward is logged, the
    loss of reinforcement learning bursts by nature, and the reward decides.
    """
    top, search = spike.top, spike.search
    text = f"{_describe(top)} (measured by the noise of {spike.window})"
    height, bar = top.height_sigma, search.bar
    if top.shift_sigma:
        height, bar = top.shift_sigma, spike.params.shift_bar(search.rows)
        text += f"; the median of {spike.params.level_rows} rows stays {deviations(height)} higher"
    first = Evidence(text, "loss", (top.step, top.peak_step), height, bar)
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
    return Answer(YES, found, onset_step=top.step, last_good_step=top.last_good_step, strength=strength)


@predicate(source="phase19 Q2.2", labels=("yes", "no", "climbs", "open"), absent=UNKNOWN)
def spike_recovers(
    loss: Series,
    spike: Spike,
    batches: Batches | Unknown,
    *,
    late_counts: bool,
    open_share: float = SHARE_HALF,
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
        reason = f"the log ends {last - top.step:,} steps after the spike, too early to tell"
        share, expected = spike.share(top.peak), rarest(loss, top, params)
        reason += f"; it rose by {against(share, open_share, '.0%')} of its range (limit {open_share:.0%})"
        found = (Evidence(reason, "loss", (top.step, last), share, open_share),)
        still = median(values[rows_upto(steps, top.peak_step) :][-ROWS_SHORT:]) > spike.back_level
        rare = above(params.rare, expected) if late_counts else FARTHEST
        strength = weakest(above(share, open_share), rare, whether(still or steps[-1] == top.peak_step))
        if strength < 0:
            return unknown(reason, "loss")
        return Answer("open", found, strength=strength)
    ends = end_level(spike, loss)
    text = f"the loss is not back at {level}: it ends at a level of {figure(ends, 4)}, {last - top.step:,} steps after "
    text += "the spike"
    plain = Evidence(text, "loss", (top.step, last), ends, spike.back_level)
    return _stayed_up(loss, spike, batches, ends, plain, climb_rows) if late_counts else Answer(NO, (plain,))


def _stayed_up(
    loss: Series, spike: Spike, batches: Batches | Unknown, ends: float, plain: Evidence, climb_rows: int
) -> Answer:
    """Answer for a loss that is not back at the mean before the spike: it may still be well, or have climbed slowly."""
    steps, values = finite(loss)
    top, params = spike.top, spike.params
    share = spike.share(ends)
    if share <= params.lasting_share:
        text = (
            f"the loss ends at a level of {figure(ends, 4)}, within {params.lasting_share:.0%} of its range above the "
        )
        text += f"{figure(top.mean, 4)} before the spike"
        return Answer(YES, (Evidence(text, "loss", plain.steps, share, params.lasting_share),))
    repeats = None if isinstance(batches, Unknown) else batches.around(top.step, params.window_steps)
    if repeats and repeats.stuck and not isinstance(batches, Unknown):
        since = int(batches.series.steps[repeats.first])
        before = values[rows_before(steps, since - params.window_steps) : rows_before(steps, since)]
        if len(before) and ends <= float(before.mean()):
            text = (
                f"the loss ends at {figure(ends, 4)}, below the {figure(before.mean(), 4)} before the loader got stuck "
            )
            text += f"at step {since:,}"
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


@predicate(source="precision P12")
def grad_norm_leads(
    spike: Spike,
    grad_norm: Series,
    *,
    sigma: float,
    min_lead_rows: int,
    factor: float = shared.FACTOR_SMALL,
    lead_rows: Count = shared.ROWS_LONG,
) -> Answer:
    """Did grad_norm rise for some steps before the loss spiked?

    Its usual level is that of twice `lead_rows` rows before the last `lead_rows` before the spike, and yes takes at
    least `min_lead_rows` rows in a row, up to the spike, above `factor` times that level and `sigma` robust deviations.
    """
    top = spike.top
    steps, values = finite(grad_norm)
    end = int(np.searchsorted(steps, top.step))
    if end <= shared.ROWS_SHORT:
        return unknown("too few rows of grad_norm before the spike", "grad_norm")
    before = values[max(0, end - 3 * lead_rows) : end]
    usual = before[: max(len(before) - lead_rows, lead_rows, 1)]
    level = median(usual)
    scatter = NORMAL_MAD * median(np.abs(usual - level))
    bar = max(factor * level, level + sigma * scatter)
    high = before > bar
    led = len(high) if high.all() else int(np.argmax(~high[::-1]))
    peak = float(before[-led:].max()) if led else float(before[-1])
    lead = top.step - int(steps[end - led]) if led else 0
    limit = f"{figure(bar)} ({figure(level)} is usual)"
    text = f"grad_norm did not rise above {limit} right before the spike at step {top.step:,}"
    if led:
        text = (
            f"grad_norm was above {limit} for {led} rows before the spike, up to {figure(peak)}; it leads the spike at "
        )
        text += f"step {top.step:,} by {lead:,} steps"
    found = (Evidence(text, "grad_norm", (top.step,), float(led), float(min_lead_rows)),)
    return measured(above(led, min_lead_rows), found)
