"""YAML 1.2 scalars, lines, and bounds."""

from __future__ import annotations

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.common.yaml12 import parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("1e-3", 1e-3),
        ("6e-4", 6e-4),
        (".5", 0.5),
        ("-7", -7),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("12:30", "12:30"),
        ("2026-11-20", "2026-11-20"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!python/object/apply:os.system ['true']", ["true"]),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    """A plain scalar is a number, a boolean, null or text by the 1.2 core schema; tags make no objects."""
    assert parse(f"key: {text}", "f").value == {"key": value}


def test_repeated_keys_are_mistakes_with_their_line() -> None:
    """The second of two equal keys is reported where it stands."""
    assert parse("a: 1\nb: 2\na: 3\n", "f").mistakes == [(3, "the key 'a' is given here a second time")]


def test_lines_of_nested_values() -> None:
    """The line of a value is found by its path; a missing key has the line of its parent."""
    document = parse("a:\n  - b: 1\n  - c: 2\n", "f")
    assert document.line("a", 1, "c") == 3
    assert document.line("a", 1, "missing") == 3


@pytest.mark.parametrize(
    "text",
    [
        "a: [1, 2",
        "a: \x00",
        "a:\n\t- b",
        "[" * 5000,
        "[" * 100_000,
        "- " * 100_000,
        "a: &a [x, x]\n"
        + "".join(f"k{i}: &b{i} [{', '.join(['*a' if i == 0 else f'*b{i - 1}'] * 9)}]\n" for i in range(12)),
    ],
)
def test_broken_or_exploding_text_is_a_clear_error(text: str) -> None:
    """Broken YAML, too deep nesting and aliases that blow up end in an error that names the file."""
    with pytest.raises(StabtreeError) as caught:
        parse(text, "tree.yaml")
    assert caught.value.where.startswith("tree.yaml")
