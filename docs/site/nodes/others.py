"""The pages of what is no question: groups of fixes, entries that no log can decide, signatures of known causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.site.markup import code, text, to, to_metric, to_predicate
from docs.site.nodes.outline import place_of, tree_link
from docs.site.prose import badge, console, listed, page, part, prose, reference
from docs.site.reading import home_of, metric_table, parameters
from stabtree.predicates import PREDICATES
from stabtree.report.trees import metrics_of
from stabtree.tree.fixes import plain
from stabtree.tree.params import fact_params

if TYPE_CHECKING:
    from stabtree.tree.model import Entry, Group, Signature, Tree


def group(tree: Tree, node: Group) -> str:
    """The page of a node that holds findings and their fixes."""
    leaves = [leaf for leaf in tree.leaves.values() if leaf.of == node.id]
    tests = dict.fromkeys(cause.test for leaf in leaves for cause in leaf.causes if cause.test)
    reads = dict.fromkeys(name for test in tests for name in metrics_of(PREDICATES[test]))
    held = []
    for leaf in leaves:
        ways = [
            f"{to(q.id)} {code(said)}" for q in tree.questions.values() for said, end in q.go.items() if end == leaf.id
        ]
        held.append(f"{badge(leaf.severity)} {to(leaf.id)} {text(leaf.title)}, reached by {', '.join(ways)}")
    return page(
        f"{node.id}: {text(node.ask)}",
        place_of(tree, node.section),
        prose(node.why),
        part("The rule", f"> {prose(node.rule.format_map(fact_params(tree)))}"),
        part("Findings that it holds", listed(held)),
        part("What the tests of their causes read", ", ".join(map(to_metric, reads))),
        _see(tree, node.see),
        _last(node.id, node.source),
    )


def entry(tree: Tree, node: Entry) -> str:
    """The page of what a document knows and no log can decide."""
    sees = [
        *((item.id, item.see) for item in tree.questions.values()),
        *((item.id, item.see) for item in tree.entries.values()),
        *((item.id, item.see) for item in tree.leaves.values()),
    ]
    named = [reference(id_, tree.title_of(id_)) for id_, see in sees if node.id in see]
    return page(
        f"{node.id}: {text(node.title)}",
        f"{tree_link(home_of(node.id))} › an entry: no log can decide it",
        part("How it shows", prose(node.symptom)),
        part("Where it comes from", prose(node.cause)),
        part("What settles it", prose(node.probe)),
        part("What to do", _numbered(node.fixes)),
        part("The setting", prose(node.knob)),
        _see(tree, node.see),
        part("Named by", listed(named)),
        _last(node.id, node.source),
    )


def signature(tree: Tree, node: Signature) -> str:
    """The page of a cause that public threads established."""
    needs = ", ".join(f"{text(what)} {' or '.join(map(code, of))}" for what, of in node.holds.items())
    return page(
        f"{node.id}: {text(node.text)}",
        f"{tree_link(home_of(node.id))} › a known cause: it ranks under a finding and never raises an alarm by itself",
        part("What it looks like", prose(node.example)),
        part("Under which findings it stands", listed(_found(tree, id_) for id_ in node.of)),
        part("What tells it", *_tested(node, needs)),
        part("What fixes it", _numbered(node.fixes)),
        _see(tree, node.see),
        _last(node.id, node.source),
    )


def _found(tree: Tree, id_: str) -> str:
    return f"{badge(tree.leaves[id_].severity)} {to(id_)} {text(tree.title_of(id_))}"


def _tested(node: Signature, needs: str) -> list[str]:
    holds = f"It is told only where the run may have {needs}." if needs else ""
    quiet = "It is told only where something in the log speaks for it." if node.quiet else ""
    if not node.test:
        return ["No log can test it.", holds, quiet]
    proof = f"A yes makes it *{'confirmed' if node.proof else 'likely'}* in the report."
    asked = f"Tested by {to_predicate(node.test)}: {prose(PREDICATES[node.test].question)} {proof}"
    return [asked, metric_table(node), parameters(node), holds, quiet]


def _numbered(fixes: tuple[str, ...]) -> str:
    return "\n".join(f"{place}. {prose(plain(fix))}" for place, fix in enumerate(fixes, 1))


def _see(tree: Tree, see: tuple[str, ...]) -> str:
    return part("See also", listed(reference(item, tree.title_of(item)) for item in see))


def _last(id_: str, source: str) -> str:
    return f"{console(f'stabtree explain {id_}')}\n\nSource: {prose(source)}."
