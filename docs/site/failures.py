"""The gallery of failures: a page for each leaf."""

from __future__ import annotations


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    return {}
