"""The gallery of failures: a page for each leaf, with the picture of a run that ends there."""

from __future__ import annotations

from pathlib import Path

from docs.site.failures.examples import examples
from docs.site.failures.gallery import gallery
from docs.site.failures.leaf import page
from docs.site.failures.terminal import styles
from docs.site.markup import FAILURES, file_of
from stabtree.render.figure.theme import DARK, LIGHT, style

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
    """The looks of the pages: written ones, the colours of the pictures as the page has them, those of the terminal."""
    light, dark = (";".join(f"--fig-{name}:{color}" for name, color in each.items()) for each in (LIGHT, DARK))
    dim = f"body:not([data-theme=light]) svg.stabtree{{{dark}}}"
    switched = f"body svg.stabtree{{{light}}}\nbody[data-theme=dark] svg.stabtree{{{dark}}}\n"
    following = f"@media(prefers-color-scheme:dark){{{dim}}}\n"
    rules = style(dark=None).replace("@media", "\n@media")
    written = (HERE / "failures.css").read_text(encoding="utf-8")
    return f"{written}\n{rules}\n{switched}{following}{styles()}"
