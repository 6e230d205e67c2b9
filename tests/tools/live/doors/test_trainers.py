"""The doors of trainers, against stand-ins that follow their documented interfaces: see `standins`."""

from __future__ import annotations

import json
import math
import pickle
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stabtree.loaders import load_run
from stabtree.run import RUN_HEADER
from tests.tools.live.doors import standins
from tests.tools.live.doors.standins import door

BROKEN = 60
LOSSES = [2.0 - step * 0.01 for step in range(BROKEN)] + [math.nan] * 40


def written(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[0].pop(RUN_HEADER)  # the same object holds what the run was started with
    return [line for line in lines if line != {"config": {}}]


@pytest.fixture
def composer(monkeypatch: pytest.MonkeyPatch) -> Any:
    dist = SimpleNamespace(get_global_rank=lambda: 0, get_world_size=lambda: 1)
    loggers = {"LoggerDestination": standins.ComposerDestination}
    return door("composer", monkeypatch, composer__loggers=loggers, composer__utils={"dist": dist})


def test_composer_stops_a_run_that_is_lost(composer: Any, tmp_path: Path) -> None:
    """By `State.stop_training`, a few batches after the NaN; settings come in several calls."""
    path, state = tmp_path / "run.jsonl", standins.ComposerState()
    logger = composer.ComposerLogger(path)
    logger.log_hyperparameters({"lr": 0.5})
    logger.log_hyperparameters({"rank_zero_seed": 1, "odd": object()})
    step = 0
    for step, loss in enumerate(LOSSES):
        logger.log_metrics({"loss/train/total": loss, "trainer/device": "cpu"}, step=step)
        logger.batch_end(state, None)
        if state.stopped:
            break
    logger.post_close()
    assert BROKEN <= step <= BROKEN + 5
    run = load_run(path)
    assert (run.setting("lr"), run.setting("framework")) == (0.5, "composer")


@pytest.mark.parametrize(("rank", "stop_on"), [(0, None), (1, "critical")])
def test_composer_goes_on_without_a_stop_and_writes_on_the_first_rank(
    rank: int, stop_on: str | None, composer: Any, tmp_path: Path
) -> None:
    composer.dist.get_global_rank = lambda: rank
    path, state = tmp_path / "run.jsonl", standins.ComposerState()
    logger = composer.ComposerLogger(path, stop_on=stop_on)
    for step, loss in enumerate(LOSSES):
        logger.log_metrics({"loss/train/total": loss}, step)
        logger.batch_end(state, None)
    logger.post_close()
    assert not state.stopped
    assert path.exists() == (rank == 0)


def test_composer_asks_the_first_rank(composer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On all ranks after each batch, so that all stop after the same one."""
    asked = []

    def main_says(stop: bool, device: str) -> bool:
        asked.append((stop, device))
        return True

    monkeypatch.setattr(composer, "main_says", main_says)
    composer.dist.get_global_rank, composer.dist.get_world_size = (lambda: 1), (lambda: 2)
    state: Any = standins.ComposerState()
    state.model = SimpleNamespace(parameters=lambda: iter([SimpleNamespace(device="cuda:1")]))
    composer.ComposerLogger(tmp_path / "run.jsonl").batch_end(state, None)
    assert asked == [(False, "cuda:1")]
    assert state.stopped


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    return door("ray", monkeypatch, ray__train={"UserCallback": standins.RayCallback})


def test_ray_writes_the_mean_of_what_the_workers_report(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN of one of them is one; the log lies where the driver is, and the callback is handed over pickled."""
    monkeypatch.chdir(tmp_path)
    callback = pickle.loads(pickle.dumps(ray.RayTrainCallback("run.jsonl")))  # noqa: S301
    monkeypatch.chdir("/")
    for step, loss in enumerate(LOSSES):
        reports = [{"step": step, "loss": 1.0, "note": "text"}, {"step": step, "loss": loss, "eval": {"acc": 0.5}}]
        callback.after_report(None, metrics=reports, checkpoint=None)
    rows = written(tmp_path / "run.jsonl")
    assert rows[1] == {"step": 0, "loss": 1.5, "eval/acc": 0.5}
    assert rows[-1] == {"step": len(LOSSES) - 1, "loss": "NaN", "eval/acc": 0.5}
    assert callback._sink.should_stop
    callback.after_report(None, [None, {}, {"step": len(LOSSES), "loss": 1.0, "odd": np.array(1j)}], None)
    assert written(tmp_path / "run.jsonl")[-1] == {"step": len(LOSSES), "loss": 1.0}


def test_ray_ends_the_run_where_it_is_asked_to(ray: Any, tmp_path: Path) -> None:
    """By an error that can be sent to the driver."""
    callback = ray.RayTrainCallback(tmp_path / "run.jsonl", on_finding="raise", hold_rows=0)
    for step in range(BROKEN):
        callback.after_report(None, [{"loss": LOSSES[step]}], None)
    with pytest.raises(RuntimeError, match="NaN") as raised:
        callback.after_report(None, [{"loss": math.nan}], None)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)  # noqa: S301


@pytest.fixture
def fastai(monkeypatch: pytest.MonkeyPatch) -> Any:
    ranks = {"num_distrib": lambda: 0, "rank_distrib": lambda: 0}
    core = {"Callback": standins.FastaiBase, "CancelFitException": standins.CancelFit}
    learner = {"Recorder": SimpleNamespace(order=50)}
    return door(
        "fastai", monkeypatch, fastai__callback__core=core, fastai__learner=learner, fastai__torch_core=ranks
    )  # fmt: skip


def test_fastai_writes_batches_and_epochs_and_stops(fastai: Any, tmp_path: Path) -> None:
    """A second fit goes on with the steps of the first; a Learner holds no open log afterwards."""
    path = tmp_path / "run.jsonl"
    callback = fastai.FastaiCallback(path, stats_every=0)
    learner = standins.Learner(callback)
    learner.fit([LOSSES[:20], LOSSES[20:40]])
    learner.fit([LOSSES[40:]])
    rows = [row for row in written(path) if "loss" in row]
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    assert BROKEN < rows[-1]["step"] <= BROKEN + 5
    assert {"step": 40, "epoch": 1, "valid_loss": 2.0} in written(path)
    assert load_run(path).setting("lr") == 0.5
    pickle.dumps(callback._sink)


def test_fastai_leaves_a_search_of_the_learning_rate_alone(fastai: Any, tmp_path: Path) -> None:
    learner: Any = standins.Learner(fastai.FastaiCallback(tmp_path / "run.jsonl"))
    learner.lr_finder = object()
    learner.fit([LOSSES])
    assert not list(tmp_path.iterdir())
    assert learner.train_iter == len(LOSSES)


def test_torchtitan_writes_beside_its_own_loggers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On the rank that holds the loss."""
    rank = 0
    torch = {"is_available": lambda: True, "is_initialized": lambda: True, "get_rank": lambda: rank}
    metrics = {"MetricsProcessor": standins.TitanMetrics, "_get_metrics_rank": lambda **_: 0}
    titan = door(
        "torchtitan", monkeypatch, torch={"Tensor": type("Tensor", (), {})}, torch__distributed=torch,
        torchtitan__components__metrics=metrics,
    )  # fmt: skip
    config = titan.TorchtitanMetrics.Config(log_freq=1, stabtree_log="run.jsonl")
    given = {"parallel_dims": None, "pp_schedule": "1F1B", "dump_folder": str(tmp_path), "config_dict": {"lr": 0.5}}
    processor = titan.TorchtitanMetrics(config, **given)
    for step, loss in enumerate(LOSSES, 1):
        processor.logger.log({"loss_metrics/global_avg_loss": loss, "grad_norm": 1.0}, step)
    processor.logger.close()
    own = processor.logger._beside
    assert len(own.rows) == len(LOSSES)
    assert own.closed
    assert processor.logger.should_stop
    assert load_run(tmp_path / "run.jsonl").setting("lr") == 0.5
    rank = 1
    assert isinstance(titan.TorchtitanMetrics(config, **given).logger, standins.TitanLogger)


def test_verl_knows_the_backend_by_its_entry_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its own backends are left as they are; the log lies with the checkpoints."""
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text("utf-8"))["project"]
    address = project["entry-points"]["verl.plugins"]["stabtree"]
    verl = door(address.rpartition(".")[2], monkeypatch, verl__utils__tracking={"Tracking": standins.VerlTracking})
    made = verl.tracking.Tracking
    with pytest.raises(AssertionError):
        made("project", "name", ["consol"])
    assert made("project", "name").logger == {}
    config = {"trainer": {"default_local_dir": str(tmp_path)}, "data": {"seed": 1}}
    tracking = made("project", "name", ["console", "stabtree"], config)
    for step, loss in enumerate(LOSSES):
        tracking.log({"actor/pg_loss": loss, "critic/score/mean": 0.5}, step)
    assert tracking.logger["stabtree"].news
    tracking.finish()
    assert tracking.finished == 1
    assert len(written(tmp_path / "stabtree.jsonl")) == len(LOSSES) + 1


def test_axolotl_gets_the_callback_of_the_trainer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In its `output_dir`, with the arguments of its YAML; the key is declared where axolotl looks for it."""
    standins.put("transformers.trainer_callback", {"TrainerCallback": object}, monkeypatch)
    standins.anew("stabtree.tools.live.callbacks.huggingface", monkeypatch)
    axolotl = door(
        "axolotl", monkeypatch, axolotl__integrations__base={"BasePlugin": object}, pydantic={"BaseModel": object}
    )
    plugin = axolotl.AxolotlPlugin()
    module, _, name = plugin.get_input_args().rpartition(".")
    assert "stabtree" in getattr(import_module(module), name).__annotations__
    for given, fail_on in ((None, "critical"), ({"stop_on": "warning"}, "warning")):
        cfg = SimpleNamespace(output_dir=str(tmp_path), stabtree=given)
        (callback,) = plugin.add_callbacks_post_trainer(cfg, trainer=None)
        assert callback._attached._path == tmp_path / "stabtree.jsonl"
        assert callback._attached._options["fail_on"] == fail_on
