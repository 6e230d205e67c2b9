"""The callback of Keras, in runs of a small model on the CPU that Keras really trains, with torch behind it."""

from __future__ import annotations

import logging
import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from stabtree.loaders import load_run
from stabtree.tools.live.events import HOLD_ROWS
from tests.tools.live.integrations.logs import alarms, example, rows_of

os.environ.setdefault("KERAS_BACKEND", "torch")
REASON = "Keras with torch behind it is not installed: pip install 'stabtree[test-integrations]'"
torch = pytest.importorskip("torch", reason=REASON)
keras = pytest.importorskip("keras", reason=REASON)
if keras.config.backend() != "torch":
    pytest.skip(f"Keras has {keras.config.backend()} behind it: {REASON}", allow_module_level=True)

from keras import Sequential
from keras.callbacks import Callback

from stabtree.tools.live.callbacks.keras import KerasCallback, OwnMean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:::keras")

torch.set_num_threads(1)  # the model is too small for more

BATCH, EPOCH, LAST = 16, 40, 5
FAULT = 50


class Noting(Sequential):  # type: ignore[misc,unused-ignore]
    """A model that keeps the loss of each of its training batches."""

    def compute_loss(self, *args: Any, training: bool = True, **named: Any) -> Any:
        loss = super().compute_loss(*args, training=training, **named)
        if training:
            self.raw.append(loss.item())
        return loss


class Ran(NamedTuple):
    """A run that has ended."""

    folder: Path
    model: Any
    history: dict[str, list[float]]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of its log, but for the configuration."""
        return rows_of(self.folder)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Those that tell of a step of the training."""
        return [row for row in self.rows if "val_loss" not in row]


class At(Callback):  # type: ignore[misc,unused-ignore]
    """Does something to the model before a step."""

    def __init__(self, step: int, what: Callable[[Any], None]) -> None:
        super().__init__()
        self.step, self.what = step, what

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if int(self.model.optimizer.iterations) == self.step - 1:
            self.what(self.model)


def made(optimizer: Any) -> Any:
    """A classifier of two layers."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Input((8,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(4, "softmax")]
    model = Noting(layers)
    model.raw = []
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def data(count: int, seed: int) -> Any:
    """Points of four noisy classes."""
    random = np.random.default_rng(seed)
    weights = np.random.default_rng(0).normal(size=(8, 4))
    x = random.normal(size=(count, 8)).astype("float32")
    return x, (x @ weights + random.normal(size=(count, 4))).argmax(1)


def fit(folder: Path, model: Any = None, *, told: dict[str, Any] | None = None, **given: Any) -> Ran:
    """Train a model, with `told` for the callback and the rest for `fit`; the last batch of an epoch is smaller."""
    model = model or made(keras.optimizers.Adam(0.01))
    callback = KerasCallback(folder / "run.jsonl", **{"stats_every": 20, **(told or {})})
    callbacks = [*given.pop("callbacks", ()), callback]
    x, y = given.pop("data", None) or data((EPOCH - 1) * BATCH + LAST, 1)
    options = {"epochs": 2, "batch_size": BATCH, "verbose": 0, "validation_data": data(64, 2), "shuffle": False}
    raw = len(model.raw)
    history = model.fit(x, y, callbacks=callbacks, **{**options, **given})
    model.raw = model.raw[raw and raw :]
    return Ran(folder, model, history.history)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run without a fault that was judged at every row."""
    optimizer = keras.optimizers.Adam(0.01, clipnorm=1e-3)
    return fit(tmp_path_factory.mktemp("healthy"), made(optimizer))


def test_a_healthy_run_is_trained_to_its_end(healthy: Ran) -> None:
    """Nothing stops it, and nothing worse than a note is found in its log."""
    assert len(healthy.model.raw) == 2 * EPOCH
    assert not alarms(healthy.folder)
    # Not the mean since the epoch began, which is what Keras tells; the last, smaller batch has its own, too.
    assert [row["step"] for row in healthy.steps] == [*range(1, 2 * EPOCH + 1)]
    assert [row["loss"] for row in healthy.steps] == pytest.approx(healthy.model.raw, rel=1e-4)
    # The held-out metrics and those of the training that are no loss, as Keras's own history has them.
    ends = [row for row in healthy.rows if "val_loss" in row]
    assert [row["step"] for row in ends] == [EPOCH, 2 * EPOCH]
    for name in ("val_loss", "val_accuracy", "accuracy"):
        assert [row[name] for row in ends] == pytest.approx(healthy.history[name])
    assert not any("loss" in row for row in ends)
    # What the model was compiled with is read back from the log.
    run = load_run(healthy.folder / "run.jsonl")
    said = {
        "dtype": "fp32", "optimizer": "Adam", "lr": 0.01, "max_steps": 2 * EPOCH, "grad_clip": 1e-3, "n_classes": 4,
    }  # fmt: skip
    assert {name: run.setting(name) for name in said} == said


