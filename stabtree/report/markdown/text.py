"""Text from outside as text of a Markdown page: it stays what it is, whatever it holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.common.text import clean, inert

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LONGEST = 1000
GAP = "&#8203;"  # of no width: what would call a person or an issue by name is two words then, and looks the same
_SPECIAL = re.compile(r"[\\`*\[\]<>~&$#]|(?<![^\W_])_+|_+(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE)
_PIPE = "&#124;"  # a backslash before it means one thing in a table and another outside
# What forges make links or pictures of when the page is already text, so that no backslash helps.
_CALLS = re.compile(r"([@#])(?=\w)|(:)(?=[\w+-]*[a-z_][\w+-]*:|100:|1234:)", re.IGNORECASE)
_AT_START = re.compile(r"^(\d+)(?=[.)])|^(?=[-+=/])")


def escape(text: object) -> str:
    r"""Return a text in one line that Markdown shows as it is: no markup, HTML, link, mention or end of a table cell.

    >>> escape("@ann: see <b>grad_norm</b> | *2*")
    '@&#8203;ann: see \\<b\\>grad_norm\\</b\\> &#124; \\*2\\*'
    """
    plain = clean(text, LONGEST)
    marked = _CALLS.sub(lambda found: f"{found[0]}\0", plain)
    marked = _SPECIAL.sub(lambda found: "".join(f"\\{char}" for char in found[0]), marked)
    marked = _AT_START.sub(lambda found: f"{found[0]}\\", marked)
    return marked.replace("|", _PIPE).replace("\0", GAP)


def code(command: str) -> str:
    """Return a command as a block to copy."""
    text = inert(clean(command, LONGEST))
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def folded(head: str, inner: str) -> str:
    """Return a part that opens with a click; its head is our own plain words."""
    return f"<details><summary>{head}</summary>\n\n{inner}\n\n</details>"


def listed(items: Iterable[str], mark: str = "-") -> str:
    """Return a list, an item a line; `1.` as its mark numbers them."""
    if mark == "1.":
        return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
    return "\n".join(f"{mark} {item}" for item in items)


def paged(*parts: str) -> str:
    """Return the parts that are not empty, a blank line between them."""
    return "\n\n".join(part for part in parts if part) + "\n"
