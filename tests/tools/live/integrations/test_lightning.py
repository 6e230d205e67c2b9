"""The callback of Lightning, in runs of a small model on the CPU that Lightning really trains."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from stabtree.loaders import load_run
from stabtree.tools.live.events import HOLD_ROWS
from tests.tools.live.integrations.logs import alarms, example, rows_of

REASON = "Lightning is not installed: pip install 'stabtree[test-integrations]'"
pl = pytest.importorskip("lightning.pytorch", reason=REASON)
torch = pytest.importorskip("torch", reason=REASON)

from lightning.pytorch import LightningModule

from stabtree.integrations import LightningCallback

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.filterwarnings("ignore:::lightning"),
    pytest.mark.filterwarnings("ignore:::pytorch_lightning"),
]

torch.set_num_threads(1)  # the model is too small for more

BATCH, EPOCH = 16, 40
FAULT = 50


class Small(LightningModule):  # type: ignore[misc,unused-ignore]
    """A classifier of two layers; `spoil` may change the batch of the step that is told to it."""

    def __init__(self, lr: float = 0.01, spoil: Callable[[int, Any], Any] | None = None) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        self.save_hyperparameters({"lr": lr, "n_classes": 4})
        self.spoil = spoil
        self.raw: list[float] = []

    def loss_of(self, batch: Any) -> Any:
        x, y = batch
        return torch.nn.functional.cross_entropy(self.net(x), y)

    def training_step(self, batch: Any, _: int) -> Any:
        loss = self.loss_of(self.spoil(self.trainer.global_step + 1, batch) if self.spoil else batch)
        self.raw.append(loss.item())
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        self.log("step", 7.0)
        return {"loss": loss}

    def validation_step(self, batch: Any, _: int) -> None:
        self.log("val_loss", self.loss_of(batch))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams["lr"])
        warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 20)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": warm, "interval": "step"}}


class TwoPlayers(LightningModule):  # type: ignore[misc,unused-ignore]
    """Two optimizers that the module steps by itself, each once a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.one, self.two = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)

    def training_step(self, batch: Any, _: int) -> Any:
        losses = []
        for optimizer, net in zip(self.optimizers(), (self.one, self.two), strict=True):
            losses.append(torch.nn.functional.cross_entropy(net(batch[0]), batch[1]))
            optimizer.zero_grad()
            self.manual_backward(losses[-1])
            optimizer.step()
        self.log_dict({"d_loss": losses[0], "g_loss": losses[1]})

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(net.parameters(), lr=rate) for net, rate in ((self.one, 0.1), (self.two, 0.2))]


class Ran(NamedTuple):
    """A run that has ended."""

    folder: Path
    module: Any
    trainer: Any

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of its log, but for the configuration."""
        return rows_of(self.folder)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Those that tell of a step of the training."""
        return [row for row in self.rows if "loss" in row]


def data(count: int, seed: int) -> Any:
    """Points of four noisy classes."""
    made = torch.Generator().manual_seed(0)
    weights = torch.randn(8, 4, generator=made)
    made.manual_seed(seed)
    x = torch.randn(count, 8, generator=made)
    y = (x @ weights + torch.randn(count, 4, generator=made)).argmax(1)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH)


def fit(
    folder: Path, module: Any = None, *, told: dict[str, Any] | None = None, framework: Any = pl, **given: Any
) -> Ran:
    """Train a module, with `told` for the callback and the rest for the Trainer."""
    module, resumed = module or Small(), given.pop("ckpt_path", None)
    callback = LightningCallback(folder / "run.jsonl", **{"stats_every": 20, **(told or {})})
    options = {
        "max_epochs": -1, "max_steps": 2 * EPOCH, "enable_checkpointing": False, "logger": False, "accelerator": "cpu",
        "devices": 1, "enable_progress_bar": False, "enable_model_summary": False, "default_root_dir": folder,
    }  # fmt: skip
    callbacks = [callback, *given.pop("callbacks", ())]
    trainer = framework.Trainer(callbacks=callbacks, **{**options, **given})
    trainer.fit(module, data(EPOCH * BATCH, 1), data(4 * BATCH, 2), ckpt_path=resumed)
    return Ran(folder, module, trainer)


def saving(folder: Path, **how: Any) -> dict[str, Any]:
    """Options of a Trainer that saves checkpoints."""
    saves = pl.callbacks.ModelCheckpoint(folder / "saved", filename="{epoch}-{train_loss_step:.4f}", **how)
    return {"callbacks": [saves], "enable_checkpointing": True}


