"""Screens change only where somebody read the change."""

import pytest

from tests.screens.screens import COMMANDS, FOLDER, screen


@pytest.mark.parametrize("name", COMMANDS)
def test_a_screen_is_as_recorded(name: str) -> None:
    """What each command prints is, to the letter, what its file holds."""
    assert screen(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
