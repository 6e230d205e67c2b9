"""What the site is made of: the pages below `docs/` as they are written, and those that are made of trees and code."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DOCS = Path(__file__).resolve().parents[1]
WRITTEN = ("*.md", "*.py", "*.css", "*.svg", "*.png", "*.yaml", "*.sh")
# Each has `pages()`: what it writes, by its path in the site. No two write the same.
MAKERS = ("failures", "nodes", "metrics", "predicates", "commands", "comparison")


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
                _put(folder / file.relative_to(DOCS), file.read_bytes())
    for path, content in made():
        _put(folder / path, content.encode() if isinstance(content, str) else content)
    return sum(1 for _ in folder.rglob("*.md"))


def _put(path: Path, content: bytes) -> None:
    if path.exists():
        msg = f"{path}: a page of that name is there already"
        raise ValueError(msg)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
