"""A node of the tree on a page: one line that opens into what it asks, why, by which rule, and what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.html.tags import NOTHING, Markup, fields, folded, items, joined, prose, tag
from stabtree.report.trees.reference import reference_to, rule_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.model.report import Turn, Walk
    from stabtree.tree.model import Tree


def turns(diagnosis: Diagnosis, asked: Iterable[Turn]) -> Markup:
    """Return the questions of a walk, in order."""
    return tag("ol", *(tag("li", _turn(diagnosis, turn)) for turn in asked), class_="path")


def _turn(diagnosis: Diagnosis, turn: Turn) -> Markup:
    tree, question = diagnosis.tree, diagnosis.tree.questions[turn.id]
    line = joined(
        [
            tag("span", turn.id, class_="id"),
            tag("span", turn.short + turn.source, class_="ask"),
            tag("b", turn.answer, class_="answer" if turn.checked else "answer unchecked"),
            tag("span", turn.number, class_="number"),
        ],
        Markup(" "),
    )
    return folded(
        line,
        tag("p", turn.ask, class_="question") if turn.ask != turn.short else NOTHING,
        fields(
            [
                ("seen" if turn.checked else "not checked", items("ul", turn.evidence)),
                ("why", prose(question.why)),
                ("rule", prose(rule_of(tree, question))),
                ("by hand", prose(question.person)),
                ("goes", _ways(tree, turn)),
                ("see", items("ul", (reference_to(tree, link) for link in question.see))),
            ]
        ),
        class_="node",
    )


def _ways(tree: Tree, turn: Turn) -> Markup:
    """Return where each answer leads, the one that was given marked."""
    question, given = tree.questions[turn.id], turn.answer.replace(" ", "_")
    rows = [
        tag(
            "li",
            tag("b", verdict.replace("_", " ")),
            f" → {target} {tree.title_of(target)}",
            class_="taken" if verdict == given else False,
        )
        for verdict, target in question.go.items()
    ]
    return tag("ul", *rows, class_="ways")


def ending(diagnosis: Diagnosis, walk: Walk) -> Markup:
    """Return where a walk ended."""
    tree, leaf = diagnosis.tree, diagnosis.tree.leaves[walk.leaf]
    line = joined(
        [
            tag("span", "→ ", aria_hidden="true"),
            tag("b", walk.ends),
            tag("span", f" {walk.node} · {walk.leaf}", class_="id"),
        ]
    )
    see = items("ul", (reference_to(tree, link) for link in leaf.see))
    more = fields([("means", prose(leaf.why)), ("see", see)])
    if more:
        return folded(line, more, class_="node end")
    return tag("p", line, class_="end")
