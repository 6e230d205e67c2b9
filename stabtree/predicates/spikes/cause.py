"""What explains a spike: how rare it is, and what the panels show."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import LIKELY, NO, UNKNOWN, YES, Answer, Evidence
from stabtree.common.stats import interval, median
from stabtree.common.text import against
from stabtree.facts.registry import Unknown, finite
from stabtree.facts.spikes.rarity import rarest
from stabtree.predicates.registry import predicate
from stabtree.predicates.spikes.panels import LrJumpLimits, NormPanelLimits, batch_panel, grad_norm_panel, lr_panel

if TYPE_CHECKING:
    from stabtree.facts.batches import Batches
    from stabtree.facts.spike import Spike
    from stabtree.facts.spikes.excursions import Excursion
    from stabtree.run import Run, Series


@predicate(
    source="phase19 Q2.3",
    labels=("lr_jump", "duplicate_batch", "bad_batch", "unexplained", "minor"),
    absent=UNKNOWN,
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
    lr_usual_factor: float,
    lr_back_factor: float,
    grad_norm_factor: float,
    grad_norm_likely_factor: float,
    grad_norm_chance: float,
    nearby_rows: int,
    far_chance: float,
    far_share: float,
    start_factor: float,
    start_rows: int,
    no_chance: float,
    far_factor: float,
) -> Answer:
    """What explains the spike: learning rate, batch or gradient norm?

    A jump of the learning rate and a repeated batch are causes; a high grad_norm is what a bad batch looks
    like, and what the other two look like as well, so it is asked last. A panel that confirms its cause decides (a
    high grad_norm only for a spike that is rare as well). Without one a spike counts only when it is rare (the run's
    own noise does not explain it: fewer than `far_chance` such steps expected in the whole run, and a rise by
    more than `far_share` of all that the loss ever moved, its 2nd to 98th percentile, or above `far_factor` times the
    mean before it), and a panel makes its cause likely, or it goes above `start_factor` times the loss of the first
    `start_rows` rows, or takes longer than `horizon_steps` to come back, or chance allows less than `no_chance` of it
    (labelled healthy runs stay above 0.004; thinned and cut in 24 ways, 0.3% of them go below). One that goes so high
    and takes so long counts however often the run does it. Anything less is `minor`: labelled healthy runs spike by
    themselves, up to 1.2 times their first loss, and are back within 25 steps. By the document's letter no spike is
    minor.
    """
    top, guarded = spike.top, spike.params.guarded
    lr_limits = LrJumpLimits(lr_factor, lr_falls, lr_usual_factor, lr_back_factor, nearby_rows)
    norm_limits = NormPanelLimits(grad_norm_factor, grad_norm_likely_factor, grad_norm_chance, nearby_rows)
    panels = {
        "lr_jump": lr_panel(run, lr, top, lr_limits),
        "duplicate_batch": batch_panel(batches, spike),
        "bad_batch": grad_norm_panel(run, grad_norm, spike, norm_limits),
    }
    notes = tuple(chain.from_iterable(panel.evidence for panel in panels.values()))
    gaps = tuple(chain.from_iterable(panel.missing for panel in panels.values()))
    share = spike.share(top.peak)
    expected = rarest(loss, top, spike.params)
    rare = expected < far_chance and (share > far_share or _times(top) > far_factor)
    text = f"{_rarity_text(expected, far_chance, share, far_share)}, to {against(_times(top), far_factor)}× the "
    height = Evidence(f"{text}mean before it (limit {far_factor:g}×)", "loss", (top.step,), expected, far_chance)
    # Neighbours may be alike, and a constant loss has no noise of its own: neither is rare by numbers alone.
    unlikely = rarest(loss, top, spike.params, alone=True) < no_chance and spike.covered > 0
    beyond = _beyond(loss, spike, start_factor, start_rows, unlikely=unlikely)
    # A gradient follows its loss, so by itself it confirms nothing about a spike that chance explains.
    strong = [n for n, panel in panels.items() if panel.verdict == YES and (n != "bad_batch" or rare or not guarded)]
    weak = [name for name, panel in panels.items() if panel.verdict == LIKELY and rare]
    if not strong and not weak:
        counts = not guarded or beyond.verdict == YES or (rare and beyond.verdict == LIKELY)
        return Answer(
            "unexplained" if counts else "minor",
            (height, *beyond.evidence, *notes),
            missing=gaps,
            onset_step=top.step,
            last_good_step=top.last_good_step,
        )
    label = (strong + weak)[0]
    panel = panels[label]
    evidence = (*panel.evidence, height, *(e for e in notes if e not in panel.evidence))
    good = panel.last_good_step if panel.last_good_step is not None else top.last_good_step
    return Answer(label, evidence, missing=gaps, onset_step=top.step, last_good_step=good)


def _times(top: Excursion) -> float:
    """Return the peak over the mean before it; 0 for a loss that is not positive."""
    return min(top.peak / top.mean, 1e300) if top.mean > 0 else 0.0


def _rarity_text(expected: float, far_chance: float, share: float, far_share: float) -> str:
    allowed = against(expected, far_chance, ".1g") if expected > 1e-9 else "no"
    return (
        f"by chance {allowed} such steps are expected (limit {far_chance:g}); the jump is "
        f"{against(share, far_share, '.2g')}× the loss's range (limit {far_share:g})"
    )


def _beyond(loss: Series, spike: Spike, start_factor: float, start_rows: int, *, unlikely: bool) -> Answer:
    """Judge whether a spike exceeds what healthy runs do: yes in height and length, likely in either."""
    top, horizon_steps = spike.top, spike.params.horizon(loss)
    steps, values = finite(loss)
    start = float(max(values[0], median(values[: max(start_rows, 1)])))
    times = min(top.peak / start, 1e300) if start > 0 else 0.0
    took = (top.recovered_step if top.recovered_step is not None else int(steps[-1])) - top.step
    text = f"it reaches {times:.3g}× the loss of the beginning (limit {start_factor:g}×) and "
    text += "takes" if top.recovered_step is not None else "is not back after"
    text += f" {took:,} step{'s' if took != 1 else ''}{' to come back' if top.recovered_step is not None else ''} "
    text += f"(limit {horizon_steps})"
    slow = took > max(horizon_steps, interval(steps))
    found = (Evidence(text, "loss", (top.step, top.peak_step), times, start_factor),)
    high = times > start_factor
    if high and slow:
        return Answer(YES, found)
    return Answer(LIKELY if high or slow or unlikely else NO, found)
