"""Runs at a tracker's service, such as `wandb://entity/project/run`, fetched through the service's own library.

They are written as the tracker stores runs itself, and so read as its files are.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked

# What people type, what MLflow prints, and what the pages of runs are at. Only the server of the environment is asked.
_FORMS = (
    (re.compile(r"wandb:/*([^/?#:@]+/[^/?#:@]+)/(?:runs/)?([^/?#:@]+)/?"), "wandb://{}/{}"),
    (re.compile(r"https?://[^/@]+/(?:wandb/)?([^/?#]+/[^/?#]+)/runs/([\w-]+)(?:[/?#][^.]*)?"), "wandb://{}/{}"),
    (re.compile(r"(?:mlflow:|runs:/|https?://[^#\s]+#/experiments/\d+/runs/)/*([\w-]+)(?:[/?#].*)?"), "mlflow:{}"),
)


def run_address(address: str) -> str:
    """Return the address of a run of a service, however it was typed; nothing for an address of files.

    Raises:
        StabtreeError: where it is one of a service, but of no run.
    """
    for form, plain in _FORMS:
        if found := form.fullmatch(address):
            return plain.format(*(clean(unquote(part)) for part in found.groups()))
    if address.startswith(("wandb:", "mlflow:", "runs:")):
        hint = "type wandb://ENTITY/PROJECT/RUN or mlflow:RUN_ID"
        raise StabtreeError("is not the address of a run", where=clean(masked(address)), hint=hint)
    return ""


def fetch(address: str, home: Path) -> Path:
    """Fetch a run into a folder of its own; return the folder or file to read.

    Raises:
        StabtreeError: where the library is not installed, or the run has nothing to read.
    """
    service, _, run = address.partition(":")
    try:
        found = (_fetch_wandb if service == "wandb" else _fetch_mlflow)(import_module(service), run.lstrip("/"), home)
    except ImportError as error:
        problem = f"needs a package that is not installed: {clean(error, 120)}"
        raise StabtreeError(problem, where=address, hint=f"type `pip install 'stabtree[{service}]'`") from None
    if found is None:
        raise StabtreeError("is a run without metrics: nothing was logged", where=address, hint="name another run")
    return found


def _fetch_wandb(wandb: Any, path: str, home: Path) -> Path | None:
    """Write the history of a run, its configuration and its state into the folder of a run of W&B."""
    run, own, rows = wandb.Api().run(path), home / "files", 0
    own.mkdir()
    with (own / "wandb-history.jsonl").open("w", encoding="utf-8") as stream:
        for rows, row in enumerate(run.scan_history(), 1):  # noqa: B007 - it counts them
            stream.write(json.dumps(dict(row), default=str) + "\n")
    config = {"display_name": run.name, **run.config}
    for name, values in (("config.yaml", config), ("wandb-metadata.json", {"state": run.state})):
        (own / name).write_text(json.dumps(values, default=str), encoding="utf-8")
    return home if rows else None


def _fetch_mlflow(mlflow: Any, id_: str, home: Path) -> Path | None:
    """Write the metrics of a run, its parameters and its status into a database as MLflow's."""
    if not mlflow.is_tracking_uri_set() and not any(map(Path.exists, map(Path, ("mlflow.db", "mlruns")))):
        problem = "is a run of a server that nothing names"  # MLflow would begin a database in the working directory
        raise StabtreeError(problem, where=f"mlflow:{id_}", hint="set MLFLOW_TRACKING_URI to the address of the server")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # of 7, a server that is down takes four minutes
    client, file = mlflow.MlflowClient(), home / "mlflow.db"
    run = client.get_run(id_)
    with closing(sqlite3.connect(file)) as store, store:
        for table in ("runs (run_uuid, name, status)", "params (run_uuid, key, value)"):
            store.execute(f"CREATE TABLE {table}")
        store.execute("CREATE TABLE metrics (run_uuid, key, value, timestamp, step, is_nan)")
        store.execute("INSERT INTO runs VALUES (?, ?, ?)", (id_, run.info.run_name, run.info.status))
        store.executemany("INSERT INTO params VALUES (?, ?, ?)", ((id_, *item) for item in run.data.params.items()))
        for key in run.data.metrics:
            rows = client.get_metric_history(id_, key)
            values = ((id_, key, row.value, row.timestamp, row.step, math.isnan(row.value)) for row in rows)
            store.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", values)
    return file if run.data.metrics else None
