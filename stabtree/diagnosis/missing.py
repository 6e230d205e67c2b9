"""What could not be checked and why, and what a run lacks to be called ok."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.lazy import per_object
from stabtree.common.text import in_words
from stabtree.context.find import context_of
from stabtree.context.model import CTC, LANGUAGE
from stabtree.diagnosis.result import LogNext, Missing, Visit, Walked, WalkedTree, asking
from stabtree.diagnosis.walker import Walker, WalkOptions, start
from stabtree.measures import measure_named
from stabtree.measures.progress import FEW_ROWS, MIN_ROWS, Learned
from stabtree.measures.registry import finite
from stabtree.metrics.table import by_name
from stabtree.run import CONFIG, PLANNED, UNSCALED
from stabtree.tree.load import load_preflight
from stabtree.tree.model import Part, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stabtree.common.faults import Fault
    from stabtree.diagnosis.result import Diagnosis, Incident, Near
    from stabtree.diagnosis.walker import Way
    from stabtree.run import Run
    from stabtree.tree.model import Leaf, Question, Section, Tree

    End = tuple[tuple[Visit, ...], Leaf]


MAY_BE_UNUSED = frozenset({"loss_scale", "vocab_size"})
OF_TOKENS = (LANGUAGE, CTC)  # tasks whose loss is that of a guess among tokens
MAX_NAMED = 3
ENDING = "end"  # the kind of event of a finding that says how a run ended
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
    asked, found = tuple(names), []
    unused = _unused(run, asked)
    for name in asked:
        metric = name.removesuffix(PER_GROUP)
        if metric != name:
            logged = bool(run.group(metric))
        elif name in by_name() or name == RERUN:
            logged = name in run.series or run.has(name)
        else:
            logged = name in run.series or name in run.config
        if not logged and name not in unused:
            found.append(name)
    return tuple(found)


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
        measure = measure_named(visit.question.test)
        if visit.answer.verdict != UNKNOWN or not measure or measure.sets not in visit.answer.missing:
            continue
        verdicts: dict[str, list[str]] = defaultdict(list)
        for verdict in visit.question.go:
            if verdict == UNKNOWN:
                continue
            leaf = leaf_after(visit.question, verdict)
            verdicts[leaf.title if leaf else ""].append(verdict)
        if len(verdicts) > 1:
            *first, last = (f'"{title}" ({", ".join(words)})' for title, words in verdicts.items())
            found[measure.sets] = f"between {', '.join(first)} and {last}"
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

    First comes what the verdict needs (`lacking`), then what decides between the leaves of what was found
    (`deciding` are the settings that the path itself turns on), then what answers most. What would answer the same
    questions is one entry.
    """
    unlocks: dict[str, list[str]] = defaultdict(list)
    settles: dict[str, list[str]] = defaultdict(list, {name: [text] for name, text in deciding.items()})
    for miss in missing:
        between = _between(tree, visits[miss.id], findings)
        for name in miss.metrics:
            unlocks[name].append(miss.id)
            if between:
                settles[name].append(between)
    names_by_ids: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, ids in unlocks.items():
        names_by_ids[tuple(dict.fromkeys(ids))].append(name)
    found = []
    for unlocked, names in names_by_ids.items():
        texts = dict.fromkeys(text for name in names for text in settles.get(name, ()))
        found.append(LogNext(tuple(names), "; ".join(map(how_to_log, names)), unlocked, tuple(texts)))
    entries = {item.id for item in lacking}
    found.sort(key=lambda item: (entries.isdisjoint(item.unlocks), not item.decides, -len(item.unlocks)))
    return tuple(found)


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


REWARD = "reward"
# What a section may wait for besides metrics: what to say where it is absent, and where it is there.
_PRESENCE = {
    "lines": ("the log is no text log, or has no such lines", "the log is a text log with lines to read"),
    CONFIG: ("it is a run with a log, not a configuration alone", "a configuration alone was given"),
    PLANNED: ("it is not known how long the run was to be", "it is known how long the run was to be"),
    "rerun": ("no rerun was given (--rerun)", "a rerun was given"),
}

