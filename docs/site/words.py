"""What the search page looks through: the words of all pages, section by section.

It is a script and no file of JSON: a browser fetches none below `file://`, where the site is read as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

Section = tuple[str, str, str]  # its anchor, its heading, its own words


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the words of all pages as `_static/pages.js`: for each page its address and its sections."""
    if exception or app.builder.format != "html":
        return
    read = {name: [*sections(app.env.get_doctree(name))] for name in sorted(app.env.found_docs)}
    pages = [(app.builder.get_target_uri(name), found) for name, found in read.items() if found]
    file = Path(app.outdir) / "_static" / "pages.js"
    file.write_text(f"window.pages = {json.dumps(pages, ensure_ascii=False)};\n", encoding="utf-8")


def sections(page: nodes.document) -> Iterator[Section]:
    """Yield the sections of a page in their order; the first is the page itself."""
    for section in page.findall(nodes.section):
        title, *own = section.children
        words = (word for part in own if not isinstance(part, nodes.section) for word in _words(part))
        yield section["ids"][0], title.astext(), " ".join(" ".join(words).split())


def _words(node: nodes.Node) -> Iterator[str]:
    """Yield the words of a part of a page, without what is folded: that is mostly of other pages."""
    if isinstance(node, nodes.Text):
        yield node.astext()
    elif not isinstance(node, nodes.raw | nodes.comment) and node.get("design_component") != "dropdown":
        for child in node.children:
            yield from _words(child)
