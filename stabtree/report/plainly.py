"""Plain sentences on a finding: whether it is over, what to doubt about it, what the NaN monitor would have done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.stats import median
from stabtree.common.text import counting, in_words
from stabtree.context.find import context_of
from stabtree.facts.registry import finite
from stabtree.report.text import counted
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.diagnosis.result import Incident
    from stabtree.facts.batches import Replay, Watch
    from stabtree.run import Run

CAME_BACK = "Q2.3"  # the node of a spike that the loss came back from
STAYED_UP = "Q2.4"  # the node of a spike that it did not come back from
RISES = "Q4.5"  # the node of a rise that nothing explains
EXPLAINS = {"lr": "lr", "weight_norm": "weight norm", "grad_norm": "gradient"}
MIN_ROWS = 3  # that make a level
LEVEL_SHARE = 20  # a level is one of so many parts of the rows
NEAR_CHANCE = 0.03
ROWS_OF_JUMP = 2  # a row that is a mean may hold a part of a jump
MAX_RANKS = 8


def plainly(run: Run, finding: Incident) -> str:
    """Return what must be known of a finding beside its leaf: whether it is over, and what followed; may be empty."""
    text = ""
    if finding.leaf.of == CAME_BACK:
        text = _recovered(run, finding)
    elif finding.leaf.of == STAYED_UP:
        text = _stayed_up(run, finding)
    elif finding.leaf.of == RISES:
        text = _better_meanwhile(run, finding) or _unlogged(run)
    followed = [f"{item.leaf.title} ({item.unit} {item.onset_step:,})" for item in finding.consequences]
    led_to = f"What followed: {'; '.join(followed)}." if followed else ""
    return " ".join(filter(None, (text or doubts(run, finding), led_to)))


def _recovered(run: Run, finding: Incident) -> str:
    """Describe how a loss ends that came back from a spike; empty where it has too few rows."""
    series, onset = run.get("loss"), finding.onset_step
    if series is None or onset is None:
        return ""
    steps, values = finite(series)
    rows = max(MIN_ROWS, len(values) // LEVEL_SHARE)
    if len(values) < 2 * rows:
        return ""
    before, last = values[: rows_before(steps, onset)][-rows:], float(values[-1])
    begins, ends = median(values[:rows]), median(values[-rows:])
    if finding.restart is None and len(before) and max(ends, last) <= before.max():
        return f"It came back: the loss ends at {figure(last, 4)}; nothing to restart."
    before_that = f"the {figure(begins, 4)} of its first rows" if last > begins else "where it was before"
    if last >= values[rows_before(steps, onset) :].max():
        return f"The loss ends at {figure(last, 4)}, above {before_that}."
    return f"The loss fell back from its top, but ends at {figure(last, 4)}, above {before_that}."


def _stayed_up(run: Run, finding: Incident) -> str:
    """Say how far a loss went up that stays there, and whether that is where it began."""
    series, onset = run.get("loss"), finding.onset_step
    if series is None or onset is None:
        return ""
    steps, values = finite(series)
    good = onset - 1 if finding.last_good_step is None else finding.last_good_step
    before = values[: rows_upto(steps, good)][-shared.ROWS_LONG :]
    after = values[rows_upto(steps, good) :]
    if len(before) < MIN_ROWS or len(after) < MIN_ROWS:
        return ""
    low, high = median(before), median(after[-max(MIN_ROWS, len(values) // LEVEL_SHARE) :])
    rows = int(np.argmax(after >= (low + high) / 2)) + 1
    text = f"The loss {'climbed' if rows > ROWS_OF_JUMP else 'jumped'} from {figure(low, 3)} to {figure(high, 3)}"
    if abs(high - values[0]) <= shared.SHARE_SOME * abs(values[0]):
        return f"{text}, back to the {figure(values[0], 3)} of its first row."
    return f"{text}, and stays there."


def _unlogged(run: Run) -> str:
    """Name what would separate the causes of a rise and was not logged; empty where all of it was."""
    names = [name for metric, name in EXPLAINS.items() if not run.has(metric)]
    return f"{in_words(names)} {'are' if len(names) > 1 else 'is'} not logged." if names else ""


def _better_meanwhile(run: Run, finding: Incident) -> str:
    """Say that the quality on held-out data rose while the loss did: then the loss is no reason to stop."""
    quality, onset = run.get("eval_quality"), finding.onset_step
    if quality is None or onset is None:
        return ""
    steps, values = finite(quality)
    before, after = values[: rows_upto(steps, onset)], values[rows_upto(steps, onset) :]
    if not len(before) or len(after) < MIN_ROWS:
        return ""
    last = median(after[-max(MIN_ROWS, len(after) // LEVEL_SHARE) :])
    if last <= before.max():
        return ""
    change = f"{figure(before.max(), 4)} → {figure(last, 4)}"
    return f"{quality.origin or quality.metric} got better meanwhile ({change}): look at the terms of the loss."


def doubts(run: Run, finding: Incident) -> str:
    """Say why the lowest eval loss may not be the best of a run; empty where nothing speaks against it."""
    series = run.get("eval_loss")
    values = np.empty(0) if series is None else finite(series)[1]
    if finding.leaf.take is not Take.BEST or len(values) < MIN_ROWS:
        return ""
    return " ".join(_doubts(values, context_of(run).classes.value))


def _doubts(values: Floats, classes: object) -> Iterator[str]:
    lowest, at = float(values.min()), int(values.argmin())
    rise = median(values[-max(MIN_ROWS, len(values) // 3) :]) - lowest
    swing = float(np.abs(np.diff(values[at:])).max(initial=0.0))
    if at == 0:
        yield "The eval loss is lowest at its very first evaluation: it never got better."
    elif swing > rise:
        yield f"The eval loss swings by up to {figure(swing)} between evaluations; its final rise is {figure(rise)}."
    if isinstance(classes, int) and classes > 1:
        if lowest >= math.log(classes):
            yield f"It never was below {math.log(classes):.3g}, the loss of a guess."
    elif abs(lowest / math.log(2) - 1) < NEAR_CHANCE:
        yield f"Its lowest, {lowest:.3g}, is about ln 2, the loss of a guess between two."


def monitor_sentences(replay: Replay, unit: str) -> list[str]:
    """Return what the NaN monitor would have done, the most important sentence first.

    Args:
        replay: the replay of the monitor over the log.
        unit: what the log's steps are: `step` or `row`.
    """
    return [counting(text, unit) for text in _monitor(replay)]


def _monitor(replay: Replay) -> Iterator[str]:
    loss, most, every = replay.loss, replay.max_consecutive, replay.every
    if loss.stop_step is None:
        yield f"would not have stopped the run: never {most} rows in a row without a finite loss"
    else:
        after = "the log ends there"
        if loss.returned_step is not None:
            after = f"the loss came back for good at step {loss.returned_step:,}"
        elif replay.steps_in_vain:
            after = f"{counted(replay.steps_in_vain, 'step')} after that ran in vain"
        yield (
            f"would have stopped the run at step {loss.stop_step:,}, after {most} rows in a row without a finite loss; "
            f"{after}"
        )
    good = "no row was good before"
    if loss.last_good is not None and loss.last_good_step is not None:
        good = f"last good loss {figure(loss.last_good, 4)} at step {loss.last_good_step:,}"
    rows = f"{counted(loss.total, 'row')} without a finite loss, from step {loss.first_step:,} on"
    yield f"{rows}, at most {loss.longest:,} in a row; {good}"
    if replay.grad_norm:
        yield _gradients(replay.grad_norm, loss.stop_step)
    if replay.first_ranks and not replay.other_ranks:
        yield (
            f"all {len(replay.first_ranks)} ranks broke together, at step {replay.first_rank_step:,}; "
            "log each rank's own loss, before it is averaged, to see which one was first"
        )
    elif replay.first_ranks:
        first, others = _named(replay.first_ranks), _named(replay.other_ranks)
        there = f"there {others} would have logged “not finite on another rank”"
        yield f"{first} broke first, at step {replay.first_rank_step:,}; {there}"
    if every > 1:
        yield (
            f"counted in rows, logged every {every:,} steps; inside the training loop it counts steps, and "
            f"stops after {most} of them"
        )


def _gradients(norm: Watch, stop_of_loss: int | None) -> str:
    text = f"grad_norm is not finite from step {norm.first_step:,} on, at {counted(norm.total, 'row')}"
    if norm.stop_step is None:
        return f"{text}, at most {norm.longest:,} in a row: check_gradients would not have stopped the run"
    if stop_of_loss is not None and norm.stop_step >= stop_of_loss:
        return f"{text}: check_gradients would have stopped the run no earlier"
    return f"{text}: check_gradients would have stopped the run at step {norm.stop_step:,}"


def _named(ranks: Sequence[str]) -> str:
    shown = ", ".join(ranks[:MAX_RANKS])
    if len(ranks) > MAX_RANKS:
        shown += f" and {len(ranks) - MAX_RANKS} more"
    return f"ranks {shown}" if len(ranks) > 1 else f"rank {shown}"
