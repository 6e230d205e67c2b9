"""Find who a run is: its trainer, task, phase, outcome and kind."""

from __future__ import annotations

import math
import re
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.passes import remembered
from stabtree.common.shared import SHARE_HALF
from stabtree.common.text import clean
from stabtree.context import model
from stabtree.context.model import (
    CLASSES,
    FROM_REWARDS,
    INFERRED,
    LOGGED,
    NO_CLASSES,
    NUMBERS,
    OPTIMIZERS,
    PLAIN,
    SIGNS,
    SIGNS_OF_REWARDS,
    TAUGHT,
    WORDS,
    Context,
    Known,
    classes_of,
    columns_of,
    peak_lr_of,
    precision_of,
    shown,
    stated,
)
from stabtree.frameworks.load import all_trainers, framework
from stabtree.frameworks.recognise import LoggedFile, Recognised, of_log
from stabtree.metrics.metric import Role
from stabtree.metrics.role import NO_OUTCOME, describe_name
from stabtree.metrics.table import normalize, words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.context.model import ColumnNames, Sign
    from stabtree.run import FileUse, Run


_LOSSES = ("eval_loss", "loss")
_PAIRS = ("dpo", "reward-model")  # their loss is that of a guess between two answers


def outcome_of(run: Run) -> tuple[Known[str], str]:
    """Return the series that says how well a run does, and whether `lower` or `higher` is better.

    The reward, else the quality on held-out data, else the held-out or the training loss.
    """
    ranked = []
    for name in run.series:
        found = describe_name(name)
        among = [
            found.role is Role.REWARD and found.order < NO_OUTCOME,
            found.role is Role.QUALITY and found.held_out,
            found.role is Role.HELD_OUT_LOSS,
            name == "loss",
        ]
        if True in among:
            # Of several, the one that is a known metric: assembling a run has chosen its column.
            ranked.append(((among.index(True), not found.metric, found.order), name))
    if not ranked:
        return Known(), ""
    name = min(ranked, key=itemgetter(0))[1]
    column = run.series[name].origin
    return Known(name, LOGGED, f"column {column}" if column else ""), describe_name(name).better


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
    if is_loss and guesses_between_two(task.value, algorithm.value):
        return Known(math.log(2), INFERRED, "ln 2: a guess between two answers")
    if is_loss and classes and task.value in (model.LANGUAGE, model.CLASSIFICATION):
        return Known(math.log(classes), INFERRED, f"ln {classes:,}")
    if "acc" in column and classes and task.value == model.CLASSIFICATION:
        return Known(1 / classes, INFERRED, f"1 of {classes:,} classes")
    return Known()


def guesses_between_two(task: str | None, algorithm: str | None) -> bool:
    """Return whether the loss of an uninformed model is that of a guess between two answers."""
    return task == model.PREFERENCE and algorithm in _PAIRS


# An untrained model gives every class much the same chance, so its first loss is near the logarithm of their number.
MIN_UNTRAINED, MAX_UNTRAINED = 0.85, 1.5
# A model that was trained before begins far below; a smaller gap may be what was learned up to the first row.
MAX_TRAINED = SHARE_HALF
FIRST_STEPS = 10  # a first row later than that, or the mean of more steps, shows a model that has learned already


def phase_of(run: Run, task: Known[str], classes: Known[int]) -> Known[str]:
    """Return the phase: as configured or printed, else as the first loss or the first step shows."""
    found = _configured_phase(run)
    if not found.value:
        found = _by_first_loss(run, task.value or "", classes.value)
    loss, first = run.get("loss"), run.excerpt_from
    if not found.value and loss is not None and len(loss) > 2 and first is not None:
        return Known(model.CONTINUED, INFERRED, f"the log begins at step {first:,}")
    if not found.value and task.value in (model.GRPO, model.PREFERENCE):
        return Known(model.FINE_TUNE, INFERRED, f"{task.value} begins with a trained model")
    return found


def _configured_phase(run: Run) -> Known[str]:
    adapter = str(run.setting("adapter") or "").lower()
    if run.setting("lora_rank") is not None:
        return stated(run, "lora_rank", model.LORA)
    if adapter not in ("", "none", "false", "no"):
        return stated(run, "adapter", model.LORA if "lora" in adapter or adapter == "peft" else model.FINE_TUNE)
    start = str(run.setting("init_from") or "").lower()
    if not start:
        return Known()
    phase = {"scratch": model.FROM_SCRATCH, "resume": model.CONTINUED}.get(start, model.FINE_TUNE)
    return stated(run, "init_from", phase)


