"""Binary logs of any size, ordinary and odd ones, to measure how what they cost grows."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from tests.loaders.make_binary import event, events, record, scalar, wandb_file, wandb_records
from tests.loaders.mlflow.test_mlflow import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

FEW = 50
RUN = events((k, {"loss": 2.5}) for k in range(FEW))


def wandb(rows: Iterable[Mapping[str, object]], config: Mapping[str, object] | None = None) -> bytes:
    """A `.wandb` file of a run."""
    return wandb_file(wandb_records(rows, config or {}, "r"))


def parquet(columns: Mapping[str, list[Any]], group: int | None = None) -> bytes:
    """A Parquet file, of groups of so many rows."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), out, row_group_size=group)
    return out.getvalue()


def mlflow(points: Iterable[tuple[str, float, int]], runs: int = 1) -> bytes:
    """An SQLite database of MLflow: (key, value, step), a millisecond after each other, and more runs without any."""
    with closing(sqlite3.connect(":memory:")) as store:
        store.executescript(SCHEMA)
        store.executemany("INSERT INTO runs VALUES (?, ?, 0)", ((f"r{n}", f"run {n}") for n in range(runs)))
        rows = ((key, value, at, "r0", step, False) for at, (key, value, step) in enumerate(points))
        store.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        store.commit()
        return store.serialize()


BINARIES: dict[str, Callable[[int], bytes]] = {
    "events": lambda n: events((k, {"loss": 1 / (k + 1)}) for k in range(n)),
    "events that go back": lambda n: events((n - k, {"loss": 2.5}) for k in range(n)),
    "events with a new tag each": lambda n: RUN + events((k, {"loss": 2.5, f"k{k}": 1}) for k in range(n // 5)),
    "events of many values": lambda n: b"".join(
        event(k, [scalar("loss", 2.5), *(scalar(f"k{j}", 1) for j in range(n // 10))]) for k in range(10)
    ),
    "events that are cut": lambda n: RUN + record(b"x")[:-1] * n + RUN,
    "wandb": lambda n: wandb({"_step": k, "loss": 2.5} for k in range(n // 2)),
    "wandb with a new key each": lambda n: wandb({"_step": k, "loss": 2.5, f"k{k}": 1} for k in range(n // 5)),
    "wandb with many settings": lambda n: wandb(
        [{"_step": k, "loss": 2.5} for k in range(FEW)], {f"k{k}": k for k in range(n)}
    ),
    "parquet of text": lambda n: parquet({"step": [*range(n)], "loss": [str(1 / (k + 1)) for k in range(n)]}),
    "parquet of many columns": lambda n: parquet(
        {"step": [1, 2, 3], "loss": [3.0, 2.0, 1.0], **{f"k{k}": [1, 1, 1] for k in range(n // 5)}}
    ),
    "parquet of many groups": lambda n: parquet({"step": [*range(n // 10)], "loss": [2.5] * (n // 10)}, 1),
    "mlflow": lambda n: mlflow(("loss", 1 / (k + 1), k) for k in range(n)),
    "mlflow with a new key each": lambda n: mlflow(
        point for k in range(n // 5) for point in (("loss", 2.5, k), (f"k{k}", 1.0, k))
    ),
    "mlflow with many runs": lambda n: mlflow((("loss", 2.5, k) for k in range(FEW)), n),
}
