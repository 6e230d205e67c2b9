"""Who a run is, how it is read, and how its loss, rate and scale progress."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, POSSIBLE, Answer, Evidence
from stabtree.common.figures import as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, changes, rows_before
from stabtree.common.shared import FACTOR_LARGE, SHARE_SOME, TREND_Z
from stabtree.common.stats import MEDIAN_ERROR, NORMAL_MAD, falls_by_turns, median, medians_of_three
from stabtree.loaders.source import DAMAGE
from stabtree.measures.registry import Unknown, finite, highest, lowest, measure
from stabtree.metrics.metric import Role
from stabtree.metrics.role import describe_name
from stabtree.profile import profile_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context, Known
    from stabtree.profile import Profile
    from stabtree.run import Run, Series


UNPROVEN = "unproven"
MIN_ROWS = 3
FEW_ROWS = 2 * MIN_ROWS  # with fewer, the levels of both ends are the same rows
MIN_GAIN = 0.005  # of the first level: less would be seen on no plot, however sure it is


class Learned(NamedTuple):
    """How a series moved from its beginning to its end."""

    metric: str  # the series; empty where none shows how well the run does
    shown: bool  # whether it got better beyond its scatter, and kept more than half of that
    text: str  # what was seen, in a sentence
    brief: str  # the same in a few words
    rows: int = 0  # the rows of the longest series that can show it

    @property
    def answer(self) -> Answer:
        """The same as the answer of a question."""
        return Answer(UNPROVEN, (Evidence(self.text, self.metric, brief=self.brief),))


@measure()
def progress(run: Run, context: Context) -> Learned:
    """Return whether a run got better, by the first series that can show it.

    A reward, a quality or a held-out loss decides before the training loss, unless its rows are too few to deny it. A
    run whose log goes back to the same step again and again, and ends no further, gets nowhere.
    """
    # Episodes begin again at the first steps, a run at a checkpoint.
    again = [one for one in run.resumes if one.to_step > one.from_step - one.to_step]
    back = [one.from_step for one in again if one.to_step == run.resumes[-1].to_step]
    if len(back) >= MIN_ROWS and max(back) >= (run.last_step or 0):
        span = f"{run.unit} {run.resumes[-1].to_step:,} to {max(back):,}"
        text = f"the log goes from {span} {len(back) + 1} times, and no further"
        return Learned("", False, text, text)
    undecided: Learned | None = None
    candidates = [*_candidates(run, context)]
    rows = max((len(finite(series)[1]) for _, series in candidates), default=0)
    for metric, series in candidates:
        better = context.better if metric == context.outcome.value else "lower"
        sign, enough = 1 if better == "higher" else -1, len(finite(series)[1]) >= FEW_ROWS
        found = _by_levels(metric, profile_of(series), sign) if enough else _by_rows(metric, finite(series)[1], sign)
        found = found._replace(rows=rows)
        if found.shown or (undecided is None and enough):
            return found
        undecided = undecided or found
    if undecided is not None:
        return undecided
    brief = "nothing that was logged could show it"
    if context.restless:
        text = f"{context.restless} does not show how well a run does, and nothing else was logged"
        return Learned("", False, text, brief)
    return Learned("", False, f"no loss, reward or quality has {MIN_ROWS} rows", brief)


def _candidates(run: Run, context: Context) -> Iterator[tuple[str, Series]]:
    names = [context.outcome.value if context.better else None]
    if not context.restless:
        names += ["eval_loss", "loss"]
    loss = run.get("loss")
    for name in dict.fromkeys(names):
        series = run.get(name) if name else None
        if not name or series is None or len(finite(series)[1]) < MIN_ROWS:
            continue
        # The same number at every evaluation stands for a measurement, and is none.
        if name != "eval_loss" or loss is None or profile_of(loss).constant or not profile_of(series).constant:
            yield name, series


def _by_rows(metric: str, values: Floats, sign: int) -> Learned:
    """Judge so few rows that they have no levels: the last one against the first, by the worst step back."""
    gain, first = sign * float(values[-1] - values[0]), float(values[0])
    back = max(0.0, float((-sign * np.diff(values)).max()))
    shown = gain >= MIN_GAIN * abs(first) and gain > TREND_Z * back
    brief = f"{metric} has {len(values)} rows: {', '.join(figure(float(value), 4) for value in values)}"
    return Learned(metric, shown, brief, brief)


class Gained(NamedTuple):
    """How far a series got better, from the level at its beginning to that at its end, and to its best."""

    begin: float
    gain: float
    at_best: float
    noise: float  # the scatter of single rows
    shown: bool  # whether that is more than its scatter, and more than half of the best


def _gain(profile: Profile, sign: int) -> Gained:
    # A fast run gains most in a row or two: there the first row is the beginning, and no level.
    values = finite(profile.series)[1]
    begin, first = profile.first, float(values[0])
    # Where it alternates, neighbours change by the same amount each, which the scatter of changes takes for a trend.
    noise = max(profile.level_noise, NORMAL_MAD * median(np.abs(values - medians_of_three(values))))
    if sign * (begin - first) > 2 * TREND_Z * noise:
        begin = first
    gain, at_best = sign * (profile.last - begin), sign * (profile.best - begin)
    # More than chance, by the error of the difference of two medians, or by the trend.
    error = MEDIAN_ERROR * noise * math.sqrt(2 / _level_rows(profile))
    sure = gain > TREND_Z * error or sign * profile.trend > TREND_Z or falls_by_turns(-sign * values)
    return Gained(begin, gain, at_best, noise, gain >= MIN_GAIN * abs(begin) and sure and gain > at_best / 2)


def _by_levels(metric: str, profile: Profile, sign: int) -> Learned:
    begin, gain, at_best, noise, shown = _gain(profile, sign)
    steps, values = finite(profile.series)
    if not shown and 0 < values.min() * FACTOR_LARGE < values.max():
        # What moves over decades scatters in proportion to its size.
        shown = _gain(profile_of(replace(profile.series, steps=steps, values=np.log(values))), sign).shown
    way = "rises" if sign * gain > 0 else "falls"
    end = f"{figure(profile.last, 4)} over its last {_level_rows(profile)} rows"
    brief = f"{metric} {figure(begin, 4)} at the beginning, {end}"
    text = f"{metric} {way} from {figure(begin, 4)} at the beginning to {end}"
    if profile.constant:
        text = brief = f"{metric} is {figure(profile.last, 4)} in every row"
    elif at_best > 0 and gain <= at_best / 2:
        text += f", after {figure(profile.best, 4)} at its best"
    elif not shown:
        text += f", within its scatter of {figure(noise, 2)}"
    return Learned(metric, shown, text, brief)


def _level_rows(profile: Profile) -> int:
    return max(MIN_ROWS, profile.rows // 20)


class Rate(NamedTuple):
    """How likely the rate is too high."""

    too_high: str  # likely, possible or no
    # What says so; only what is known, without a limit, where it is merely possible: it lies below that.
    evidence: tuple[Evidence, ...]
    bar: float  # what its optimizer hardly ever takes; an advised rate is below it


@measure()
def rate(
    run: Run,
    loss: Series,
    context: Context,
    lr: Series | None = None,
    *,
    adam: float,
    other: float,
    least: float,
    leap: float,
) -> Rate | Unknown:
    """Judge whether the rate is too high: by its value, or by a loss that it drove up at once.

    The highest rate of the first quarter of the rows (a later one is the schedule's doing), or of all up to where the
    loss breaks, else the configured one, above `adam` for the optimizers of the Adam family and above `other` for the
    rest; or a loss that reaches `leap` times its first value in its first rows. Possible down to a twentieth of that
    value, from `least` on for an unknown optimizer, and where no rate is known.
    """
    _, values = finite(loss)
    early = values[: max(3, int(SHARE_SOME * len(values)))]
    times = 0.0  # a loss without a finite value shows no leap
    if len(values) and values[0] > 0:
        times = float(np.clip(early.max() / values[0], -1e300, 1e300))
    text = f"the loss reaches {as_factor(times)} its first value in its first {len(early):,} rows (limit {leap:g}×)"
    jump = Evidence(text, "loss", (), times, leap)
    rates = values[:0]
    if lr is not None:  # those of the first rows, or all up to where the loss breaks
        at, rates = finite(lr)
        broken = broken_rows(loss)
        rates = rates[: max(3, rows_before(at, loss.steps[broken[0]]) if len(broken) else len(rates) // 4)]
    known = run.setting("lr")
    top: float | None = None
    if len(rates):
        top = float(rates.max())
    elif isinstance(known, int | float):
        top = float(known)
    if top is None and not len(values):
        return Unknown("no learning rate is known, and the loss has no finite value", ("lr",))
    optimizer = context.optimizer.value or ""
    bar = adam if "adam" in optimizer else other
    if top is None and times <= leap:
        return Rate(POSSIBLE, (Evidence("no learning rate is known", "lr"),), bar)
    if top is None:
        return Rate(LIKELY, (jump,), bar)
    name = str(run.setting("optimizer") or "an unknown optimizer")
    text = f"lr is at most {figure(top)} with {name}"
    found = Evidence(f"{text}; above {bar:g} is far too high", "lr", (), top, bar)
    if top > bar or times > leap:
        return Rate(LIKELY, (found,) if top > bar else (jump,), bar)
    if top > SHARE_SOME * bar or (not optimizer and top >= least):
        return Rate(POSSIBLE, (Evidence(text, "lr", (), top),), bar)
    return Rate(NO, (found,), bar)


# How a scaler works: it doubles or halves. These bounds lie between the factors 1/2, 1 and 2, for a logged mean.
ROSE, FELL = 1.5, 0.75
# The smallest normal number of fp32, in which a scaler keeps its scale: below it a fall is the end of the format.
SMALLEST = 2.0**-126  # no limit


class ScaleHistory(NamedTuple):
    """What the loss scale did: how often it rose and fell, and its extremes.

    `clean_steps` is the median wait before a rise, `net_halvings` what the second half of the run lost on balance,
    `fall_step` where the fall to the lowest value began. Falls below `SMALLEST` are not counted.
    """

    drops: int
    rises: int
    first: float
    last: float
    lowest: float
    highest: float
    lowest_step: int
    first_drop: int
    fall_step: int
    clean_steps: int | None
    net_halvings: float


@measure()
def scale(loss_scale: Series) -> ScaleHistory | Unknown:
    """Find the loss scale's history; unknown for a placeholder: under two values, none above 0, or 1 throughout."""
    steps, values = finite(loss_scale)
    if len(values) < 2 or highest(loss_scale) <= 0 or lowest(loss_scale) == highest(loss_scale) == 1:
        return Unknown("the loss scale is logged as a placeholder or only once", ("loss_scale",))
    moves = changes(values, np.not_equal) - 1  # few: most steps leave the scale as it is
    before, after = np.maximum(values[moves], SMALLEST), np.maximum(values[moves + 1], SMALLEST)
    ratio = after / np.where(values[moves] == 0, np.nan, before)
    rises, drops = moves[ratio > ROSE], moves[ratio < FELL]
    marks = np.concatenate(([0], np.sort(np.concatenate((rises, drops))) + 1))
    waits = [int(steps[r + 1] - steps[marks[np.searchsorted(marks, r + 1) - 1]]) for r in rises[:200]]
    low = int(np.argmin(values))
    # The fall to the lowest value began after the last rise before it.
    falls = moves[moves < low]
    up = np.flatnonzero(values[falls + 1] > values[falls])
    falls = falls[up[-1] + 1 :] if len(up) else falls
    middle, last = (max(float(values[row]), SMALLEST) for row in (len(values) // 2, -1))
    return ScaleHistory(
        drops=len(drops),
        rises=len(rises),
        first=float(values[0]),
        last=float(values[-1]),
        lowest=float(values[low]),
        highest=highest(loss_scale),
        lowest_step=int(steps[low]),
        first_drop=int(steps[drops[0] + 1]) if len(drops) else int(steps[0]),
        fall_step=int(steps[falls[0] + 1]) if len(falls) else int(steps[low]),
        clean_steps=int(median(np.asarray(waits))) if waits else None,
        net_halvings=float(np.log2(middle / last)),
    )


@measure()
def context(run: Run) -> Context:
    """Find out who the run is."""
    from stabtree.context.find import who_of

    return who_of(run)


@measure()
def precision(run: Run) -> Known[str]:
    """Find out in which precision the run trains."""
    from stabtree.context.model import precision_of

    return precision_of(run)


# A verdict rests on these; a section whose own metric was misread reports it itself.
JUDGED = ("step", "loss", "grad_norm")
OUTCOMES = frozenset((Role.LOSS, Role.HELD_OUT_LOSS, Role.REWARD, Role.QUALITY))
_VALUE = re.compile(
    r"(?<![\w.])([a-z][\w/.-]{0,60}) ?[:=]\s?([-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|nan|inf))(?!\w|\.\d)", re.IGNORECASE
)


class Reading(NamedTuple):
    """How many lines of the log were read and left unread, and why those read do not represent the run, if so."""

    read: int
    unread: int
    misread: str


@measure()
def reading(run: Run) -> Reading:
    """Judge whether what was read represents the run: at most a twentieth of its lines or of a series is misread."""
    unread_share = shared.SHARE_SOME
    unread = sum(source.skipped_count for source in run.sources)
    read = sum(source.rows for source in run.sources)
    worst = max((source.lost_share for source in run.sources), default=0.0)
    problems = [f"{unread:,} of {read + unread:,} lines could not be read"] if unread > unread_share * read else []
    problems += [f"{worst:.0%} of its bytes are damaged"] if worst > unread_share else []
    lost = [note.partition(":")[0] for note in run.notes if note.startswith(DAMAGE)]
    gone = [gap for gap in run.gaps if gap.at_end and gap.metric in ("eval_loss", "eval_quality")]
    problems += [f"{gap.metric} is missing from {run.unit} {gap.first_step:,} to the end" for gap in gone]
    problems += [*(f"{note[0].lower()}{note[1:]}" for note in lost), *_cells(run, unread_share), *_kinds(run)]
    return Reading(read, unread, " and ".join(problems[:2]))


def _cells(run: Run, share: float) -> Iterator[str]:
    for source in run.sources:
        for use in source.columns:
            if use.metric in JUDGED and use.misread > share * max(use.filled, use.misread):
                what = "steps" if use.metric == "step" else f"values of {use.metric}"
                named = f" (column {use.name})" if use.name != use.metric else ""
                yield f"{use.misread:,} of {max(use.filled, use.misread):,} {what}{named} are not what was logged"
            elif use.misread_last and (use.metric in JUDGED or use.role in OUTCOMES):
                yield f"the end of {use.metric} could not be read ({use.misread_last:,} of {use.filled:,} cells)"


def _kinds(run: Run) -> Iterator[str]:
    """Yield the lines that hold an outcome whose value was not read elsewhere, and are as many as half of the rows."""
    every = [series.values for series in (*run.series.values(), *run.others.values())]
    for source in run.sources:
        for kind in source.unread:
            if kind.harmless or kind.count < max(shared.ROWS_SHORT, shared.SHARE_HALF * source.rows):
                continue
            for name, value in _VALUE.findall(kind.example):
                outcome = describe_name(name).role in OUTCOMES
                if outcome and not any((one == float(value)).any() for one in every):
                    yield f"{kind.count:,} lines with {name}, the first is line {kind.line:,}, were not read"
                    break
