"""What an option or an argument can be given, for a shell to complete; each is imported at Tab alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Values = Callable[[str], list[str]]


def outputs(kind: str) -> Values:
    """Return what lists the outputs of a kind of result."""

    def listed(_start: str) -> list[str]:
        from stabtree.report.outputs import names

        return [*names(kind)]

    return listed


def trees(_start: str) -> list[str]:
    """List the shipped trees."""
    from stabtree.tree.shipped import shipped

    return [*shipped()]


def nodes(_start: str) -> list[str]:
    """List the ids of all nodes, and the metrics."""
    from stabtree.metrics.table import by_name
    from stabtree.tree.shipped import shipped_titles

    return [*shipped_titles(), *by_name()]


def questions(_start: str) -> list[str]:
    """List the ids of questions."""
    return [id_ for id_ in nodes("") if id_[:1].isupper()]


def parameters(start: str) -> list[str]:
    """List ids, or the parameters of the one that is typed: `Q2.1.sigma=`."""
    from stabtree.tree.load import load_defining
    from stabtree.tree.overrides import declared

    id_ = start.rpartition(".")[0]
    tree = load_defining(id_) if id_ else None
    known = declared(tree, id_) if tree and id_ in tree.questions else {}
    return [f"{id_}.{name}=" for name in known] or [f"{item}." for item in questions("")]


def answers(start: str) -> list[str]:
    """List ids, or the verdicts of the one that is typed: `Q1.2=fp16`."""
    from stabtree.tree.load import load_defining

    id_, equals, _ = start.partition("=")
    tree = load_defining(id_) if equals else None
    if tree and id_ in tree.questions:
        question = tree.questions[id_]
        return [f"{id_}={word}" for word in (*question.go, *question.words)]
    return [f"{item}=" for item in questions("")]


def leaves(_start: str) -> list[str]:
    """List the leaves of all shipped trees."""
    from stabtree.tree.load import load_preflight, load_trees

    return [*load_trees().leaves, *load_preflight().leaves]


def levels(_start: str) -> list[str]:
    """List the words of `--fail-on`."""
    from stabtree.judging.levels import WORDS

    return [*WORDS]


def formats(_start: str) -> list[str]:
    """List the formats of logs."""
    from stabtree.loaders import LOADERS

    return [loader.name for loader in LOADERS]


def precisions(_start: str) -> list[str]:
    """List the number formats of a training."""
    from stabtree.run import PRECISIONS

    return [*PRECISIONS]


def predicates(_start: str) -> list[str]:
    """List the predicates."""
    from stabtree.predicates import predicate_names

    return [*predicate_names()]