HELD_OUT = {"nonfinite_eval", "overfits"}
"""What is asked of an eval loss, as other questions of a training loss."""


def walked(run: Run, section: Section) -> Walked:
    """Return whether a section is walked, and why: always, or because one of its metrics was logged."""
    if not section.when:
        return Walked(section, True, "always")
    for name in section.when:
        if run.has(name):
            return Walked(section, True, _presence(name, here=True))
    return Walked(section, False, _presence(section.when[0], here=False))


def walked_trees(tree: Tree, sections: Sequence[Walked]) -> tuple[WalkedTree, ...]:
    """Return what was walked of each of the composed trees."""
    found = []
    for part in tree.parts or (Part(tree.name, tree.title),):
        own = [item for item in sections if item.section.tree in ("", part.name)]
        if not part.loaded:
            found.append(WalkedTree(part.name, part.title, False, _presence(part.when[0], here=False)))
        elif own:  # else it only adds causes to the leaves of others
            count = sum(item.walked for item in own)
            why = f"{count} of {len(own)} sections" if count else own[0].why
            found.append(WalkedTree(part.name, part.title, count > 0, why))
    return tuple(found)


def lacking_for_ok(
    run: Run,
    tree: Tree,
    ends: Sequence[tuple[tuple[Visit, ...], Leaf]],
    visits: Iterable[Visit],
    missing: tuple[Missing, ...],
) -> tuple[Missing, ...]:
    """Return the questions without an answer that keep a run from being called ok.

    Those are the questions that the leaves which say ok need, whichever of them was reached, as far as their section
    applies to the run; all of them if none applies. Where a reward leads, what is asked of the loss is not needed, nor
    where no training loss is logged and the eval loss was judged. A tree whose leaves need none judges a run by any
    answer at all. Questions for a person count where a walk went past them to an ok with no answer at all. So does how
    the run ended, where its last lines leave that open.

    Args:
        run: the run.
        tree: the tree.
        ends: each walk with the leaf that it ended at, the path first.
        visits: all questions that were asked.
        missing: those of them that could not be answered.
    """
    needs = {*ends[0][1].needs, *_needed_for_ok(tree)}
    answered = {visit.question.test for visit in visits if visit.answer.verdict != UNKNOWN}
    needed = {item.id for item in missing} if not answered else set()
    if needs:
        sections = {id_: tree.section(tree.questions[id_].section) for id_ in needs}
        applying = {id_ for id_, section in sections.items() if walked(run, section).walked}
        by_reward = {id_ for id_ in applying if REWARD in sections[id_].when}
        needed = (by_reward if context_of(run).outcome.value == REWARD else set()) or applying or needs
    for walk, leaf in ends:
        if leaf.severity is Severity.OK and all(visit.answer.verdict == UNKNOWN for visit in walk):
            questions = (visit.question for visit in walk)
            needed |= {item.id for item in questions if not item.test and UNKNOWN not in item.go}
    needed |= ending_questions(tree)
    # A run without a training loss may be judged by its eval loss instead, or by a quality with enough rows.
    outcome = run.find(context_of(run).outcome.value or "")
    shown = outcome is not None and len(finite(outcome)[1]) >= FEW_ROWS
    spared = "loss" if not run.has("loss") and (shown or answered >= HELD_OUT) else None
    return tuple(item for item in missing if item.id in needed and spared not in item.metrics)


@per_object
def _needed_for_ok(tree: Tree) -> frozenset[str]:
    return frozenset().union(*(leaf.needs for leaf in tree.leaves.values() if leaf.severity is Severity.OK))


@per_object
def ending_questions(tree: Tree) -> frozenset[str]:
    """Return the questions about the lines that say how the run ended."""
    leaves = tree.leaves.values()
    return frozenset(leaf.of for leaf in leaves if ENDING in leaf.events) - {leaf.of for leaf in leaves if leaf.unended}


