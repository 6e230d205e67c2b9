"""The report as Markdown: short first, and whatever a log holds stays text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from stabtree.common.text import clean
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.markdown import _entries, escape, listed, markdown, postmortem, table
from stabtree.report.model import Report
from stabtree.report.outputs import RenderOptions
from stabtree.report.sections import Item
from stabtree.tree.load import load_trees
from tests.conftest import FIXTURES, series

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from markdown_it.token import Token

    from stabtree.diagnosis.result import Diagnosis

CASES = sorted(path for path in FIXTURES.glob("*/*") if path.is_dir())[::8]
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NOTHING = "\N{ZERO WIDTH SPACE}"
MARKUP = st.text(st.sampled_from("\\`*_[]<>()#+-.!|~&:$@/=\"'; \n\t1aw")) | st.text()


def leaves(tokens: list[Token]) -> Iterator[Token]:
    """The tokens within blocks, and the blocks."""
    for token in tokens:
        yield token
        yield from leaves(token.children or [])


def shown(tokens: list[Token]) -> str:
    """The text that a reader sees; fails on anything but text."""
    inner = [token for token in leaves(tokens) if token.type not in ("paragraph_open", "paragraph_close", "inline")]
    assert {token.type for token in inner} <= {"text", "text_special"}, inner
    return "".join(token.content for token in inner).replace(NOTHING, "")


@given(MARKUP)
@example("1. no list")
@example("# no heading #")
@example("a_b_c _d_ __e__ f_")
@example("--- \\| ||")
@example("\\")
@example("&amp; &#64;ann")
def test_text_stays_text(text: str) -> None:
    """Whatever a text holds, a page shows it letter by letter, in a paragraph, in a list and in a table."""
    plain = clean(text, 1000).replace(NOTHING, "")
    tokens = PARSER.parse(escape(text))
    assert shown(tokens) == plain
    assert len(tokens) == (3 if plain else 0)
    cells = PARSER.parse(table(("a", "b"), [(escape(text), "end")]))
    inner = [token for token in cells if token.type == "inline"]
    assert [shown([token]) for token in inner] == ["a", "b", plain, "end"]
    items = PARSER.parse(listed([escape(text), "end"]))
    assert [shown([token]) for token in items if token.type == "inline"] == ([plain] if plain else []) + ["end"]


@given(MARKUP)
@example("https://a.b www.a.b @ann #1 a@b.c :smile: ann@ann")
def test_nothing_is_made_a_link_or_a_mention(text: str) -> None:
    """What forges look for in plain text does not stand in what they read: addresses, mentions, numbers, emoji."""
    made = escape(text)
    assert not re.search(r"(?<!\\)://|www\.", made, re.IGNORECASE)
    read = PARSER.render(made).replace("&amp;", "").replace("&quot;", "").replace("&lt;", "").replace("&gt;", "")
    assert not re.search(r"[@#]\w|:[\w+-]*[a-z][\w+-]*:", read, re.IGNORECASE)


def test_what_matters_most_is_strong() -> None:
    """The words around the checkpoint keep their blanks."""
    entry = Item("Restart from step 6 (a_b), now", strong="step 6")
    assert _entries([entry]) == "- Restart from **step 6** (a_b), now"


def judged(path: Path) -> Diagnosis:
    """The diagnosis of a run."""
    run = load_run(path)
    return diagnose(run, load_trees(run))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_the_page_says_what_the_report_says(path: Path) -> None:
    """Verdict, do now, causes and last line stand in their order before and after what is folded, which ends."""
    found = judged(path)
    told = Report(found, 1)
    text = markdown(found, RenderOptions(exit_code=1))
    order = [told.title, *(item.text for item in told.do_now if not item.strong)]
    order += [item.cause.says for item in told.causes[:1]] + [told.closing]
    place = 0
    for words in order:
        place = text.index(escape(words), place)
    assert text.count("<details>") == text.count("</details>") > 0
    assert text.count("\n", 0, text.index("<details>")) < 50


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_a_post_mortem_has_all_its_parts(path: Path) -> None:
    """Seven parts in their order, each with a place for people or what the log tells, whatever was found."""
    found = judged(path)
    text = postmortem(found, RenderOptions())
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)[1:]
    assert parts[::2] == ["Summary", "Timeline", "Evidence", "Root cause", "Fix", "Prevention", "Follow-ups"]
    assert all("**To fill in:**" in part for part in parts[1::2])
    told = Report(found)
    assert all(escape(item.question.id) in parts[5] for walk in told.walks for group in walk.groups for item in group)
    assert all(escape(action.text) in parts[9] for action in told.do_now if not action.strong and not action.branches)
    for item in told.causes:
        assert f"{item.state}: {escape(item.cause.says)}" in parts[7]


def test_a_post_mortem_names_the_time_of_the_onset() -> None:
    """The onset stands with its time of the calendar where the log has one; seconds since the start are none."""
    found = judged(FIXTURES / "phase19" / "nan-forward")
    onset = found.findings[0].onset_step or 0
    for start, told in ((1_700_000_000.0, True), (5.0, False)):
        times = series("wall_time", [start, start + 60], [onset, onset + 1])
        run = replace(found.run, series={**found.run.series, "wall_time": times})
        assert ("2023-11-14 22:13:20 UTC" in postmortem(replace(found, run=run), RenderOptions())) is told
