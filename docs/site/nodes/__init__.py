"""A page for each question, group, entry and signature of the trees, and an outline of each tree."""

from __future__ import annotations

from docs.site.markup import NODES, known
from docs.site.nodes import others, outline, question
from stabtree.tree.load import file_of


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    tree = known()
    made = {
        **{id_: question.page_of(tree, node) for id_, node in tree.questions.items()},
        **{id_: others.group(tree, node) for id_, node in tree.groups.items()},
        **{id_: others.entry(tree, node) for id_, node in tree.entries.items()},
        **{node.id: others.signature(tree, node) for node in tree.signatures},
        **outline.pages(tree),
    }
    return {f"{NODES}/{file_of(id_)}.md": content for id_, content in made.items()}
