"""Fine-tunes with Keras, a row an epoch."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras

from benchmarks.finetunes.bases import SOURCES
from benchmarks.finetunes.faults import samples
from benchmarks.finetunes.sources import CLASSES, SIDE
from benchmarks.finetunes.truth import Made

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.finetunes.plan import Job
    from benchmarks.finetunes.truth import Rows

TRAINED = 6000


def network() -> Any:
    """Build the untrained network."""
    return keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 1)),
            keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def trained(folder: Path) -> Any:
    """Load the base model from the folder; train and save it there the first time."""
    file = folder / "bases" / "keras.weights.h5"
    model = network()
    if not file.exists():
        keras.utils.set_random_seed(0)
        inputs, labels = SOURCES["images"].documents(TRAINED, np.random.default_rng(0))
        model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")
        model.fit(inputs[..., None], labels, batch_size=32, epochs=3, verbose=0)
        model.save_weights(file)
    model.load_weights(file)
    return model


class Measure(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    """Measures the true held-out loss after each epoch."""

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.of = held
        self.held: Rows = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Measure."""
        self.held.append((epoch + 1, float(self.model.evaluate(*self.of, verbose=0)[0])))


def compiled(job: Job, folder: Path) -> Any:
    """Load the model of a run with the faults that lie in it."""
    keras.utils.set_random_seed(job.seed)
    model = trained(folder)
    if job.fault == "frozen":
        for layer in model.layers[:-1]:
            layer.trainable = False
        model.layers[-1].kernel.trainable = False
    rate = 0.0 if job.fault == "no_step" else job.rate
    model.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def keras_fit(job: Job, folder: Path) -> Made:
    """Run `fit` of Keras."""
    model = compiled(job, folder)
    (inputs, labels), evaluated, held = ((x.numpy()[..., None], y.numpy()) for x, y in samples(job))
    start = (0, float(model.evaluate(*held, verbose=0)[0]))
    out = folder / "runs" / job.id
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    measure, shown, table = Measure(held), out / "train.log", out / "training.csv"
    with shown.open("w", encoding="utf-8") as stream, contextlib.redirect_stdout(stream):
        history = model.fit(
            inputs,
            labels,
            batch_size=job.batch,
            epochs=job.steps,
            shuffle=job.fault != "sorted",
            validation_data=evaluated if job.eval_every else None,
            callbacks=[measure, keras.callbacks.CSVLogger(str(table))],
            verbose=2,
        ).history
    (shown if job.form == "csv" else table).unlink()
    rows, evals = (list(enumerate(map(float, history.get(name, [])))) for name in ("loss", "val_loss"))
    return Made(table if job.form == "csv" else shown, rows, evals, [start, *measure.held])
