"""Where the loss began, and whether it leaves that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.lazy import np
from stabtree.common.stats import blocks, change_noise, interval, kendall_z, median, row_medians
from stabtree.common.text import against
from stabtree.facts.registry import finite
from stabtree.frameworks.load import framework
from stabtree.predicates.cross_entropy import guess
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Run, Series

EPOCHS = ("epoch", "row number", "Epoch", "epochs")  # what steps were read from where a row is far more than a step


def early_rows(count: int) -> int:
    """Return how many of the rows make the first level: a twentieth, three to ten."""
    return max(3, min(10, count // 20))


def first_level(values: Floats, thrown: float) -> float:
    """Return the level at which the loss began: the median of its first rows, a twentieth of them, three to ten.

    Only the first row comes before any update: where the rows after it are `thrown` times as high, the first updates
    drove them up, and the first row is the level.
    """
    early, first = median(values[: early_rows(len(values))]), float(values[0])
    return first if 0 < first * thrown < early else early


def _read_from(values: Floats, level: float, apart: float) -> str:
    """Describe the rows that the first level was read from, and the first row where it is that far from the level."""
    rows, first = early_rows(len(values)), float(values[0])
    if level != median(values[:rows]):
        return "its first row: those after it were thrown up"
    odd = abs(first - level) > apart * abs(level)
    return f"the median of {rows} rows, the first at {first:.4g}" if odd else f"the median of {rows} rows"


# No log-likelihood of a sample comes to so many nats, whatever constant is added: a loss above is in other units.
NATS = 1e4


class TooEarlyLimits(NamedTuple):
    """When it is too early to call a run flat; see `leaves_start`."""

    min_rows: int
    min_steps: int
    min_progress: float
    warm_share: float
    late_start_steps: int
    late_start_rows: int


def too_early(run: Run, context: Context, loss: Series, lr: Series | None, limits: TooEarlyLimits) -> str:
    """Return why a run can't be called flat yet; empty where it can."""
    steps, values = finite(loss)
    min_steps, min_progress = limits.min_steps, limits.min_progress
    if len(values) < limits.min_rows:
        return f"the loss has {len(values):,} finite rows, {limits.min_rows} are needed to call it flat"
    # One row of an attempt before a resume is not where this one begins: the rows of the first level decide.
    inner = early_rows(len(values)) // 2
    first, last = int(steps[inner] - inner * interval(steps)), int(steps[-1])
    planned = run.setting("max_steps")
    by_epoch = any(source.steps_from in EPOCHS for source in run.sources)
    young = (last < min_steps and not by_epoch) or (isinstance(planned, int) and last < min_progress * planned)
    warm = 0
    if lr is not None and len(lr) > 2 and lr.values.max() > 0:
        warm = int(lr.steps[int(np.argmax(lr.values >= limits.warm_share * lr.values.max()))])
    late_start = first > max(limits.late_start_steps, limits.late_start_rows * interval(steps))
    reasons = {
        f"the log begins at step {first:,}: the loss before that is not known": late_start,
        f"the log ends at step {last:,}, too early to call a loss flat": young,
        f"the learning rate peaks only at step {warm:,}: too late to judge": last - warm < min_progress * last,
        f"{context.restless} need not fall": bool(context.restless),
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


@predicate(source="convergence O1 and O7", labels=("yes", "flat", "slow", "worse"), min_points=12)
def leaves_start(
    run: Run,
    loss: Series,
    context: Context,
    lr: Series | None = None,
    token_accuracy: Series | None = None,
    *,
    min_share: float,
    min_fall: float,
    flat_noise: float,
    min_steps: int,
    min_progress: float,
    worse_share: float,
    min_rows: int,
    levels: Count,
    trend_z: float,
    at_chance: float,
    thrown: float,
    noisy_share: float,
    knows_share: float,
    warm_share: float,
    late_start_steps: int,
    late_start_rows: int,
) -> Answer:
    """Does the loss fall clearly below the level at which it began?

    `flat`: its lowest level lies less than `min_share` of the first one below it, and there is no trend; `slow`:
    there is one; `worse`: even its lowest level since lies more than `worse_share` above, or above at all where another
    lies more than `thrown` times the first one above it. Labelled runs that do not
    learn lose at most 3.4% of their first loss, all others at least 11%. Asked of runs that are logged from the
    beginning (by step `late_start_steps`, or `late_start_rows` rows), for `min_rows` rows, `min_steps` steps and
    `min_progress` of the planned ones after lr has reached `warm_share` of its peak: healthy runs stay flat for up to
    250 steps. A loss that begins below `at_chance` of ln(classes) is that of a trained model, from which a slow fall is
    all that can be expected. One that begins as far above it, or whose classes are not known, may end anywhere above 0
    or below, so that a share of it says little. There a fall by more than `min_fall`, in nats, is no slow one, nor
    flat if it is also more than `flat_noise` times the scatter of the rows. The trend is that of `levels` block medians
    against `trend_z`; for `thrown` see `first_level`. A loss that does not fall says nothing where its rows scatter by
    more than `noisy_share` of the first level (labelled runs that do not learn: by at most a fifth), and is no failure
    of a model that gets `knows_share` of its tokens right from the beginning: what was trained before may stay there.
    """
    steps, values = finite(loss)
    first = first_level(values, thrown)
    limits = TooEarlyLimits(max(min_rows, 12), min_steps, min_progress, warm_share, late_start_steps, late_start_rows)
    early = too_early(run, context, loss, lr, limits)
    if early:
        return inapplicable(early) if context.restless else unknown(early)
    medians, starts = blocks(values, min(max(levels, 4), len(values) // 3))
    smooth = row_medians(np.lib.stride_tricks.sliding_window_view(medians, 3))
    low = float(min(smooth.min(), median(medians[-3:])))
    share = _fallen_share(first, low)
    noise = change_noise(values) if share <= min_share or first <= 0 else 0.0  # nothing rests on it where it falls
    unmoved = abs(first - low) <= flat_noise * noise
    # A Dice loss begins at 0: a share of that says nothing, but that it never leaves its own scatter does.
    below = first <= 0 and unmoved and noise <= noisy_share * abs(first)
    little = ""
    if first <= 0 and abs(share) > min_share and not below:
        little = "the loss begins at or below 0, where shares of it mean little"
    elif share <= min_share and noise > noisy_share * abs(first):
        little = f"the rows of the loss scatter by {noise:.3g} around a first level of {first:.3g}"
    elif -worse_share <= share <= min_share:
        little = _starts_good(token_accuracy, knows_share)
    if not little and share <= min_share:
        little = _fine_tunes(context, max(first, low), at_chance)
    if little:
        return inapplicable(little)
    text = (
        f"the loss goes from {first:.4g} at the beginning ({_read_from(values, first, min_share)}) to a lowest level "
    )
    text += f"of {low:.4g} ({3 * (len(values) // len(medians)):,} rows): "
    text += f"{against(abs(share), min_share, '.1%')} {'lower' if share >= 0 else 'higher'} "
    text += f"(limit {min_share:.0%} lower)"
    lowest = int(steps[starts[int(np.argmin(medians))]])
    brief = guess(median(medians), context.classes.value)
    found = Evidence(text, "loss", (int(steps[0]), lowest), share, min_share, brief)
    # A level that the first updates drove up, and that never comes down to the first one, has not "hardly fallen".
    above = share < 0 and float(medians.max()) - first > thrown * abs(first)
    if not below and (share > min_share or -share > worse_share or above):
        return Answer(YES, (found,)) if share > 0 else Answer("worse", (found,), onset_step=int(steps[0]))
    trend = kendall_z(medians)
    falls = trend < -trend_z
    why = _fell_enough(context.classes.value, first, first - low, at_chance, min_fall) if falls or not unmoved else None
    why = why or (_trained_before(context.classes.value, first, at_chance) if falls else None)
    if why:
        return Answer(YES, (found, why))
    if falls:
        trend_evidence = Evidence(
            f"it does fall, with a trend of z {against(trend, -trend_z, '.1f')}", "loss", (), trend, -trend_z
        )
        return Answer("slow", (found, trend_evidence), onset_step=_settles(loss, first, low))
    trend_evidence = Evidence(
        f"no trend: z {against(trend, -trend_z, '.1f')} (a fall needs less than {-trend_z:g})",
        "loss",
        (),
        trend,
        -trend_z,
    )
    return Answer("flat", (found, trend_evidence), onset_step=int(steps[0]))


def _fallen_share(first: float, low: float) -> float:
    """Return the fall from the first level to the lowest as a share of the first, cut to ±1e9."""
    if first:
        return max(-1e9, min(1e9, (first - low) / abs(first)))  # a first loss of 5e-324 makes it infinite
    return 0.0 if low == 0 else 1e9


def _starts_good(token_accuracy: Series | None, knows_share: float) -> str:
    """Return that the model gets much right from its first rows on; empty where it does not, or that is not known."""
    _, right = finite(token_accuracy) if token_accuracy is not None else (None, np.zeros(0))
    began = median(right[:3]) if len(right) else 0.0
    if not len(right) or not knows_share <= began <= 1:
        return ""
    return f"the model gets {began:.0%} of its tokens right from the beginning, so its loss need not fall"


def _fine_tunes(context: Context, high: float, at_chance: float) -> str:
    """Return that a trainer which mostly fine-tunes stays below a guess between two classes; nothing where it does not.

    What it trains is a cross-entropy as a rule, and a model that is so low from the beginning was trained before.
    """
    tunes = framework(context.framework.value or "").defaults.fine_tunes
    if not tunes or context.classes.value or not 0 < high < at_chance * math.log(2):
        return ""
    return (
        f"the loss stays below {high:.3g}, less than a guess between two classes: the model was likely trained before"
    )


def _fell_enough(classes: int | None, first: float, fall: float, at_chance: float, min_fall: float) -> Evidence | None:
    """Return evidence that a loss which may end anywhere fell by enough nats; None if it ends near 0 or fell less."""
    if (classes and first <= math.log(classes) / at_chance) or first >= NATS or fall <= min_fall:
        return None
    text = f"that is {against(fall, min_fall)}, more than {min_fall:g} nats, "
    text += "and the loss is not known to end near 0"
    return Evidence(text, "loss", (), fall, min_fall)


def _trained_before(classes: int | None, first: float, at_chance: float) -> Evidence | None:
    """Return evidence that the first loss is that of a trained model; None where it is not, or that is not known."""
    if not classes or first >= at_chance * math.log(classes):
        return None
    text = f"the first loss lies below that of an untrained model, ln({classes:,}) = {math.log(classes):.3g}"
    return Evidence(text, "loss", (), first, math.log(classes))


def _settles(loss: Series, first: float, low: float) -> int:
    """Return the first step by which half of the small fall has happened."""
    steps, values = finite(loss)
    return int(steps[int(np.argmax(values <= (first + low) / 2))])
