"""What a fix may say of the run at hand: its placeholders, and their mistakes."""

from __future__ import annotations

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.frameworks.load import knobs
from stabtree.tree.fixes import mistakes, placeholders, plain
from stabtree.tree.load import build, load_known
from stabtree.tree.tables import tables

TREE = """
name: t
title: T
sections: [{id: "1", title: S, entry: a}]
questions:
  - {id: a, section: "1", ask: A?, go: {yes: bad, no: good}, source: us}
leaves:
  - {id: bad, of: a, title: Bad, severity: warning, fix: "FIX", source: us}
  - {id: good, of: a, title: Good, severity: ok, fix: Nothing., source: us}
"""


def test_without_a_run_the_words_stand_alone() -> None:
    """What `explain` prints has no placeholders left, and no double spaces."""
    assert plain("Halve the rate {lr/2}, then clip {grad_clip<1.0}.") == "Halve the rate, then clip."
    fixes = [*(leaf.fix for leaf in load_known().leaves.values()), *(row.says for row in tables().actions.values())]
    assert any(placeholders(fix) for fix in fixes)
    left = [plain(fix).replace("{restart}", "").replace("{log_next}", "") for fix in fixes]
    assert not [fix for fix in left if placeholders(fix)]


def test_braces_of_other_kinds_are_left_alone() -> None:
    """A fix may show YAML."""
    text = 'Set special_tokens: {pad_token: "x"} and {"enabled": true}.'
    assert plain(text) == text
    assert not list(mistakes(text))


@pytest.mark.parametrize(
    ("fix", "problem"),
    [
        ("Lower it {learning_rte/2}.", "not a knob"),
        ("Lower it {lr/0}.", "a number must follow '/'"),
        ("Lower it {lr/half}.", "a number must follow '/'"),
        ("Switch {dtype=fp64}.", "what can be said of it is dtype=bf16"),
    ],
)
def test_a_wrong_place_is_a_mistake_of_the_tree(fix: str, problem: str) -> None:
    """`tree check` names it with its line."""
    with pytest.raises(StabtreeError, match=problem):
        build(TREE.replace("FIX", fix), "t.yaml")


def test_a_right_place_is_none() -> None:
    """Every knob may be named, changed and set."""
    fix = " ".join(f"{{{knob}}}" if "=" in knob else f"{{{knob}/2}}" for knob in knobs())
    assert build(TREE.replace("FIX", fix + " {batches}"), "t.yaml").leaves["bad"].fix
