"""One run that is lost, and its healthy twin, in every format that people log in: who reads it and sees the loss?

    python -m benchmarks.probes FOLDER

FOLDER gets the files and INDEX.csv, so that `benchmarks.peers_logs` and `benchmarks.peers_own` judge them as any set of
logs. The loss falls from 3 to 1.5 and is NaN from step 300 of 400 on; the twin goes on. Standard library only.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.loaders.make_binary import events as event_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STEPS, LOST_FROM = 400, 300
TWINS = {"lost": True, "healthy": False}
Rows = list[dict[str, float]]
NAMED, SILENT, REFUSED, ALWAYS = "named", "silent", "not read", "alarms on both"


def rows(*, lost: bool) -> Rows:
    """The run, the same noise in both."""
    noise = random.Random(3)  # noqa: S311 - a log, no secret
    made = []
    for step in range(STEPS):
        loss = 3 - 1.5 * min(1, step / 200) + noise.gauss(0, 0.05)
        row = {"step": step, "loss": loss, "grad_norm": 1 + noise.random() / 5, "lr": 1e-3 * min(1, (step + 1) / 40)}
        made.append({**row, "loss": math.nan} if lost and step >= LOST_FROM else row)
    return made


def table(made: Rows, between: str = ",", nan: str = "nan", point: str = ".") -> str:
    """A header and a line a row."""
    out = [between.join(made[0])]
    for row in made:
        cells = (nan if math.isnan(value) else f"{value:.6g}".replace(".", point) for value in row.values())
        out.append(between.join(cells))
    return "\n".join(out) + "\n"


def lines(made: Rows, shape: Callable[[dict[str, float]], object]) -> str:
    """JSON lines."""
    return "".join(json.dumps(shape(row)) + "\n" for row in made)


def trainer_state(made: Rows) -> str:
    """The Hugging Face Trainer's file."""
    names = {"lr": "learning_rate"}
    history = [{"epoch": row["step"] / 100, **{names.get(key, key): row[key] for key in row}} for row in made]
    return json.dumps({"best_metric": None, "global_step": STEPS, "log_history": history, "logging_steps": 1})


def megatron(row: dict[str, float]) -> str:
    """A line as Megatron-LM prints it."""
    return (
        f" iteration {row['step'] + 1:8.0f}/{STEPS:8d} | consumed samples: {row['step'] * 8:12.0f} | elapsed time per "
        f"iteration (ms): 100.0 | learning rate: {row['lr']:.3E} | global batch size:     8 | lm loss: "
        f"{row['loss']:.6E} | loss scale: 1.0 | grad norm: {row['grad_norm']:.3f} | number of skipped "
        "iterations:   0 | number of nan iterations:   0 |\n"
    )


def printed(row: dict[str, float]) -> str:
    """A line as the Hugging Face Trainer prints it."""
    told = {"loss": row["loss"], "grad_norm": row["grad_norm"], "learning_rate": row["lr"], "epoch": row["step"] / 100}
    return f"{told}\n"


def exported(made: Rows) -> str:
    """The table of a chart as Weights & Biases exports it."""
    name = "run-1 - train/loss"
    columns = (name, f"{name}__MIN", f"{name}__MAX")
    return table([{"Step": row["step"], **dict.fromkeys(columns, row["loss"])} for row in made])


def events(made: Rows) -> bytes:
    """A TensorBoard event file: wall time, step, one scalar an event."""
    return event_file((int(row["step"]), {f"train/{name}": row[name] for name in ("loss", "lr")}) for row in made)


WRITERS: Mapping[str, tuple[str, Callable[[Rows], str | bytes]]] = {
    "CSV": ("metrics.csv", table),
    "CSV, NaN as an empty cell (pandas)": ("metrics.csv", lambda made: table(made, nan="")),
    "CSV with semicolons": ("metrics.csv", lambda made: table(made, ";")),
    "CSV with decimal commas": ("metrics.csv", lambda made: table(made, ";", point=",")),
    "TSV": ("metrics.tsv", lambda made: table(made, "\t")),
    "CSV, gzipped": ("metrics.csv.gz", lambda made: gzip.compress(table(made).encode(), mtime=0)),
    "W&B's CSV export": ("export.csv", exported),
    "JSON lines": ("metrics.jsonl", lambda made: lines(made, lambda row: row)),
    "JSON lines, NaN as null": (
        "metrics.jsonl",
        lambda made: lines(made, lambda row: {k: None if math.isnan(v) else v for k, v in row.items()}),
    ),
    "JSON lines, nested": (
        "metrics.jsonl",
        lambda made: lines(made, lambda row: {"step": row["step"], "train": {"loss": row["loss"], "lr": row["lr"]}}),
    ),
    "JSON array": ("metrics.json", json.dumps),
    "trainer_state.json": ("trainer_state.json", trainer_state),
    "TensorBoard event file": ("events.out.tfevents.1000000000.host.1.0", events),
    "Megatron-LM, printed": ("train.log", lambda made: "".join(map(megatron, made))),
    "nanoGPT, printed": (
        "train.log",
        lambda made: "".join(f"iter {r['step']}: loss {r['loss']:.4f}, time 12.30ms, mfu 1.00%\n" for r in made),
    ),
    "Hugging Face Trainer, printed": ("train.log", lambda made: "".join(map(printed, made))),
}


def paths() -> dict[str, dict[str, str]]:
    """Of each format the path of the lost run and of its healthy twin, below the folder."""
    return {
        what: {twin: f"{place:02d}-{twin}/{file}" for twin in TWINS}
        for place, (what, (file, _)) in enumerate(WRITERS.items())
    }


def outcome(told: Mapping[str, str]) -> str:
    """What a tool made of a format, given its verdicts on the lost run and on its twin."""
    alarmed = {twin: told[twin] in ("warning", "critical") for twin in TWINS}
    if alarmed["lost"]:
        return ALWAYS if alarmed["healthy"] else NAMED
    return REFUSED if told["lost"] in ("unknown", "refused") else SILENT


def main() -> int:
    """Write the files and their index."""
    folder = Path(sys.argv[1])
    with_index = []
    for what, twins in paths().items():
        for twin, lost in TWINS.items():
            content = WRITERS[what][1](rows(lost=lost))
            target = folder / twins[twin]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
            with_index.append({"file": twins[twin]})
    with (folder / "INDEX.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["file"])
        writer.writeheader()
        writer.writerows(with_index)
    return 0


if __name__ == "__main__":
    sys.exit(main())
