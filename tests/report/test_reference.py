"""What `explain` prints of the nodes of the documents."""

from __future__ import annotations

import re

import pytest

from stabtree.report.trees import reference
from stabtree.report.trees.nodes import find, is_named
from stabtree.tree.load import load_defining, load_known, load_tree, load_trees
from stabtree.tree.shipped import shipped
from tests.cli.command import run

TREE = load_trees()
DOCUMENT = [*(f"P{n}" for n in range(1, 20)), *(f"O{n}" for n in range(1, 27))]


@pytest.mark.parametrize("id_", DOCUMENT)
def test_every_id_of_the_documents_explains_itself(id_: str) -> None:
    """P1 to P19 and O1 to O26 exist and say what is wrong, why, and what to do."""
    alone = load_defining(id_)
    assert alone is not None
    nodes, by_id = find(alone, id_)
    assert by_id
    told = reference.explain(alone, nodes)
    assert re.search(r"^ (why|cause) ", told, re.MULTILINE)
    assert re.search(r"^ (fix |fixes|goes) ", told, re.MULTILINE)
    assert find(TREE, id_)[1]


def test_an_exact_id_is_explained_and_not_listed() -> None:
    """Whatever node of whatever tree: its text is there, not a line for each of several nodes."""
    known = load_known()
    explained: set[str] = set()
    for tree in (known, *(load_tree(name) for name in shipped())):
        for id_ in {*tree.questions, *tree.leaves, *tree.entries, *tree.groups} - explained:
            nodes, by_id = find(tree, id_)
            assert by_id
            assert is_named(nodes[0], id_)
            alone = reference.explain(tree, nodes[:1], brief=True)
            assert reference.one_screen(tree, nodes, named=id_).startswith(alone), id_
            explained.add(id_)


def test_explain_tells_of_an_id_in_whatever_case() -> None:
    """The command explains an id that others begin with, and names these."""
    for word in ("P12", "p12"):
        lines = run("explain", word).stdout.splitlines()
        assert lines[0].startswith("P12  Loss spikes")
        assert any(re.search(r"^ also +P12\.lead$", line) for line in lines)


def test_what_is_taken_over_to_fine_tune_a_guard_is_told_on_request() -> None:
    """`like` brings parameters along; those that fine-tune a guard are counted, and shown with --full."""
    nodes, _ = find(TREE, "O14.batch")
    assert "O14.batch.thrown" not in reference.explain(TREE, nodes)
    assert re.search(r"O14\.batch\.thrown += 1\.3", reference.explain(TREE, nodes, full=True))


def test_what_a_group_holds_is_named_once() -> None:
    """Its leaves stand on its page, each with its way there, and not below it once more."""
    trees = load_defining("Q3.4")
    assert trees is not None
    told = reference.one_screen(trees, find(trees, "Q3.4")[0], width=80)
    assert told.count("scale-collapse") == 1


def test_the_list_of_trees_is_a_table() -> None:
    """A head and a line a tree, whose counts stand below one another."""
    head, *lines = run("tree", "list").stdout.splitlines()
    ends = [head.index(name) + len(name) for name in ("questions", "leaves", "entries")]
    assert len(lines) == 8
    for line in lines:
        assert all(line[end - 1].isdigit() and line[end] == " " for end in ends)
