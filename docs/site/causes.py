"""The two tables: a page of all causes with what speaks for and against each, and one of what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.site import markup as md
from docs.site.markup import code, listed, part, prose, text, to
from stabtree.report.explain import action_in_words
from stabtree.tree.tables import tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.tree.tables import Cause, Remedy

CAUSES = """After the walk, every cause that explains the kind of the finding is weighed against everything that was
observed. A factor says how many times likelier an observation makes the cause than its rivals; below 1 it speaks
against it. What was not logged changes nothing."""
ACTIONS = """What is expected to help most for what it costs comes first. A test is told with what to do after each of
its answers."""


def pages() -> dict[str, str]:
    """Return the content of each page by its path."""
    causes = (
        part(f"{row.id}: {text(row.says)}", *_cause(row), level=2, at=f"cause-{row.id}")
        for row in tables().causes.values()
    )
    actions = (
        part(f"{row.id}: {text(action_in_words(row))}", *_action(row), level=2, at=f"action-{row.id}")
        for row in tables().actions.values()
    )
    return {
        "nodes/causes.md": md.page("Causes", CAUSES, *causes),
        "nodes/actions.md": md.page("What to do", ACTIONS, *actions),
    }


def evidence(row: Cause) -> str:
    """Return what speaks for a cause and what against it, the strongest first."""
    ordered = sorted(row.evidence.items(), key=lambda pair: -pair[1])
    for_, against = ([pair for pair in ordered if (pair[1] > 1) is way] for way in (True, False))
    texts = [
        f"For it: {_factors(dict(for_))}." if for_ else "",
        f"Against it: {_factors(dict(against))}." if against else "",
    ]
    return " ".join(filter(None, texts))


def _factors(found: Mapping[str, float]) -> str:
    return ", ".join(f"{code(name)} ×{factor:g}" for name, factor in found.items())


def _cause(row: Cause) -> list[str]:
    proof = f"Proven by {', '.join(map(code, row.proof))}." if row.proof else ""
    kinds = f"Explains {', '.join(f'{kind} ({share:.0%})' for kind, share in row.explains.items())}."
    helped = [action for action in tables().actions.values() if row.id in action.helps]
    does = f"What helps: {', '.join(to(f'action-{action.id}', action.id) for action in helped)}." if helped else ""
    log = f"What would show it: {', '.join(map(code, row.log))}." if row.log else ""
    return [kinds, evidence(row), proof, log, does, f"Source: {prose(row.source)}."]


def _action(row: Remedy) -> list[str]:
    helps = ", ".join(f"{to(f'cause-{name}', name)} ({much:.0%})" for name, much in row.helps.items())
    harms = ", ".join(to(f"cause-{name}", name) for name in row.harms)
    left = listed(
        f"{text(answer)}: {', '.join(to(f'cause-{name}', name) for name in names)}"
        for answer, names in row.splits.items()
    )
    never = f"Never where {' or '.join(map(code, row.never))}." if row.never else ""
    return [
        f"Costs: {row.costs}.",
        f"Helps against {helps}." if helps else "",
        f"Does harm where the cause is {harms}." if harms else "",
        never,
        f"{prose(row.ask)}\n\n{left}" if row.ask else "",
        f"Source: {prose(row.source)}." if row.source else "",
    ]