def _by_first_loss(run: Run, task: str, classes: int | None) -> Known[str]:
    loss = run.get("loss")
    if loss is None or not len(loss) or not classes or task not in (model.LANGUAGE, model.CLASSIFICATION):
        return Known()
    first, step = float(loss.values[0]), int(loss.steps[0])
    if step > FIRST_STEPS or run.by_epoch or not math.isfinite(first):
        return Known()
    chance = math.log(classes)
    text = f"first loss {first:.3g}, ln {classes:,} = {chance:.3g}"
    if MIN_UNTRAINED * chance <= first <= MAX_UNTRAINED * chance:
        return Known(model.FROM_SCRATCH, INFERRED, text)
    if 0 < first < MAX_TRAINED * chance:
        return Known(model.FINE_TUNE, INFERRED, text)
    return Known()


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


def task_of(run: Run, columns: ColumnNames, trainer: str) -> tuple[Known[str], Known[str]]:
    """Return what a run trains, and by which algorithm: as configured, else as its columns show, else as its trainer.

    Args:
        run: the run.
        columns: its columns.
        trainer: the id of its trainer; empty where that is not known.
    """
    configured = _configured_task(run)
    special = [_signed(SIGNS_OF_REWARDS, columns)]
    for metric, task in _BY_METRIC:
        if run.has(metric):
            one = run.get(metric)
            evidence = f"{metric} is logged{f' as {one.origin}' if one else ''}"
            special.append((Known(task, INFERRED, evidence), Known()))
    special.append(_signed(SIGNS, columns))
    shows = next((found for found in special if found[0].value), special[0])
    by_columns = configured[0].value == model.LANGUAGE and shows[0].value in _OF_LANGUAGE
    if configured[0].value and not by_columns:
        return configured
    if shows[0].value:
        return shows
    if run.setting("vocab_size") is not None:
        return stated(run, "vocab_size", model.LANGUAGE), Known()
    if run.setting("n_classes") is not None and not columns.first(NUMBERS):
        return stated(run, "n_classes", model.CLASSIFICATION), Known()
    plain = _by_columns(run, columns)
    trains = framework(trainer).defaults.task if trainer and not plain.value else ""
    return Known(trains, INFERRED, f"what {framework(trainer).name} trains") if trains else plain, Known()


def _configured_task(run: Run) -> tuple[Known[str], Known[str]]:
    for key in ("algorithm", "task"):
        spelled = set(_WORD.findall(str(run.setting(key) or "").lower()))
        for names, task, algorithm in WORDS:
            word = next((word for word in names.split() if word in spelled), "")
            if word:
                named = algorithm or (word if task in _WITH_ALGORITHMS else "")
                return stated(run, key, task), stated(run, key, named) if named else Known()
    return Known(), Known()


_WITH_ALGORITHMS = (model.GRPO, model.PREFERENCE, model.ON_POLICY, model.OFF_POLICY)


def _signed(signs: Sequence[Sign], columns: ColumnNames) -> tuple[Known[str], Known[str]]:
    for sign in signs:
        found = columns.first(sign.marks)
        if found:
            evidence = shown(found)
            algorithm: Known[str] = Known(sign.algorithm, INFERRED, evidence) if sign.algorithm else Known()
            return Known(sign.task, INFERRED, evidence), algorithm
    return Known(), Known()


def _by_columns(run: Run, columns: ColumnNames) -> Known[str]:
    """Return classification or regression; where columns speak for both, neither."""
    classes, numbers = _accuracy(run, columns), columns.first(NUMBERS)
    if classes and not columns.first(NO_CLASSES):
        return Known(model.CLASSIFICATION, INFERRED, shown(classes))
    if numbers and not classes:
        return Known(model.REGRESSION, INFERRED, shown(numbers))
    return Known()


def _accuracy(run: Run, columns: ColumnNames) -> tuple[str, ...]:
    """Return the columns of an accuracy of classes; empty where it may be that of something else.

    A share that goes below 0 is an R² that somebody calls an accuracy.
    """
    below = {one.origin for one in run.series.values() if (one.values < 0).any()}
    for mark in CLASSES:
        found = columns.first((mark,))
        if found and all(map(_is_plain, found)) and below.isdisjoint(found):
            return found
    return ()


def _is_plain(column: str) -> bool:
    spellings = (_WORD.findall(column.lower()), words(column))
    return any(all(word.isdigit() or word in PLAIN for word in inner) for inner in spellings)


