"""The shipped trees: what they count, what they refer to, what they advise."""

from __future__ import annotations

import re

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.report.explain import reference_to
from stabtree.tree.load import load_tree, load_trees
from stabtree.tree.model import SHORT
from stabtree.tree.params import known
from stabtree.tree.shipped import shipped, shipped_titles
from tests.conftest import make_run
from tests.leaves.make import healthy

TREE = load_trees()
CHECKED = {"phase19": 0, "convergence": 19, "precision": 8, "errors": 43}


def test_a_healthy_run_passes_every_check() -> None:
    """None of the checks that read metrics finds what it looks for."""
    sound = diagnose(make_run(healthy(), n_classes=55, grad_clip=5.0, dtype="fp32"), TREE)
    assert sound.verdict == "ok"


@pytest.mark.parametrize("name", shipped())
def test_every_question_has_a_short_form_of_its_own(name: str) -> None:
    """A path tells each question in a line: short, a question, and no two of a tree alike."""
    tree = load_tree(name)
    shorts = [question.short for question in tree.questions.values()]
    assert all(short.endswith("?") and len(short) <= SHORT for short in shorts), shorts
    assert len(set(shorts)) == len(shorts)


def test_every_cross_reference_exists() -> None:
    """What looks like the id of a node is one, in some shipped tree, and is shown with what it is called."""
    titles = shipped_titles()
    ids = {*TREE.questions, *TREE.entries, *TREE.groups, *TREE.leaves}
    for name in shipped():
        tree = load_tree(name)
        links = [link for question in tree.questions.values() for link in question.see]
        links += [link for leaf in tree.leaves.values() for link in leaf.see]
        links += [link for entry in tree.entries.values() for link in entry.see]
        for link in links:
            if "/" not in link and " " not in link:
                assert link in ids, link
                assert titles[link] == TREE.title_of(link)
    assert reference_to(load_tree("errors"), "P10").startswith("P10 (fp16: ")


def test_no_number_of_a_rule_has_a_second_home() -> None:
    """A rule names its parameters in braces; no number in it is one of them written out."""
    for question in TREE.questions.values():
        values = {float(value) for value in known(TREE, question).values() if type(value) in (int, float)}
        plain = re.sub(r"\{[^}]*\}", "", question.rule)
        said = re.findall(r"(?<![\w.§])(\d+(?:\.\d+)?)(?![\w(])(%?)", plain)
        assert not {float(number) for number, share in said if not share and float(number) > 2} & values, question.id
        assert not {float(number) / 100 for number, share in said if share} & values, question.id
