"""The two tables: a page of all causes with what speaks for and against each, and one of what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.site import markup as md
from docs.site.markup import code, listed, part, prose, text, to
from stabtree.report.explain import action_in_words
from stabtree.tree.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.tree.tables import Cause, Remedy

CAUSES = """After the walk, every cause that explains the kind of the finding is weighed against everything that was
observed. A factor says how many times likelier an observation makes the cause than its rivals; below 1 it speaks
against it. What was not logged changes nothing."""
ACTIONS = (
    "What is expected to help most for what it costs comes first. A test is told with what to do after each answer."
)


def pages() -> dict[str, str]:
    """Return the content of each page by its path."""
    causes = (
        part(f"{row.id}: {text(row.says)}", _cause(row), at=f"cause-{row.id}") for row in tables().causes.values()
    )
    actions = (
        part(f"{row.id}: {text(action_in_words(row))}", _action(row), at=f"action-{row.id}")
        for row in tables().actions.values()
    )
    return {
        "nodes/causes.md": md.page("Causes", CAUSES, *causes),
        "nodes/actions.md": md.page("What to do", ACTIONS, *actions),
    }


def evidence(row: Cause) -> tuple[list[str], list[str]]:
    """Return what speaks for a cause and what against it, the strongest first."""
    found = sorted((factor, f"{code(name)} ×{factor:g}") for name, factor in row.evidence.items())
    return [said for factor, said in found[::-1] if factor > 1], [said for factor, said in found if factor < 1]


def _said(head: str, texts: Iterable[str]) -> str:
    said = ", ".join(texts)
    return f"{head}: {said}." if said else ""


def _cause(row: Cause) -> str:
    helped = (to(f"action-{action.id}", action.id) for action in tables().actions.values() if row.id in action.helps)
    lines = (
        _said("Explains", (f"{kind} ({share:.0%})" for kind, share in row.explains.items())),
        *map(_said, ("For it", "Against it"), evidence(row)),
        *(_said("Proven by", map(code, row.proof)), _said("What would show it", map(code, row.log))),
        *(_said("What helps", helped), f"Source: {prose(row.source)}."),
    )
    return "\n\n".join(filter(None, lines))


def _action(row: Remedy) -> str:
    helps = (f"{to(f'cause-{name}', name)} ({much:.0%})" for name, much in row.helps.items())
    left = (_said(text(answer), (to(f"cause-{name}", name) for name in names)) for answer, names in row.splits.items())
    lines = (
        *(f"Costs: {row.costs}.", _said("Helps against", helps), prose(row.ask), listed(left)),
        *(_said("Does harm where the cause is", (to(f"cause-{name}", name) for name in row.harms)),),
        *(_said("Never where", map(code, row.never)), _said("Source", filter(None, [prose(row.source)]))),
    )
    return "\n\n".join(filter(None, lines))
