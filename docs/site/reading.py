"""Who asks what: the nodes that ask a predicate, the metrics that a node reads, its parameters with their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from docs.site.markup import METRIC_NAMES, known, to, to_metric
from docs.site.prose import folded, prose, shown, table
from stabtree.metrics.table import by_name
from stabtree.predicates import PREDICATES
from stabtree.report.trees import UNITS, metrics_of
from stabtree.tree.load import load_tree
from stabtree.tree.model import Question
from stabtree.tree.params import fine, resolved, settable
from stabtree.tree.params import known as values_of

if TYPE_CHECKING:
    from stabtree.facts.registry import Parameter
    from stabtree.predicates import Predicate
    from stabtree.tree.model import Leaf, Tree
    from stabtree.tree.params import Asking

KINDS = {int: "whole number", float: "number", bool: "true or false", str: "text"}
NAMING = ("metric", "beside", "unless")  # parameters that name a metric
GROUP = "/<group>"
KNOWN = "what is known of the run: its configuration, gaps, resumes and lines."


class Asked(NamedTuple):
    """A node that asks a predicate; of a cause, with the findings that it is a cause of."""

    node: Asking
    leaves: tuple[Leaf, ...] = ()


def asking() -> list[Asked]:
    """All nodes that ask a predicate, each once: questions, then causes and signatures."""
    tree = known()
    found: dict[str, Asked] = {q.id: Asked(q) for q in tree.questions.values() if q.test}
    for leaf in tree.leaves.values():
        for cause in leaf.causes:
            if cause.test:
                held = found.get(cause.id, Asked(cause))
                found[cause.id] = Asked(held.node, (*held.leaves, leaf))
    return [*found.values()]


def home_of(id_: str) -> str:
    """The name of the shipped tree that a node comes from."""
    return next(part.name for part in known().parts if id_ in _ids(load_tree(part.name)))


def _ids(tree: Tree) -> set[str]:
    signatures = (item.id for item in tree.signatures)
    return {*tree.questions, *tree.leaves, *tree.groups, *tree.entries, *signatures}


def read_by(node: Asking) -> dict[str, bool]:
    """The metrics that a node reads, and whether it can't answer without: by its predicate, its facts, or by name."""
    predicate = PREDICATES.get(node.test)
    if predicate is None:
        return {}
    found = {name.removesuffix(GROUP): needed for name, needed in metrics_of(predicate).items()}
    set_of = resolved(known(), node)
    for key in NAMING:
        name = str(set_of.get(key) or "")
        if name.split("/", maxsplit=1)[0] in METRIC_NAMES:
            found[name] = key == "metric"
    return found


def known_besides(predicate: Predicate, *, beside: bool) -> str:
    """What a predicate looks at that is no series, a sentence; empty where it looks at nothing else.

    Args:
        predicate: which.
        beside: whether series stand before it.
    """
    if not reads_run(predicate):
        return ""
    return f"Besides, {KNOWN}" if beside else f"It reads {KNOWN}"


def metric_table(node: Asking) -> str:
    """The metrics that a node reads, how to log each, and whether it can answer without."""
    rows = [
        (
            to_metric(name),
            "needed" if needed else "where logged",
            prose(by_name()[name.split("/", maxsplit=1)[0]].meaning),
        )
        for name, needed in read_by(node).items()
    ]
    return table(("metric", "", "what it is"), sorted(rows, key=lambda row: row[1] != "needed"))


def counted_in(name: str, parameter: Parameter) -> str:
    """What a parameter is counted in, by the last word of its name, else its type."""
    return UNITS.get(name.rpartition("_")[2], KINDS[parameter.kind])


def parameters(node: Asking) -> str:
    """All that can be set of a node, with values; what only fine-tunes a guard is folded."""
    predicate = PREDICATES[node.test]
    tree = known()
    guards = fine(tree, node) | {key for stated in tree.facts.values() for key in stated.advanced}
    able = settable(predicate)
    usual = [_row(node, name, *able[name]) for name in able if name not in guards]
    more = [_row(node, name, *able[name]) for name in able if name in guards]
    head = ("set it by", "value", "by the letter", "counted in")
    return "\n\n".join(
        filter(None, (table(head, usual), folded(f"{len(more)} more, which only fine-tune a guard", table(head, more))))
    )


def _row(node: Asking, name: str, fact: str, parameter: Parameter) -> tuple[str, str, str, str]:
    usual, letter = values_of(known(), node), values_of(known(), node, literal=True)
    value, literal = usual.get(name, parameter.default), letter.get(name, parameter.default)
    return (
        f"`{fact or node.id}.{name}`",
        shown(value),
        shown(literal) if literal != value else "",
        counted_in(name, parameter),
    )


def example(node: Asking) -> str:
    """A first parameter of a node with its value, as `--set` takes it; empty where nothing can be set."""
    predicate = PREDICATES[node.test]
    usual = values_of(known(), node)
    for name, (fact, parameter) in settable(predicate).items():
        if parameter.kind in (int, float) and name in usual:
            return f"{fact or node.id}.{name}={_other(usual[name])}"
    return ""


def _other(value: object) -> str:
    """Another value than this one, of the same type."""
    return f"{value * 2 or 1}" if isinstance(value, int) else f"{float(str(value)) * 2 or 1.0:g}"


def told(asked: Asked) -> str:
    """A node that asks, with what it is."""
    node = asked.node
    if isinstance(node, Question):
        return f"{to(node.id)} {prose(node.ask)}"
    leaves = ", ".join(to(leaf.id) for leaf in asked.leaves)
    return f"{to(node.id)} {prose(node.text)}" + (f" (a cause of {leaves})" if leaves else "")


def reads_run(predicate: Predicate) -> bool:
    """Whether a predicate looks at more of a run than its series."""
    return any(need.kind == "Run" for need in predicate.needs)
