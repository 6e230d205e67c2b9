"""Every written page tells the truth: each of its blocks is run, and each output is what comes out."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest

from stabtree.cli.program import commands
from tests.cli.command import run
from tests.whole.pages.blocks import ROOT, blocks_of, pages
from tests.whole.pages.running import run_page

if TYPE_CHECKING:
    from pathlib import Path

WITH_BLOCKS = [page for page in pages() if any(block.is_to_run for block in blocks_of(page.read_text("utf-8")))]
INLINE = re.compile(r"`stabtree ([^`]+)`")
IN_BLOCK = re.compile(r"(?:^|[|;&] )(?:\$ )?stabtree ([^\n|;&>#]+)", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@pytest.mark.skipif(sys.platform == "win32", reason="the blocks are for a POSIX shell")
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_is_so(page: Path) -> None:
    """To the letter; `python -m tests.whole.pages --write PAGE` writes anew what has changed."""
    assert not run_page(page).wrong


def options_of(words: list[str]) -> set[str]:
    """The options that what is typed may have; `stabtree PATH` is `diagnose`."""
    if words[0].startswith("--"):
        return help_of(())
    command = words[: 2 if words[0] in ("tree", "info") else 1] if words[0] in commands() else ["diagnose"]
    return help_of(tuple(command))


@cache
def help_of(command: tuple[str, ...]) -> set[str]:
    """The options that a command's help lists."""
    done = run(*command, "--help")
    assert done.returncode == 0, command
    return {*OPTION.findall(done.stdout), "--version"}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_tells_to_type_is_there(page: Path) -> None:
    """Every `stabtree ...` of a page, in a sentence too, is of a command and of options that exist."""
    text = page.read_text(encoding="utf-8")
    shown = [block.text for block in blocks_of(text) if block.language in ("console", "bash", "sh")]
    typed = INLINE.findall(text) + [line for block in shown for line in IN_BLOCK.findall(block)]
    for words in map(str.split, typed):
        assert words[0] in (*commands(), "help") or not re.fullmatch(r"[a-z]+", words[0]), words
        assert {*OPTION.findall(" ".join(words))} <= options_of(words), words
