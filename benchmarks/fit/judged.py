"""Judge labelled logs, and collect how strongly each question answered."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, NamedTuple

import stabtree
from benchmarks.faultbench import leaf_of
from benchmarks.fit.logs import WORKERS
from stabtree.common.answer import NO, UNKNOWN
from stabtree.context.find import context_of
from stabtree.diagnosis.walk import answering
from stabtree.measures import MEASURES, measure_named
from stabtree.tree.load import load_trees
from stabtree.tree.params import resolved
from stabtree.tree.shipped import Calibrations, use_calibrations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.fit.logs import Log
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.measures.registry import Param
    from stabtree.run import Run
    from stabtree.tree.model import Question

ORDER = ("critical", "warning", "note", "ok", "unknown", "refused")
CLOSE = 3.0
"""Doublings from its limit within which the parameters of an answer are moved, to see which one it feels."""
NUDGE = 1.1
DOCUMENTED = Calibrations(alarm=0.75, near=0.3, slope=2.0, questions={})
"""What holds before anything is fitted: the limits that the trees state."""
ROWS_OFF, SHARE_OFF = 3, 0.02
"""How far from the truth an onset may be."""


class Seen(NamedTuple):
    """One answer with a strength.

    Attributes:
        question: the question.
        verdict: the verdict that its limit is for, whether it was given or not.
        strength: how far the run is above the limit.
        alarms: whether the verdict leads to an alarm at once.
        felt: by how much the strength grows where a parameter grows, both in doublings.
    """

    question: str
    verdict: str
    strength: float
    alarms: bool
    felt: tuple[tuple[str, float], ...]


class Alarm(NamedTuple):
    """A finding of warning or worse: our leaf, its name in faultbench, and where it began."""

    leaf: str
    bench: str
    onset: int | None


class Judged(NamedTuple):
    """What is said of a log: the worst verdict of its runs, and what was found in any of them.

    Attributes:
        verdict: the worst verdict.
        task: the task of the first run.
        alarms: the findings that are alarms.
        leaves: the leaves of all findings, and those at which paths ended.
        seen: the answers with a strength.
        slack: how many steps an onset may be off.
    """

    verdict: str
    task: str = "not read"
    alarms: tuple[Alarm, ...] = ()
    leaves: frozenset[str] = frozenset()
    seen: tuple[Seen, ...] = ()
    slack: float = 0.0


def judge(logs: Sequence[Log], known: Sequence[Calibrations] | None = None, *, feel: bool = False) -> list[Judged]:
    """Judge logs, each by calibrations of its own if such are given.

    Args:
        logs: the logs.
        known: for each log the calibrations.
        feel: whether to look which parameters the answers feel.
    """
    given = known or [DOCUMENTED] * len(logs)
    with ProcessPoolExecutor(WORKERS, get_context("fork"), _hold, (logs,)) as pool:
        return list(pool.map(partial(_judged, feel=feel), range(len(logs)), given, chunksize=16))


_LOGS: list[Log] = []
"""The logs that a worker judges: they are too large to be sent to it one by one."""


def _hold(logs: Sequence[Log]) -> None:
    _LOGS[:] = logs


def _judged(index: int, known: Calibrations, *, feel: bool) -> Judged:
    log, overrides = _LOGS[index], {id_: one.limit for id_, one in known.questions.items() if one.limit}
    use_calibrations(known)
    verdicts, alarms, leaves, seen = ["refused"], list[Alarm](), set[str](), list[Seen]()
    slack, task = 0.0, ""
    for run in log.runs:
        found = _diagnosed(run, overrides)
        verdicts.append(str(found.verdict))
        leaves |= {found.end.id, *(item.leaf.id for item in found.reached)}
        alarms += [
            Alarm(item.leaf.id, leaf_of(found, item), item.onset_step)
            for item in found.reached
            if item.leaf.severity in ORDER[:2]
        ]
        seen += _seen(found, feel=feel)
        slack, task = max(slack, _slack(run)), task or str(context_of(run).task.value or "unknown")
    worst = min(verdicts, key=ORDER.index)
    return Judged(worst, task or "not read", tuple(alarms), frozenset(leaves), tuple(seen), slack)


def _diagnosed(run: Run, overrides: Mapping[str, Mapping[str, Param]]) -> Diagnosis:
    tree = load_trees(run)
    known = {id_: values for id_, values in overrides.items() if id_ in tree.questions or id_ in MEASURES}
    return stabtree.diagnose(run, tree, overrides=known)


def _seen(found: Diagnosis, *, feel: bool) -> Iterator[Seen]:
    for visits in (found.path, *found.further):
        for visit in visits:
            answer = visit.answer
            if answer.strength is None or math.isnan(answer.strength):
                continue
            verdict = answer.near if answer.strength < 0 else answer.verdict
            felt = _felt(found, visit.question, answer.strength) if feel and abs(answer.strength) < CLOSE else ()
            leaf = found.tree.leaves.get(visit.question.go.get(verdict, ""))
            alarms = leaf is not None and leaf.severity in ORDER[:2]
            yield Seen(visit.question.id, verdict, answer.strength, alarms, tuple(felt))


def _felt(found: Diagnosis, question: Question, strength: float) -> Iterator[tuple[str, float]]:
    """Yield the question's own numbers that its answer feels, and by how much."""
    measure, values = measure_named(question.test), resolved(found.tree, question)
    if measure is None:
        return
    ask = answering(found)
    for name, value in values.items():
        if measure.params[name].kind is float and isinstance(value, float | int) and value > 0:
            moved = ask(question, {question.id: {name: value * NUDGE}}).strength
            if moved is not None and moved != strength:
                yield name, (moved - strength) / math.log2(NUDGE)


def _slack(run: Run) -> float:
    longest = max(run.series.values(), key=len, default=None)
    if longest is None or len(longest) < 2:
        return 0.0
    covered = float(longest.steps[-1] - longest.steps[0])
    return max(ROWS_OFF * covered / (len(longest) - 1), SHARE_OFF * covered)


@cache
def leaf_behind(question: str, verdict: str) -> str:
    """Return the leaf to which an answer leads where nothing more is known; empty where it leads nowhere."""
    tree = load_trees()
    node = tree.questions[question].go.get(verdict, "")
    while node in tree.questions:
        go = tree.questions[node].go
        node = go.get(UNKNOWN) or go.get(NO) or next(iter(go.values()))
    return node


@cache
def is_alarm(question: str, verdict: str) -> bool:
    """Return whether an answer leads to an alarm, whatever else is answered after it."""
    tree = load_trees()
    to = tree.questions[question].go.get(verdict)
    return to is not None and all(tree.leaves[leaf].severity in ORDER[:2] for leaf in _below(to))


def _below(node: str) -> set[str]:
    tree = load_trees()
    if node in tree.leaves:
        return {node}
    return set[str]().union(*(_below(to) for to in tree.questions[node].go.values()))
