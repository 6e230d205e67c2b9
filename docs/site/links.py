"""Whether every link of a built site leads somewhere, and that its pages load nothing from another host.

What a page loads (scripts, styles, pictures, fonts) must be in the site, which is read without a network too. What it
links to may be elsewhere; such addresses are not fetched.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TAG = re.compile(r"<([a-z]\w*)((?:\s[^<>]*)?)>", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""([\w:-]+)=(?:"([^"]*)"|'([^']*)')""")
CSS = re.compile(r"""url\(\s*['"]?([^'")#][^'")]*)|@import\s+['"]([^'"]+)""", re.IGNORECASE)
COMMENT = re.compile(r"/\*.*?\*/|<!--.*?-->", re.DOTALL)
LOADED = {"src", "srcset", "poster"}
DRAWN = {"image", "use"}  # of SVG, whose `href` is loaded
LINKS = {"canonical", "next", "prev", "search", "index"}  # `rel` of a `link` that is not loaded


def links(content: str) -> Iterator[tuple[str, bool]]:
    """Yield the addresses in a page or a style sheet, each with whether a browser fetches it by itself."""
    content = COMMENT.sub("", content)
    yield from ((unescape(url or imported).strip(), True) for url, imported in CSS.findall(content))
    for tag, attributes in TAG.findall(content):
        values = {name: unescape(double or single) for name, double, single in ATTRIBUTE.findall(attributes)}
        fetched = tag in DRAWN or (tag == "link" and values.get("rel") not in LINKS)
        for name in values.keys() & {"href", "xlink:href", *LOADED}:
            parts = values[name].split(", ") if name == "srcset" else [values[name]]
            yield from ((part.split()[0], fetched or name in LOADED) for part in parts if part.strip())


def check(folder: Path, wanted: tuple[str, ...] = ()) -> tuple[int, int, list[str]]:
    """Follow each link of each page, style sheet and picture below a folder.

    Args:
        folder: the site.
        wanted: further addresses that must be there, from its top.

    Returns:
        The number of pages, of links, and a line for each link that leads nowhere.
    """
    root = folder.resolve()
    files = [path for kind in ("html", "css", "svg") for path in sorted(root.rglob(f"*.{kind}"))]
    texts = {path: path.read_text("utf-8", errors="replace") for path in files}
    anchors = {path: {*re.findall(r"""\bid=["']([^"']*)""", content)} for path, content in texts.items()}
    every = [(path, *link) for path, content in texts.items() for link in sorted({*links(content)})]
    every += [(root / "index.html", address, False) for address in wanted]
    broken = []
    for path, address, loaded in every:
        if reason := _problem(address, path, root, anchors, loaded=loaded):
            broken.append(f"{path.relative_to(root)}: {address}: {reason}")
    return sum(path.suffix == ".html" for path in files), len(every), broken


def _problem(link: str, page: Path, root: Path, anchors: dict[Path, set[str]], *, loaded: bool) -> str:
    """Return what is wrong with a link; an empty string if it leads somewhere, or to another host."""
    address = urlsplit(link)
    if address.scheme in ("data", "mailto", "javascript"):
        return ""
    if address.scheme or address.netloc:
        return "loaded from another host" if loaded else ""
    if address.path.startswith("/"):
        return "begins at the root of the host, wherever the site is"
    target = (page.parent / unquote(address.path)).resolve() if address.path else page
    if not target.is_relative_to(root) or not target.is_file():
        return "there is no such file"
    anchor = unquote(address.fragment)
    return f"no #{anchor} in it" if anchor and anchor not in anchors.get(target, {anchor}) else ""
