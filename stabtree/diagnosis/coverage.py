"""Which sections and trees a run is walked through, and why the others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.diagnosis.result import Walked, WalkedTree
from stabtree.tree.model import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.run import Run
    from stabtree.tree.model import Section, Tree


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


def _presence(name: str, *, here: bool) -> str:
    """Whether a section's metric, or what else it waits for, was there."""
    if name == "lines":
        return f"the log is {'a text log with lines to read' if here else 'no text log, or has no such lines'}"
    if name == "rerun":
        return "a rerun was given" if here else "no rerun was given (--rerun)"
    return f"{name} was {'' if here else 'not '}logged"
