"""The reference of the command line."""

from __future__ import annotations


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    return {}
