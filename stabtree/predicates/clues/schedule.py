"""What the logged learning rate shows of its schedule: how far it leapt, where it went to 0, which steps it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR, ROWS_SHORT, SHARE_HALF
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series

GONE = 1e-3  # no limit: of the peak: nothing is learned below it
MIN_STAIRS = 3  # no limit: a shorter flight is no pattern
ALIKE = 0.1  # no limit: by which stairs of equal length may differ


@clue
def rate_leap(moment: Moment, lr: Series) -> Seen | None:
    """Return how many times the rate from the onset on exceeds the highest before it."""
    steps, values = finite(lr)
    if moment.onset_step is None or len(values) < 2:
        return None
    at = int(np.searchsorted(steps, moment.onset_step))
    if not 0 < at < len(values) or values[:at].max() <= 0:
        return None
    before, top = float(values[:at].max()), int(np.argmax(values[at:])) + at
    times = float(values[top] / before)
    where = f"at step {int(steps[at]):,}"
    if top > at and values[top] > FACTOR * values[at]:
        where = f"from step {int(steps[at]):,} to {int(steps[top]):,}"
    leap = f"×{times:,.0f}" if times >= 10 else f"×{figure(times, 2)}"
    short = f"{figure(before)} → {figure(values[top])} ({leap}) {where}"
    return Seen(times, f"lr goes from {short}", short, "lr", (int(steps[at]), int(steps[top])))


@clue
def rate_over_configured(_moment: Moment, run: Run, lr: Series) -> Seen | None:
    """Return how many times the highest logged rate lies above the configured one."""
    known, values = run.setting("lr"), finite(lr)[1]
    if not isinstance(known, int | float) or known <= 0 or not len(values):
        return None
    times = float(values.max() / known)
    text = f"lr reaches {figure(values.max())}, and {known:g} is configured"
    return Seen(times, text, f"{known:g}", "lr")


@clue
def warmup_stairs(_moment: Moment, lr: Series) -> Seen | None:
    """Return the length of the stairs, in steps, in which the rate goes up; 0 where it does not."""
    steps, values = finite(lr)
    if len(values) < 2 * ROWS_SHORT:
        return None
    peak = int(np.argmax(values))
    rises = np.flatnonzero(np.diff(values[: peak + 1]) > 0)
    falls = (np.diff(values[: peak + 1]) < 0).any()
    lengths = np.diff(steps[rises + 1])
    if falls or len(rises) < MIN_STAIRS - 1 or len(rises) > peak / 2 or len(lengths) == 0:
        return Seen(0.0, "lr does not rise in stairs", "", "lr")
    length = float(np.median(lengths))
    if (np.abs(lengths - length) > ALIKE * length).any():
        return Seen(0.0, "lr does not rise in stairs of one length", "", "lr")
    text = f"lr rises in {len(rises)} stairs, one every {length:,.0f} steps: the warm-up counts epochs"
    return Seen(length, text, f"{length:,.0f}", "lr", tuple(int(step) for step in steps[rises + 1][:4]))


@clue
def steps_at_zero(_moment: Moment, lr: Series, loss: Series) -> Seen | None:
    """Return the share of the steps that ran at a rate of next to nothing, up to the end."""
    gone, own = _gone(lr), finite(loss)[0]
    if gone is None or not len(own):
        return None
    at, last = gone.step, int(max(lr.steps[-1], own[-1]))
    share = (last - at) / max(last - int(own[0]), 1)
    text = f"{last - at:,} steps, {share:.0%} of the run, were made at a rate of next to 0"
    return Seen(share, text, f"{last - at:,} steps ({share:.0%} of the run)", "lr", (at, last))


@clue
def rate_cut(_moment: Moment, lr: Series) -> Seen | None:
    """Return which share of its peak the rate had in the row before it was gone: a schedule decays, a reset cuts it."""
    gone = _gone(lr)
    if gone is None:
        return None
    text = f"lr goes from {figure(gone.before, 4)} to {figure(gone.after)} in one row, at step {gone.step:,}"
    return Seen(gone.before / gone.peak, text, f"step {gone.step:,}", "lr", (gone.step,))


@clue
def schedule_ended(_moment: Moment, run: Run, lr: Series, loss: Series) -> Seen | None:
    """Return how many times as long the run is as its schedule, planned steps where they are known.

    A rate that is cut off from half its peak or more was not ended by a schedule.
    """
    gone = _gone(lr)
    if gone is None or gone.step <= 0 or gone.before > SHARE_HALF * gone.peak:
        return None
    planned = run.setting("max_steps")
    whole = planned if isinstance(planned, int) and planned > gone.step else int(finite(loss)[0][-1]) + run.step_size
    times = whole / gone.step
    text = f"the schedule ended at step {gone.step:,}, the run has {whole:,} steps: {figure(times)} times as many"
    return Seen(times, text, f"{whole:,} (it got {gone.step:,})", "lr", (gone.step,))


class Gone(NamedTuple):
    """Where a rate becomes next to nothing, up to the end: the step, the rates around it, and the peak."""

    step: int
    before: float
    after: float
    peak: float


def _gone(lr: Series) -> Gone | None:
    steps, values = finite(lr)
    if not len(values) or values.max() <= 0:
        return None
    peak = float(values.max())
    at = int(np.flatnonzero(values > GONE * peak)[-1]) + 1
    if at >= len(values):
        return None
    return Gone(int(steps[at]), float(values[at - 1]), float(values[at]), peak)


@clue
def rate_before_resume(_moment: Moment, run: Run, lr: Series) -> Seen | None:
    """Return the rate before the last resume that changed it, over the one after it."""
    steps, values = finite(lr)
    found: Seen | None = None
    for resume in run.resumes:
        at = int(np.searchsorted(steps, resume.to_step))
        if not 0 < at < len(steps) or values[at] <= 0:
            continue
        before, after = float(values[at - 1]), float(values[at])
        text = f"lr was {figure(before)} before the resume at step {int(steps[at]):,} and {figure(after)} after it"
        if max(before / after, after / max(before, 1e-300)) > FACTOR:
            found = Seen(before / after, text, f"{figure(before)} → {figure(after)}", "lr", (int(steps[at]),))
    return found
