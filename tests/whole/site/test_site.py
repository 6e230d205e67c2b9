"""The site is laid out whole, and what checks its links finds those that lead nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from docs.site import pages
from docs.site.links import check
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

STATIC = ROOT / "docs" / "_static"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two pages and a style sheet, of which each link is well."""
    (tmp_path / "rooms").mkdir()
    (tmp_path / "style.css").write_text("a { background: url(dot.svg) } /* url(gone.png) */", encoding="utf-8")
    (tmp_path / "dot.svg").write_text('<svg id="dot" xmlns="http://www.w3.org/2000/svg"/>', encoding="utf-8")
    head = '<link rel="stylesheet" href="style.css"><a href="https://example.org/">there</a>'
    (tmp_path / "index.html").write_text(f'{head}<a href="rooms/one.html#end">one</a><a href="#">up</a>', "utf-8")
    (tmp_path / "rooms" / "one.html").write_text('<p id="end"><img src="../dot.svg#dot"></p>', encoding="utf-8")
    return tmp_path


def test_links_that_lead_somewhere_are_counted(site: Path) -> None:
    """With those to other hosts, which are not fetched."""
    told = check(site)
    assert (told.pages, told.links, told.broken) == (2, 6, ())
    assert told.elsewhere == ("https://example.org/",)


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        ('<a href="rooms/two.html">', "there is no such file"),
        ('<a href="rooms/">', "there is no such file"),
        ('<a href="../outside.html">', "there is no such file"),
        ('<a href="rooms/one.html#start">', "no #start in it"),
        ('<a href="#start">', "no #start in it"),
        ('<a href="/rooms/one.html">', "begins at the root of the host, wherever the site lies"),
        ('<img srcset="dot.svg 1x, dots.svg 2x">', "there is no such file"),
        ('<img src="https://example.org/dot.svg">', "loaded from another host"),
        ('<script src="//example.org/a.js"></script>', "loaded from another host"),
        ('<link rel="preload" href="https://example.org/a.woff2">', "loaded from another host"),
        ('<svg><use href="https://example.org/dot.svg#dot"/></svg>', "loaded from another host"),
        ('<p style="background: url(https://example.org/dot.png)">', "loaded from another host"),
        ("<style>@import 'https://example.org/a.css';</style>", "loaded from another host"),
    ],
)
def test_a_link_that_leads_nowhere_is_told(site: Path, element: str, reason: str) -> None:
    """And so is all that a page would load from another host."""
    (site.parent / "outside.html").write_text("not of the site", encoding="utf-8")
    with (site / "index.html").open("a", encoding="utf-8") as page:
        page.write(element)
    (told,) = check(site).broken
    assert told.startswith("index.html: ")
    assert told.endswith(reason)


def test_style_sheets_are_followed(site: Path) -> None:
    """Of themselves, whichever page names them."""
    (site / "style.css").write_text("@font-face { src: url('letters.woff2') }", encoding="utf-8")
    assert check(site).broken == ("style.css: letters.woff2: there is no such file",)


def test_pages_name_files_of_the_repository_by_their_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that leaves `docs/` would lead nowhere on the site; one that leads nowhere at all stays."""
    docs = tmp_path / "docs"
    (docs / "how-to").mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("for agents", encoding="utf-8")
    (docs / "faq.md").write_text("questions", encoding="utf-8")
    page = "[a](../../AGENTS.md#keys) [b](../faq.md) [c](../../gone.md) [d](../failures/nan.md)"
    (docs / "how-to" / "page.md").write_text(page, encoding="utf-8")
    monkeypatch.setattr(pages, "DOCS", docs)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "source_address", lambda: "https://example.org/blob/main")
    pages.lay_out(tmp_path / "source")
    told = (tmp_path / "source" / "how-to" / "page.md").read_text(encoding="utf-8")
    assert told == page.replace("../../AGENTS.md", "https://example.org/blob/main/AGENTS.md")


def test_looks_load_nothing_from_elsewhere() -> None:
    """Style sheet and pictures of our own."""
    for file in STATIC.iterdir():
        held = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//" not in held, file
