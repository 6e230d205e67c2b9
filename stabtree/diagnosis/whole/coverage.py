"""Which sections and trees a run is walked through, why not the others, and what it lacks to be called ok."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.lazy import per_object
from stabtree.context.find import context_of
from stabtree.diagnosis.visits import Missing, Walked, WalkedTree
from stabtree.run import CONFIG, PLANNED
from stabtree.tree.model import Part, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.common.faults import Fault
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.diagnosis.visits import Visit
    from stabtree.run import Run
    from stabtree.tree.model import Leaf, Section, Tree

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
    parts = tree.parts or (Part(tree.name, tree.title),)
    found = [_walked_tree(part, [item for item in sections if item.section.tree in ("", part.name)]) for part in parts]
    return tuple(item for item in found if item)


def _walked_tree(part: Part, sections: Sequence[Walked]) -> WalkedTree | None:
    """Return what was walked of a tree; None for one that only adds causes to the leaves of others."""
    if not part.loaded:
        return WalkedTree(part.name, part.title, False, _presence(part.when[0], here=False))
    if not sections:
        return None
    count = sum(item.walked for item in sections)
    why = f"{count} of {len(sections)} sections" if count else sections[0].why
    return WalkedTree(part.name, part.title, count > 0, why)


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
    answer at all. Questions for a person count where a walk went past them to an ok with no answer at all.

    Args:
        run: the run.
        tree: the tree.
        ends: each walk with the leaf that it ended at, the path first.
        visits: all questions that were asked.
        missing: those of them that could not be answered.
    """
    needs = _needs(tree, ends[0][1])
    if needs:
        applying = {id_ for id_ in needs if walked(run, tree.section(tree.questions[id_].section)).walked}
        needed = _led_by_reward(run, tree, applying) or applying or needs
    else:
        needed = {item.id for item in missing} if _all_unknown(visits) else set()
    needed |= _skipped_to_ok(ends)
    spared = "loss" if _judged_held_out(run, visits) else None
    return tuple(item for item in missing if item.id in needed and spared not in item.metrics)


def _judged_held_out(run: Run, visits: Iterable[Visit]) -> bool:
    """Return whether a run without a training loss was judged by its eval loss instead."""
    answered = {visit.question.test for visit in visits if visit.answer.verdict != UNKNOWN}
    return not run.has("loss") and answered >= HELD_OUT


def _led_by_reward(run: Run, tree: Tree, needed: set[str]) -> set[str]:
    """Return those questions that ask about the reward, where that is the run's outcome."""
    if context_of(run).outcome.value != REWARD:
        return set()
    return {id_ for id_ in needed if REWARD in tree.section(tree.questions[id_].section).when}


def _needs(tree: Tree, end: Leaf) -> set[str]:
    """Return the questions that the end of the path and the leaves that say ok need."""
    return {*end.needs, *_needed_for_ok(tree)}


@per_object
def _needed_for_ok(tree: Tree) -> frozenset[str]:
    return frozenset().union(*(leaf.needs for leaf in tree.leaves.values() if leaf.severity is Severity.OK))


def _skipped_to_ok(ends: Iterable[tuple[tuple[Visit, ...], Leaf]]) -> set[str]:
    """Return the questions for a person of walks that ended in ok without a single answer."""
    found: set[str] = set()
    for visits, leaf in ends:
        if leaf.severity is Severity.OK and _all_unknown(visits):
            questions = (visit.question for visit in visits)
            found.update(item.id for item in questions if not item.test and UNKNOWN not in item.go)
    return found


def _all_unknown(visits: Iterable[Visit]) -> bool:
    return all(visit.answer.verdict == UNKNOWN for visit in visits)


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
        verdict=diagnosis.verdict if _is_alarm(diagnosis) else UNKNOWN,
    )


def _is_alarm(diagnosis: Diagnosis) -> bool:
    return diagnosis.verdict in (Severity.WARNING, Severity.CRITICAL)


def _presence(name: str, *, here: bool) -> str:
    """Return whether a section's metric, or what else it waits for, was there."""
    if name in _PRESENCE:
        return _PRESENCE[name][here]
    return f"{name} was {'' if here else 'not '}logged"
