"""Patterns of a tree: which may be tried on the lines of a log, and which could take forever."""

from __future__ import annotations

import pytest

from stabtree.tree.load import load_trees
from stabtree.tree.params import pattern_problem

FINE = (
    "CUDA out of memory|Killed",
    r"^(?:\S+\s){0,5}?[\w.]*(?:Error|Exception)\b\s*:",
    "foo.*bar.*baz",
    "a.{0,80}b.{0,80}c.{0,80}d",
    r"(\d+,)+x",
    "(?:ab|cd)+e",
    "(?:a+)++$",
    "[一-龥]+x",
)
DANGEROUS = (
    "(a+)+$",
    "(a*)*b",
    "(a|a)*b",
    "(x+x+)+y",
    "(.*a){20}",
    r"(?:\S+\s?){0,8}x",
    r"(\w+\s?)*$",
    "foo.*bar.*baz.*qux",
    "(?=(a+)+$)x",
    "(?:[一-龥]+)+$",
    r"(a+)\1+b",
)


@pytest.mark.parametrize("pattern", FINE)
def test_a_pattern_with_few_ways_to_match_may_be_tried(pattern: str) -> None:
    """Repeats that end where something else begins, and those with a bound, are let pass."""
    assert pattern_problem(pattern) == ""


@pytest.mark.parametrize("pattern", DANGEROUS)
def test_a_pattern_that_could_take_forever_is_refused(pattern: str) -> None:
    """A repeat that can match a text in very many ways is told, with what to write in its place."""
    assert "could take forever" in pattern_problem(pattern)
    assert "{0,80}" in pattern_problem(pattern)


def test_a_broken_pattern_is_told() -> None:
    """What is no regular expression comes back with the reason."""
    assert pattern_problem("(a") == "is not a regular expression: missing ), unterminated subpattern at position 0"


def test_every_shipped_pattern_may_be_tried() -> None:
    """No pattern of the trees that come with stabtree is one that a user's tree could not have."""
    said = [str(node.params["pattern"]) for node in load_trees().questions.values() if "pattern" in node.params]
    assert len(said) >= 20
    assert not any(map(pattern_problem, said))
