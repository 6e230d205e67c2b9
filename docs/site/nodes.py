"""A page for each question, group, entry and signature of the trees."""

from __future__ import annotations


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    return {}
