"""Parameters were once called `least_` and `most_`: files and options that say so still work."""

from __future__ import annotations

import pytest

from stabtree.judging.overrides import overrides
from stabtree.judging.settings import Settings
from stabtree.tree.load import build, load_tree
from stabtree.tree.params import current_name

TREE = """
name: own
title: Own
facts: [{{id: levels, advanced: {{{rows}: 12}}}}]
checks:
  - id: A
    leaf: a
    ask: Does the loss jump?
    title: It jumps
    severity: warning
    means: Something is wrong.
    fixes: [Look.]
    source: us
    test: loss_rising
"""


@pytest.mark.parametrize(
    ("old", "new"), [("least_rows", "min_rows"), ("most_nats", "max_nats"), ("at_least", "at_least")]
)
def test_an_old_name_becomes_the_present_one(old: str, new: str) -> None:
    """Only the prefix of a limit changed."""
    assert current_name(old) == new


def test_options_and_settings_take_the_old_names() -> None:
    """`--set` and the `set` table write the present name, and the option overrides the table."""
    tree = load_tree()
    settings = Settings("stabtree.toml", set={"levels.least_levels": 7, "levels.most_levels": 30})
    assert overrides(tree, ["levels.least_levels=5"], settings) == {
        "levels": {"min_levels": 5, "max_levels": 30},
    }


def test_a_tree_takes_the_old_names() -> None:
    """A file that states `least_levels` loads as one that states `min_levels`."""
    assert build(TREE.format(rows="least_levels"), "own.yaml") == build(TREE.format(rows="min_levels"), "own.yaml")


def test_an_old_key_of_a_cause_is_read() -> None:
    """The short form of a fix was once called `mend`."""
    cause = "causes: [{id: A.one, text: one, mend: Look at it, fixes: [Look at the data.]}]"
    tree = build(TREE.format(rows="min_levels") + f"    {cause}\n", "own.yaml")
    assert [item.short_fix for leaf in tree.leaves.values() for item in leaf.causes] == ["Look at it"]
