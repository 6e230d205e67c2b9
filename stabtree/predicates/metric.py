"""Questions that any metric can be asked: whether it stays, grows or leaps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.stats import median, quantiles, row_medians, running_medians, windows
from stabtree.common.strength import FARTHEST, above, below, weakest
from stabtree.facts.registry import finite
from stabtree.metrics.role import VALUE, describe_name
from stabtree.predicates.registry import UNGROUPED, Count, Groups, predicate
from stabtree.profile.build import risen_by_factors

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Run, Series


GUIDE = "axolotl, Training Stability & Debugging"
Side = tuple[str, "Floats", float]


def not_asked(run: Run, metric: str, beside: str, unless: str = "") -> Answer | None:
    """Return the answer where a metric was not logged, or not in a run that also logs `beside`; else None."""
    if unless and run.get(unless) is not None:
        return Answer(NO, (Evidence(f"{unless} is logged, which shows more than {metric}", unless),))
    if run.get(metric) is None:
        return unknown(f"{metric} was not logged", metric)
    if beside and run.get(beside) is None:
        return Answer(NO, (Evidence(f"no {beside} is logged beside {metric}: the limit does not apply", metric),))
    return None


def at_least(values: Floats, level: float) -> Side:
    """Return what is bad about too high a value, how far each value is on that side, (n,), and the level."""
    return f"at least {level:g}", _above(values, level), level


def within(values: Floats, level: float) -> Side:
    """Return the same of a value that is too close to 0."""
    if level <= 0:
        return "exactly 0", np.where(values == 0, FARTHEST, -FARTHEST), 0.0
    return f"within {level:g} of 0", -_above(np.abs(values), level), level


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
    description, strengths, level = side
    first = int(np.searchsorted(at, at[-1] - steps, side="right")) - 1
    begin = max(min(first, len(at) - rows), 0)
    inside = np.sort(strengths[begin:])[::-1]
    strength = float(inside[math.ceil(share * len(inside)) - 1])
    long_enough = [above(len(inside), rows)]
    if steps:
        long_enough.append(above(int(at[-1] - at[begin]), steps))
    bad = strengths >= 0
    count = "all" if bad[begin:].all() else f"{int(bad[begin:].sum()):,}"
    text = f"{metric} is {description} in {count} of its last {len(inside):,} rows"
    seen = float(np.mean(bad[begin:]))
    if strength < 0:
        text += f" (limit {share:.0%}); median {figure(median(values[begin:]))}"
        return measured(strength, (Evidence(text, metric, (int(at[begin]), int(at[-1])), seen, share),))
    suffix = np.cumsum(bad[::-1])[::-1] / np.arange(len(bad), 0, -1)
    onset = int(np.argmax(bad & (suffix >= share)))
    text += f", since step {int(at[onset]):,}; median {figure(median(values[onset:]))}"
    text += f" (limit {level:g})" if level else ""
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
    strengths = at_least(values, level)[1]
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


@predicate(source=f"{GUIDE}; key metrics for RL")
def shoots_up(
    run: Run,
    *,
    metric: str = "kl",
    factor: float = shared.FACTOR_LARGE,
    rows: Count = shared.ROWS_SHORT,
    min_level: float,
    before_rows: Count = shared.ROWS_LONG,
) -> Answer:
    """Does a metric shoot up within a few rows?

    Yes where the median of `rows` neighbouring rows exceeds `factor` times that of the `before_rows` before them, and
    `min_level`: a multiple of next to nothing is nothing.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    before_rows = min(before_rows, len(values) - rows)
    if before_rows < rows:
        return unknown(f"{metric} has {len(values):,} finite rows, {2 * rows} are needed", metric)
    after, before = row_medians(windows(values, rows)[before_rows:]), row_medians(windows(values, before_rows)[:-rows])
    jumps = after / np.maximum(np.abs(before), min_level / factor)
    top = int(np.argmax(jumps))
    text = f"{metric} goes from {figure(before[top])} to {figure(after[top])} at step {int(at[before_rows + top]):,} "
    text += f"(limit {factor:g}× and {min_level:g})"
    jump = min(float(jumps[top]), 1e300)
    found = Evidence(text, metric, (int(at[before_rows + top]),), jump, factor)
    first = before_rows + int(np.argmax(jumps >= factor))
    return measured(above(jump, factor), (found,), onset_step=int(at[first]), last_good_step=int(at[first - 1]))


