"""What the run trains, and by which algorithm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stabtree.context import model
from stabtree.context.columns import shown
from stabtree.context.model import INFERRED, Known
from stabtree.context.settings import how, why
from stabtree.context.signs import CLASSES, NO_CLASSES, NUMBERS, PLAIN, SIGNS, SIGNS_OF_REWARDS, WORDS
from stabtree.frameworks.load import framework
from stabtree.metrics.table import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stabtree.context.columns import ColumnNames
    from stabtree.context.signs import Sign
    from stabtree.run import Run

_WORD = re.compile(r"[a-z0-9]+")
# Metrics that are known by many names, which `metrics.yaml` holds.
_BY_METRIC = (
    ("preference_margin", model.PREFERENCE),
    ("preference_accuracy", model.PREFERENCE),
    ("reward_function", model.GRPO),
    ("reward", model.REINFORCEMENT),
    ("completion_length", model.LANGUAGE),
    ("token_accuracy", model.LANGUAGE),
)
# Tasks that a configuration may call a language model: what is trained is one.
_OF_LANGUAGE = (model.GRPO, model.PREFERENCE, model.ON_POLICY, model.REINFORCEMENT, model.CTC)


class Task(NamedTuple):
    """What a run trains.

    Attributes:
        task: one of `model.TASKS`.
        algorithm: the algorithm, of tasks that have several.
    """

    task: Known[str] = Known()
    algorithm: Known[str] = Known()


def task_of(run: Run, columns: ColumnNames, trainer: str) -> Task:
    """Return what a run trains: as configured, else as its columns show, else what its trainer is for.

    Args:
        run: the run.
        columns: its columns.
        trainer: the id of its trainer; empty where that is not known.
    """
    configured, special = _configured(run), _special(run, columns)
    if configured.task.value == model.LANGUAGE and special.task.value in _OF_LANGUAGE:
        return special
    if configured.task.value:
        return configured
    if special.task.value:
        return special
    plain: Callable[..., Known[str]]
    for plain in (_of_classes, _by_columns):
        if (found := plain(run, columns)).value:
            return Task(found)
    trains = framework(trainer).defaults.task if trainer else ""
    if trains:
        return Task(Known(trains, INFERRED, f"what {framework(trainer).name} trains"))
    return Task()


def _configured(run: Run) -> Task:
    for key in ("algorithm", "task"):
        spelled = set(_WORD.findall(str(run.setting(key) or "").lower()))
        for names, task, algorithm in WORDS if spelled else ():
            word = next((word for word in names.split() if word in spelled), "")
            if word:
                known = how(run, key), why(run, key)
                named = algorithm or (word if task in _WITH_ALGORITHMS else "")
                return Task(Known(task, *known), Known(named, *known) if named else Known())
    return Task()


_WITH_ALGORITHMS = (model.GRPO, model.PREFERENCE, model.ON_POLICY, model.OFF_POLICY)


def _special(run: Run, columns: ColumnNames) -> Task:
    """Return the task whose columns no other task logs."""
    found = [_signed(SIGNS_OF_REWARDS, columns), *_by_metric(run), _signed(SIGNS, columns)]
    return next((one for one in found if one.task.value), Task())


def _signed(signs: Sequence[Sign], columns: ColumnNames) -> Task:
    for sign in signs:
        found = columns.first(sign.marks)
        if found:
            evidence = shown(found)
            algorithm: Known[str] = Known(sign.algorithm, INFERRED, evidence) if sign.algorithm else Known()
            return Task(Known(sign.task, INFERRED, evidence), algorithm)
    return Task()


def _by_metric(run: Run) -> Iterator[Task]:
    for metric, task in _BY_METRIC:
        if run.has(metric):
            one = run.get(metric)
            yield Task(Known(task, INFERRED, f"{metric} is logged{f' as {one.origin}' if one else ''}"))


def _of_classes(run: Run, columns: ColumnNames) -> Known[str]:
    """Return the task of a run whose number of classes or tokens is configured."""
    if run.setting("vocab_size") is not None:
        return Known(model.LANGUAGE, how(run, "vocab_size"), why(run, "vocab_size"))
    if run.setting("n_classes") is not None and not columns.first(NUMBERS):
        return Known(model.CLASSIFICATION, how(run, "n_classes"), why(run, "n_classes"))
    return Known()


def _by_columns(run: Run, columns: ColumnNames) -> Known[str]:
    """Return classification or regression; where columns speak for both, neither."""
    classes, numbers = _accuracy(run, columns), columns.first(NUMBERS)
    if classes and not columns.first(NO_CLASSES):
        return Known(model.CLASSIFICATION, INFERRED, shown(classes))
    if numbers and not classes:
        return Known(model.REGRESSION, INFERRED, shown(numbers))
    return Known()


def _accuracy(run: Run, columns: ColumnNames) -> tuple[str, ...]:
    """Return the columns of an accuracy of classes; empty where it may be that of something else."""
    for mark in CLASSES:
        found = columns.first((mark,))
        if found and all(map(_is_plain, found)) and not any(_goes_below_0(run, name) for name in found):
            return found
    return ()


def _is_plain(column: str) -> bool:
    spellings = (_WORD.findall(column.lower()), words(column))
    return any(all(word.isdigit() or word in PLAIN for word in inner) for inner in spellings)


def _goes_below_0(run: Run, column: str) -> bool:
    """Return whether a share goes below 0, as an R² does that somebody calls an accuracy."""
    return any(bool((one.values < 0).any()) for one in run.series.values() if one.origin == column)
