"""Runs at the services of trackers: read as their files are, and each address names what it needs."""

from __future__ import annotations

import json
import math
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from stabtree import load_run
from stabtree.tools.fleet.remote import run_address
from tests.cli.command import failed, run

if TYPE_CHECKING:
    from pathlib import Path

LOSSES = [4 * 0.99**step + 1 if step < 250 else math.nan for step in range(300)]


class Api:
    """W&B's public interface, as recorded of wandb 0.31: a NaN comes as text, and what was not logged as None."""

    def run(self, path: str) -> Any:
        """Return a run, or raise as the library does, with what it should not show."""
        if path != "team/sweep 1/ab12cd34":
            raise ValueError(f"Could not find run <Run {path} (not found)> with key hunter2hunter2")
        rows = [
            {"_step": step, "_runtime": step / 2, "train/loss": "NaN" if math.isnan(loss) else loss, "sample": None}
            for step, loss in enumerate(LOSSES)
        ]
        config = {"lr": 1e-3, "dtype": "fp16", "data": {"path": "x"}}
        return SimpleNamespace(name="calm-sun-7", state="crashed", config=config, scan_history=lambda: iter(rows))


def test_a_run_of_wandb_is_read_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its name, its configuration and its state, whichever way the address is typed."""
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Api=Api))
    page = "https://forge.coreweave.com/wandb/team/sweep%201/runs/ab12cd34/overview?nw=nwuserme"
    found = load_run(page)
    assert (found.name, found.last_step, found.setting("dtype"), found.setting("lr")) == (
        "calm-sun-7",
        299,
        "fp16",
        1e-3,
    )
    assert [source.path for source in found.sources] == ["wandb://team/sweep 1/ab12cd34/files/wandb-history.jsonl"]
    told = json.loads(run("wandb://team/sweep 1/ab12cd34", "--json").stdout)
    assert told["findings"][0]["onset_step"] == 250
    assert "state: crashed" in json.dumps(told)


def test_a_service_that_refuses_tells_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the library writes it into its message."""
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Api=Api))
    monkeypatch.setenv("WANDB_API_KEY", "hunter2hunter2")
    told = failed("wandb://team/project/absent")
    assert "Could not find run" in told
    assert "key ***" in told
    assert "hunter2" not in told


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A run in a store of MLflow's own, of which a metric is named as the folder of another one is."""
    mlflow: Any = pytest.importorskip("mlflow", reason="needs the extra mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/store.db")
    client = mlflow.MlflowClient()
    made = client.create_run(client.create_experiment("sweep"), run_name="calm sun").info.run_id
    client.log_param(made, "dtype", "fp16")
    for key in ("train", "train/loss"):
        metrics = [mlflow.entities.Metric(key, loss, 1000 * step, step) for step, loss in enumerate(LOSSES)]
        client.log_batch(made, metrics=metrics)
    client.set_terminated(made, "FAILED")
    return str(made)


def test_a_run_of_mlflow_is_read_by_its_address(server: str) -> None:
    """With its name, its parameters and its status."""
    found = load_run(f"runs:/{server}/model")
    assert (found.name, found.last_step, found.setting("dtype")) == ("calm sun", 299, "fp16")
    assert [source.path for source in found.sources] == [f"mlflow:{server}"]
    told = json.loads(run(f"mlflow:{server}", "--json").stdout)
    assert told["findings"][0]["onset_step"] == 250
    assert "status: FAILED (MLflow)" in json.dumps(told)
    assert "not found" in failed("mlflow:absent")


def test_without_a_server_mlflow_begins_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The library would write a database into the working directory."""
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(is_tracking_uri_set=lambda: False))
    monkeypatch.chdir(tmp_path)
    assert "set MLFLOW_TRACKING_URI" in failed("mlflow:0123abcd")


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("wandb:team/project/runs/1", "wandb://team/project/1"),
        ("https://wandb.ai/team/project/runs/1", "wandb://team/project/1"),
        ("https://host/#/experiments/1/runs/0a/metrics", "mlflow:0a"),
        ("mlflow://0a", "mlflow:0a"),
        ("https://host/team/project/runs/1/log.csv", ""),
        ("https://host/log.csv", ""),
        ("s3://team/project/runs/1", ""),
    ],
)
def test_a_run_has_one_address(address: str, plain: str) -> None:
    """However it is typed; what names files is none."""
    assert run_address(address) == plain
    assert not plain or run_address(plain) == plain