def framework_of(run: Run) -> Known[str]:
    """Return the trainer that wrote the log, else the one that the configuration is for.

    What a log shows comes first: the configuration of an engine (DeepSpeed) may be all that is configured. A trainer
    that is built on the one that the log shows writes the same log: there the configuration decides.
    """
    configured = str(run.setting("framework") or "")
    written = next((found for found in map(_wrote, run.sources) if found.id), Recognised())
    if configured in all_trainers() and (not written.id or framework(configured).built_on == written.id):
        return stated(run, "framework", configured)
    if written.id:
        return Known(written.id, LOGGED if written.sure else INFERRED, clean(written.why, 100))
    return Known()


def _wrote(source: FileUse) -> Recognised:
    columns = source.columns
    filled = {column.name: column.logged for column in columns if column.metric and column.logged}
    begins_at, names = columns[0].first if columns else None, [column.name for column in columns]
    return of_log(LoggedFile(names, source.path, source.format, begins_at, source.rows, filled))


SLOW = 0.9  # no limit: BYOL's average begins at 0.99
_RESTLESS = {  # losses, by the setting `loss_kind`, whose movement shows little
    "adversarial": "adversaries are trained against each other: their loss",
    "policy": "the loss of a policy",
    "value": "the loss of value estimates, whose targets move,",
}


@remembered
def context_of(run: Run) -> Context:
    """Return who a run is, as far as its configuration, its columns and its first rows show."""
    return replace(who_of(run), precision=precision_of(run))


def who_of(run: Run) -> Context:
    """Return the same without the precision."""
    trainer = framework_of(run)
    task, algorithm = task_of(run, columns_of(run), trainer.value or "")
    classes = classes_of(run)
    spelled = str(run.setting("optimizer") or "").lower()
    optimizer = next((name for name in OPTIMIZERS if name in spelled), "")
    planned = run.setting("max_steps")
    outcome, better = outcome_of(run)
    return Context(
        task=task,
        algorithm=algorithm,
        phase=phase_of(run, task, classes),
        framework=trainer,
        optimizer=stated(run, "optimizer", optimizer) if optimizer else Known(),
        planned_steps=stated(run, "max_steps", planned) if isinstance(planned, int) else Known(),
        peak_lr=peak_lr_of(run),
        classes=classes,
        outcome=outcome,
        better=better,
        chance=chance_of(run, outcome, task, algorithm, classes.value or 0),
        restless=_restless(run, task.value or ""),
    )


def _restless(run: Run, task: str) -> str:
    """Return why the loss need not fall and may burst; empty if it should fall as any loss does."""
    if any(map(run.has, ("reward", "reward_function"))):
        return "a reward is logged: the loss of reinforcement learning"
    if task in FROM_REWARDS:
        return "the loss of reinforcement learning"
    # Other uses of a `tau` are far below the rate of a slow moving average.
    rates = [one.values for name, one in {**run.series, **run.others}.items() if "tau" in words(name) and len(one)]
    if columns_of(run).first(TAUGHT) or any(((rate >= SLOW) & (rate <= 1)).all() for rate in rates):
        return "the teacher is an average of its student and moves with it: their loss"
    return _RESTLESS.get(str(run.setting("loss_kind") or ""), "")


# What else is true of a task: a detector classifies boxes, and what learns from answers is a language model.
_ALSO: Mapping[str, tuple[str, ...]] = {
    model.GRPO: (model.REINFORCEMENT, model.LANGUAGE),
    model.ON_POLICY: (model.REINFORCEMENT,),
    model.OFF_POLICY: (model.REINFORCEMENT,),
    model.PREFERENCE: (model.LANGUAGE,),
    model.DETECTION: (model.CLASSIFICATION,),
    model.SEGMENTATION: (model.CLASSIFICATION,),
}


def tasks_of(run: Run, context: Context) -> frozenset[str]:
    """Return the task of a run and what else is true of it; empty where none is known."""
    task = context.task.value
    if not task:
        return frozenset()
    # Text is often logged as a bare loss.
    of_text = "completion_length" in run.series or run.setting("vocab_size") is not None
    return frozenset((task, *_ALSO.get(task, ()), *([model.LANGUAGE] if of_text else [])))


def logs_means(run: Run, context: Context) -> bool:
    """Return whether a row of the loss is known to be a mean: as configured, by its column, or by the trainer."""
    reduced = run.setting("log_reduce")
    if reduced is not None:
        word = normalize(str(reduced))
        return "mean" in word or "avg" in word
    columns = chain.from_iterable(source.columns for source in run.sources)
    if any(use.metric == "loss" and normalize(use.name).endswith("_epoch") for use in columns):
        return True
    trainer = context.framework.value
    return bool(trainer) and framework(framework(trainer or "").base).defaults.mean_rows
