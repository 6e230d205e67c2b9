"""How plain loops write what they measure."""

from __future__ import annotations

import csv
import json
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.finetunes.plan import Job

SUFFIX = {"jsonl": "metrics.jsonl", "csv": "metrics.csv"}


def written(job: Job, folder: Path, rows: list[dict[str, float]]) -> Path:
    """Write the rows of a loop in the form of its run."""
    out = folder / "runs" / job.id
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    if job.form == "tfevents":
        return _events(out, rows)
    file = out / SUFFIX.get(job.form, "train.log")
    with file.open("w", encoding="utf-8", newline="") as stream:
        if job.form == "jsonl":
            stream.writelines(json.dumps(row) + "\n" for row in rows)
        elif job.form == "csv":
            names = ["step", "loss", "lr", "grad_norm", *(["val_loss"] if job.eval_every else [])]
            table = csv.DictWriter(stream, names)
            table.writeheader()
            table.writerows(rows)
        else:
            stream.writelines(_line(job, row) for row in rows)
    return file


def _line(job: Job, row: dict[str, float]) -> str:
    step, loss = int(row["step"]), row["loss"]
    held = f"{row['val_loss']:.4f}" if "val_loss" in row else ""
    if job.form == "nanogpt":
        line = f"iter {step}: loss {loss:.4f}, time {11 + step % 7}.{step % 100:02d}ms\n"
        return line + (f"step {step}: train loss {loss:.4f}, val loss {held}\n" if held else "")
    if job.form == "example":
        line = f"Epoch [1/1], Step [{step}/{job.steps}], Loss: {loss:.4f}\n"
        return line + (f"Epoch [1/1], Step [{step}/{job.steps}], Val Loss: {held}\n" if held else "")
    time = f"2026-03-04 10:{step // 60 % 60:02d}:{step % 60:02d}"
    line = f"{time} INFO train: step={step} loss={loss:.5f} lr={row['lr']:.3e} grad_norm={row['grad_norm']:.4f}"
    return line + (f" val_loss={held}\n" if held else "\n")


def _events(out: Path, rows: list[dict[str, float]]) -> Path:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(out))
    for row in rows:
        for name in ("loss", "lr", "grad_norm", "val_loss"):
            if name in row:
                writer.add_scalar(f"train/{name}".replace("train/val_", "val/"), row[name], int(row["step"]))
    writer.close()
    return next(out.glob("events.out*"))
