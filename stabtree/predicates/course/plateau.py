"""Whether a loss still falls at the end, has settled, is on its way up, or never showed that the run learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import Answer, Evidence, inapplicable, unknown
from stabtree.common.endings import FINISHED, ending_of
from stabtree.common.figures import figure
from stabtree.common.passes import remembered, rows_before
from stabtree.common.shared import NOISE_TIMES, ROWS_SHORT, SHARE_SOME
from stabtree.common.stats import MEDIAN_ERROR, change_noise, median, span
from stabtree.common.strength import above, strongest
from stabtree.facts.curve.rise import Rise
from stabtree.facts.registry import Absent, Unknown, finite, highest
from stabtree.predicates.course.start import NATS
from stabtree.predicates.registry import Groups, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.facts.batches import Batches
    from stabtree.run import Run, Series


class Gain(NamedTuple):
    """How far a series falls, with the error of the difference of both levels.

    Attributes:
        first: the level that it falls from.
        last: the level at its end.
        error: the standard error of their difference.
        whole: the range of the whole series.
        later: the range without its first rows, which fall farther than all that comes after them.
    """

    first: float
    last: float
    error: float
    whole: float
    later: float

    @property
    def fall(self) -> float:
        """How far it falls."""
        return self.first - self.last

    @property
    def covered(self) -> float:
        """What a fall is compared with, or a rise: one that is nothing beside the first fall takes nothing back."""
        return self.later if self.fall > 0 else self.whole

    @property
    def share(self) -> float:
        """The fall as a share of what the series covers."""
        return self.fall / self.covered if self.covered > 0 else 0.0

    @property
    def turned(self) -> Gain:
        """The same seen from the end."""
        return self._replace(first=self.last, last=self.first)

    @property
    def seen(self) -> float:
        """How strongly the fall exceeds its error."""
        return above(self.fall, NOISE_TIMES * self.error)


@predicate(
    source="phase19 Q4.1 and Q4.4, closing lines",
    labels=("rising", "flat", "finished", "falling", "noisy", "unbounded", "unmoved", "worse"),
    min_points=3,
)
def settled(
    run: Run,
    context: Context,
    loss: Series,
    rise: Rise | Absent,
    batches: Batches | Unknown,
    eval_loss: Series | None = None,
    reward: Series | None = None,
    lr: Series | None = None,
    weight_norm: Groups | None = None,
    grad_norm: Series | None = None,
    *,
    strict: bool,
    still_falling_share: float,
) -> Answer:
    """Is the loss still falling, flat, or on its way up?

    `rising` as in `loss_rising`. `unmoved` where neither the loss nor the eval loss ends below its beginning by more
    than its scatter explains, or a loss need not fall in this kind of run; `unbounded` where it falls below
    any log-likelihood. `falling`: the second half of the run lowers the loss, or the eval loss where logged, by more
    than `still_falling_share` of the range it covers after its first rows, and more than its scatter explains; `worse`:
    it raises one of them by that share of its whole range instead. `flat`: it does neither, and the scatter would show
    a fall by that share; `noisy` where it would not. `finished`: it is flat, and the run has come to its end by its
    learning rate, its planned steps or what the log says. Not asked of a run that learns from rewards, where a loss
    that has settled says nothing. With `strict`, the document's own rule, a run whose loss rises is at a plateau when
    neither lr, nor the weights, nor grad_norm moves; where one of them was not logged it rises. Any other is healthy.
    """
    if strict:
        if isinstance(rise, Absent):
            return Answer("falling", rise.evidence)
        missing = None in (lr, weight_norm, grad_norm)
        return Answer("rising" if missing else "flat", (rise.evidence,))
    if isinstance(rise, Rise) and rise.course:
        text = f"the loss ends {figure(rise.course.rise)} above its lowest level, that of step {rise.low_step:,}"
        times = Evidence(text, "loss", (rise.low_step,), rise.course.times, rise.limits.noise_factor)
        return Answer("rising", (times,), strength=rise.strength)
    if reward is not None or context.learns_from_rewards:
        return inapplicable("the reward is what shows whether the run still learns, not its loss")
    judged = _judged(loss if isinstance(batches, Unknown) else batches.fresh(loss), eval_loss)
    if not judged:
        return unknown("the loss has too few rows that were not repeated", "loss")
    late = {name: _late(series) for name, series in judged.items()}
    course = _course(tuple(late.values()), still_falling_share)
    deciding = sorted(late.items(), key=lambda item: item[1].share if course == "worse" else -item[1].share)
    notes = tuple(
        Evidence(_late_text(name, gain), name, (), gain.share, still_falling_share, _late_brief(name, gain))
        for name, gain in deciding
    )
    if context.restless:
        return Answer("unmoved", (Evidence(f"{context.restless} need not fall as it learns", "loss"), *notes))
    if (fallen := _unbounded(loss)) is not None:
        return Answer("unbounded", (fallen, *notes))
    learned = {name: _learned(series) for name, series in judged.items()}
    if strongest(*(gain.seen for gain in learned.values())) < 0:
        return Answer("unmoved", (*(_learned_text(name, gain) for name, gain in learned.items()), *notes))
    ends = _ends(run, lr) if course == "flat" else ()
    return Answer("finished" if ends else course, (*notes, *ends))


def _ends(run: Run, lr: Series | None) -> tuple[Evidence, ...]:
    """Return evidence that a run has come to its end; none where it may be going on."""
    last = run.last_step or 0
    if last >= run.planned_step:
        return (Evidence(f"all planned steps are done, the last is {last:,}", "", (last,)),)
    if lr is not None and len(rates := finite(lr)[1]):
        peak, end = highest(lr), float(rates[-1])
        if end <= SHARE_SOME * peak:
            text = f"the learning rate has come down from {figure(peak)} to {figure(end)}"
            return (Evidence(text, "lr", (last,), end, SHARE_SOME * peak),)
    said = next((line for line in run.lines if ending_of(line.text) == FINISHED), None)
    return (Evidence(f"line {said.line:,}: {said.text}"),) if said else ()


def _course(late: tuple[Gain, ...], share: float) -> str:
    """Return what the second half of the run shows."""
    if any(gain.share > share and gain.seen >= 0 for gain in late):
        return "falling"
    if any(-gain.share > share and gain.turned.seen >= 0 for gain in late):
        return "worse"
    return "flat" if all(gain.error <= share * gain.whole for gain in late) else "noisy"


def _judged(loss: Series, eval_loss: Series | None) -> dict[str, Series]:
    """Return the series that show learning, each lower the better."""
    both = {"loss": loss, "eval_loss": eval_loss}
    return {name: series for name, series in both.items() if series is not None and len(finite(series)[1]) > 2}


def _unbounded(loss: Series) -> Evidence | None:
    """Return evidence that the loss ends below what a likelihood can explain, and far below where it began."""
    steps, values = finite(loss)
    first, last = float(values[0]), float(values[-1])
    if last > -NATS * max(1.0, abs(first)):
        return None
    text = f"the loss falls from {figure(first, 4)} to {figure(last, 4)}, without a floor"
    return Evidence(text, "loss", (int(steps[0]), int(steps[-1])), last, brief=f"{figure(first)} to {figure(last)}")


def _gain(before: Floats, after: Floats, series: Series) -> Gain:
    """Return the fall between the medians of two groups of rows of a series."""
    steps, values = finite(series)
    error = MEDIAN_ERROR * change_noise(values) * (1 / len(before) + 1 / len(after)) ** 0.5
    later = values[rows_before(steps, steps[0] + SHARE_SOME * (steps[-1] - steps[0])) :]
    return Gain(median(before), median(after), error, span(values), span(later))


@remembered
def _late(series: Series) -> Gain:
    """Return how far a series falls in the second half of the run."""
    _, values = finite(series)
    part, half = max(1, len(values) // 8), len(values) // 2
    return _gain(values[half - part // 2 : half + part], values[-part:], series)


@remembered
def _learned(series: Series) -> Gain:
    """Return how far a series falls from its first rows to its last; from so many as show it best."""
    _, values = finite(series)
    few, many = min(ROWS_SHORT, len(values) // 2), max(1, len(values) // 20)
    gains = [_gain(values[:rows], values[-max(few, many) :], series) for rows in (few, many)]
    return max(gains, key=lambda gain: gain.seen)


def _late_brief(name: str, gain: Gain) -> str:
    """Describe in a few words that a series got worse; empty where it did not."""
    way = "falls" if name == "reward" else "rises"
    return f"{name} {way} in the second half" if gain.share < 0 and gain.turned.seen >= 0 else ""


def _late_text(name: str, gain: Gain) -> str:
    share = gain.share
    if share == 0:
        return f"{name} does not change in the second half of the run"
    text = f"{name} {'falls' if share > 0 else 'rises'} by {abs(share):.1%} of its range in the second half of the run"
    return f"{text} (give or take {gain.error / gain.covered:.1%})" if gain.covered > 0 else text


def _learned_text(name: str, gain: Gain) -> Evidence:
    """Describe that a series ends about where it began."""
    text = f"{name} goes from {figure(gain.first, 4)} to {figure(gain.last, 4)}, within its scatter of "
    text += figure(NOISE_TIMES * gain.error, 2)
    brief = f"{figure(gain.first)} to {figure(gain.last)}"
    return Evidence(text, name, (), gain.fall, NOISE_TIMES * gain.error, brief)
