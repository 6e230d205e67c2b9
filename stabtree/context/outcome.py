"""The series that says how well a run does, which way it goes, and what a guess would get."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.context import model
from stabtree.context.model import INFERRED, LOGGED, Known
from stabtree.metrics.metric import Role
from stabtree.metrics.table import by_name

if TYPE_CHECKING:
    from stabtree.run import Run

_OUTCOMES = (Role.REWARD, Role.QUALITY)
_FIRST, _LAST = ("reward",), ("eval_loss", "loss")
_PAIRS = ("dpo", "ipo", "reward-model", "simpo")  # their loss is that of a guess between two answers


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
    metrics = by_name()
    quality = [name for name in run.series if name in metrics and metrics[name].role in _OUTCOMES]
    names = (*_FIRST, *(name for name in quality if name not in (*_FIRST, *_LAST)), *_LAST)
    name = next((name for name in names if name in run.series), "")
    if not name:
        return Purpose()
    column = run.series[name].origin
    return Purpose(Known(name, LOGGED, f"column {column}" if column else ""), metrics[name].better)


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
    is_loss = outcome.value in _LAST
    if is_loss and task.value == model.PREFERENCE and algorithm.value in _PAIRS:
        return Known(math.log(2), INFERRED, "ln 2: a guess between two answers")
    if not classes or task.value not in (model.LANGUAGE, model.CLASSIFICATION):
        return Known()
    if is_loss:
        return Known(math.log(classes), INFERRED, f"ln {classes:,}")
    if "acc" in column and task.value == model.CLASSIFICATION:
        return Known(1 / classes, INFERRED, f"1 of {classes:,} classes")
    return Known()
