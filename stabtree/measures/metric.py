"""Questions that any metric can be asked: whether it stays, grows, leaps, falls or never moves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_upto
from stabtree.common.shared import FARTHEST, above, below, whether
from stabtree.common.stats import (
    NORMAL_MAD,
    blocks,
    kendall_z,
    median,
    quantiles,
    row_medians,
    running_medians,
    true_at_end,
    windows,
)
from stabtree.context.model import FROM_SCRATCH
from stabtree.measures.curve import fall_of
from stabtree.measures.registry import UNGROUPED, Count, Groups, Metric, finite, measure
from stabtree.metrics.role import VALUE, describe_name
from stabtree.profile.change import left_course

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.context.model import Context
    from stabtree.run import Run, Series


GUIDE = "axolotl, Training Stability & Debugging"
Side = tuple[str, "Floats", float]


def beside_is_logged(run: Run, metric: str, beside: str) -> Answer | None:
    """Return the answer in a run that does not log `beside` as well; else None."""
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
    return measured(min(strength, *long_enough), found, onset_step=int(at[onset]), last_good_step=before)


def ends_of(values: Floats, rows: int) -> tuple[float, float] | None:
    """Return the medians of the first and of the last tenth of the rows; None for too few of them."""
    part = max(rows, len(values) // 10)
    return (median(values[:part]), median(values[-part:])) if len(values) >= 2 * part else None


@measure(source=GUIDE)
def stays_above(
    run: Run,
    *,
    metric: Metric = "kl",
    level: float,
    share: float = shared.SHARE_MOST,
    rows: Count = shared.ROWS_SHORT,
    steps: int = 0,
    beside: str = "",
) -> Answer:
    """Does a metric stay at or above a level to the end?

    Yes where at least `share` of the last `rows` rows, or of as many as cover `steps` steps, are at or above `level`.
    Where `beside` names a metric that was not logged, the limit does not apply and the answer is no.
    """
    if refused := beside_is_logged(run, metric, beside):
        return refused
    return stays(run, metric, at_least(finite(run.series[metric])[1], level), share=share, rows=rows, steps=steps)


NEVERTHELESS = "nevertheless"


@measure(source=GUIDE, labels=(YES, NEVERTHELESS, NO))
def high_beside_reward(
    run: Run,
    *,
    metric: Metric = "clip_ratio",
    level: float,
    share: float = shared.SHARE_MOST,
    rows: Count = shared.ROWS_SHORT,
    beside: str = "",
) -> Answer:
    """Does a metric stay at or above a level to the end, as `stays_above`, and does the reward gain all the same?

    `nevertheless`: the reward ends higher than it began by more than half of all that it covered.
    """
    found: Answer = stays_above.func(run, metric=metric, level=level, share=share, rows=rows, beside=beside)
    gained = _gained(run, "reward") if found.verdict == YES else None
    return replace(found, verdict=NEVERTHELESS, evidence=(*found.evidence, gained)) if gained else found


@measure(source=f"{GUIDE}; key metrics for SFT")
def stood_above(
    run: Run,
    *,
    metric: Metric = "grad_norm",
    level: float,
    share: float = shared.SHARE_MOST,
    rows: Count = shared.ROWS_SHORT,
) -> Answer:
    """Was a metric at or above a level for a while, anywhere in the log?

    Yes where at least `share` of some `rows` rows in a row are at or above `level`.
    """
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
    strength = min(float(reached[index]), above(size, rows))
    return measured(strength, found, onset_step=int(at[onset]), last_good_step=before)


def _gained(run: Run, metric: str) -> Evidence | None:
    """Return that a metric gains all the same; None where it does not, or that is not known."""
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
    return Evidence(text, metric, (), last - first, shared.SHARE_HALF * float(high - low))


@measure(source=GUIDE)
def stays_near_zero(
    run: Run,
    *,
    metric: Metric = "reward",
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
    if unless and run.get(unless) is not None:
        return Answer(NO, (Evidence(f"{unless} is logged, which shows more than {metric}", unless),))
    if refused := beside_is_logged(run, metric, beside):
        return refused
    return stays(run, metric, within(finite(run.series[metric])[1], level), share=share, rows=rows, steps=steps)


@measure(source=f"{GUIDE}; key metrics for RL", labels=(YES, "one", NO))
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


@measure(source=f"{GUIDE}; key metrics for RL")
def shoots_up(
    run: Run,
    *,
    metric: Metric = "kl",
    factor: float = shared.FACTOR_LARGE,
    rows: Count = shared.ROWS_SHORT,
    min_level: float,
    before_rows: Count = shared.ROWS_LONG,
) -> Answer:
    """Does a metric shoot up within a few rows?

    Yes where the median of `rows` neighbouring rows exceeds `factor` times that of the `before_rows` before them, and
    `min_level`: a multiple of next to nothing is nothing.
    """
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


@measure(source=GUIDE, min_points=6)
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
    cap, tops = run.setting("max_completion_length"), np.zeros(0)
    if completion_length_max is not None:
        tops = finite(completion_length_max)[1]
    if not (isinstance(cap, int | float) and cap > 0):
        top = float(tops.max(initial=0))
        cap = top if top > 0 and int((tops == top).sum()) >= shared.ROWS_SHORT else None
    if cap is None:
        why = "the cap is not known: max_completion_length is not set, and the longest answer varies"
        return unknown(why, "max_completion_length")
    part = max(3, len(values) // 10)
    begin, end = median(values[:part]), median(values[-part:])
    text = f"completion_length goes from {figure(begin, 4)} to {figure(end, 4)} tokens; the cap is {figure(cap, 4)} "
    text += f"(counted as reached from {figure(cap_share * cap, 4)} on)"
    found = Evidence(text, "completion_length", (int(at[0]), int(at[-1])), end, cap_share * cap)
    past = at[values >= cap_share * cap]
    grown = math.log(end / begin) if begin > 0 and end > 0 else 0.0
    strength = min(below(1 - end / cap, 1 - cap_share), above(grown, math.log(growth)))
    return measured(strength, (found,), onset_step=int(past[0]) if len(past) else None)


@measure(source="stable-baselines3, RL tips; public RL logs")
def outgrows(
    run: Run,
    context: Context,
    *,
    metric: str = "value_loss",
    factor: float = shared.FACTOR_HUGE,
    beside: str,
    at_end: bool = True,
) -> Answer:
    """Does a metric grow by a large factor while another one does not rise?

    Yes where its last level (else `at_end` its highest) is more than `factor` times its first. Where `beside` has risen
    by more than half of its range meanwhile, or is not logged, ten times as much is needed, and more than the square of
    the growth of `beside` explains: the error of a return is measured in squares. Strengths are those of the orders of
    magnitude. A value loss is also one that only its name shows to be one.
    """
    series = value_loss_of(run, context) if metric == "value_loss" else run.get(metric)
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
    text = f"{series.metric} goes from {figure(begin)} to {figure(level)} by step {until:,}, "
    text += f"{as_factor(level / begin)} (limit {as_factor(limit * scale**2)}); {meanwhile}"
    brief = f"its loss went from {figure(begin)} to {figure(level)}"
    found = Evidence(text, series.metric, (since, until), min(times, 1e300), limit, brief=brief)
    left = left_course(at, values, by_step=until)
    strength = above(math.log10(max(times, 1.0)), math.log10(limit))
    return measured(strength, (found,), onset_step=left.first_bad_step, last_good_step=left.last_good_step)


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


GUESS = 0.5  # no limit: the accuracy of a guess between two answers


@measure(source="public preference-tuning and RL logs")
def changes_by(
    run: Run,
    *,
    metric: Metric = "entropy",
    factor: float = shared.FACTOR,
    min_level: float = 0.0,
    up: bool = True,
    beside: str = "",
) -> Answer:
    """Does a metric end at a multiple, or at a small part, of what it began with, while another one has not risen?

    Yes where its last level is `factor` times its first (without `up`: its first that many times its last), and at
    least `min_level`; and where `beside`, if it is logged, ends no higher than it began, or, without `up`, no longer
    rises in the last quarter of the run or more in which the metric stays below half of that part. What begins at or
    below 0 is a differential entropy, of which no multiple means anything.
    """
    at, values = finite(run.series[metric])
    size = min(max(shared.ROWS_SHORT, len(values) // shared.LEVELS), len(values) // 2)
    if size < 1 or (begin := median(values[:size])) <= 0 or float(values.min()) < 0:
        return unknown(f"{metric} has too few finite rows above 0", metric)
    end = median(values[-size:])
    if up:
        strength, limit = above(end, factor * begin), max(factor * begin, min_level)
        past = np.flatnonzero(values > limit)
    else:
        strength, limit = below(end, begin / factor), begin / factor
        past = np.flatnonzero(values < limit)
    text = f"{metric} goes from {figure(begin)} to {figure(end)} (limit {figure(limit)})"
    found = [Evidence(text, metric, (int(at[0]), int(at[-1])), end, limit)]
    conditions = [strength, above(end, min_level)]
    rewards = run.get(beside)
    if rewards is not None and (ends := ends_of(finite(rewards)[1], shared.ROWS_SHORT)):
        deep = -1.0 if up else _flat_while_gone(at, values, begin / (2 * factor), rewards)
        conditions.append(max(whether(ends[1] <= ends[0]), deep))
        course = f"{beside} goes from {figure(ends[0])} to {figure(ends[1])}"
        found.append(Evidence(course, beside, (), ends[1], ends[0]))
    first = int(past[0]) if len(past) else 0
    before = int(at[first - 1]) if first else None
    return measured(min(conditions), tuple(found), onset_step=int(at[first]), last_good_step=before)


def _flat_while_gone(at: Ints, values: Floats, level: float, beside: Series) -> float:
    """Return how strongly a metric stays below a level for the last quarter of the run in which another one is flat."""
    gone = true_at_end(values < level)
    steps, others = finite(beside)
    others = others[steps >= at[-gone]] if gone else others[:0]
    if len(others) < 2 * shared.ROWS_SHORT:
        return -1.0
    trend = kendall_z(blocks(others, min(shared.LEVELS, len(others)))[0])
    return min(above(gone, len(values) / 4), below(trend, shared.TREND_Z))


@measure(source="https://huggingface.co/docs/trl/dpo_trainer")
def prefers_rejected(
    preference_accuracy: Series | None = None, eval_preference_accuracy: Series | None = None, *, level: float
) -> Answer:
    """Does the model prefer the rejected answers, in training or on held-out pairs?

    Yes where the accuracy of pairs stays below `level`, by more than its scatter: overfitting sinks to one half, which
    a guess has, and no further.
    """
    answers = [
        _below_guess(series, level) for series in (eval_preference_accuracy, preference_accuracy) if series is not None
    ]
    known = [answer for answer in answers if answer.strength is not None]
    if not known:
        return answers[0] if answers else unknown("no accuracy of pairs was logged", "preference_accuracy")
    found = max(known, key=lambda answer: answer.strength or 0.0)
    opposite = len(known) > 1 and min(answer.strength or 0.0 for answer in known) < 0
    brief = "Training pairs and held-out pairs teach opposite preferences" if opposite else ""
    first, *others = found.evidence
    brief = brief or "The model prefers the rejected answers"
    both = (part for answer in known if opposite and answer is not found for part in answer.evidence)
    return replace(found, evidence=(replace(first, brief=brief), *others, *both))


def _below_guess(series: Series, level: float) -> Answer:
    at, values = finite(series)
    rows = values[-shared.ROWS_LONG :]
    if len(rows) < 2:
        return unknown(f"{series.metric} has {len(rows)} finite rows", series.metric)
    scatter = NORMAL_MAD * median(np.abs(rows - median(rows)))
    highest = median(rows) + shared.NOISE_TIMES * scatter / len(rows) ** 0.5
    text = f"{series.metric} is {figure(median(rows))} in its last {len(rows)} rows, at most {figure(highest)} with "
    text += f"their scatter (limit {level:g}); a guess has {GUESS:g}"
    found = Evidence(text, series.metric, (int(at[-len(rows)]), int(at[-1])), highest, level)
    onset = len(values) - max(true_at_end(values < GUESS), 1)
    strength = min(above(GUESS - highest, GUESS - level), above(len(rows), shared.ROWS_SHORT))
    return measured(strength, (found,), onset_step=int(at[onset]))


@measure(source=f"{GUIDE}; reward collapse in public logs")
def falls_back(
    run: Run,
    context: Context,
    *,
    metric: Metric = "reward",
    share: float = shared.SHARE_HALF,
    factor: float = shared.FACTOR,
) -> Answer:
    """Does a metric end far below the best level that it had reached?

    Yes where it has lost more than `share` of all that it covered, and that is more than `factor` times the scatter of
    its levels. A policy that was not trained before must have gained as much above its first level, or end as much
    below it, or lose `share` of its own size: one that never learned has nothing to lose.
    """
    at, values = finite(run.series[metric])
    found = fall_of(run.series[metric])
    if found is None and len(values) > 1 and values[-1] >= values[0]:
        text = f"{metric} goes from {figure(values[0])} to {figure(values[-1])}"
        return measured(whether(False), (Evidence(text, metric, (int(at[0]), int(at[-1]))),))
    if found is None:
        return unknown(f"{metric} has too few finite rows to see a fall", metric)
    strength, evidence = found.judged(metric, share, factor)
    if context.phase.value in (None, FROM_SCRATCH):
        lost = above(found.best - found.end, share * abs(found.best))
        sunk = min(above(found.sunk, factor), above(found.best - found.end, shared.SHARE_HALF / 2 * abs(found.best)))
        strength = min(strength, max(above(found.gained, factor), lost, sunk))
    left = left_course(at, -values, best_step=found.best_step)
    good, onset = max(left.last_good_step, found.best_step), left.first_bad_step
    if onset <= good:  # it fell from its best, however early a slower fall is seen
        onset = int(at[min(rows_upto(at, good), len(at) - 1)])
    return measured(strength, (evidence,), onset_step=onset, last_good_step=good)


@measure(source="measured: rewards of public runs")
def falls_through(
    run: Run,
    *,
    metric: Metric = "reward",
    rows: Count = 3,
    before_rows: Count = shared.ROWS_LONG,
    share: float = shared.SHARE_HALF,
) -> Answer:
    """Does a metric fall below all its earlier values in its last rows?

    Yes where each of its last `rows` rows is below the lowest of all rows before, by more than the range of these, and
    below their median by more than `share` of it: what has settled has next to no range. With fewer than `before_rows`
    rows before, the range has to be exceeded by as much more.
    """
    at, values = finite(run.series[metric])
    if len(values) < rows + 2:
        return unknown(f"{metric} has {len(values):,} finite rows, {rows + 2} are needed", metric)
    # The longest stretch at the end whose values are all below those before it.
    lowest, highest = np.minimum.accumulate(values)[:-1], np.maximum.accumulate(values)[:-1]
    last = np.maximum.accumulate(values[::-1])[::-1][1:]
    known = np.minimum(np.arange(1, len(values)) / before_rows, 1.0)
    gap = np.where(highest > lowest, known * (lowest - last) / np.maximum(highest - lowest, 1e-300), -1e9)
    inside = gap[1 : len(values) - rows]
    row = 2 + int(np.argmax(inside))
    ranges = max(-1e9, min(float(inside.max()), 1e9))
    before = f"between {figure(lowest[row - 1], 4)} and {figure(highest[row - 1], 4)}"
    text = f"the last {len(values) - row:,} rows of {metric} are all below {figure(last[row - 1], 4)}, "
    text += f"{against(ranges, 1.0)}× the earlier range lower (limit 1×); before, it lay {before}"
    found = (Evidence(text, metric, (int(at[row]), int(at[-1])), ranges, 1.0),)
    usual = float(median(values[:row]))
    strength = min(above(ranges, 1.0), above(usual - float(last[row - 1]), share * abs(usual)))
    return measured(strength, found, onset_step=int(at[row]), last_good_step=int(at[row - 1]))


@measure(source=f"{GUIDE}; Mann 1945, Kendall 1975")
def no_trend(
    run: Run, *, metric: Metric = "reward", falls: bool = False, rows: Count, trend_z: float = shared.TREND_Z
) -> Answer:
    """Does a metric that should rise never rise?

    Yes where the Mann-Kendall score of its block medians, over at least `rows` rows, stays below `trend_z`, and no
    level, of three neighbours, is more than three times their scatter above the beginning. With `falls` the metric
    ought to fall.
    """
    at, values = finite(run.series[metric])
    if len(values) < shared.ROWS_SHORT:
        return unknown(f"{metric} has {len(values):,} finite rows, {rows} are needed", metric)
    medians, _ = blocks(-values if falls else values, len(values) // math.ceil(len(values) / shared.LEVELS))
    score, smooth = kendall_z(medians), running_medians(medians, 3)
    scatter = NORMAL_MAD * median(np.abs(np.diff(medians))) / 2**0.5
    gained = float(smooth.max() - smooth[0])
    begin, end = (float(level) * (-1 if falls else 1) for level in (smooth[0], smooth[-1]))
    trend = "steadily" if score >= trend_z else f"without a steady {'fall' if falls else 'rise'}"
    text = f"{metric} goes from {figure(begin)} to {figure(end)} over {len(values):,} rows, {trend}"
    found = Evidence(text, metric, (int(at[0]), int(at[-1])), score, trend_z)
    strength = min(below(score, trend_z), below(gained, shared.FACTOR * scatter), above(len(values), rows))
    return measured(strength, (found,), onset_step=int(at[0]))
