"""Questions about any one metric: does it stay on the wrong side of a level?

The trees for fine-tuning and reinforcement learning ask them of many metrics. The tree states what a metric must do
for how long: `rows` and `steps` are the stretch at the end of the log that is looked at, `share` is how much of
it must be bad.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, YES, Answer, Evidence, unknown
from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.common.text import against
from stabtree.facts.registry import finite
from stabtree.predicates.registry import UNGROUPED, Count, Groups, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats
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


def stays(
    run: Run, metric: str, bad: Bools, description: str, *, level: float, share: float, rows: int, steps: int
) -> Answer:
    """Answer yes where `share` of the last rows are bad: `rows` of them, or more so that they cover `steps` steps.

    `bad` (n,) belongs to the finite values of the metric; `description` says what is bad about them.
    """
    at, values = finite(run.series[metric])
    first = int(np.searchsorted(at, at[-1] - steps, side="right")) - 1 if len(at) else 0
    begin = min(first, len(at) - rows)
    if begin < 0:
        covered = int(at[-1] - at[0]) if len(at) else 0
        needed = f"{rows} rows over {steps} steps" if steps else f"{rows} rows"
        return unknown(f"{metric} has {len(at):,} finite rows over {covered:,} steps; {needed} are needed", metric)
    seen = float(np.mean(bad[begin:]))
    count = "all" if seen == 1 else f"{int(bad[begin:].sum()):,}"
    text = f"{metric} is {description} in {count} of its last {len(at) - begin:,} rows"
    if seen < share:
        text += f" (limit {share:.0%}); median {median(values[begin:]):.3g}"
        return Answer(NO, (Evidence(text, metric, (int(at[begin]), int(at[-1])), seen, share),))
    suffix = np.cumsum(bad[::-1])[::-1] / np.arange(len(bad), 0, -1)
    onset = int(np.argmax(bad & (suffix >= share)))
    text += f", since step {int(at[onset]):,}; median {median(values[onset:]):.3g}"
    text += f" (limit {level:g})" if level else ""
    found = Evidence(text, metric, (int(at[onset]), int(at[-1])), seen, share)
    return Answer(YES, (found,), onset_step=int(at[onset]), last_good_step=int(at[onset - 1]) if onset else None)


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
    share: float,
    rows: Count,
    steps: int,
    beside: str = "",
    harms: str = "",
    gain_share: float = 0.5,
) -> Answer:
    """Does a metric stay at or above a level to the end?

    Yes where at least `share` of the last `rows` rows, or of as many as cover `steps` steps, are at or above `level`.
    Where `beside` names a metric that was not logged, the limit does not apply and the answer is no; so where what it
    `harms` ends higher than it began by more than `gain_share` of all that it covered.
    """
    refused = not_asked(run, metric, beside) or (_unharmed(run, harms, gain_share) if harms else None)
    if refused:
        return refused
    bad = finite(run.series[metric])[1] >= level
    return stays(run, metric, bad, f"at least {level:g}", level=level, share=share, rows=rows, steps=steps)


@predicate(source=f"{GUIDE}; key metrics for SFT")
def stood_above(run: Run, *, metric: str = "grad_norm", level: float, share: float, rows: Count) -> Answer:
    """Was a metric at or above a level for a while, anywhere in the log?

    Yes where at least `share` of some `rows` rows in a row are at or above `level`.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    if len(values) < rows:
        return unknown(f"{metric} has {len(values):,} finite rows, {rows} are needed", metric)
    bad = values >= level
    sums = np.concatenate(([0], np.cumsum(bad)))
    shares = (sums[rows:] - sums[:-rows]) / rows
    enough = shares >= share
    index = int(np.argmax(enough if enough.any() else shares))
    text = f"{metric} is at least {level:g} in {against(float(shares[index]), share, '.0%')} of the {rows} rows "
    text += (
        f"from step {int(at[index]):,} on (limit {share:.0%}), in {int(bad.sum()):,} of {len(bad):,} rows of the log"
    )
    found = (Evidence(text, metric, (int(at[index]), int(at[index + rows - 1])), float(shares[index]), share),)
    if not enough.any():
        return Answer(NO, found)
    onset = index + int(np.argmax(bad[index : index + rows]))
    return Answer(YES, found, onset_step=int(at[onset]), last_good_step=int(at[onset - 1]) if onset else None)


def _unharmed(run: Run, metric: str, gain_share: float) -> Answer | None:
    """Answer no where a metric gains all the same; None where it does not, or that is not known."""
    if run.get(metric) is None:
        return None
    _, values = finite(run.series[metric])
    ends = ends_of(values, 5)
    if ends is None:
        return None
    first, last = ends
    low, high = np.quantile(values, (0.05, 0.95))
    if not last - first > gain_share * float(high - low) > 0:
        return None
    text = f"{metric} goes from {first:.3g} to {last:.3g} nevertheless"
    return Answer(NO, (Evidence(text, metric, (), last - first, gain_share * float(high - low)),))


@predicate(source=GUIDE)
def stays_near_zero(
    run: Run,
    *,
    metric: str = "reward",
    level: float,
    share: float,
    rows: Count,
    steps: int,
    beside: str = "",
    unless: str = "",
) -> Answer:
    """Does a metric stay at zero, or within a level of it, to the end?

    As `stays_above`, of the absolute value and from above: a reward or a differential entropy may well be negative.
    Where `unless` names a metric that was logged, that one is asked instead and the answer is no.
    """
    refused = not_asked(run, metric, beside, unless)
    if refused:
        return refused
    bad = np.abs(finite(run.series[metric])[1]) <= level
    description = f"within {level:g} of 0" if level else "exactly 0"
    return stays(run, metric, bad, description, level=level, share=share, rows=rows, steps=steps)


@predicate(source=f"{GUIDE}; key metrics for RL", labels=(YES, "one", NO))
def never_pays(run: Run, reward_function: Groups, *, share: float, rows: Count, steps: int) -> Answer:
    """Does one of the reward functions give 0 throughout?

    As `stays_near_zero`, of the mean of each function. `one`: of one of several, or the reward of all of them is
    logged, which is asked on its own.
    """
    answers = {}
    for name, series in reward_function.items():
        metric = "reward_function" if name == UNGROUPED else f"reward_function/{name}"
        zero = finite(series)[1] == 0
        answers[name] = stays(run, metric, zero, "exactly 0", level=0.0, share=share, rows=rows, steps=steps)
    dead = {name: answer for name, answer in answers.items() if answer.verdict == YES}
    if not dead:
        known = [answer for answer in answers.values() if answer.verdict == NO]
        return known[0] if known else next(iter(answers.values()))
    first = min(dead.values(), key=lambda answer: answer.onset_step or 0)
    evidence = tuple(answer.evidence[0] for answer in dead.values())
    alone = len(dead) == len(answers) and run.get("reward") is None
    return replace(first, verdict=YES if alone else "one", evidence=evidence)


@predicate(source="public preference-tuning logs")
def stays_below(
    run: Run, *, metric: str = "preference_accuracy", level: float, share: float, rows: Count, steps: int
) -> Answer:
    """Does a metric stay at or below a level to the end?

    As `stays_above`, from the other side.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    bad = finite(run.series[metric])[1] <= level
    return stays(run, metric, bad, f"at most {level:g}", level=level, share=share, rows=rows, steps=steps)
