"""The side bar of pages that no table of contents holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("sphinx", reason="pip install 'stabtree[docs]'")
from sphinx.application import Sphinx

if TYPE_CHECKING:
    from pathlib import Path

PAGES = {
    "index.md": "# Home\n\n```{toctree}\nrooms/index\nrooms/held\n```\n",
    "rooms/index.md": "# Rooms\n",
    "rooms/held.md": "# Held\n",
    "rooms/one.md": "---\norphan: true\n---\n\n# One\n",
    "alone/two.md": "---\norphan: true\n---\n\n# Two\n",
}
CONF = """
from docs.site.sidebar import connect as setup
extensions = ["myst_parser"]
html_theme = "furo"
"""


def test_a_page_stands_where_its_folder_stands(tmp_path: Path) -> None:
    """With the links of its own folder; a page that the contents hold is marked itself."""
    source = tmp_path / "source"
    for name, words in PAGES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(words, encoding="utf-8")
    (source / "conf.py").write_text(CONF, encoding="utf-8")
    Sphinx(source, source, tmp_path / "html", tmp_path / "read", "html", status=None).build()

    def marked(page: str) -> list[str]:
        text = (tmp_path / "html" / page).read_text(encoding="utf-8")
        return re.findall(r'<a class="current reference internal" href="([^"]*)"', text)

    assert marked("rooms/one.html") == ["index.html"]
    assert marked("rooms/index.html") == ["#"]
    assert marked("rooms/held.html") == ["#"]
    assert marked("alone/two.html") == []
