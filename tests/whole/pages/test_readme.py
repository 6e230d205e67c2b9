"""The README tells the truth; that its blocks run, and print what it shows, is held by `tests/whole/pages`."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from typing import TYPE_CHECKING

import pytest

from stabtree.cli.program import commands
from stabtree.cli.tree import tree_app
from stabtree.judging.settings import KEYS, read_settings
from tests.whole.pages.blocks import README, ROOT, texts

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
LARGEST_PICTURE = 60_000  # bytes
MAX_LINES = 140
SET_UP = (README, DOCS / "install.md")


def test_the_picture_shows_what_comes_out() -> None:
    """The picture at the top holds the text of the first block, loads nothing and is small (`make readme` draws it)."""
    drawn = (ROOT / "docs" / "pictures" / "screen.svg").read_text(encoding="utf-8")
    _, *told = re.findall(r"<text[^>]*>(.*?)</text>", drawn)
    screen = texts(README, "console")[0].split("\n", 1)[1]
    assert "docs/pictures/screen.svg" in README.read_text(encoding="utf-8")
    assert "".join(unescape("".join(told)).split()) == "".join(screen.split())
    assert re.findall(r"(?:url\(|href=)[\"']?(?!#)", drawn) == []
    assert len(drawn.encode()) < LARGEST_PICTURE


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make here")
@pytest.mark.parametrize("line", [line for page in SET_UP for text in texts(page, "sh") for line in text.splitlines()])
def test_a_set_up_line_works(line: str) -> None:
    """Each set-up line is a make target that make can plan (`make test` would run these very tests again)."""
    command = line.split("#", maxsplit=1)[0].split()
    assert command[0] == "make"
    subprocess.run(["make", "--dry-run", *command[1:]], cwd=ROOT, check=True, capture_output=True)


def test_the_readme_names_every_command() -> None:
    """No command of the command line is missing from the README, and no command of trees from the page on them."""
    text = README.read_text(encoding="utf-8")
    assert [name for name, entry in commands().items() if entry.help and f"stabtree {name}" not in text] == []
    page = (DOCS / "explanation" / "trees.md").read_text(encoding="utf-8")
    named = [str(item.name or getattr(item.callback, "__name__", "")) for item in tree_app.registered_commands]
    assert len(named) > 5
    assert [name for name in named if f"stabtree tree {name}" not in page] == []


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    """One reads it in a sitting, on a code host too: each link is to a file that is there."""
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://") and not (ROOT / link).is_file()] == []


def test_the_settings_of_the_page_are_settings(tmp_path: Path) -> None:
    """Every key of the example exists and has a value that it may have; none that exists is left out."""
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "stabtree.toml"
    file.write_text(block, encoding="utf-8")
    settings = read_settings(str(file))
    assert settings.note.startswith("Set by ")
    assert set(settings.set) == {"spike.sigma"}
    assert [key for key in KEYS if key not in block] == []
