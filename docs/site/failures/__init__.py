"""The gallery of failures: a page for each leaf, with the picture of a run that ends there."""

from __future__ import annotations

from pathlib import Path

from docs.site.failures.examples import examples
from docs.site.failures.gallery import gallery
from docs.site.failures.leaf import page
from docs.site.failures.terminal import styles
from docs.site.markup import FAILURES
from stabtree.report.svg import style
from stabtree.tree.load import file_of

HERE = Path(__file__).parent


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    return {
        f"{FAILURES}/index.md": gallery(),
        **{f"{FAILURES}/{file_of(id_)}.md": page(example) for id_, example in examples().items()},
        "_static/failures.css": _css(),
        "_static/gallery.js": (HERE / "gallery.js").read_text(encoding="utf-8"),
    }


def _css() -> str:
    """The looks of the pages: written ones, those of the pictures, which have none of their own, and the terminal's."""
    written = (HERE / "failures.css").read_text(encoding="utf-8")
    return "\n".join([written, style(), styles()])
