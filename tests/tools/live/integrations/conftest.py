"""Models so small that a run is over before another process has read what it wrote."""

from __future__ import annotations

import pytest

from stabtree.tools.live.recorder import beside


@pytest.fixture
def in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row waits for what is found in it, so that a run stops at the row at which a slow one does."""
    monkeypatch.setattr(beside.JudgeProcess, "_is_sign", lambda *_: True)
    monkeypatch.setattr(beside, "WAITED_SECONDS", 600.0)
