"""The site is laid out whole, and what checks its links finds those that lead nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from docs.site import __main__ as site
from docs.site.links import check

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two pages and a style sheet, in which each link leads somewhere."""
    (tmp_path / "rooms").mkdir()
    (tmp_path / "style.css").write_text("a { background: url(dot.svg) } /* url(gone.png) */", encoding="utf-8")
    (tmp_path / "dot.svg").write_text('<svg id="dot" xmlns="http://www.w3.org/2000/svg"/>', encoding="utf-8")
    head = '<link rel="stylesheet" href="style.css"><a href="https://example.org/">there</a>'
    (tmp_path / "index.html").write_text(f'{head}<a href="rooms/one.html#end">one</a>', "utf-8")
    (tmp_path / "rooms" / "one.html").write_text('<p id="end"><img src="../dot.svg#dot"></p>', encoding="utf-8")
    return tmp_path


def test_links_that_lead_somewhere_are_counted(folder: Path) -> None:
    """With those to other hosts, which are not fetched, and those that must be there although no page has them."""
    assert check(folder, ("rooms/one.html#end",)) == (2, 6, [])
    (broken,) = check(folder, ("rooms/one.html#start",))[2]
    assert broken == "index.html: rooms/one.html#start: no #start in it"


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        ('<a href="rooms/">', "there is no such file"),
        ('<a href="../outside.html">', "there is no such file"),
        ('<a href="rooms/one.html#start">', "no #start in it"),
        ('<a href="#start">', "no #start in it"),
        ('<a href="/rooms/one.html">', "begins at the root of the host, wherever the site is"),
        ('<img srcset="dot.svg 1x, dots.svg 2x">', "there is no such file"),
        ('<script src="//example.org/a.js"></script>', "loaded from another host"),
        ('<link rel="preload" href="https://example.org/a.woff2">', "loaded from another host"),
        ('<svg><use href="https://example.org/dot.svg#dot"/></svg>', "loaded from another host"),
        ('<p style="background: url(https://example.org/dot.png)">', "loaded from another host"),
        ("<style>@import 'https://example.org/a.css';</style>", "loaded from another host"),
    ],
)
def test_a_link_that_leads_nowhere_is_reported(folder: Path, element: str, reason: str) -> None:
    """And so is everything that a page would load from another host."""
    (folder.parent / "outside.html").write_text("not of the site", encoding="utf-8")
    with (folder / "index.html").open("a", encoding="utf-8") as page:
        page.write(element)
    (line,) = check(folder)[2]
    assert line.startswith("index.html: ")
    assert line.endswith(reason)


def test_pages_name_files_of_the_repository_by_their_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that leaves `docs/` would lead nowhere on the site; one that leads nowhere at all stays."""
    page = tmp_path / "docs" / "how-to" / "page.md"
    page.parent.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("for agents", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project.urls]\nSource = "https://example.org"\n', encoding="utf-8")
    words = "[a](../../AGENTS.md#keys) [c](../../gone.md) [d](../failures/nan.md)"
    page.write_text(words, encoding="utf-8")
    monkeypatch.setattr(site, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    assert site.outward(page) == words.replace("../../AGENTS.md", "https://example.org/blob/main/AGENTS.md")


def test_no_page_is_written_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A made page would replace a written one of the same path."""
    monkeypatch.setattr(site, "MAKERS", [])
    site.lay_out(tmp_path / "source")
    assert (tmp_path / "source" / "faq.md").is_file()
    assert not (tmp_path / "source" / "site").exists()
    monkeypatch.setattr(site, "MAKERS", [type("Maker", (), {"pages": staticmethod(lambda: {"faq.md": ""})})])
    with pytest.raises(FileExistsError):
        site.lay_out(tmp_path / "source")
