"""A tree as a graph, in Mermaid or in DOT: from left to right, its sections from top to bottom."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.text import near
from stabtree.report.verdicts import BADGES
from stabtree.tree.compose import NOTHING
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tree.document import Group
    from stabtree.tree.model import Leaf, Section, Tree

LINE_CHARACTERS = 34
ELSEWHERE = "elsewhere"


class Edge(NamedTuple):
    """From where, the label, and to where."""

    start: str
    label: str
    end: str


def part_of(tree: Tree, section: str) -> Tree:
    """Return the tree with one section alone, and with the leaves that it leads to.

    Raises:
        StabtreeError: where there is no such section.
    """
    kept = _sections_called(tree, section)
    id_ = kept[0].id
    questions = {name: question for name, question in tree.questions.items() if question.section == id_}
    groups = {name: group for name, group in tree.groups.items() if group.section == id_}
    ends = set(chain.from_iterable(question.go.values() for question in questions.values()))
    leaves = {name: leaf for name, leaf in tree.leaves.items() if name in ends or leaf.of in groups}
    return replace(tree, sections=kept, questions=questions, groups=groups, leaves=leaves, signatures=())


def _sections_called(tree: Tree, section: str) -> tuple[Section, ...]:
    """Return the sections of this id, at least one.

    Raises:
        StabtreeError: where there is none.
    """
    kept = tuple(item for item in tree.sections if item.id == section.removeprefix("§"))
    if kept:
        return kept
    known = [item.id for item in tree.sections]
    problem = f"{tree.name} has no section {section!r}{near(section, known)}"
    raise StabtreeError(problem, where="--section", hint=f"its sections: {', '.join(known) or 'none'}")


def mermaid(tree: Tree) -> str:
    """Return the tree as a Mermaid flow chart."""
    tree = _without_nothing(tree)
    lines = ["flowchart LR", f'  root(["{_mermaid(tree.title)}"])']
    for section in tree.sections:
        lines.append(f'  subgraph s{_key(section.id)}["{_mermaid(section.heading)}"]')
        lines += [
            f'    {_key(q.id)}{{{{"{_mermaid(f"{q.id} {q.ask}")}"}}}}'
            for q in tree.questions.values()
            if q.section == section.id
        ]
        lines.append("  end")
    for group, leaves in _groups(tree):
        lines.append(f'  subgraph s{_key(group.id)}["{_mermaid(f"{group.id} {group.ask}")}"]')
        lines += [f"    {_mermaid_leaf(leaf)}" for leaf in leaves]
        lines.append("  end")
    lines += [f"  {_mermaid_leaf(leaf)}" for leaf in _alone(tree)]
    lines += [f'  {_key(id_)}["{_mermaid(text)}"]:::{ELSEWHERE}' for id_, text in _elsewhere(tree)]
    lines += [f"  root --> {_key(start)}" for start in _starts(tree)]
    lines += [f'  {_key(edge.start)} -->|"{_mermaid(edge.label)}"| {_key(edge.end)}' for edge in _edges(tree)]
    lines += [f"  classDef {name} fill:{BADGES[name].fill},stroke:#555,color:#111" for name in Severity]
    lines.append(f"  classDef {ELSEWHERE} fill:#fff,stroke:#999,stroke-dasharray:3 3,color:#555")
    return "\n".join(lines) + "\n"


def dot(tree: Tree) -> str:
    """Return the tree in the DOT language of Graphviz."""
    tree = _without_nothing(tree)
    lines = [
        f"digraph {_quoted(tree.name)} {{",
        '  rankdir="LR"; ranksep=0.6; nodesep=0.15; newrank=true;',
        '  node [fontname="Helvetica", fontsize=11, margin="0.12,0.06"]; edge [fontname="Helvetica", fontsize=10];',
        f"  root [shape=oval, ordering=out, label={_quoted(_wrapped(tree.title))}];",
    ]
    for section in tree.sections:
        lines += _dot_section(tree, section)
    for group, leaves in _groups(tree):
        lines += _dot_group(group, leaves)
    lines += [f"  {_dot_leaf(leaf)}" for leaf in _alone(tree)]
    lines += [f"  {_dot_elsewhere(id_, text)}" for id_, text in _elsewhere(tree)]
    lines += _dot_starts(tree)
    lines += [f"  {_quoted(edge.start)} -> {_quoted(edge.end)} [label={_quoted(edge.label)}];" for edge in _edges(tree)]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_group(group: Group, leaves: list[Leaf]) -> Iterator[str]:
    """Yield a box around the leaves of a group."""
    label = _quoted(_wrapped(f"{group.id} {group.ask}"))
    yield f"  subgraph {_quoted(f'cluster_{group.id}')} {{ label={label}; style=dashed; color=gray;"
    for leaf in leaves:
        yield f"    {_dot_leaf(leaf)}"
    yield "  }"


def _dot_elsewhere(id_: str, text: str) -> str:
    """Return a node of another section or tree."""
    return f"{_quoted(id_)} [shape=box, style=dashed, color=gray, fontcolor=gray30, label={_quoted(_wrapped(text))}];"


def _dot_starts(tree: Tree) -> Iterator[str]:
    """Yield the edges from the root, and what keeps their ends in order."""
    starts = _starts(tree)
    for start in starts:
        yield f"  root -> {_quoted(start)} [color=gray];"
    reached = {edge.end for edge in _edges(tree)}
    # What is in one rank stays in the order of the file.
    row = " -> ".join(_quoted(start) for start in starts if start not in reached)
    yield f"  {{ rank=same; edge [style=invis]; {row}; }}"


def _without_nothing(tree: Tree) -> Tree:
    """Return the tree without the leaf at which a check that finds nothing ends, and the edges there."""
    ends = {leaf.id for leaf in tree.leaves.values() if leaf.title == NOTHING}
    questions = {
        id_: replace(question, go={verdict: to for verdict, to in question.go.items() if to not in ends})
        for id_, question in tree.questions.items()
    }
    return replace(tree, questions=questions, leaves={k: v for k, v in tree.leaves.items() if k not in ends})


def _dot_section(tree: Tree, section: Section) -> Iterator[str]:
    inside = [question for question in tree.questions.values() if question.section == section.id]
    name, label = section.id, ""
    if len(inside) > 1 and not section.check:  # a box around one question says nothing
        name = f"cluster_{section.id}"
        label = f" label={_quoted(section.heading)}; style=rounded; color=gray;"
    yield f"  subgraph {_quoted(name)} {{{label}"
    for question in inside:
        text = _quoted(_wrapped(f"{question.id} {question.ask}"))
        yield f"    {_quoted(question.id)} [shape=box, style=rounded, label={text}];"
    yield "  }"


def _dot_leaf(leaf: Leaf) -> str:
    fill = _quoted(BADGES[leaf.severity].fill)
    return f"{_quoted(leaf.id)} [shape=note, style=filled, fillcolor={fill}, label={_quoted(_wrapped(leaf.title))}];"


def _mermaid_leaf(leaf: Leaf) -> str:
    return f'{_key(leaf.id)}["{_mermaid(leaf.title)}"]:::{leaf.severity}'


def _starts(tree: Tree) -> list[str]:
    """Return where the walks begin; a tree that adds causes to others begins with these."""
    return [section.entry for section in tree.sections] or [item.id for item in tree.signatures]


def _groups(tree: Tree) -> Iterator[tuple[Group, list[Leaf]]]:
    """Yield the groups with the leaves that they hold."""
    for group in tree.groups.values():
        yield group, [leaf for leaf in tree.leaves.values() if leaf.of == group.id]


def _alone(tree: Tree) -> list[Leaf]:
    """Return the leaves that no group holds."""
    return [leaf for leaf in tree.leaves.values() if leaf.of not in tree.groups]


def _elsewhere(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield the nodes of other sections and trees that edges lead to: the id, and the label.

    Causes of a tree that has nothing else are yielded as well: they are beside the leaves that they cause.
    """
    known = {*tree.questions, *tree.leaves}
    for id_ in dict.fromkeys(edge.end for edge in _edges(tree) if edge.end not in known):
        yield id_, id_
    for item in tree.signatures:
        yield item.id, f"{item.id} {item.text}"