def saved(folder: Path) -> list[int]:
    """The steps of the checkpoints that there are."""
    return sorted(torch.load(file, weights_only=False)["global_step"] for file in (folder / "saved").iterdir())


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run without a fault that was judged at every row, with two checkpoints left of four."""
    folder = tmp_path_factory.mktemp("healthy")
    how = saving(folder, every_n_train_steps=20, monitor="train_loss_step", save_top_k=2)
    return fit(folder, gradient_clip_val=1e-3, **how)


def test_a_healthy_run_is_trained_to_its_end(healthy: Ran) -> None:
    """Nothing stops it, and nothing worse than a note is found in its log."""
    assert healthy.trainer.global_step == 2 * EPOCH
    assert not alarms(healthy.folder)
    # Each step is written once, with the loss that the module returned and the learning rate that it took.
    assert [row["step"] for row in healthy.steps] == [*range(1, 2 * EPOCH + 1)]
    assert [row["loss"] for row in healthy.steps] == healthy.module.raw
    assert healthy.steps[0]["lr"] == pytest.approx(0.001)
    assert healthy.steps[10]["lr"] == pytest.approx(0.0055)
    assert healthy.steps[40]["lr"] == pytest.approx(0.01)
    assert all(row["loss"] == row["train_loss_step"] for row in healthy.steps)
    # Each one that follows training, and not the one that Lightning tries out before.
    assert [row["step"] for row in healthy.rows if "val_loss" in row] == [EPOCH, 2 * EPOCH]
    assert [row["step"] for row in healthy.rows if "train_loss_epoch" in row] == [EPOCH, 2 * EPOCH]
    eval_loss = load_run(healthy.folder / "run.jsonl").series["eval_loss"]
    assert eval_loss.values[-1] == pytest.approx(healthy.trainer.callback_metrics["val_loss"].item())
    # What the Trainer and the module say is read back from the log, a module's own settings among it.
    run = load_run(healthy.folder / "run.jsonl")
    said = {
        "dtype": "fp32",
        "optimizer": "AdamW",
        "lr": 0.01,
        "max_steps": 2 * EPOCH,
        "grad_clip": 1e-3,
        "n_classes": 4,
    }
    assert {name: run.setting(name) for name in said} == said
    # Those that Lightning removed are not, so that no advice is to go on from one of them.
    assert load_run(healthy.folder / "run.jsonl").setting("checkpoints") == tuple(saved(healthy.folder))


def test_the_model_is_looked_at_before_the_gradients_are_clipped(healthy: Ran) -> None:
    """At the interval, with the norms of the whole gradient, of the weights and of the updates."""
    looked = [row for row in healthy.rows if any(name.startswith("weight_norm/") for name in row)]
    assert [row["step"] for row in looked] == [1, *range(20, 2 * EPOCH + 1, 20)]
    assert all(row["grad_norm"] > 0.1 for row in looked)  # they are clipped to a hundredth of that
    norm = sum(weight.norm().item() ** 2 for weight in healthy.module.net[0].parameters()) ** 0.5
    assert looked[-1]["weight_norm/net.0"] == pytest.approx(norm, rel=0.05)
    assert 0 < looked[-1]["update_ratio/net.0"] < 0.1


def nan_at(fault: int) -> Callable[[int, Any], Any]:
    """The inputs of a step are NaN, and so the weights from then on."""
    return lambda step, batch: (batch[0] * float("nan"), batch[1]) if step == fault else batch


def test_nan_stops_the_run_and_leaves_the_good_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A row shows it, the run ends, and saves nothing over what it had saved."""
    how = saving(tmp_path, every_n_train_steps=40)
    with caplog.at_level(logging.WARNING, logger="stabtree"):
        ran = fit(tmp_path, Small(spoil=nan_at(FAULT)), **how)
    assert FAULT <= ran.trainer.global_step <= FAULT + HOLD_ROWS
    assert saved(tmp_path) == [40]
    assert load_run(tmp_path / "run.jsonl").setting("checkpoints") == (40,)
    assert how["callbacks"][0].save_top_k == 1  # as it was
    (line,) = [record.getMessage() for record in caplog.records if "diagnose" in record.getMessage()]
    assert "critical" in line
    assert f"step {FAULT}" in line
    assert f"stabtree diagnose {tmp_path / 'run.jsonl'}" in line


def test_accumulated_batches_are_one_row_with_their_mean_loss(tmp_path: Path) -> None:
    """An epoch's last step, of fewer batches than the others, has the mean of those."""
    ran = fit(tmp_path, told={"on_finding": None}, accumulate_grad_batches=3, limit_train_batches=10, max_steps=8)
    raw = ran.module.raw
    parts = [raw[0:3], raw[3:6], raw[6:9], raw[9:10], raw[10:13], raw[13:16], raw[16:19], raw[19:20]]
    assert [row["loss"] for row in ran.steps] == pytest.approx([sum(part) / len(part) for part in parts])
    assert [row["step"] for row in ran.steps] == [*range(1, 9)]
    assert [row["step"] for row in ran.rows if "val_loss" in row] == [4, 8]


