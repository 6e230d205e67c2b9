"""Loading trees: what is shipped is whole, and every mistake in a file is reported with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.measures import all_questions
from stabtree.tree.check import check, check_reach
from stabtree.tree.load import build, load_tree
from stabtree.tree.model import Severity
from stabtree.tree.params import known
from stabtree.tree.shipped import shipped
from stabtree.tree.tables import condition, tables

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
name: tiny
title: A tiny tree
sections:
  - {id: "1", title: All, entry: Q1}
questions:
  - id: Q1
    section: "1"
    ask: Is the loss NaN?
    test: loss_spikes
    params: {sigma: 3.0}
    rule: "> {sigma:g}σ"
    go: {yes: bad, no: good}
    source: a test
leaves:
  - {id: bad, of: Q1, title: Bad, severity: critical, fix: fix it, source: a test}
  - {id: good, of: Q1, title: Good, severity: ok, fix: nothing, source: a test}
"""


def mistakes(text: str) -> str:
    """All that is wrong with a tree, as it is shown."""
    with pytest.raises(StabtreeError) as caught:
        build(text, "t.yaml")
    return caught.value.problem


def test_a_good_tree_loads() -> None:
    """The smallest tree with a question and two leaves loads."""
    tree = build(GOOD, "t.yaml")
    assert list(tree.questions) == ["Q1"]
    assert tree.leaves["bad"].severity is Severity.CRITICAL


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "test: loss_spikes",
            f"short: {'x' * 29}\n    test: loss_spikes",
            "t.yaml:10: 'short' of question Q1 must be text of at most 28 characters",
        ),
        (
            "severity: critical",
            "headline: 'Bad {loss}', severity: critical",
            "t.yaml:16: leaf bad has a headline without {brief}, or with more than one",
        ),
        (
            "test: loss_spikes",
            "test: loss_spike",
            "t.yaml:10: question Q1 asks the measure 'loss_spike', which does not exist; did you mean 'loss_spikes'?",
        ),
        (
            "no: good",
            "no: goood",
            "t.yaml:13: question Q1 goes to 'goood' on no, which does not exist; did you mean 'good'?",
        ),
        (
            "    source: a test\n",
            "    source: a test\n    against: {no: Q2=yes}\n",
            "names 'Q2' under against, which is no question",
        ),
        ("    source: a test\n", "    source: a test\n    against: {nope: Q1=yes}\n", "has 'nope' under against"),
        ("    source: a test\n", "    source: a test\n    against: {no: Q1=maybe}\n", "but Q1 has no edge for that"),
        ("no: good", "nope: good", "question Q1 has no edge for 'no', which loss_spikes may answer"),
        ("no: good", "nope: good", "question Q1 has an edge for 'nope', which loss_spikes never answers"),
        ("yes: bad", "yes: Q1", "the walk can go round in a circle: Q1 → Q1"),
        ("yes: bad", "yes: good", "t.yaml:16: bad can't be reached from any section"),
        ("sigma: 3.0}", "sigma: high}", "question Q1 sets 'sigma' to 'high'; it must be of type float"),
        (
            "sigma: 3.0}",
            "sigm: 3.0}",
            "question Q1 sets 'sigm', which loss_spikes does not have; did you mean 'sigma'?",
        ),
        (
            "{sigma:g}σ",
            "{segma:g}σ",
            "question Q1 names {segma} in its rule, which loss_spikes does not have; did you mean 'sigma'?",
        ),
        ("{sigma:g}σ", "{sigma:>99999999}", "question Q1 formats {sigma} as '>99999999'"),
        ("{sigma:g}σ", "{sigma.real}", "question Q1 names {sigma.real} in its rule"),
        ("sigma: 3.0}", "sigma: -1}", "question Q1 sets 'sigma' to -1; it must be of type float, from 0 on"),
        ("sigma: 3.0}", "window_steps: 0}", "question Q1 sets 'window_steps' to 0; it must be of type int, from 1 on"),
        ("{yes: bad, no: good}", "{yes: bad}", "question Q1 has no edge for 'unknown' and none for 'no'"),
        ("of: Q1, title: Good", "of: Q9, title: Good", "leaf good is of 'Q9', neither a question nor a group"),
        ("{sigma:g}σ", "{sigma", "question Q1 has braces that don't close"),
        ("entry: Q1", "entry: Q11", "section 1 enters at Q11, which is not a question; did you mean 'Q1'?"),
        ("    ask:", "    aks:", "question Q1 has no key 'aks'; did you mean 'ask'?"),
        ("    ask:", "    about: x\n    #", "question Q1 has no key 'about'"),
        ("    ask: Is the loss NaN?\n", "", "question Q1 lacks the key 'ask'"),
        ("fix: fix it, source: a test", "fix: fix it", "leaf bad lacks a source"),
        ("critical", "terrible", "t.yaml:16: 'severity' of leaf bad must be one of ok, note, warning, critical"),
        ("fix: fix it", "fix: {it: x}", "'fix' of leaf bad must be text, not a mapping"),
        ("fix: fix it", "events: [{it: x}]", "each of 'events' of leaf bad must be text, not a mapping"),
        ("critical", "[critical]", "'severity' of leaf bad must be text, not a list"),
        ("source: a test}", "source: a test, restart: 1}", "'restart' of leaf bad must be true or false"),
        ("source: a test}", "source: a test, causes: [x]}", "leaf bad has no key 'causes'"),
        ("source: a test}", "source: a test, events: x}", "'events' of leaf bad must be a list"),
        ("{yes: bad, no: good}", "[bad, good]", "t.yaml:13: 'go' of question Q1 must be a mapping, not a list"),
        ("{yes: bad, no: good}", "{yes: 1, no: good}", "t.yaml:13: 'go' of question Q1 must be text, not a number"),
        ("    ask:", "    quick: {symptom: x}\n    ask:", "quick lacks the key 'threshold'"),
        ("name: tiny", "name: tiny\nuses: phase19", "'uses' of tree must be a list, not text"),
        ("name: tiny", "name: tiny\nchecks: {}", "'checks' of tree must be a list"),
        ("id: bad, of: Q1", "id: good, of: Q1", "the id good is used twice"),
        ("name: tiny", "name: tiny\nname: again", "t.yaml:3: the key 'name' is given here a second time"),
        ("title: A tiny tree", "titel: A tiny tree", "tree has no key 'titel'; did you mean 'title'?"),
        ('section: "1"', 'section: "9"', "question Q1 is in section '9', which does not exist"),
    ],
)
def test_each_mistake_is_named(old: str, new: str, expected: str) -> None:
    """A mistake is reported by file and line, with the nearest right name where there is one."""
    assert old in GOOD
    assert expected in mistakes(GOOD.replace(old, new, 1))


