"""What the site is made of: the pages below `docs/` as they are written, and those that are made of trees and code."""

from __future__ import annotations

import re
import shutil
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
LINK = re.compile(r"(?<=\]\()(\.\./[^)#\s]+)")
WRITTEN = ("*.md", "*.py", "*.css", "*.svg", "*.png", "*.yaml", "*.sh")
# Each has `pages()`: what it writes, by its path in the site. No two write the same.
MAKERS = (
    *("failures", "nodes", "metrics", "predicates", "comparison"),
    *("reference.commands", "reference.schemas", "reference.tables", "reference.api"),
)


def made() -> Iterator[tuple[str, str | bytes]]:
    """Path and content of every page, picture and index that is made of trees and code."""
    for name in MAKERS:
        pages: Mapping[str, str | bytes] = import_module(f"docs.site.{name}").pages()
        yield from pages.items()


def lay_out(folder: Path) -> int:
    """Write all pages into a folder, which is emptied before; how many there are.

    Raises:
        ValueError: Two pages have one path.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for pattern in WRITTEN:
        for file in sorted(DOCS.rglob(pattern)):
            if "site" not in file.relative_to(DOCS).parts:
                page = file.suffix == ".md"
                _put(folder / file.relative_to(DOCS), _outward(file).encode() if page else file.read_bytes())
    for path, content in made():
        _put(folder / path, content.encode() if isinstance(content, str) else content)
    return sum(1 for _ in folder.rglob("*.md"))


@cache
def source_address() -> str:
    """Where the repository's files are read."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['urls']['Source']}/blob/main"


def _outward(page: Path) -> str:
    """A page whose links to files beside `docs/`, which are no pages, lead to where the repository is read."""

    def led(link: re.Match[str]) -> str:
        target = (page.parent / link[1]).resolve()
        outside = target.exists() and not target.is_relative_to(DOCS) and target.is_relative_to(ROOT)
        return f"{source_address()}/{target.relative_to(ROOT).as_posix()}" if outside else link[1]

    return LINK.sub(led, page.read_text(encoding="utf-8"))


def _put(path: Path, content: bytes) -> None:
    if path.exists():
        msg = f"{path}: a page of that name is there already"
        raise ValueError(msg)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
