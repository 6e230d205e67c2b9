"""What every page begins and ends with: it asks nothing of the network, and runs nothing but its own script."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from stabtree.report.html.tags import Markup, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

CLOSING = Markup("</body></html>\n")


def opening(title: str, style: Markup, script: str, others: Sequence[str] = ()) -> Markup:
    """A page up to what it shows, with a policy that allows nothing but its own styles and its own script.

    Args:
        title: of the page.
        style: its style sheet.
        script: the script that will stand in it.
        others: style sheets that will stand further down.
    """
    styles = " ".join(_hash(each) for each in (style, *others))
    policy = (
        f"default-src 'none'; style-src {styles}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<link rel="icon" href="data:,">'),
        tag("title", title),
        tag("style", style),
    )
    return Markup(f'<!doctype html>\n<html lang="en">{head}<body>')


def asset(name: str, package: str = "stabtree.report.html") -> str:
    """Return a file that ships with the pages of a package."""
    return files(package).joinpath(name).read_text("utf-8")


def _hash(inline: str) -> str:
    digest = hashlib.sha256(inline.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