def test_scaled_gradients_are_told_without_their_scale(tmp_path: Path) -> None:
    """In mixed fp16 their norm is that of a run in fp32, beside the scale."""
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    plugin = pl.plugins.MixedPrecision("16-mixed", "cpu", scaler)
    told = {"on_finding": None, "stats_every": 4}
    plain = fit(tmp_path / "plain", told=told, max_steps=4)
    scaled = fit(tmp_path / "scaled", told=told, max_steps=4, plugins=[plugin])
    assert scaled.steps[-1]["grad_norm"] == pytest.approx(plain.steps[-1]["grad_norm"], rel=0.01)
    assert [row["loss_scale"] for row in scaled.steps] == [1024.0] * 4
    assert load_run(tmp_path / "scaled" / "run.jsonl").setting("dtype") == "fp16"


def test_a_resumed_run_goes_on_in_its_log(tmp_path: Path) -> None:
    """The steps after the checkpoint follow those before it, and the checkpoint stays listed."""
    how = saving(tmp_path, every_n_train_steps=10, save_top_k=-1)
    fit(tmp_path, told={"on_finding": None}, max_steps=20, **how)
    file = how["callbacks"][0].best_model_path
    assert saved(tmp_path) == [10, 20]
    how = saving(tmp_path, every_n_train_steps=10, save_top_k=-1)
    resumed = fit(tmp_path, told={"on_finding": None}, max_steps=40, ckpt_path=file, **how)
    run = load_run(tmp_path / "run.jsonl")
    assert resumed.steps[20]["step"] == 21
    assert run.series["loss"].steps.tolist() == [*range(1, 41)]
    assert run.setting("checkpoints") == (20, 30, 40)


def test_a_module_that_steps_several_optimizers_has_a_row_for_each_batch(tmp_path: Path) -> None:
    """Its losses are written as it logs them, at Lightning's own count of steps, with the first one's rate."""
    ran = fit(tmp_path, TwoPlayers(), told={"on_finding": None, "stats_every": 8}, max_steps=16)
    assert [row["step"] for row in ran.rows] == [*range(2, 17, 2)]
    assert all(row["d_loss"] != row["g_loss"] and row["lr"] == 0.1 for row in ran.rows)
    assert not any(name.startswith(("grad_norm", "update_ratio")) for row in ran.rows for name in row)
    assert [row["step"] for row in ran.rows if "weight_norm/two" in row] == [2, 8, 16]


def test_another_rank_writes_nothing_and_stops_with_the_first(tmp_path: Path) -> None:
    """It asks all ranks at each step whether one of them says so, as it must for none to wait for ever."""
    said = iter([False, True])
    trainer = SimpleNamespace(
        global_step=0, callback_metrics={}, ckpt_path=None, is_global_zero=False, optimizers=[None], world_size=2,
        precision_plugin=None,
        current_epoch=0, checkpoint_callbacks=[], should_stop=False, accumulate_grad_batches=1,
        strategy=SimpleNamespace(reduce_boolean_decision=lambda own, all: next(said)),  # noqa: A006, ARG005
    )  # fmt: skip
    callback, module = LightningCallback(tmp_path / "run.jsonl"), SimpleNamespace(automatic_optimization=True)
    callback.on_train_start(trainer, module)
    for step, stopped in ((1, False), (2, True)):
        trainer.global_step = step
        callback.on_before_optimizer_step(trainer, module, None)
        callback.on_train_batch_end(trainer, module, None, None, step)
        assert trainer.should_stop is stopped
    callback.teardown(trainer, module, "fit")
    assert not [*tmp_path.iterdir()]


def test_it_works_with_pytorch_lightning_too(tmp_path: Path) -> None:
    """Lightning under its old name, which has classes of its own, trains with the same callback."""
    old = pytest.importorskip("pytorch_lightning", reason="pytorch_lightning is not installed")
    from pytorch_lightning import LightningModule as OldModule

    class Old(OldModule):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Linear(8, 4)

        def training_step(self, batch: Any, _: int) -> Any:
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    ran = fit(tmp_path, Old(), told={"on_finding": None}, framework=old, max_steps=5)
    assert [row["step"] for row in ran.steps] == [1, 2, 3, 4, 5]


def test_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/how-to/callbacks.md shows of Lightning is code that runs as it stands there."""
    monkeypatch.chdir(tmp_path)
    exec(example("Lightning"), {"module": Small(), "loader": data(640, 1)})  # noqa: S102 - our own page
    assert load_run(tmp_path / "run.jsonl").series["loss"].steps.tolist() == list(range(1, 21))
