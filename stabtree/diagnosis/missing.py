"""What a walk could not check: what the log lacks for it, and what to log next time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import in_words
from stabtree.context.find import context_of
from stabtree.context.model import CTC, LANGUAGE
from stabtree.diagnosis.judged import CauseState
from stabtree.diagnosis.visits import LogNext, Missing
from stabtree.metrics.table import by_name
from stabtree.predicates import predicate_named
from stabtree.run import UNSCALED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from stabtree.diagnosis.result import Incident
    from stabtree.diagnosis.visits import Visit
    from stabtree.run import Run
    from stabtree.tree.model import Cause, Leaf, Question, Tree

MAY_BE_UNUSED = frozenset({"loss_scale", "vocab_size"})
OF_TOKENS = (LANGUAGE, CTC)  # tasks whose loss is that of a guess among tokens
MAX_NAMED = 3
PER_GROUP = "/<group>"
RERUN = "rerun"


def unanswered(run: Run, visits: Iterable[Visit]) -> tuple[Missing, ...]:
    """Return the questions without an answer, or with half of one, each with what the log lacks for it."""
    found = []
    for visit in visits:
        answer = visit.answer
        if answer.verdict != UNKNOWN and not answer.missing:
            continue
        names = lacking(run, answer.missing)
        reason = answer.reason or f"{' and '.join(names)} not logged"
        unused = bool(answer.missing) and not names and _unused(run, answer.missing).issuperset(answer.missing)
        log = "; ".join(map(how_to_log, names))
        found.append(Missing(visit.question.id, reason, names, log, answer.applies and not unused))
    return tuple(found)


def lacking(run: Run, names: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics and settings that the run does not hold, but has a use for."""
    asked = tuple(names)
    unused = _unused(run, asked)
    return tuple(name for name in asked if not _is_held(run, name) and name not in unused)


def _is_held(run: Run, name: str) -> bool:
    metric = name.removesuffix(PER_GROUP)
    if metric != name:
        return bool(run.group(metric))
    if name in run.series:  # one of a group, too
        return True
    if name in by_name() or name == RERUN:
        return run.has(name)
    return name in run.config


def _unused(run: Run, names: Iterable[str]) -> frozenset[str]:
    """Return those of some metrics and settings that a run of its kind has no use for."""
    if MAY_BE_UNUSED.isdisjoint(names):
        return frozenset()
    context = context_of(run)
    found = {"loss_scale"} if context.precision.value in UNSCALED else set()
    if context.task.value and context.task.value not in OF_TOKENS:
        found.add("vocab_size")
    return frozenset(found)


def how_to_log(name: str) -> str:
    """Return how to supply what is lacking: a metric, a setting of the manifest, or a rerun."""
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


def deciding_settings(path: Iterable[Visit], leaf_after: Callable[[Question, str], Leaf | None]) -> dict[str, str]:
    """Return the settings that only a person can name and that would turn the path, each with the leaves it decides.

    Args:
        path: the walk.
        leaf_after: returns the leaf at which the walk would end if a question had an answer.
    """
    found = {}
    for visit in path:
        predicate = predicate_named(visit.question.test)
        if visit.answer.verdict != UNKNOWN or not predicate or predicate.sets not in visit.answer.missing:
            continue
        verdicts: dict[str, list[str]] = defaultdict(list)
        for verdict in visit.question.go:
            if verdict == UNKNOWN:
                continue
            leaf = leaf_after(visit.question, verdict)
            verdicts[leaf.title if leaf else ""].append(verdict)
        if len(verdicts) > 1:
            *first, last = (f'"{title}" ({", ".join(words)})' for title, words in verdicts.items())
            found[predicate.sets] = f"between {', '.join(first)} and {last}"
    return found


def log_next(
    tree: Tree,
    visits: Mapping[str, Visit],
    missing: tuple[Missing, ...],
    lacking: tuple[Missing, ...],
    findings: list[Incident],
    deciding: Mapping[str, str],
) -> tuple[LogNext, ...]:
    """Return what to log, the most useful first.

    First comes what the verdict needs (`lacking`), then what decides between the causes and leaves of what was found
    (`deciding` are the settings that the path itself turns on), then what answers most. What would answer the same
    questions is one entry.
    """
    unlocks: dict[str, list[str]] = defaultdict(list)
    settles: dict[str, list[str]] = defaultdict(list, {name: [text] for name, text in deciding.items()})
    unchecked = list(_unchecked(findings))
    for miss in missing:
        between = _between(tree, visits[miss.id], findings)
        for name in miss.metrics:
            unlocks[name].append(miss.id)
            if between and not _is_of_cause(name, miss.id, unchecked):
                settles[name].append(between)
    for name, cause in unchecked:
        unlocks[name].append(cause.id)
        settles[name].append(f"whether the cause is {cause.text}")
    names_by_ids: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, ids in unlocks.items():
        names_by_ids[tuple(dict.fromkeys(ids))].append(name)
    found = [_entry(names, ids, settles) for ids, names in names_by_ids.items()]
    entries = {item.id for item in lacking}
    found.sort(key=lambda item: (entries.isdisjoint(item.unlocks), not item.decides, -len(item.unlocks)))
    return tuple(found)


def _is_of_cause(name: str, question: str, unchecked: Iterable[tuple[str, Cause]]) -> bool:
    """Return whether a cause of a question lacks a metric; it says more of it than the whole question does."""
    return any(name == other and cause.id.startswith(f"{question}.") for other, cause in unchecked)


def _entry(names: list[str], unlocks: tuple[str, ...], settles: Mapping[str, list[str]]) -> LogNext:
    texts = dict.fromkeys(text for name in names for text in settles.get(name, ()))
    return LogNext(tuple(names), "; ".join(map(how_to_log, names)), unlocks, tuple(texts))


def _unchecked(findings: Iterable[Incident]) -> Iterator[tuple[str, Cause]]:
    """Yield each metric that a cause which may be lacks, with the cause."""
    for finding in findings:
        for judged in finding.causes:
            if judged.state in (CauseState.NOT_CHECKABLE, CauseState.POSSIBLE):
                yield from ((name, judged.cause) for name in judged.missing)


def _between(tree: Tree, visit: Visit, findings: list[Incident]) -> str:
    """Return between which leaves an unanswered question would decide, if one of them was found without its answer."""
    question, verdict = visit.question, visit.answer.verdict
    leaf = tree.leaves.get(question.go.get(verdict, ""))
    if leaf is None or leaf.id not in {finding.leaf.id for finding in findings}:
        return ""
    others = [tree.leaves[id_].title for id_ in question.go.values() if id_ in tree.leaves and id_ != leaf.id]
    named = [f'"{title}"' for title in dict.fromkeys(others)][:MAX_NAMED]
    if not named:
        return ""
    if len(named) == 1:
        return f"whether it is {named[0]}"
    return f"between {in_words(named)}"
