"""Questions about any one metric: does it stay on the wrong side of a level?

The trees for fine-tuning and reinforcement learning ask them of many metrics. The tree states what a metric must do
for how long: `rows` and `steps` are the stretch at the end of the log that is looked at, `share` is how much of it
must be bad. Where the log is shorter, the answer is weaker.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.stats import median, windows
from stabtree.common.strength import FARTHEST, above, weakest
from stabtree.facts.registry import finite
from stabtree.predicates.registry import UNGROUPED, Count, Groups, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.run import Run

GUIDE = "axolotl, Training Stability & Debugging"


def not_asked(run: Run, metric: str, beside: str, unless: str = "") -> Answer | None:
    """Return the answer where a metric was not logged, or not in a run that also logs `beside`; else None."""
    if unless and run.get(unless) is not None:
        return Answer(NO, (Evidence(f"{unless} is logged, which shows more than {metric}", unless),))
    if run.get(metric) is None:
        return unknown(f"{metric} was not logged", metric)
    if beside and run.get(beside) is None:
        return Answer(NO, (Evidence(f"no {beside} is logged beside {metric}: the limit does not apply", metric),))
    return None


class Side(NamedTuple):
    """The wrong side of a level.

    Attributes:
        description: what is bad about a value there.
        strengths: how far each finite value of the metric is on that side, (n,).
        level: the level.
    """

    description: str
    strengths: Floats
    level: float


def at_least(values: Floats, level: float) -> Side:
    """Return the side of the values that are too high."""
    return Side(f"at least {level:g}", _above(values, level), level)


def at_most(values: Floats, level: float) -> Side:
    """Return the side of the values that are too low."""
    strengths = -_above(values, level) if level > 0 else np.where(values <= level, FARTHEST, -FARTHEST)
    return Side(f"at most {level:g}", strengths, level)


def within(values: Floats, level: float) -> Side:
    """Return the side of the values that are too close to 0."""
    if level <= 0:
        return Side("exactly 0", np.where(values == 0, FARTHEST, -FARTHEST), 0.0)
    return Side(f"within {level:g} of 0", -_above(np.abs(values), level), level)


def _above(values: Floats, level: float) -> Floats:
    """Return how far above a level each value is, as `strength.above` has it of one."""
    strengths = np.log2(np.maximum(values, 1e-300)) - np.log2(level)
    return np.clip(np.where(values > 0, strengths, -FARTHEST), -FARTHEST, FARTHEST)


def stays(run: Run, metric: str, side: Side, *, share: float, rows: int, steps: int = 0) -> Answer:
    """Answer yes where `share` of the last rows are bad: `rows` of them, or more so that they cover `steps` steps.

    As strong as the row with which the share is reached; weaker where the log has fewer rows or steps.
    """
    at, values = finite(run.series[metric])
    if not len(at):
        return unknown(f"{metric} has no finite rows", metric)
    first = int(np.searchsorted(at, at[-1] - steps, side="right")) - 1
    begin = max(min(first, len(at) - rows), 0)
    inside = np.sort(side.strengths[begin:])[::-1]
    strength = float(inside[math.ceil(share * len(inside)) - 1])
    long_enough = [above(len(inside), rows)]
    if steps:
        long_enough.append(above(int(at[-1] - at[begin]), steps))
    bad = side.strengths >= 0
    count = "all" if bad[begin:].all() else f"{int(bad[begin:].sum()):,}"
    text = f"{metric} is {side.description} in {count} of its last {len(inside):,} rows"
    seen = float(np.mean(bad[begin:]))
    if strength < 0:
        text += f" (limit {share:.0%}); median {figure(median(values[begin:]))}"
        return measured(strength, (Evidence(text, metric, (int(at[begin]), int(at[-1])), seen, share),))
    suffix = np.cumsum(bad[::-1])[::-1] / np.arange(len(bad), 0, -1)
    onset = int(np.argmax(bad & (suffix >= share)))
    text += f", since step {int(at[onset]):,}; median {figure(median(values[onset:]))}"
    text += f" (limit {side.level:g})" if side.level else ""
    if min(long_enough) < 0:
        text += f"; it takes {rows} rows{f' over {steps} steps' if steps else ''} to be sure"
    found = (Evidence(text, metric, (int(at[onset]), int(at[-1])), seen, share),)
    before = int(at[onset - 1]) if onset else None
    return measured(weakest(strength, *long_enough), found, onset_step=int(at[onset]), last_good_step=before)


def ends_of(values: Floats, rows: int) -> tuple[float, float] | None:
    """Return the medians of the first and of the last tenth of the rows; None for too few of them."""
    part = max(rows, len(values) // 10)
    return (median(values[:part]), median(values[-part:])) if len(values) >= 2 * part else None


@predicate(source=GUIDE)
def stays_above(
    run: Run,
    *,
    metric: str = "kl",
    level: float,
    share: float = shared.SHARE_MOST,
    rows: Count = shared.ROWS_SHORT,
    steps: int = 0,
    beside: str = "",
    harms: str = "",
) -> Answer:
    """Does a metric stay at or above a level to the end?

    Yes where at least `share` of the last `rows` rows, or of as many as cover `steps` steps, are at or above `level`.
    Where `beside` names a metric that was not logged, the limit does not apply and the answer is no; so where what it
    `harms` ends higher than it began by more than half of all that it covered.
    """
    refused = not_asked(run, metric, beside) or (_unharmed(run, harms) if harms else None)
    if refused:
        return refused
    return stays(run, metric, at_least(finite(run.series[metric])[1], level), share=share, rows=rows, steps=steps)


@predicate(source=f"{GUIDE}; key metrics for SFT")
def stood_above(
    run: Run,
    *,
    metric: str = "grad_norm",
    level: float,
    share: float = shared.SHARE_MOST,
    rows: Count = shared.ROWS_SHORT,
) -> Answer:
    """Was a metric at or above a level for a while, anywhere in the log?

    Yes where at least `share` of some `rows` rows in a row are at or above `level`.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    if not len(values):
        return unknown(f"{metric} has no finite rows", metric)
    size = min(rows, len(values))
    strengths = at_least(values, level).strengths
    # How far the row with which the share is reached is above the level, of each stretch.
    reached = np.sort(windows(strengths, size), axis=-1)[:, -math.ceil(share * size)]
    index, bad = int(np.argmax(reached)), strengths >= 0
    seen = float(np.mean(bad[index : index + size]))
    text = f"{metric} is at least {level:g} in {against(seen, share, '.0%')} of the {size} rows "
    text += f"from step {int(at[index]):,} on (limit {share:.0%}), in {int(bad.sum()):,} of {len(bad):,} rows in all"
    found = (Evidence(text, metric, (int(at[index]), int(at[index + size - 1])), seen, share),)
    onset = int(np.argmax(reached >= 0))
    onset += int(np.argmax(bad[onset : onset + size]))
    before = int(at[onset - 1]) if onset else None
    strength = weakest(float(reached[index]), above(size, rows))
    return measured(strength, found, onset_step=int(at[onset]), last_good_step=before)


