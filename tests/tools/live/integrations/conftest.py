"""Models so small that a run is over before its log is judged for the first time."""

from __future__ import annotations

import pytest

from stabtree.tools.live.events import Watching


@pytest.fixture
def in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge each row, so that a run stops at the row at which a slow one does."""
    monkeypatch.setattr(Watching, "_is_due", lambda *_, **__: True)