def test_all_mistakes_come_at_once() -> None:
    """Independent mistakes are reported together."""
    found = mistakes(GOOD.replace("test: loss_spikes", "test: loss_spike").replace("no: good", "no: goood"))
    assert found.startswith("2 mistakes in the tree")


def test_each_node_with_a_mistake_in_its_keys_is_named() -> None:
    """A missing title and two severities that are none: each at its own line, before what relates the nodes."""
    text = GOOD.replace("title: A tiny tree\n", "").replace("severity: ok", "severity: fine")
    told = mistakes(text.replace("severity: critical", "severity: bad").replace("no: good", "no: goood"))
    assert "t.yaml:2: tree lacks the key 'title'" in told
    assert "t.yaml:15: 'severity' of leaf bad must be one of" in told
    assert "t.yaml:16: 'severity' of leaf good must be one of" in told
    assert told.startswith("3 mistakes")


def test_thousands_of_mistakes_fit_a_screen() -> None:
    """The first twenty are told, and how many more there are."""
    found = mistakes(GOOD + "  - {oops: 1}\n" * 2_000)
    assert found.startswith("2,000 mistakes in the tree")
    assert found.endswith("and 1,980 more")
    assert len(found.splitlines()) == 22


@pytest.mark.parametrize(
    "text", ["", "- a\n- b\n", "a: 1", "42", "questions: {}\nleaves: 3\nsections: x\nname: 1\ntitle: []"]
)
def test_what_is_no_tree_is_said_to_be_none(text: str) -> None:
    """Any other YAML ends in an error, not in a crash."""
    assert "mistake" in mistakes(text)


def test_an_unknown_tree_gets_a_hint(tmp_path: Path) -> None:
    """A misspelt name leads to the shipped one; a folder, a binary and a huge file are refused."""
    with pytest.raises(StabtreeError) as caught:
        load_tree("phase-19")
    assert caught.value.hint == "did you mean 'phase19'?"
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x01\x80")
    huge = tmp_path / "h.yaml"
    huge.write_bytes(b"#" * 2_000_000)
    for path in (tmp_path, binary, huge):
        with pytest.raises(StabtreeError):
            load_tree(path)


@pytest.mark.parametrize("name", list(shipped()))
def test_shipped_trees_are_whole(name: str) -> None:
    """Every shipped tree loads without a mistake, explains every node, and states a rule for every test."""
    tree = load_tree(name)
    assert not check(tree)
    assert not list(check_reach(tree))
    for question in tree.questions.values():
        assert question.why
        assert question.rule.format_map(known(tree, question)) or (question.person and not question.test)
    for leaf in tree.leaves.values():
        assert leaf.why


def test_every_node_of_the_document_is_there() -> None:
    """All ids of the Phase-19 document exist, as questions or as the node that leaves belong to."""
    tree = load_tree()
    ids = set(tree.questions) | {leaf.of for leaf in tree.leaves.values()}
    document = {f"Q{s}.{n}" for s in (1, 2, 3, 4) for n in (1, 2, 3, 4)}
    assert document <= ids


def test_every_measure_is_used() -> None:
    """A measure that no shipped tree asks would be dead code."""
    used: set[str] = set()
    for name in shipped():
        tree = load_tree(name)
        used |= {question.test for question in tree.questions.values()}
    rows = tables().causes.values()
    used |= {condition(text).name for row in rows for text in (*row.evidence, *row.proof)} & all_questions().keys()
    assert used - {""} == set(all_questions())
