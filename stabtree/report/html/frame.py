"""A page as the output of a cell of a notebook."""

from __future__ import annotations

from html import escape

STYLE = "width:100%;height:44rem;border:1px solid #8884;border-radius:6px"


def framed(page: str) -> str:
    """Return a page in a frame of its own: its style and its script stay inside, and reach nothing of the notebook."""
    return f'<iframe sandbox="allow-scripts" style="{STYLE}" srcdoc="{escape(page)}"></iframe>'
