"""The series that says how well a run does, which way it goes, and what a guess would get."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from stabtree.context import model
from stabtree.context.model import INFERRED, LOGGED, Known
from stabtree.metrics.metric import Role
from stabtree.metrics.role import NO_OUTCOME, describe_name

if TYPE_CHECKING:
    from stabtree.run import Run

_LOSSES = ("eval_loss", "loss")
_PAIRS = ("dpo", "reward-model")  # their loss is that of a guess between two answers


class Purpose(NamedTuple):
    """What the run is for: the series that says how well a run does.

    Attributes:
        metric: its metric.
        better: `lower` or `higher`.
    """

    metric: Known[str] = Known()
    better: str = ""


def outcome_of(run: Run) -> Purpose:
    """Return the outcome: the reward, else the quality on held-out data, else the held-out or the training loss."""
    ranked = [(rank, name) for name in run.series if (rank := _rank(name)) is not None]
    if not ranked:
        return Purpose()
    name = min(ranked, key=itemgetter(0))[1]
    column = run.series[name].origin
    return Purpose(Known(name, LOGGED, f"column {column}" if column else ""), describe_name(name).better)


def _rank(series: str) -> tuple[int, bool, int] | None:
    """Return the rank of a series among those that may be the outcome, lowest first; None for any other."""
    found = describe_name(series)
    among = [
        found.role is Role.REWARD and found.order < NO_OUTCOME,
        found.role is Role.QUALITY and found.held_out,
        found.role is Role.HELD_OUT_LOSS,
        series == "loss",
    ]
    # Of several, the one that is a known metric: assembling a run has chosen its column.
    return (among.index(True), not found.metric, found.order) if True in among else None


def chance_of(run: Run, outcome: Known[str], task: Known[str], algorithm: Known[str], classes: int) -> Known[float]:
    """Return the value of the outcome for an uninformed guess.

    Args:
        run: the run.
        outcome: its outcome.
        task: what it trains.
        algorithm: by which algorithm.
        classes: how many classes or tokens one guess is among; 0 where that is not known.
    """
    column = run.series[outcome.value].origin.lower() if outcome.value else ""
    if outcome.value == "eval_quality" and "auc" in column:
        return Known(0.5, INFERRED, "AUC of a guess")
    is_loss = outcome.value in _LOSSES
    if is_loss and _guesses_between_two(task.value, algorithm.value):
        return Known(math.log(2), INFERRED, "ln 2: a guess between two answers")
    if not classes or task.value not in (model.LANGUAGE, model.CLASSIFICATION):
        return Known()
    if is_loss:
        return Known(math.log(classes), INFERRED, f"ln {classes:,}")
    if "acc" in column and task.value == model.CLASSIFICATION:
        return Known(1 / classes, INFERRED, f"1 of {classes:,} classes")
    return Known()


def is_guess_of_two(context: model.Context) -> bool:
    """Return whether the loss of an uninformed model is that of a guess between two answers."""
    return _guesses_between_two(context.task.value, context.algorithm.value)


def _guesses_between_two(task: str | None, algorithm: str | None) -> bool:
    return task == model.PREFERENCE and algorithm in _PAIRS