def _edges(tree: Tree) -> Iterator[Edge]:
    """Yield all edges; the verdicts of a question that lead to one node share one."""
    for question in tree.questions.values():
        for target in dict.fromkeys(question.go.values()):
            verdicts = [verdict for verdict, to in question.go.items() if to == target]
            yield Edge(question.id, ", ".join(verdicts), target)
    for leaf in tree.leaves.values():
        if leaf.escalate in tree.leaves:
            yield Edge(leaf.id, "fixes did not help", leaf.escalate)
        if leaf.near in tree.leaves:
            yield Edge(leaf.id, "something is near its limit", leaf.near)
        if leaf.unproven in tree.leaves:
            yield Edge(leaf.id, "no progress is shown", leaf.unproven)
    for item in tree.signatures:
        yield Edge(item.id, "may cause", ", ".join(item.of))


def _key(id_: str) -> str:
    """Return an id that Mermaid takes: letters and digits, distinct ids staying distinct."""
    return "n_" + re.sub(r"[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", id_)


def _mermaid(text: str) -> str:
    safe = text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
    return _printable(safe)


def _quoted(text: str) -> str:
    safe = text.replace("\\", "\\\\").replace('"', '\\"').replace("\\\\n", "\\n")
    return f'"{_printable(safe)}"'


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _wrapped(text: str) -> str:
    return "\\n".join(textwrap.wrap(text.replace("\\", "/"), LINE_CHARACTERS))
