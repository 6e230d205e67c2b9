"""Texts that are cut to their room, and colours."""

from __future__ import annotations

from rich.style import Style

from stabtree.report.page import STYLES, clipped, in_lines, uncut


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
