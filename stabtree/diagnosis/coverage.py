"""Which sections and trees a run is walked through, why the others are not, and what keeps it from being called ok."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.diagnosis.visits import Walked, WalkedTree
from stabtree.run import CONFIG
from stabtree.tree.document import Part
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.visits import Missing, Visit
    from stabtree.run import Run
    from stabtree.tree.model import Leaf, Section, Tree


def walked(run: Run, section: Section) -> Walked:
    """Whether a section is walked: always, or because one of its metrics was logged."""
    if not section.when:
        return Walked(section, True, "always")
    here = [name for name in section.when if run.has(name)]
    return Walked(section, bool(here), _presence((here or section.when)[0], here=bool(here)))


def walked_trees(tree: Tree, sections: Sequence[Walked]) -> tuple[WalkedTree, ...]:
    """What was walked of each of the trees that were put together."""
    found = []
    for part in tree.parts or (Part(tree.name, tree.title),):
        own = [item for item in sections if item.section.tree in ("", part.name)]
        count = sum(item.walked for item in own)
        if part.loaded and not own:
            continue  # it adds causes to the leaves of others, and is never walked itself
        why = f"{count} of {len(own)} sections"
        if not part.loaded:
            why = _presence(part.when[0], here=False)
        elif own and not count:
            why = own[0].why
        found.append(WalkedTree(part.name, part.title, part.loaded and count > 0, why))
    return tuple(found)


def lacking_for_ok(
    run: Run,
    tree: Tree,
    ends: Sequence[tuple[tuple[Visit, ...], Leaf]],
    visits: Iterable[Visit],
    missing: tuple[Missing, ...],
) -> tuple[Missing, ...]:
    """What keeps a run from being called ok: the entry questions of what applies to it that have no answer.

    Any leaf that says ok may ask for them, whichever of them was reached. Where nothing was logged that they ask
    for, all of them lack; a tree that asks for nothing judges a run by any answer at all. Questions for a
    person lack where a walk went past them to an ok with no answer at all.

    Args:
        run: the run.
        tree: the tree.
        ends: each walk with the leaf that it ended at, the path first.
        visits: all questions that were asked.
        missing: those of them that could not be answered.
    """
    end, waved = ends[0][1], _waved_through(ends)
    leaves = tree.leaves.values()
    needs = {need for leaf in leaves if leaf.severity is Severity.OK or leaf is end for need in leaf.needs}
    here = {need for need in needs if walked(run, tree.section(tree.questions[need].section)).walked}
    if needs:
        return tuple(item for item in missing if item.id in (here or needs) | waved)
    blind = all(visit.answer.verdict == UNKNOWN for visit in visits)
    return tuple(item for item in missing if blind or item.id in waved)


def _waved_through(ends: Iterable[tuple[tuple[Visit, ...], Leaf]]) -> set[str]:
    """The questions for a person of walks that ended in ok without a single answer."""
    return {
        visit.question.id
        for visits, leaf in ends
        if leaf.severity is Severity.OK and all(visit.answer.verdict == UNKNOWN for visit in visits)
        for visit in visits
        if not visit.question.test and UNKNOWN not in visit.question.go
    }


def _presence(name: str, *, here: bool) -> str:
    """Whether a section's metric, or what else it waits for, was there."""
    if name == "lines":
        return f"the log is {'a text log with lines to read' if here else 'no text log, or has no such lines'}"
    if name == CONFIG:
        return "a configuration alone was given" if here else "it is a run with a log, not a configuration alone"
    if name == "rerun":
        return "a rerun was given" if here else "no rerun was given (--rerun)"
    return f"{name} was {'' if here else 'not '}logged"
