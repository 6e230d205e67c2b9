"""Blocks fold in the order that is given, and no further than it takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from rich.style import Style

from stabtree.report.outputs import RenderOptions
from stabtree.report.page import STYLES, Pane, clipped, fitted, in_lines, new_page, uncut

if TYPE_CHECKING:
    from stabtree.report.page import Page


def lines(page: Page, count: int, letter: str) -> None:
    """So many lines of a letter."""
    for _ in range(count):
        page.line((letter, ""))


def pane(letter: str, *counts: int) -> Pane:
    """A part with a form of each length."""
    return Pane(letter, tuple(partial(lines, count=count, letter=letter) for count in counts))


@pytest.mark.parametrize(
    ("most", "told"),
    [(12, "aaaaa bbbbb"), (11, "aaaaa bbbbb"), (10, "aaa bbbbb"), (8, "aaa bbb"), (6, "a bbb"), (4, "a b"), (1, "a b")],
)
def test_a_part_folds_only_where_it_must(most: int, told: str) -> None:
    """In the order given, one form at a time; what has no shorter form stays, however little room there is."""
    panes = [pane("a", 5, 3, 1), pane("b", 5, 3, 1)]
    text = fitted(panes, ("a", "b", "a", "b", "b", "nobody"), most, partial(new_page, RenderOptions(width=40)))
    assert text.replace("\n\n", " ").replace("\n", "") == told


def test_a_text_is_cut_at_a_clause_or_behind_a_word() -> None:
    """Whole where it fits; never in the middle of a word, and never wider than its room."""
    assert clipped("short", 5) == "short"
    assert clipped("a first clause; and another one", 20) == "a first clause"
    assert clipped("words that go on and on", 12) == "words that…"
    assert in_lines("one two three four five", 9, 2) == ["one two", "three…"]
    assert uncut("one two; three four", 9, 1) == ["one two"]
    assert uncut("one two three; four", 9, 1) == []
    assert uncut("One two. Three four five", 9, 2, needed=True) == ["One two."]
    assert uncut("one two three", 9, 1, needed=True) == ["one two", "three"]
    assert all(len(line) <= 9 for line in in_lines("one two three four five six seven", 9, 3))


def test_every_coloured_word_can_be_read_on_black_and_on_white() -> None:
    """At least 4.5 : 1 on both, of the 256 colours that no palette redefines; badges bring their own background."""
    for name, style in STYLES.items():
        if " on " in style or not (shown := Style.parse(style).color):
            continue
        assert (shown.number or 0) >= 16, name
        parts = [part / 255 for part in shown.get_truecolor()]
        red, green, blue = (part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        assert min((light + 0.05) / 0.05, 1.05 / (light + 0.05)) >= 4.5, name
