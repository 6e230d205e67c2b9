"""Logs of every kind, and folders as trainers and people leave them."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from tests.loaders.make import write
from tests.loaders.make_binary import write_events

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Values = list[float]
STEPS = 90


def healthy(seed: int = 0) -> Values:
    """Return the losses of a run that learns, like no other seed's."""
    steps = np.arange(STEPS)
    noise = np.random.default_rng(seed).normal(0, 0.02, STEPS)
    found: Values = (2 * np.exp(-steps / 20) + 1 + noise).round(5).tolist()
    return found


def failing(seed: int = 99) -> Values:
    """Return the losses of a run that goes NaN in its last third."""
    return [*healthy(seed)[: 2 * STEPS // 3], *[math.nan] * (STEPS // 3)]


def _rows(loss: Values) -> list[dict[str, float]]:
    return [{"step": 10 * step, "loss": value} for step, value in enumerate(loss)]


def _csv(loss: Values) -> str:
    return "step,loss\n" + "".join(f"{10 * step},{value}\n" for step, value in enumerate(loss))


def _lines(loss: Values) -> str:
    return "".join(json.dumps(row) + "\n" for row in _rows(loss))


def _text(loss: Values) -> str:
    return "".join(f"step {10 * step}: loss {value:.4f}\n" for step, value in enumerate(loss))


def _dicts(loss: Values) -> str:
    return "".join(f"{{'loss': {value:.4f}, 'epoch': {step / 90:.2f}}}\n" for step, value in enumerate(loss))


def _state(loss: Values) -> str:
    return json.dumps({"global_step": 10 * len(loss), "log_history": _rows(loss)})


KINDS: dict[str, Callable[[Values], tuple[str, str]]] = {
    "csv": lambda loss: ("train.csv", _csv(loss)),
    "jsonl": lambda loss: ("history.jsonl", _lines(loss)),
    "json": lambda loss: ("history.json", json.dumps(_rows(loss))),
    "text": lambda loss: ("train.log", _text(loss)),
    "slurm": lambda loss: ("slurm-123.out", f"srun: job 123\n{_text(loss)}"),
    "txt": lambda loss: ("output.txt", _dicts(loss)),
    "state": lambda loss: ("trainer_state.json", _state(loss)),
    "lightning": lambda loss: ("metrics.csv", _csv(loss).replace("loss", "train_loss")),
}
"""What trainers write, as a name and a text, by kind."""


def _csv_folder(top: Path) -> None:
    write(top, _csv(healthy(1)))


def _lightning(top: Path) -> None:
    for number in range(2):
        place = top / "lightning_logs" / f"version_{number}"
        place.mkdir(parents=True)
        write(place, _csv(healthy(number)))
        write(place, f"seed: {number}\n", "hparams.yaml")


def _trainer(top: Path) -> None:
    for step in (300, 600, 900):
        place = top / f"checkpoint-{step}"
        place.mkdir()
        write(place, _state(healthy(3)[: step // 10]), "trainer_state.json")
        write(place, json.dumps({"model_type": "gpt2", "vocab_size": 100}), "config.json")
    rows = [(int(row["step"]), {"train/loss": row["loss"]}) for row in _rows(healthy(3))]
    write_events(top / "runs" / "Jan01_host", rows, 1.7e9)
    write(top, _dicts(healthy(3)), "train.log")


def _events(top: Path) -> None:
    rows = [(int(row["step"]), {"train/loss": row["loss"]}) for row in _rows(healthy(4))]
    write_events(top / "logs" / "exp", rows, 1.7e9)


def _sweep(top: Path) -> None:
    for seed in range(5):
        (top / "sweep" / f"seed_{seed}").mkdir(parents=True)
        write(top / "sweep" / f"seed_{seed}", _lines(healthy(seed)), "log.jsonl")


def _spread(top: Path) -> None:
    """One run: its metrics, what it printed, and the same in the file of its job."""
    for name in ("output", "logs"):
        (top / name).mkdir()
    write(top / "output", _csv(healthy(6)))
    write(top / "logs", _text(healthy(6)), "train.log")
    write(top, f"loading\n{_text(healthy(6))}", "slurm-9.out")


LAYOUTS: dict[str, Callable[[Path], None]] = {
    "csv": _csv_folder,
    "lightning": _lightning,
    "trainer": _trainer,
    "events": _events,
    "sweep": _sweep,
    "spread": _spread,
}
"""What fills a folder with healthy runs."""
