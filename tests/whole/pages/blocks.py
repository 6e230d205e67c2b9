"""The fenced blocks of a Markdown page, with what the comments above them say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[3]
README = ROOT / "README.md"
RUN = ("console", "bash", "sh", "python")
SHOWN = ("text", "yaml", "toml", "json", "make", "csv", "ini", "diff", "html", "markdown", "bibtex", "mermaid")
HIDDEN = ("before", "picture")
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[^\n`]*)$")
MARK = re.compile(r"<!--\s*(not run|run by|file|exits|prints|before|picture)\b:?\s*(.*?)\s*-->", re.DOTALL)
# Where written pages lie. What is not listed has none: fixtures, tests, the package itself.
FOLDERS = (".github", "benchmarks", "docs", "faultbench", "skills")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, or what a `before` or `picture` comment says.

    Args:
        line: of its fence, counted from 1.
        language: what stands behind the fence, or the name of the comment.
        text: without the fence and its indentation.
        marks: what the comments above it say.
    """

    line: int
    language: str
    text: str
    marks: Mapping[str, str]

    @property
    def is_to_run(self) -> bool:
        """Whether its language is one that is run, whatever is said of it."""
        return self.language in RUN or "prints" in self.marks


def pages() -> tuple[Path, ...]:
    """Every written page of the checkout."""
    below = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.md"))
    return tuple(sorted([*ROOT.glob("*.md"), *below]))


def blocks_of(text: str, first: int = 1) -> Iterator[Block]:
    """All blocks of a page in their order, those inside of a MyST directive too.

    Args:
        text: of the page.
        first: the number of its first line.
    """
    lines = text.splitlines()
    marks: dict[str, str] = {}
    at = 0
    while at < len(lines):
        begin, line = at, lines[at]
        at += 1
        if fence := FENCE.match(line):
            closing = re.compile(rf"^ *{fence['fence'][0]}{{{len(fence['fence'])},}} *$")
            end = next((later for later in range(at, len(lines)) if closing.match(lines[later])), len(lines))
            language, inside = fence["language"].strip(), dedent("".join(f"{row}\n" for row in lines[at:end]))
            if language.startswith("{"):
                yield from blocks_of(inside, first + at)
            yield Block(first + begin, language, inside, marks)
            marks, at = {}, end + 1
        elif line.lstrip().startswith("<!--"):
            while "-->" not in lines[at - 1] and at < len(lines):
                at += 1
            if mark := MARK.search("\n".join(lines[begin:at])):
                if mark[1] in HIDDEN:
                    yield Block(first + begin, mark[1], mark[2] + "\n", {})
                else:
                    marks |= {mark[1]: mark[2]}
        elif line.strip():
            marks = {}


def texts(page: Path, language: str) -> list[str]:
    """The texts of all blocks of a language on a page, for a test that looks at them more closely."""
    return [block.text for block in blocks_of(page.read_text(encoding="utf-8")) if block.language == language]


def replaced(text: str, block: Block, by: str) -> str:
    """The page with other text in a block; its fences, indented as they are, stay."""
    lines = text.splitlines(keepends=True)
    fence = FENCE.match(lines[block.line - 1].rstrip("\n"))
    count = len(block.text.splitlines())
    before = fence["indent"] if fence else ""
    return "".join([*lines[: block.line], indent(by, before), *lines[block.line + count :]])
