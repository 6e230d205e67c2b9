"""What is being done is told where it takes long, and to a person alone."""

from __future__ import annotations

import io
import sys
import time

import pytest

from stabtree.cli import terminal
from stabtree.cli.terminal import Busy
from tests.cli.command import Terminal


@pytest.mark.parametrize(
    ("stream", "wanted", "patience", "told"),
    [
        (Terminal(), True, 0.0, True),
        (Terminal(), True, 60.0, False),
        (Terminal(), False, 0.0, False),
        (io.StringIO(), True, 0.0, False),
        (None, True, 0.0, False),
    ],
)
def test_a_person_is_told_of_what_takes_long(
    stream: io.StringIO | None, wanted: bool, patience: float, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal after a while; not before, not where it is not wanted, not into a file."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", patience)
    with Busy(wanted=wanted).doing("reading a.csv"):
        deadline = time.monotonic() + (10 if told else 0.2)
        while time.monotonic() < deadline and "reading" not in (stream.getvalue() if stream else ""):
            time.sleep(0.01)
    assert ("reading a.csv" in (stream.getvalue() if stream else "")) is told
