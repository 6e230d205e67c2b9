"""What a walk could not check: what the log lacks for it, and what to log next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import in_words
from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.visits import LogNext, Missing
from stabtree.metrics.table import by_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.diagnosis.result import Finding
    from stabtree.diagnosis.visits import Visit
    from stabtree.run import Run
    from stabtree.tree.model import Tree

NO_SCALE = frozenset({"fp32", "bf16", "fp8"})
MOST_NAMED = 3
PER_GROUP = "/<group>"
RERUN = "rerun"


def missed(run: Run, visits: Iterable[Visit]) -> tuple[Missing, ...]:
    """The questions without an answer, or with half of one, each with what the log lacks for it."""
    found = []
    for visit in visits:
        answer = visit.answer
        if answer.verdict == UNKNOWN or answer.missing:
            names = lacking(run, answer.missing)
            reason = answer.reason or f"{' and '.join(names)} not logged"
            idle = bool(answer.missing) and not names and _idle(run).issuperset(answer.missing)
            applies = answer.applies and not idle
            log = "; ".join(how_to_log(name) for name in names)
            found.append(Missing(visit.question.id, reason, names, log, applies))
    return tuple(found)


def lacking(run: Run, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the metrics and settings that the run neither holds nor has no use for."""
    return tuple(name for name in names if not _held(run, name) and name not in _idle(run))


def _held(run: Run, name: str) -> bool:
    metric = name.removesuffix(PER_GROUP)
    if metric != name:
        return bool(run.group(metric))
    if name in run.series:  # one of a group, too
        return True
    return run.has(name) if name in by_name() or name == RERUN else name in run.config


def _idle(run: Run) -> frozenset[str]:
    """What a run of its kind has no use for."""
    return frozenset({"loss_scale"}) if run.setting("dtype") in NO_SCALE else frozenset()


def how_to_log(name: str) -> str:
    """How to come by what is lacking: a metric, a setting of the manifest, or a rerun."""
    known = by_name().get(name.removesuffix(PER_GROUP))
    if name == "dtype":
        return "name the dtype in a manifest, or type --dtype"
    if name == RERUN:
        return "run the same training once more, and name its log with --rerun"
    if known is None:
        return f"add {name} to the manifest"
    if name.endswith(PER_GROUP) and not known.log.startswith(name):
        return f"{name}: {known.meaning}, one column per parameter group or layer"
    return known.log or name


def log_next(
    tree: Tree,
    visits: Mapping[str, Visit],
    missing: tuple[Missing, ...],
    entries: set[str],
    findings: list[Finding],
    hinges: Mapping[str, str],
) -> tuple[LogNext, ...]:
    """What to log, the most useful first.

    First comes what the verdict lacks (`entries`), then what decides between the causes and leaves of what was found
    (`hinges` are those that the path itself turns on), then what answers most. What would answer the same questions is
    one entry.
    """
    unlocks: dict[str, list[str]] = {}
    settles: dict[str, list[str]] = {name: [text] for name, text in hinges.items()}
    unchecked = [
        (name, judged.cause)
        for finding in findings
        for judged in finding.causes
        if judged.state in (CauseState.NOT_CHECKABLE, CauseState.POSSIBLE)
        for name in judged.missing
    ]
    for miss in missing:
        between = _between(tree, visits[miss.id], findings)
        for name in miss.metrics:
            unlocks.setdefault(name, []).append(miss.id)
            # A cause of this very question says more of the metric than the whole question does.
            if between and not any(name == other and cause.id.startswith(f"{miss.id}.") for other, cause in unchecked):
                settles.setdefault(name, []).append(between)
    for name, cause in unchecked:
        unlocks.setdefault(name, []).append(cause.id)
        settles.setdefault(name, []).append(f"whether the cause is {cause.text}")
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, ids in unlocks.items():
        groups.setdefault(tuple(dict.fromkeys(ids)), []).append(name)
    found = [
        LogNext(
            names=tuple(names),
            log="; ".join(how_to_log(name) for name in names),
            unlocks=ids,
            decides=tuple(dict.fromkeys(text for name in names for text in settles.get(name, []))),
        )
        for ids, names in groups.items()
    ]
    return tuple(
        sorted(found, key=lambda item: (entries.isdisjoint(item.unlocks), not item.decides, -len(item.unlocks)))
    )


def _between(tree: Tree, visit: Visit, findings: list[Finding]) -> str:
    """Between which leaves an unanswered question would decide, where one of them was found for want of its answer."""
    question, verdict = visit.question, visit.answer.verdict
    leaf = tree.leaves.get(question.go.get(verdict, ""))
    if leaf is None or leaf.id not in {finding.leaf.id for finding in findings}:
        return ""
    others = [tree.leaves[id_].title for id_ in question.go.values() if id_ in tree.leaves and id_ != leaf.id]
    named = [f'"{title}"' for title in dict.fromkeys(others)][:MOST_NAMED]
    if len(named) < 2:
        return f"whether it is {named[0]}" if named else ""
    return f"between {in_words(named)}"
