"""A new trainer is one file."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from stabtree.frameworks import load, recognise
from stabtree.loaders.paths import stored
from stabtree.loaders.text import messages
from stabtree.tools.check.load import load_config
from tests.cli.command import run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SWIFT = """
name: ms-swift
config:
  marks: [tuner_type tuner_backend]
  keys: {peak_rate: lr}
log:
  marks: [tuner_speed]
knobs: {lr: peak_rate}
"""
CONFIG = {"tuner_type": "full", "tuner_backend": "peft", "peak_rate": 1e-4, "max_steps": 1000}
CACHES = (
    load.all_trainers,
    load.frameworks,
    recognise._in_order,
    recognise._prefixed,
    recognise._by_columns,
    messages._printed,
    messages.error_words,
    stored._step,
)


@pytest.fixture
def swift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder of trainers with a new one in it, from which all are read."""
    folder = tmp_path / "frameworks"
    shutil.copytree(load.FOLDER, folder)
    (folder / "swift.yaml").write_text(SWIFT, encoding="utf-8")
    monkeypatch.setattr(load, "FOLDER", folder)
    for cached in CACHES:
        cached.cache_clear()
    yield folder
    monkeypatch.undo()
    for cached in CACHES:
        cached.cache_clear()


@pytest.mark.usefixtures("swift")
def test_check_recognises_and_reads_a_new_trainer(tmp_path: Path) -> None:
    """It says whose configuration it is, and reads the trainer's own keys."""
    file = tmp_path / "args.json"
    file.write_text(json.dumps(CONFIG), encoding="utf-8")
    assert "Trainer: ms-swift." in run("check", str(file)).stdout
    settings = load_config(file).config
    assert (settings["framework"].value, settings["lr"].value) == ("swift", CONFIG["peak_rate"])


@pytest.mark.usefixtures("swift")
def test_fixes_are_in_the_words_of_a_new_trainer(tmp_path: Path) -> None:
    """A log of it is known by its columns, and fixes call a knob as its file does."""
    head, *rows = (FIXTURES / "phase19" / "lr-rising" / "metrics.csv").read_text(encoding="utf-8").splitlines()
    lines = [f"{head},tuner/speed", *(f"{row},1" for row in rows)]
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    assert "(peak_rate " in run("diagnose", str(file), "--full").stdout
