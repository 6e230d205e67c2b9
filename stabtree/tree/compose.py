"""Putting trees together: several into one, checks into questions and leaves, signatures into the leaves they name."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN, YES
from stabtree.predicates import predicate_named
from stabtree.tree.document import Part
from stabtree.tree.model import Cause, Leaf, Question, Section, Severity, Signature, Tree
from stabtree.tree.params import merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.tree.shorthand import Check

NOTHING = "Nothing found"


def compose(trees: Sequence[Tree], left_out: Sequence[Part] = ()) -> Tree:
    """One tree from several: the first one's path, then the sections of all in order.

    Args:
        trees: the trees; the signatures of each are added to the leaves of all.
        left_out: trees that were not loaded, whose leaves a signature may name all the same.

    What the first tree states of facts holds for all.

    Raises:
        ValueError: where two of them use an id twice, or a signature names a leaf that none has.
    """
    first = trees[0]
    parts = [
        (*tree.questions, *tree.leaves, *tree.groups, *tree.entries, *(section.id for section in tree.sections))
        for tree in trees
    ]
    ids = [id_ for part in parts for id_ in dict.fromkeys(part)]
    twice = sorted({id_ for id_ in ids if ids.count(id_) > 1}) if len(set(ids)) < len(ids) else []
    if twice:
        raise ValueError(f"{', '.join(twice[:3])}: used by more than one of {', '.join(tree.name for tree in trees)}")
    leaves = {id_: node for tree in trees for id_, node in tree.leaves.items()}
    signatures = tuple(item for tree in trees for item in tree.signatures)
    _sign(leaves, signatures, complete=not left_out)
    return replace(
        first,
        sections=tuple(replace(section, tree=tree.name) for tree in trees for section in tree.sections),
        questions={id_: node for tree in trees for id_, node in tree.questions.items()},
        leaves=leaves,
        groups={id_: node for tree in trees for id_, node in tree.groups.items()},
        entries={id_: node for tree in trees for id_, node in tree.entries.items()},
        facts=reduce(lambda stated, tree: merged(stated, tree.facts), trees[1:], first.facts),
        signatures=signatures,
        parts=(*(Part(tree.name, tree.title, tree.when) for tree in trees), *left_out),
    )


def _sign(leaves: dict[str, Leaf], signatures: Sequence[Signature], *, complete: bool) -> None:
    """Add each signature to the leaves that it names."""
    for item in signatures:
        cause = Cause(
            item.id,
            item.text,
            item.test,
            item.params,
            item.advanced,
            item.like,
            short=item.short,
            mend=item.mend,
            fixes=item.fixes,
            see=item.see,
            quiet=item.quiet,
            holds=item.holds,
            proof=item.proof,
            moves=item.moves,
        )
        for id_ in item.of:
            if id_ in leaves:
                known = any(cause.id == item.id for cause in leaves[id_].causes)
                leaf = leaves[id_]
                leaves[id_] = leaf if known else replace(leaf, causes=(*leaf.causes, cause))
            elif complete:
                raise ValueError(f"the cause {item.id} is of {id_!r}, which is not a leaf of the trees put together")


def ok_leaf(tree: str) -> str:
    """The id of the leaf at which all checks of a tree end that find nothing."""
    return f"{tree}-ok"


def expanded(tree: str, checks: Sequence[Check]) -> tuple[list[Section], list[Question], list[Leaf]]:
    """The sections, questions and leaves that checks stand for."""
    sections: list[Section] = []
    questions: list[Question] = []
    leaves: list[Leaf] = []
    for check in checks:
        own = not check.section
        if own:
            sections.append(Section(check.id, check.title, check.id, check.when, check=True))
        then = check.then or ok_leaf(tree)
        predicate = predicate_named(check.test)
        verdicts = predicate.verdicts if predicate else (YES, NO)
        go = {verdict: check.leaf for verdict in verdicts if verdict not in (NO, UNKNOWN)}
        go |= {verdict: f"{check.leaf}-{verdict}" for verdict in check.severities}
        questions.append(
            Question(
                id=check.id,
                section=check.section or check.id,
                ask=check.ask,
                short=check.short,
                go={**go, NO: then} if NO in verdicts else {**go, UNKNOWN: then},
                why=check.why or check.means,
                rule=check.rule or (predicate.rule if predicate else ""),
                test=check.test,
                params=check.params,
                advanced=check.advanced,
                like=check.like,
                person=check.person,
                see=check.see,
                source=check.source,
            )
        )
        leaves += _leaves(check)
    if any(not check.then for check in checks):
        leaves.append(
            Leaf(
                id=ok_leaf(tree),
                of=next(check.id for check in checks if not check.then),
                title=NOTHING,
                severity=Severity.OK,
                why="Nothing that these checks look for is in the log.",
                fixes=("Nothing to do.",),
                needs=tuple(check.id for check in checks if check.needed),
                source="stabtree",
            )
        )
    return sections, questions, leaves


def _leaves(check: Check) -> list[Leaf]:
    leaf = Leaf(
        id=check.leaf,
        of=check.id,
        title=check.title,
        severity=check.severity,
        headline=check.headline,
        why=check.means,
        causes=check.causes,
        fixes=check.fixes,
        restart=check.restart,
        take=check.take,
        events=check.events,
        lasting=check.lasting,
        see=check.see,
        source=check.source,
    )
    milder = [
        replace(leaf, id=f"{check.leaf}-{verdict}", severity=severity, headline="", restart=False)
        for verdict, severity in check.severities.items()
    ]
    return [leaf, *milder]
