"""What a tool can add to a diagnosis."""

from __future__ import annotations

from typing import Any, Protocol


class AddedSection(Protocol):
    """What a tool adds to a diagnosis; it knows how each output shows it."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, as `--json` writes them."""

    def show(self, page: Any, diagnosis: Any) -> None:
        """Write it on a page of the screen."""

    def described(self, diagnosis: Any) -> tuple[str, list[tuple[str, str]]]:
        """Return its heading, and its rows: each a head, which may be empty, and a text."""
