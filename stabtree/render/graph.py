"""A tree as a graph, in Mermaid or in DOT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tree.model import Tree

LINE_CHARACTERS = 34


def mermaid(tree: Tree) -> str:
    """The tree as a Mermaid flow chart."""
    lines = ["flowchart TD"]
    for section in tree.sections:
        lines.append(f'  subgraph s{_key(section.id)}["{_mermaid(f"§{section.id} {section.title}")}"]')
        lines += [
            f'    {_key(q.id)}{{{{"{_mermaid(f"{q.id} {q.ask}")}"}}}}'
            for q in tree.questions.values()
            if q.section == section.id
        ]
        lines.append("  end")
    lines += [f'  {_key(leaf.id)}["{_mermaid(leaf.title)}"]:::{leaf.severity}' for leaf in tree.leaves.values()]
    lines += [f'  {_key(a)} -->|"{_mermaid(verdict)}"| {_key(b)}' for a, verdict, b in _edges(tree)]
    lines += [f"  classDef {name} fill:{LOOKS[name].fill},stroke:#555,color:#111" for name in Severity]
    return "\n".join(lines) + "\n"


def dot(tree: Tree) -> str:
    """The tree in the DOT language of Graphviz."""
    lines = [
        f"digraph {_quoted(tree.name)} {{",
        '  rankdir="TB"; node [fontname="Helvetica", fontsize=11]; edge [fontname="Helvetica", fontsize=10];',
    ]
    for section in tree.sections:
        lines.append(
            f"  subgraph {_quoted(f'cluster_{section.id}')} {{ label={_quoted(f'§{section.id} {section.title}')}; "
            "style=rounded; color=gray;"
        )
        lines += [
            f"    {_quoted(q.id)} [shape=box, style=rounded, label={_quoted(_wrapped(f'{q.id} {q.ask}'))}];"
            for q in tree.questions.values()
            if q.section == section.id
        ]
        lines.append("  }")
    lines += [
        f"  {_quoted(leaf.id)} [shape=note, style=filled, fillcolor={_quoted(LOOKS[leaf.severity].fill)}, "
        f"label={_quoted(_wrapped(leaf.title))}];"
        for leaf in tree.leaves.values()
    ]
    lines += [f"  {_quoted(a)} -> {_quoted(b)} [label={_quoted(verdict)}];" for a, verdict, b in _edges(tree)]
    return "\n".join([*lines, "}"]) + "\n"


def _edges(tree: Tree) -> Iterator[tuple[str, str, str]]:
    """From, label, to; the verdicts of a question that lead to one place share an edge."""
    for question in tree.questions.values():
        for target in dict.fromkeys(question.go.values()):
            verdicts = [verdict for verdict, to in question.go.items() if to == target]
            yield question.id, ", ".join(verdicts), target
    for leaf in tree.leaves.values():
        if leaf.escalate:
            yield leaf.id, "fixes did not help", leaf.escalate


def _key(id_: str) -> str:
    """An id that Mermaid takes: letters and digits, distinct ids staying distinct."""
    return "n_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in id_)


def _mermaid(text: str) -> str:
    safe = text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
    return "".join(c if c.isprintable() else " " for c in safe)


def _quoted(text: str) -> str:
    safe = text.replace("\\", "\\\\").replace('"', '\\"').replace("\\\\n", "\\n")
    return '"' + "".join(c if c.isprintable() else " " for c in safe) + '"'


def _wrapped(text: str) -> str:
    import textwrap

    return "\\n".join(textwrap.wrap(text.replace("\\", "/"), LINE_CHARACTERS))
