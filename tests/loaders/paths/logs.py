"""Logs to find: small runs in the formats of trainers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 60


def rows(seed: int, steps: int = STEPS) -> list[dict[str, float]]:
    """The rows of a healthy run, like no other seed's."""
    rng = np.random.default_rng(seed)
    loss = 2 * np.exp(-np.arange(steps) / 20) + 1 + rng.normal(0, 0.02, steps)
    return [{"step": step, "loss": round(float(value), 5)} for step, value in enumerate(loss)]


def csv(file: Path, seed: int = 0, steps: int = STEPS) -> Path:
    """A run as CSV."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "step,loss\n" + "".join(f"{row['step']},{row['loss']}\n" for row in rows(seed, steps)), encoding="utf-8"
    )
    return file


def jsonl(file: Path, seed: int = 0) -> Path:
    """A run as JSON lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows(seed)), encoding="utf-8")
    return file


def state(folder: Path, seed: int = 0, steps: int = STEPS) -> Path:
    """The state of the Hugging Face trainer."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "trainer_state.json"
    file.write_text(json.dumps({"global_step": steps, "log_history": rows(seed, steps)}), encoding="utf-8")
    return file


def printed(file: Path, seed: int = 0) -> Path:
    """What a trainer prints of a run, with fewer digits."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"step {row['step']}: loss {row['loss']:.4f}\n" for row in rows(seed)), encoding="utf-8")
    return file