def _unharmed(run: Run, metric: str) -> Answer | None:
    """Answer no where a metric gains all the same; None where it does not, or that is not known."""
    if run.get(metric) is None:
        return None
    _, values = finite(run.series[metric])
    ends = ends_of(values, shared.ROWS_SHORT)
    if ends is None:
        return None
    first, last = ends
    low, high = np.quantile(values, (0.05, 0.95))
    if not last - first > shared.SHARE_HALF * float(high - low) > 0:
        return None
    text = f"{metric} goes from {figure(first)} to {figure(last)} nevertheless"
    return Answer(NO, (Evidence(text, metric, (), last - first, shared.SHARE_HALF * float(high - low)),))


@predicate(source=GUIDE)
def stays_near_zero(
    run: Run,
    *,
    metric: str = "reward",
    level: float = 0.0,
    share: float = shared.SHARE_MOST,
    rows: Count = shared.ROWS_SHORT,
    steps: int = 0,
    beside: str = "",
    unless: str = "",
) -> Answer:
    """Does a metric stay at zero, or within a level of it, to the end?

    As `stays_above`, of the absolute value and from above: a reward or a differential entropy may well be negative. The
    last rows are as many more as cover `steps` steps. Where `unless` names a metric that was logged, that one is asked
    instead and the answer is no.
    """
    refused = not_asked(run, metric, beside, unless)
    if refused:
        return refused
    return stays(run, metric, within(finite(run.series[metric])[1], level), share=share, rows=rows, steps=steps)


@predicate(source=f"{GUIDE}; key metrics for RL", labels=(YES, "one", NO))
def never_pays(run: Run, reward_function: Groups, *, rows: Count = shared.ROWS_SHORT, steps: int) -> Answer:
    """Does one of the reward functions give 0 in all of its last rows, over `steps` steps?

    `one`: of one of several, or the reward of all of them is logged, which is asked on its own.
    """
    answers = {}
    for name, series in reward_function.items():
        metric = "reward_function" if name == UNGROUPED else f"reward_function/{name}"
        answers[name] = stays(run, metric, within(finite(series)[1], 0.0), share=1.0, rows=rows, steps=steps)
    dead = {name: answer for name, answer in answers.items() if answer.verdict == YES}
    if not dead:
        known = [answer for answer in answers.values() if answer.verdict == NO]
        return max(known, key=lambda answer: answer.strength or 0.0) if known else next(iter(answers.values()))
    first = min(dead.values(), key=lambda answer: answer.onset_step or 0)
    evidence = tuple(answer.evidence[0] for answer in dead.values())
    alone = len(dead) == len(answers) and run.get("reward") is None
    return replace(first, verdict=YES if alone else "one", evidence=evidence)


@predicate(source="public preference-tuning logs")
def stays_below(
    run: Run,
    *,
    metric: str = "preference_accuracy",
    level: float,
    share: float = shared.SHARE_MOST,
    rows: Count = shared.ROWS_LONG,
    steps: int = 0,
) -> Answer:
    """Does a metric stay at or below a level to the end?

    As `stays_above`, from the other side.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    return stays(run, metric, at_most(finite(run.series[metric])[1], level), share=share, rows=rows, steps=steps)
