"""A page for each metric."""

from __future__ import annotations


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    return {}
