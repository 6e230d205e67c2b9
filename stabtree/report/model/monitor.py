"""What the NaN monitor would have done, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.figures import figure
from stabtree.common.text import counting
from stabtree.report.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.facts.replay import Replay, Watch

MAX_RANKS = 8


def sentences(replay: Replay, unit: str) -> list[str]:
    """Return the replay as sentences, the most important one first.

    Args:
        replay: the replay of the monitor over the log.
        unit: what the log's steps are: `step` or `row`.
    """
    return [counting(text, unit) for text in _sentences(replay)]


def _sentences(replay: Replay) -> Iterator[str]:
    yield _stop(replay)
    yield _counts(replay.loss)
    if replay.grad_norm:
        yield _gradients(replay.grad_norm, replay)
    if replay.first_ranks:
        yield _ranks(replay)
    if replay.every > 1:
        yield (
            f"counted in rows, logged every {replay.every:,} steps; inside the training loop it counts steps, and "
            f"stops after {replay.max_consecutive} of them"
        )


def _stop(replay: Replay) -> str:
    loss, most = replay.loss, replay.max_consecutive
    if loss.stop_step is None:
        return f"would not have stopped the run: never {most} rows in a row without a finite loss"
    text = f"would have stopped the run at step {loss.stop_step:,}, after {most} rows in a row without a finite loss"
    if loss.returned_step is not None:
        return f"{text}; the loss came back for good at step {loss.returned_step:,}"
    if not replay.steps_in_vain:
        return f"{text}; the log ends there"
    return f"{text}; {counted(replay.steps_in_vain, 'step')} after that ran in vain"


def _counts(loss: Watch) -> str:
    text = f"{counted(loss.total, 'row')} without a finite loss, from step {loss.first_step:,} on, at most "
    text += f"{loss.longest:,} in a row"
    if loss.last_good is None or loss.last_good_step is None:
        return f"{text}; no row was good before"
    return f"{text}; last good loss {figure(loss.last_good, 4)} at step {loss.last_good_step:,}"


def _gradients(grad_norm: Watch, replay: Replay) -> str:
    text = f"grad_norm is not finite from step {grad_norm.first_step:,} on, at {counted(grad_norm.total, 'row')}"
    if grad_norm.stop_step is None:
        return f"{text}, at most {grad_norm.longest:,} in a row: check_gradients would not have stopped the run"
    if replay.loss.stop_step is not None and grad_norm.stop_step >= replay.loss.stop_step:
        return f"{text}: check_gradients would have stopped the run no earlier"
    return f"{text}: check_gradients would have stopped the run at step {grad_norm.stop_step:,}"


def _ranks(replay: Replay) -> str:
    if not replay.other_ranks:
        text = f"all {len(replay.first_ranks)} ranks broke together, at step {replay.first_rank_step:,}"
        return f"{text}; log each rank's own loss, before it is averaged, to see which one was first"
    text = f"{_named(replay.first_ranks)} broke first, at step {replay.first_rank_step:,}"
    return f"{text}; there {_named(replay.other_ranks)} would have logged “not finite on another rank”"


def _named(ranks: Sequence[str]) -> str:
    shown = ", ".join(ranks[:MAX_RANKS])
    if len(ranks) > MAX_RANKS:
        shown += f" and {len(ranks) - MAX_RANKS} more"
    if len(ranks) > 1:
        return f"ranks {shown}"
    return f"rank {shown}"
