"""Section 2: does the loss spike, and does it come back?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.facts.batches import repeats_at
from stabtree.facts.registry import finite
from stabtree.facts.spike import TYPICAL_ROWS, Search, Spike, find, rarest
from stabtree.predicates.registry import predicate
from stabtree.stats import interval, span

if TYPE_CHECKING:
    from stabtree.run import Run, Series

HORIZON_STEPS, LASTING_SHARE = 50, 0.1  # the defaults of Q2.2, which tell a spike that stays up from a young one
OPEN_CHANCE = 0.005
CLIMB_ROWS = 2  # a jump that is logged every 100 steps takes one row, or two where rows are means
LISTED = 8  # spikes told one by one; the rest are counted


def _search(run: Run, loss: Series, window_steps: int, sigma: float, chance: float, back_sigma: float) -> Search:
    seams = tuple(resume.to_step for resume in run.resumes)
    return find(loss, window_steps=window_steps, sigma=sigma, chance=chance, back_sigma=back_sigma, seams=seams)


def worst(loss: Series, search: Search) -> Spike | None:
    """The spike that decides: one that the loss stayed up after before all that healed, then the highest rise."""
    if not search.spikes:
        return None
    return max(search.spikes, key=lambda s: (_stays(loss, s), s.peak - s.mean))


def _stays(loss: Series, spike: Spike) -> bool:
    """Whether the loss is still up, by more than a sliver of its range, when a return could have been seen."""
    steps, values = finite(loss)
    after = values[steps > spike.step]
    if spike.recovered_step is not None or len(after) < TYPICAL_ROWS or int(steps[-1]) - spike.step < HORIZON_STEPS:
        return False
    ends = float(np.median(after[-max(TYPICAL_ROWS, len(after) // 4) :]))
    return rise_share(loss, spike, ends) > LASTING_SHARE


def worst_spike(
    run: Run, loss: Series, window_steps: int, sigma: float, chance: float, back_sigma: float
) -> Spike | None:
    """The spike that decides, None where there is none."""
    return worst(loss, _search(run, loss, window_steps, sigma, chance, back_sigma))


def _describe(spike: Spike) -> str:
    if spike.recovered_step is None:
        back = "not back by the end of the log"
    else:
        steps = spike.recovered_step - spike.step
        back = f"back after {steps:,} step{'s' if steps != 1 else ''}"
    peak = f"{spike.peak:.4g}" + (f" at {spike.peak_step:,}" if spike.peak_step != spike.step else "")
    return f"{spike.height_sigma:,.3g}σ at step {spike.step:,}, up to {peak}, {back}"


@predicate(source="phase19 Q2.1", min_points=12)
def spike(
    run: Run,
    loss: Series,
    reward: Series | None = None,
    *,
    window_steps: int = 100,
    sigma: float = 3.0,
    chance: float = 0.1,
    back_sigma: float = 0.5,
) -> Answer:
    """Does the loss jump above its recent mean by more than noise explains?

    Document: loss[t] > mean + 3 sigma of the 100 steps before t, for t > 100. On pure noise that fires by
    chance, on the labelled healthy runs in more than half of them, so a step must also stand so high
    that the upper tail of the run's own scores makes fewer than `chance` (0.1) such steps expected in the
    whole run. `chance=1` is the document's letter. The window holds at least 10 rows. Where a reward is
    logged, the loss of reinforcement learning bursts by nature, and the reward is what tells.
    """
    search = _search(run, loss, window_steps, sigma, chance, back_sigma)
    if not search.judged:
        return unknown(f"no step has {search.rows} rows before it", "loss")
    if reward is not None and chance < 1:
        text = f"a reward is logged: its loss bursts by nature, here up to {search.highest:.2g}σ (step "
        text += f"{search.highest_step:,})"
        return Answer(NO, (Evidence(text, "loss", (search.highest_step,), search.highest, search.bar),))
    window = f"the {search.rows} rows before" if search.widened else f"the {window_steps} steps before"
    if not search.spikes:
        text = (
            f"the highest step stands {search.highest:.2g}σ above {window} (step {search.highest_step:,}); "
            f"it takes {search.bar:.2g}σ in this run"
        )
        return Answer(NO, (Evidence(text, "loss", (search.highest_step,), search.highest, search.bar),))
    top = worst(loss, search)
    assert top is not None  # noqa: S101 - there are spikes
    allowed = f"about {top.expected:.1g}" if top.expected > 1e-9 else "none"
    text = f"{_describe(top)} (σ of {window}; chance allows {allowed} so high)"
    first = Evidence(text, "loss", (top.step, top.peak_step), top.height_sigma, search.bar)
    others = sorted((s for s in search.spikes if s is not top), key=lambda s: s.mean - s.peak)
    told = [Evidence(_describe(s), "loss", (s.step, s.peak_step), s.height_sigma, search.bar) for s in others[:LISTED]]
    if len(others) > LISTED:
        told.append(Evidence(f"and {len(others) - LISTED:,} smaller ones", "loss"))
    return Answer(YES, (first, *told), onset_step=top.step, last_good_step=top.last_good_step)


def rise_share(loss: Series, top: Spike, level: float) -> float:
    """How far a level stands above the mean before a spike, as a share of what the loss covers in the whole run."""
    covered = span(finite(loss)[1])
    return float(np.clip((level - top.mean) / covered, -1e300, 1e300)) if covered > 0 else 1e300


@predicate(source="phase19 Q2.2", labels=("yes", "no", "climbs", "open"), min_points=12)
def spike_recovers(
    run: Run,
    loss: Series,
    batch_id: Series | None = None,
    *,
    window_steps: int = 100,
    sigma: float = 3.0,
    chance: float = 0.1,
    back_sigma: float = 0.5,
    horizon_steps: int = 50,
    late_counts: bool = True,
    lasting_share: float = 0.1,
    open_share: float = 0.5,
) -> Answer:
    """Does the loss come back after the worst spike?

    Document: within mean + 0.5 sigma inside 50 steps. One low point is no recovery (after an unclipped
    gradient under Adam the loss can touch normal once and drift up again), so the median of 5 rows must be
    back. Many real recoveries take longer than 50 steps, so a later one counts, and so does a loss that stays up
    by less than `lasting_share` of all that it ever moved. Where a stuck loader fed one batch before, the loss
    need only come back to its mean before that. `late_counts` off is the document's letter for all of these.
    `open`: the log ends too early to tell, after a rise by more than `open_share` of that range which chance does not
    explain (fewer than 0.005 such steps expected); after a smaller one it is unknown. `climbs`: the loss took longer
    than `window_steps`, and more than two rows, for the first half of its way up, so it is a divergence and no spike.
    """
    top = worst(loss, search := _search(run, loss, window_steps, sigma, chance, back_sigma))
    if top is None:
        return unknown(
            "there is no spike" if search.judged else "the loss is too short for a spike to be found", "loss"
        )
    level = f"mean + {back_sigma:g}σ = {top.mean + back_sigma * top.sigma:.4g}"
    if top.recovered_step is not None:
        took = top.recovered_step - top.step
        fast = took <= max(horizon_steps, interval(loss.steps))  # a sparse log can't show it any sooner
        text = f"back at {level} after {took:,} step{'s' if took != 1 else ''}"
        text += "" if fast else f", later than the {horizon_steps} allowed"
        found = (Evidence(text, "loss", (top.step, top.recovered_step), float(took), float(horizon_steps)),)
        return Answer(YES if fast or late_counts else NO, found)
    steps, values = finite(loss)
    after, last = values[steps > top.step], int(steps[-1])
    if last - top.step < horizon_steps or len(after) < TYPICAL_ROWS:
        reason = f"the log ends {last - top.step:,} steps after the spike, too early to tell"
        share = rise_share(loss, top, top.peak)
        expected = rarest(loss, top, window_steps)
        reason += (
            f", after a rise by {share:.0%} of its range (open: {open_share:.0%}); chance allows {expected:.1g} so high"
        )
        found = (Evidence(reason, "loss", (top.step, last), share, open_share),)
        wide = share > open_share and (expected < OPEN_CHANCE or not late_counts)
        return Answer("open", found) if wide else unknown(reason, "loss")
    ends = float(np.median(after[-max(TYPICAL_ROWS, len(after) // 4) :]))
    text = f"never back at {level}: the loss ends at {ends:.4g}, {last - top.step:,} steps after the spike"
    plain = Evidence(text, "loss", (top.step, last), ends, top.mean + back_sigma * top.sigma)
    return (
        _stayed_up(loss, batch_id, top, ends, plain, window_steps, lasting_share)
        if late_counts
        else Answer(NO, (plain,))
    )


def _stayed_up(
    loss: Series,
    batch_id: Series | None,
    top: Spike,
    ends: float,
    plain: Evidence,
    window_steps: int,
    lasting_share: float,
) -> Answer:
    """Whether a loss that is not back at the mean before the spike is nevertheless well, or climbed slowly."""
    steps, values = finite(loss)
    share = rise_share(loss, top, ends)
    if share <= lasting_share:
        text = f"{plain.text}, but no more than {lasting_share:.0%} of its range above the level before"
        return Answer(YES, (Evidence(text, "loss", plain.steps, share, lasting_share),))
    repeats = repeats_at(batch_id, top, window_steps)
    if repeats and repeats.stuck and batch_id is not None:
        since = int(batch_id.steps[repeats.first])
        before = values[(steps >= since - window_steps) & (steps < since)]
        if len(before) and ends <= float(before.mean()):
            text = f"the loss ends at {ends:.4g}, below its mean of {before.mean():.4g} before the loader got stuck "
            text += f"at step {since:,}"
            return Answer(YES, (Evidence(text, "loss", (since, top.step), ends, float(before.mean())),))
    start = int(np.searchsorted(steps, top.last_good_step))
    half = start + int(np.argmax(values[start:] >= (top.mean + ends) / 2))
    took, rows = int(steps[half]) - top.last_good_step, half - start
    if took > window_steps and rows > CLIMB_ROWS:
        text = f"{plain.text}; it took {took:,} steps for the first half of the way up, which is a divergence, no spike"
        return Answer("climbs", (Evidence(text, "loss", plain.steps, float(took), float(window_steps)),))
    return Answer(NO, (plain,))