def with_faults(diagnosis: Diagnosis, faults: Iterable[Fault]) -> Diagnosis:
    """Return the diagnosis with these faults, besides those that it has."""
    new = tuple(fault for fault in faults if fault not in diagnosis.faults)
    if not new:
        return diagnosis
    failed = {fault.id for fault in new}
    lacking = [Missing(fault.id, fault.reason, (), "") for fault in new]
    run = diagnosis.run
    return replace(
        diagnosis,
        run=replace(run, notes=(*(fault.note for fault in new), *run.notes)),
        faults=(*diagnosis.faults, *new),
        lacking=(*lacking, *(item for item in diagnosis.lacking if item.id not in failed)),
        verdict=diagnosis.verdict if diagnosis.verdict in (Severity.WARNING, Severity.CRITICAL) else UNKNOWN,
    )


def _presence(name: str, *, here: bool) -> str:
    """Return whether a section's metric, or what else it waits for, was there."""
    if name in _PRESENCE:
        return _PRESENCE[name][here]
    return f"{name} was {'' if here else 'not '}logged"


_SOURCE = re.compile(r" \(([^()]*)\)")


def setting_notes(run: Run) -> tuple[str, ...]:
    """Return one line on the settings that may make this run fail, of the checks whose leaf names a kind of failure."""
    if not run.config:
        return ()
    walk = start(run, load_preflight(), WalkOptions())
    tree, found = walk.tree, []
    wanted = {tree.questions[leaf.of].section for leaf in tree.leaves.values() if leaf.kind != "other"}
    sections = tuple(walked(run, section) for section in tree.sections[1:] if section.id in wanted)
    for visits, leaf in (walk.walk_path(), *walk.walk_further(sections)):
        if visits and leaf is not None and leaf.severity.is_alarm and leaf.kind != "other":
            found.append((visits[-1], leaf))
    if not found:
        return ()
    visit, leaf = found[0]
    text = f"{leaf.title}: {_SOURCE.sub('', visit.answer.evidence[0].text)}"  # the values without their sources
    if len(found) > 1:
        text = f"{text}; {len(found) - 1} more: stabtree check"
    return (text,)


def earned(walk: Walker, ends: Sequence[End], near: Sequence[Near]) -> End:
    """Return the leaf that the path ends at, and what led there: another one where it has not earned its own.

    Beside an alarm it needs to earn nothing, and the rules of the documents, taken literally, know of no such thing.

    Args:
        walk: the walk.
        ends: each walk that ended at a leaf, the path first.
        near: what came near its limit.
    """
    path, end = ends[0]
    if walk.options.literal or any(leaf.severity.is_alarm for _, leaf in ends):
        return path, end
    leaves = walk.tree.leaves
    if end.unproven:
        shown = walk.facts.get("progress")
        if isinstance(shown, Learned) and not shown.shown:
            return (Visit(path[-1].question, shown.answer),), leaves[end.unproven]
    if end.near and near:
        return tuple(fact.as_visit for fact in near), asking(leaves[end.near], near)
    return path, end


def too_few(walk: Walker, path: tuple[Visit, ...], end: Leaf) -> tuple[Missing, ...]:
    """Return why a run of a few rows that don't get better can't be judged; nothing of a finding or more rows."""
    unproven = end.unproven or any(leaf.unproven == end.id for leaf in walk.tree.leaves.values())
    shown = walk.facts.get("progress") if unproven and not walk.options.literal else None
    least = MIN_ROWS if isinstance(shown, Learned) and shown.shown else FEW_ROWS
    if not isinstance(shown, Learned) or not 0 < shown.rows < least:
        return ()
    reason = f"{shown.metric} has {shown.rows} finite rows, at least {least} are needed to tell"
    entry = walk.tree.section(path[-1].question.section).entry
    return (Missing(entry, reason, (), ""),)


def worth_saying(tree: Tree, ends: Iterable[Way]) -> list[End]:
    """Return the ends of all walks at a leaf; beside an alarm without those that only keep a run from being healthy.

    Args:
        tree: the tree.
        ends: each walk with the leaf that it ended at, None where it ended between two questions.
    """
    found = [(visits, leaf) for visits, leaf in ends if leaf is not None]
    if not any(leaf.severity.is_alarm for _, leaf in found):
        return found
    stand_ins = {name for leaf in tree.leaves.values() for name in (leaf.near, leaf.unproven)}
    return [(visits, leaf) for visits, leaf in found if leaf.id not in stand_ins]
