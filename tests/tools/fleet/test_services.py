"""Runs at the services of trackers: read as their files are, and each address names what it needs."""

from __future__ import annotations

import json
import math
import sys
import threading
from http.server import ThreadingHTTPServer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from stabtree import load_run
from stabtree.loaders import load_runs
from stabtree.tools.fleet.remote import run_address
from tests.cli.command import failed, run
from tests.tools.fleet.wandb_server import Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOSSES = [4 * 0.99**step + 1 if step < 250 else math.nan for step in range(300)]


class Api:
    """W&B's public interface, as recorded of wandb 0.31: a NaN is text or one, and None what was not logged."""

    def run(self, path: str) -> Any:
        """Return a run, or raise as the library does, with what it should not show."""
        if path != "team/sweep 1/ab12cd34":
            raise ValueError(f"Could not find run <Run {path} (not found)> with key hunter2hunter2")
        rows = [
            {"_step": step, "_runtime": step / 2, "train/loss": "NaN" if math.isnan(loss) else loss, "sample": None}
            for step, loss in enumerate(LOSSES)
        ]
        config = {"lr": 1e-3, "dtype": "fp16", "data": {"path": "x"}}
        found = SimpleNamespace(name="calm-sun-7", state="crashed", config=config)
        found.historyLineCount, found.lastHistoryStep = len(rows), 299
        found.scan_history, found.files = (lambda **_: iter(rows)), (lambda **_: [])
        return found


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Service]]:
    """W&B's own library, asked with a secret, and a local server in the place of its service."""
    pytest.importorskip("wandb", reason="needs the extra wandb")
    monkeypatch.setattr(Service, "rows", [])
    monkeypatch.setattr(Service, "asked", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("WANDB_API_KEY", "hunter2" * 6)
        yield Service
        server.shutdown()


def test_what_the_library_of_wandb_returns_is_read(service: type[Service]) -> None:
    """Steps that count tokens take a few pages; what was packed away lies flat; the output tells how the run ended."""
    for step, loss in enumerate(LOSSES):
        told = "NaN" if math.isnan(loss) else loss
        norm = {"opt.norm": 1.0} if step < 100 else {"opt": {"norm": 1.0}}
        service.rows.append({"_step": 4_000_000 * step, "train/loss": told, **norm})
    found = load_run("wandb://team/sweep 1/ab12cd34")
    assert (found.name, found.setting("dtype"), found.last_step) == ("sun-ab12cd34", "fp16", 1_196_000_000)
    assert len(found.others["opt.norm"]) == len(found.series["loss"]) == 300
    assert service.asked.count("HistoryPage") < 5
    told = json.dumps(json.loads(run("wandb://team/sweep 1/ab12cd34", "--json").stdout))
    assert "out of memory" in told
    for address in ("wandb://team/sweep 1", "https://wandb.ai/team/p/sweeps/x1?nw=1"):
        assert [item.own.name for item in load_runs(address)] == ["sun-ab12cd34", "sun-ef56ab78", "sun-cd90ef12"]
    service.status = 403
    told = failed("wandb://team/sweep 1/ab12cd34")
    assert "wandb login" in told
    assert "hunter2" not in told


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
        ("wandb:team/project", "wandb://team/project"),
        ("https://wandb.ai/team/project/table?nw=x", "wandb://team/project"),
        ("https://forge.coreweave.com/wandb/team/project/sweeps/9x", "wandb://team/project/sweeps/9x"),
        ("mlflow:experiments/my sweep", "mlflow:experiments/my sweep"),
        ("https://host/#/experiments/1?searchFilter=", "mlflow:experiments/1"),
        ("https://wandb.example/team/log.csv", ""),
        ("https://host/team/project/runs/1/log.csv", ""),
        ("https://host/log.csv", ""),
        ("s3://team/project/runs/1", ""),
    ],
)
def test_a_run_has_one_address(address: str, plain: str) -> None:
    """However it is typed; what names files is none."""
    assert run_address(address) == plain
    assert not plain or run_address(plain) == plain