def test_the_model_is_looked_at_before_the_gradients_are_clipped(healthy: Ran) -> None:
    """At the interval, with the norms of the whole gradient and of the weights of each layer."""
    looked = [row for row in healthy.rows if any(name.startswith("weight_norm/") for name in row)]
    assert [row["step"] for row in looked] == [1, *range(20, 2 * EPOCH + 1, 20)]
    assert all(row["grad_norm"] > 0.1 for row in looked)  # they are clipped to a hundredth of that
    norm = sum(float((weight.numpy() ** 2).sum()) for weight in healthy.model.layers[0].trainable_variables) ** 0.5
    ending = f".{healthy.model.layers[0].name}"
    (layer,) = [name for name in looked[-1] if name.startswith("weight_norm/") and name.endswith(ending)]
    assert looked[-1][layer] == pytest.approx(norm, rel=1e-4)


def test_nan_stops_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A row shows it, and the run ends with one line that says why."""

    def broken(model: Any) -> None:
        model.layers[0].kernel.assign(np.full((8, 32), np.nan))

    with caplog.at_level(logging.WARNING, logger="stabtree"):
        ran = fit(tmp_path, callbacks=[At(FAULT, broken)])
    assert FAULT <= ran.steps[-1]["step"] == len(ran.model.raw) <= FAULT + HOLD_ROWS
    assert ran.steps[FAULT - 1]["loss"] == "NaN"
    (line,) = [record.getMessage() for record in caplog.records if "diagnose" in record.getMessage()]
    assert "critical" in line
    assert f"step {FAULT}" in line
    assert f"stabtree diagnose {tmp_path / 'run.jsonl'}" in line


def test_accumulated_batches_are_one_row_with_their_mean_loss(tmp_path: Path) -> None:
    """The steps are those of the optimizer; batches that are left over at the end make none."""
    model = made(keras.optimizers.Adam(0.01, gradient_accumulation_steps=3))
    ran = fit(tmp_path, model, data=data(10 * BATCH, 1), told={"on_finding": None}, epochs=1, validation_data=None)
    raw = ran.model.raw
    parts = [sum(raw[at : at + 3]) / 3 for at in (0, 3, 6)]
    steps = [row for row in ran.steps if "loss" in row]
    assert [row["step"] for row in steps] == [1, 2, 3]
    assert [row["loss"] for row in steps] == pytest.approx(parts, rel=1e-4)
    assert not any("grad_norm" in row for row in ran.rows)


def test_a_schedule_is_told_now_and_then_as_it_is_taken(tmp_path: Path) -> None:
    """With the rate of the step itself, not that of the next."""
    schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 100, end_learning_rate=0.0)
    ran = fit(tmp_path, made(keras.optimizers.SGD(schedule)), told={"on_finding": None}, epochs=1)
    rates = {row["step"]: row["lr"] for row in ran.steps if "lr" in row}
    assert rates == pytest.approx({1: 0.1, 11: 0.09, 21: 0.08, 31: 0.07})
    assert load_run(tmp_path / "run.jsonl").setting("lr_schedule") == "PolynomialDecay"


def test_a_scaled_loss_is_told_with_its_scale(tmp_path: Path) -> None:
    """The scale is that of the step, the loss is the unscaled one, and no norm of scaled gradients is told."""
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=1024.0)
    ran = fit(tmp_path, made(optimizer), told={"on_finding": None}, epochs=1)
    assert {row["loss_scale"] for row in ran.steps} == {1024.0}
    assert ran.steps[0]["loss"] == pytest.approx(ran.model.raw[0], rel=1e-4)
    assert not any("grad_norm" in row for row in ran.rows)


def test_fitting_on_goes_on_in_the_log(tmp_path: Path) -> None:
    """The steps of a second `fit` follow those of the first, as the optimizer counts them."""
    few = data(4 * BATCH, 1)
    first = fit(tmp_path, data=few, told={"on_finding": None}, epochs=1)
    second = fit(tmp_path, first.model, data=few, told={"on_finding": None}, epochs=1)
    assert [row["step"] for row in second.steps] == [*range(1, 9)]


def test_own_mean_gives_back_what_went_into_a_running_mean() -> None:
    """From means of any weights, with sums in float32."""
    random = np.random.default_rng(3)
    mean, total, count = OwnMean(), np.float32(0), np.float32(0)
    for value in random.uniform(0.5, 2.0, 500).astype(np.float32):
        weight = np.float32(random.integers(1, 64))
        total, count = total + value * weight, count + weight
        assert mean.own(float(total), float(count)) == pytest.approx(float(value), rel=0.01)
    # What comes after it in the epoch is hidden by it.
    mean = OwnMean()
    assert mean.own(2.0, 1.0) == 2.0
    assert math.isnan(mean.own(math.nan, 2.0) or 0.0)
    assert mean.own(math.nan, 3.0) is None


def test_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/how-to/callbacks.md shows of Keras is code that runs as it stands there."""
    monkeypatch.chdir(tmp_path)
    x, y = data(5 * 32, 1)
    exec(example("Keras"), {"model": made(keras.optimizers.Adam(0.01)), "x": x, "y": y})  # noqa: S102 - our own page
    assert load_run(tmp_path / "run.jsonl").series["loss"].steps.tolist() == list(range(1, 16))
