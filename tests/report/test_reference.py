"""What `explain` prints of the nodes of the documents."""

from __future__ import annotations

import re

import pytest

from stabtree.report.trees import brief, reference
from stabtree.report.trees.nodes import CauseOf, find, is_named
from stabtree.tree.document import Cause, Expectation
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


def test_every_id_is_explained_on_one_screen() -> None:
    """Whatever node or cause of whatever tree: its text and not a list, in the lines of a terminal of 80 columns."""
    known = load_known()
    explained: set[str] = set()
    for tree in (known, *(load_tree(name) for name in shipped())):
        causes = {cause.id for leaf in tree.leaves.values() for cause in leaf.causes}
        for id_ in {*tree.questions, *tree.leaves, *tree.entries, *tree.groups, *causes} - explained:
            nodes, by_id = find(tree, id_)
            assert by_id
            assert is_named(nodes[0], id_)
            text = brief.one_screen(tree, nodes, named=id_, width=80)
            assert text.startswith(f"{id_}  "), id_
            assert text.count("\n") <= brief.MAX_LINES, text
            explained.add(id_)


@pytest.mark.parametrize(
    ("word", "begins"),
    [
        ("learning_rate", "learning_rate is read as lr."),
        ("gnorm", "gnorm is read as grad_norm."),
        ("completions/clipped_ratio", "completions/clipped_ratio is read as clipped_ratio."),
        ("actor/pg_clipfrac", "actor/pg_clipfrac is read as clip_ratio."),
        ("mAP", "mAP  a column, read by its name as: quality, higher is better"),
        ("global_step", "global_step  read as step, "),
        ("Q2.3.lr", "Q2.3.lr  "),
    ],
)
def test_what_inspect_reads_is_explained(word: str, begins: str) -> None:
    """Another name of a metric leads to the metric, a column of a known kind to its kind, a cause to itself."""
    text = run("explain", word, COLUMNS="80").stdout
    assert text.startswith(begins)
    assert text.count("\n") <= brief.MAX_LINES


def test_words_are_listed_on_one_screen() -> None:
    """A word of many nodes ends with how many are left out; --full lists them all."""
    short, whole = (run("explain", "spike", *more).stdout for more in ([], ["--full"]))
    assert short.count("\n") <= brief.MAX_LINES < whole.count("\n")
    assert re.fullmatch(r"and \d+ more: --full lists them", short.splitlines()[-1])


def test_what_speaks_for_a_cause_is_shown_in_words() -> None:
    """The clues that it asks for, with the weight and its source; not by their names in the code."""
    expected = Expectation("recovery_rows", "> 20", 4.0, "expert judgment")
    cause = Cause("X", "a cause", expects=(expected,), refuted_by={"recovery_rows": "<= 2"}, usual={"rare": ("any",)})
    told = " ".join(reference.explain(TREE, [CauseOf(cause, (TREE.leaves["spike-minor"],))], full=True).split())
    needed = "how many rows the loss needed to come back"
    assert re.search(f"speaks for it: {needed}.*: above 20 .4 times likelier; expert judgment.", told)
    assert re.search(f"rules it out: {needed}.*: at most 2 rare: any run", told)


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


def test_what_a_group_holds_is_named_with_its_fix() -> None:
    """Its leaves stand on its page, each with its title and below with what to do, and not among the other nodes."""
    trees = load_defining("Q3.4")
    assert trees is not None
    told = brief.one_screen(trees, find(trees, "Q3.4")[0], width=80)
    assert told.count("scale-collapse") == 2
    assert " also " not in told


def test_the_list_of_trees_is_a_table() -> None:
    """A head and a line a tree, whose counts stand below one another."""
    head, *lines = run("tree", "list").stdout.splitlines()
    ends = [head.index(name) + len(name) for name in ("questions", "leaves", "entries")]
    assert len(lines) == 8
    for line in lines:
        assert all(line[end - 1].isdigit() and line[end] == " " for end in ends)
