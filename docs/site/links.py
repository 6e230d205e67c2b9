"""Whether every link of a built site leads somewhere, and that its pages load nothing from another host.

What a page loads (scripts, styles, pictures, fonts) must lie in the site: it is read without a network too. What it
links to may lie elsewhere; such addresses are listed, and not fetched.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pathlib import Path

# What a browser fetches without being asked to. A `link` is one where its `rel` says so.
LOADS = {"src", "srcset", "poster", "data"}
FETCHED = {"stylesheet", "icon", "preload", "prefetch", "manifest", "modulepreload"}
DRAWN = {"image", "use", "feimage"}  # of SVG, whose `href` is loaded
CSS = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""", re.IGNORECASE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class Link(NamedTuple):
    """An address in a page, and whether a browser fetches it by itself."""

    address: str
    loaded: bool


class Checked(NamedTuple):
    """What was followed: how many pages and links, those that lead nowhere, and the addresses of other hosts."""

    pages: int
    links: int
    broken: tuple[str, ...]
    elsewhere: tuple[str, ...]


class Page(HTMLParser):
    """The links of a page and what they can point at in it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[Link] = set()
        self.ids: set[str] = set()
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element names and where it leads."""
        self._in_style = tag == "style"
        held = {name: value or "" for name, value in attrs}
        self.ids |= {held[name] for name in ("id", "name") if held.get(name) and (name == "id" or tag == "a")}
        fetched = tag in DRAWN or (tag == "link" and not FETCHED.isdisjoint(held.get("rel", "").split()))
        for name in held.keys() & ({"href", "xlink:href", "action", "cite"} | LOADS):
            parts = held[name].split(",") if name == "srcset" and not held[name].startswith("data:") else [held[name]]
            self.links |= {Link(part.split()[0], fetched or name in LOADS) for part in parts if part.strip()}
        self.links |= {Link(address, loaded=True) for address in in_css(held.get("style", ""))}

    def handle_data(self, data: str) -> None:
        """What a style sheet within the page loads."""
        if self._in_style:
            self.links |= {Link(address, loaded=True) for address in in_css(data)}


def in_css(text: str) -> set[str]:
    """The addresses that a style sheet loads."""
    return {(url or imported).strip() for url, imported in CSS.findall(COMMENT.sub("", text))}


def check(folder: Path) -> Checked:
    """Follow each link of each page, style sheet and picture below a folder."""
    root = folder.resolve()
    pages = {path: _read(path) for kind in ("html", "css", "svg") for path in sorted(root.rglob(f"*.{kind}"))}
    broken: list[str] = []
    elsewhere: set[str] = set()
    for path, page in pages.items():
        for link in sorted(page.links):
            if reason := _problem(link, path, root, pages):
                broken.append(f"{path.relative_to(root)}: {link.address}: {reason}")
            elif urlsplit(link.address).scheme in ("http", "https"):
                elsewhere.add(link.address)
    links = sum(len(page.links) for page in pages.values())
    html = sum(path.suffix == ".html" for path in pages)
    return Checked(html, links, tuple(broken), tuple(sorted(elsewhere)))


def _read(path: Path) -> Page:
    page = Page()
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".css":
        page.links = {Link(address, loaded=True) for address in in_css(text)}
    else:
        page.feed(text)
        page.close()
    return page


def _problem(link: Link, page: Path, root: Path, pages: dict[Path, Page]) -> str:
    """Why a link is none; empty where it leads somewhere, or to another host that need not be there."""
    address = urlsplit(link.address)
    if address.scheme in ("data", "mailto", "javascript"):
        return ""
    if address.scheme or address.netloc:
        return "loaded from another host" if link.loaded else ""
    if address.path.startswith("/"):
        return "begins at the root of the host, wherever the site lies"
    target = (page.parent / unquote(address.path)).resolve() if address.path else page
    if not target.is_relative_to(root) or not target.is_file():
        return "there is no such file"
    anchor, held = unquote(address.fragment), pages.get(target)
    return f"no #{anchor} in it" if anchor and held and anchor not in held.ids else ""
