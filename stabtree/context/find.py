"""Find out who a run is."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from stabtree.common.passes import remembered
from stabtree.context.columns import columns_of
from stabtree.context.model import FROM_REWARDS, Context, FullContext
from stabtree.context.outcome import chance_of, outcome_of
from stabtree.context.phase import phase_of
from stabtree.context.settings import classes_of, optimizer_of, peak_lr_of, planned_steps_of, precision_of
from stabtree.context.signs import TAUGHT
from stabtree.context.task import task_of
from stabtree.context.trainer import framework_of
from stabtree.metrics.table import words

if TYPE_CHECKING:
    from stabtree.run import Run, Series

SLOW = 0.9  # no limit: BYOL's average begins at 0.99
_RESTLESS = {  # losses, by the setting `loss_kind`, whose movement shows little
    "adversarial": "adversaries are trained against each other: their loss",
    "policy": "the loss of a policy",
    "value": "the loss of value estimates, whose targets move,",
}


@remembered
def context_of(run: Run) -> FullContext:
    """Return who a run is, as far as its configuration, its columns and its first rows show."""
    who = who_of(run)
    parts = {name: getattr(who, name) for name in Context.__struct_fields__}
    return FullContext(**parts, precision=precision_of(run))


def who_of(run: Run) -> Context:
    """Return the same without the precision."""
    trainer = framework_of(run)
    task, algorithm = task_of(run, columns_of(run), trainer.value or "")
    classes = classes_of(run)
    outcome, better = outcome_of(run)
    return Context(
        task=task,
        algorithm=algorithm,
        phase=phase_of(run, task, classes),
        framework=trainer,
        optimizer=optimizer_of(run),
        planned_steps=planned_steps_of(run),
        peak_lr=peak_lr_of(run),
        classes=classes,
        outcome=outcome,
        better=better,
        chance=chance_of(run, outcome, task, algorithm, classes.value or 0),
        restless=_restless(run, task.value or ""),
    )


def _restless(run: Run, task: str) -> str:
    """Return why the loss need not fall and may burst; empty if it should fall as any loss does."""
    if run.has("reward") or run.has("reward_function"):
        return "a reward is logged: the loss of reinforcement learning"
    if task in FROM_REWARDS:
        return "the loss of reinforcement learning"
    if columns_of(run).first(TAUGHT) or any(starmap(_averages, {**run.series, **run.others}.items())):
        return "the teacher is an average of its student and moves with it: their loss"
    return _RESTLESS.get(str(run.setting("loss_kind") or ""), "")


def _averages(name: str, series: Series) -> bool:
    """Return whether a series is the rate of a slow moving average, which other uses of a `tau` are far below."""
    return "tau" in words(name) and len(series) > 0 and bool(((series.values >= SLOW) & (series.values <= 1)).all())