@predicate(source=GUIDE, min_points=6)
def climbs_to_cap(
    run: Run,
    completion_length: Series,
    completion_length_max: Series | None = None,
    *,
    cap_share: float = 1 - shared.SHARE_SOME,
    growth: float = shared.FACTOR_SMALL,
) -> Answer:
    """Do the answers grow until they reach the longest allowed length?

    Yes where the mean length ends within `cap_share` of the cap and more than `growth` times above its beginning
    (medians of a tenth of the rows). The cap is `max_completion_length` of the configuration, else the length of the
    longest answer, where several rows have the same.
    """
    at, values = finite(completion_length)
    cap = _cap(run, completion_length_max)
    if cap is None:
        return unknown(
            "the cap is not known: max_completion_length is not set, and the longest answer varies",
            "max_completion_length",
        )
    part = max(3, len(values) // 10)
    begin, end = median(values[:part]), median(values[-part:])
    text = f"completion_length goes from {figure(begin, 4)} to {figure(end, 4)} tokens; the cap is {figure(cap, 4)} "
    text += f"(counted as reached from {figure(cap_share * cap, 4)} on)"
    found = Evidence(text, "completion_length", (int(at[0]), int(at[-1])), end, cap_share * cap)
    past = at[values >= cap_share * cap]
    grown = math.log(end / begin) if begin > 0 and end > 0 else 0.0
    strength = weakest(below(1 - end / cap, 1 - cap_share), above(grown, math.log(growth)))
    return measured(strength, (found,), onset_step=int(past[0]) if len(past) else None)


def _cap(run: Run, longest: Series | None) -> float | None:
    known = run.setting("max_completion_length")
    if isinstance(known, int | float) and known > 0:
        return float(known)
    if longest is None:
        return None
    _, values = finite(longest)
    top = float(values.max()) if len(values) else 0.0
    return top if top > 0 and int((values == top).sum()) >= shared.ROWS_SHORT else None


@predicate(source="stable-baselines3, RL tips; public RL logs")
def outgrows(
    run: Run, context: Context, *, metric: str = "value_loss", factor: float = shared.FACTOR_HUGE, beside: str
) -> Answer:
    """Does a metric grow by a large factor while another one does not rise?

    Yes where its last level is more than `factor` times its first. Where `beside` has risen by more than half of its
    range meanwhile, or is not logged, ten times as much is needed, and more than the square of the growth of `beside`
    explains: the error of a return is measured in squares. Strengths are those of the orders of magnitude. A value
    loss is also one that only its name shows to be one.
    """
    return _outgrows(run, _series_of(run, context, metric), metric, factor, beside, at_end=True)


@predicate(source="public RL logs")
def outgrew(
    run: Run, context: Context, *, metric: str = "value_loss", factor: float = shared.FACTOR_HUGE, beside: str
) -> Answer:
    """Had a metric grown by a large factor while another one did not rise, and come back?

    As `outgrows`, of its highest level.
    """
    return _outgrows(run, _series_of(run, context, metric), metric, factor, beside, at_end=False)


def _series_of(run: Run, context: Context, metric: str) -> Series | None:
    return value_loss_of(run, context) if metric == "value_loss" else run.get(metric)


def _outgrows(run: Run, series: Series | None, metric: str, factor: float, beside: str, *, at_end: bool) -> Answer:
    if series is None:
        return Answer(NO, (Evidence("no value function's loss is logged", "loss"),))
    at, values = finite(series)
    grown = _growth(values, at_end=at_end)
    if grown is None:
        return unknown(f"{metric} has too few finite rows above 0", metric)
    begin, level, row, calm = grown
    since, until = int(at[calm]), int(at[row])
    meanwhile, rose, scale = _beside(run, beside, since, until)
    limit = factor * shared.FACTOR_LARGE if rose else factor
    times = level / begin / scale**2
    metric = series.metric
    text = f"{metric} goes from {figure(begin)} to {figure(level)} by step {until:,}, "
    text += f"{as_factor(level / begin)} (limit {as_factor(limit * scale**2)}); {meanwhile}"
    brief = f"its loss went from {figure(begin)} to {figure(level)}"
    found = Evidence(text, metric, (since, until), min(times, 1e300), limit, brief=brief)
    past = calm + int(np.argmax(values[calm:] > factor * begin))
    return measured(
        above(math.log10(max(times, 1.0)), math.log10(limit)),
        (found,),
        onset_step=risen_by_factors(at, values, begin, level, int(at[past])),
        last_good_step=since,
    )


def value_loss_of(run: Run, context: Context) -> Series | None:
    """Return the loss of a value function: as it is known, as the run's only loss, or by the words of its name."""
    if (known := run.get("value_loss")) is not None:
        return known
    # The one loss of a DQN is that of its values.
    if run.setting("loss_kind") == VALUE or context.algorithm.value == "dqn":
        return run.get("loss")
    return next((one for name, one in run.others.items() if describe_name(name).kind == VALUE), None)


def _growth(values: Floats, *, at_end: bool) -> tuple[float, float, int, int] | None:
    """Return how values grew up to their end or to their highest level; None where they don't begin above 0.

    The level of the first rows, that at the end, its row, and the last row before at or below the first level.
    """
    size = min(max(shared.ROWS_SHORT, len(values) // shared.LEVELS), len(values) // 2)
    if size < 1:
        return None
    levels = running_medians(values, size)
    begin = float(levels[0])
    if begin <= 0:
        return None
    top = len(levels) - 1 if at_end else int(np.argmax(levels))
    row = top + size - 1
    calm = np.flatnonzero(values[: row + 1] <= begin)
    return begin, float(levels[top]), row, int(calm[-1])


def _beside(run: Run, metric: str, since: int, until: int) -> tuple[str, bool, float]:
    """Return what a reward did from one step to another, whether it gained, and how many times larger it is then.

    It gained where that is more than half of its range; where it is not logged, it may have.
    """
    if run.get(metric) is None:
        return f"{metric} is not logged", True, 1.0
    at, values = finite(run.series[metric])
    size = min(max(shared.ROWS_SHORT, len(values) // shared.LEVELS), len(values) // 2)
    if size < 1:
        return f"{metric} has too few rows", True, 1.0
    rows = [max(int(np.searchsorted(at, step, side="right")), size) for step in (since, until)]
    before, after = (median(values[row - size : row]) for row in rows)
    low, high = quantiles(values, shared.SHARE_SOME, 1 - shared.SHARE_SOME)
    rose = after - before > shared.SHARE_HALF * (high - low)
    first = abs(median(values[:size]))
    scale = max(abs(after) / first, 1.0) if rose and first > 0 else 1.0
    return f"{metric} goes from {figure(before)} to {figure(after)} meanwhile", rose, min(scale, 1e50)
