"""What explains a spike: how rare it is, and what the panels show."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import LIKELY, UNKNOWN, YES, Answer, Evidence
from stabtree.common.figures import against, as_factor
from stabtree.common.lazy import np
from stabtree.common.shared import ROWS_SHORT, SHARE_MOST
from stabtree.common.stats import median
from stabtree.common.strength import above, strongest, weakest
from stabtree.facts.registry import Unknown, finite
from stabtree.facts.spikes.rarity import rarest
from stabtree.predicates.registry import predicate
from stabtree.predicates.spikes.panels import NormPanelLimits, batch_panel, grad_norm_panel, lr_panel

if TYPE_CHECKING:
    from stabtree.facts.batches import Batches
    from stabtree.facts.spike import Spike
    from stabtree.run import Run, Series


class Weight(NamedTuple):
    """How much a spike weighs: each a strength, with what was seen.

    Attributes:
        rare: that the run's own noise does not explain it.
        beyond: that it exceeds what healthy runs do.
        evidence: what was seen.
    """

    rare: float
    beyond: float
    evidence: tuple[Evidence, ...]


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
    norm_limits = NormPanelLimits(grad_norm_factor, grad_norm_likely_factor)
    panels = {
        "lr_jump": lr_panel(run, lr, top, lr_factor, falls=lr_falls),
        "duplicate_batch": batch_panel(batches, spike),
        "bad_batch": grad_norm_panel(run, grad_norm, spike, norm_limits),
    }
    notes = tuple(chain.from_iterable(panel.evidence for panel in panels.values()))
    gaps = tuple(chain.from_iterable(panel.missing for panel in panels.values()))
    weight = _weight(loss, spike, far_share, start_factor)
    rare = weight.rare >= 0
    # A gradient follows its loss, so by itself it confirms nothing about a spike that chance explains.
    strong = [n for n, panel in panels.items() if panel.verdict == YES and (n != "bad_batch" or rare or not guarded)]
    weak = [name for name, panel in panels.items() if panel.verdict == LIKELY and rare]
    if not strong and not weak:
        return Answer(
            "minor" if guarded and weight.beyond < 0 else "unexplained",
            (*weight.evidence, *notes),
            missing=gaps,
            onset_step=top.step,
            last_good_step=top.last_good_step,
            strength=weight.beyond,
            near="unexplained",
        )
    label = (strong + weak)[0]
    panel = panels[label]
    evidence = (*panel.evidence, weight.evidence[0], *(e for e in notes if e not in panel.evidence))
    good = panel.last_good_step if panel.last_good_step is not None else top.last_good_step
    strength = strongest(weight.rare, 0.0) if label == "bad_batch" else panel.strength
    return Answer(label, evidence, missing=gaps, onset_step=top.step, last_good_step=good, strength=strength)


def _weight(loss: Series, spike: Spike, far_share: float, start_factor: float) -> Weight:
    """Measure a spike against the run's own noise and against what healthy runs do."""
    top, limit = spike.top, spike.params.rare
    share, expected = spike.share(top.peak), rarest(loss, top, spike.params)
    text = f"the jump covers {against(share, far_share, '.0%')} of the loss's range (limit {far_share:.0%})"
    text += f"; the run's own noise {'explains' if expected > limit else 'does not explain'} it"
    height = Evidence(text, "loss", (top.step,), expected, limit)
    _, values = finite(loss)
    took, limit_steps = spike.took(loss), spike.quick(loss)
    start = float(max(values[0], median(values[:ROWS_SHORT])))
    times = min(top.peak / start, 1e300) if start > 0 else 0.0
    text = f"it reaches {as_factor(times)} the loss of the beginning (limit {start_factor:g}×) and "
    text += "took" if top.recovered_step is not None else "is not back after"
    text += f" {took:,} step{'s' if took != 1 else ''}{' to come back' if top.recovered_step is not None else ''} "
    text += f"(limit {limit_steps:,})"
    found = Evidence(text, "loss", (top.step, top.peak_step), times, start_factor)
    rare = weakest(above(limit, expected), above(share, far_share))
    high, slow = above(times, start_factor), above(took, limit_steps)
    huge = weakest(high, above(top.peak, shared.FACTOR_HUGE * max(start, float(np.quantile(values, SHARE_MOST)))))
    # A constant loss covers nothing, so any jump exceeds that.
    whole = above(share, SHARE_MOST) if spike.covered > 0 else -above(1.0, 0.0)
    beyond = strongest(huge, weakest(high, slow), weakest(rare, strongest(high, slow, whole)))
    return Weight(rare, beyond, (height, found))
