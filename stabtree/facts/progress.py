"""Whether the log shows that a run got better: by its outcome, else by a loss seen from its beginning."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import Answer, Evidence
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.shared import TREND_Z
from stabtree.common.stats import MEDIAN_ERROR
from stabtree.facts.registry import fact, finite
from stabtree.profile import profile_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.profile import Profile
    from stabtree.run import Run, Series

UNPROVEN = "unproven"
MIN_ROWS = 3
FEW_ROWS = 2 * MIN_ROWS  # with fewer, the levels of both ends are the same rows
MIN_GAIN = 0.005  # of the first level: less would be seen on no plot, however sure it is


class Learned(NamedTuple):
    """How a series moved from its beginning to its end.

    Attributes:
        metric: the series; empty where none shows how well the run does.
        shown: whether it got better beyond its scatter, and kept more than half of that.
        text: what was seen, in a sentence.
        brief: the same in a few words.
        rows: the rows of the longest series that can show it.
    """

    metric: str
    shown: bool
    text: str
    brief: str
    rows: int = 0

    @property
    def answer(self) -> Answer:
        """The same as the answer of a question."""
        return Answer(UNPROVEN, (Evidence(self.text, self.metric, brief=self.brief),))


@fact()
def progress(run: Run, context: Context) -> Learned:
    """Return whether a run got better, by the first series that can show it.

    Args:
        run: the run.
        context: who it is: a reward, a quality or a held-out loss decides before the training loss, unless it has too
            few rows to deny progress.
    """
    undecided: Learned | None = None
    candidates = [*_candidates(run, context)]
    rows = max((len(finite(series)[1]) for _, series in candidates), default=0)
    for metric, series in candidates:
        better = context.better if metric == context.outcome.value else "lower"
        found = _judged(metric, series, 1 if better == "higher" else -1)._replace(rows=rows)
        if found.shown or (undecided is None and len(finite(series)[1]) >= FEW_ROWS):
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
    for name in dict.fromkeys(names):
        series = run.get(name) if name else None
        if name and series is not None and len(finite(series)[1]) >= MIN_ROWS:
            yield name, series


def _judged(metric: str, series: Series, sign: int) -> Learned:
    if len(finite(series)[1]) < FEW_ROWS:
        return _by_rows(metric, finite(series)[1], sign)
    return _by_levels(metric, profile_of(series), sign)


def _by_rows(metric: str, values: Floats, sign: int) -> Learned:
    """Judge so few rows that they have no levels: the last one against the first, by the worst step back."""
    gain, first = sign * float(values[-1] - values[0]), float(values[0])
    back = max(0.0, float((-sign * np.diff(values)).max()))
    shown = gain >= MIN_GAIN * abs(first) and gain > TREND_Z * back
    brief = f"{metric} has {len(values)} rows: {', '.join(figure(float(value), 4) for value in values)}"
    return Learned(metric, shown, brief, brief)


def _by_levels(metric: str, profile: Profile, sign: int) -> Learned:
    begin = _beginning(profile, sign)
    gain, at_best = sign * (profile.last - begin), sign * (profile.best - begin)
    shown = gain >= MIN_GAIN * abs(begin) and _is_sure(profile, gain, sign) and gain > at_best / 2
    way = "rises" if sign * gain > 0 else "falls"
    end = f"{figure(profile.last, 4)} over its last {_level_rows(profile)} rows"
    brief = f"{metric} {figure(begin, 4)} at the beginning, {end}"
    text = f"{metric} {way} from {figure(begin, 4)} at the beginning to {end}"
    if profile.constant:
        text = brief = f"{metric} is {figure(profile.last, 4)} in every row"
    elif at_best > 0 and gain <= at_best / 2:
        text += f", after {figure(profile.best, 4)} at its best"
    elif not shown:
        text += f", within its scatter of {figure(profile.level_noise, 2)}"
    return Learned(metric, shown, text, brief)


def _beginning(profile: Profile, sign: int) -> float:
    """Return the first level, or the first row where it is far worse: a fast run gains most of it in a row or two."""
    first = float(finite(profile.series)[1][0])
    apart = sign * (profile.first - first)
    return first if apart > 2 * TREND_Z * profile.level_noise else profile.first


def _is_sure(profile: Profile, gain: float, sign: int) -> bool:
    """Return whether a gain is more than chance, by the error of its two levels or by its trend."""
    error = MEDIAN_ERROR * profile.level_noise * math.sqrt(2 / _level_rows(profile))  # of the difference of two medians
    return gain > TREND_Z * error or sign * profile.trend > TREND_Z


def _level_rows(profile: Profile) -> int:
    return max(MIN_ROWS, profile.rows // 20)
