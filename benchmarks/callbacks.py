"""What the callbacks cost: the share of a step of a model of 10 million weights, and the time without looking at it.

    python -m benchmarks.callbacks [TRAINER...] [--steps 200]

Told is the processor's time, that of the callback's hooks and that of the whole run on one core, so that another load
on the machine moves it little: the share of all steps, with all judging; that without the first step, at which all is
imported that judging takes; and the time of a usual step, at which nothing is judged. Hooks that do nothing take
some 27 µs of that. A trainer that is not installed is left out. Promised: at most 2% of a step, and 50 µs a step where
nothing looks at the model.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TOKENS, VOCABULARY = 64, 4096


@dataclass(slots=True)
class Hooks:
    """The times that were spent in a callback's hooks, by their names."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def timed(self, callback: Any) -> Any:
        """A callback whose hooks are timed while the run goes on: opening and closing the log are no part of a step."""
        for name in dir(type(callback)):
            if name.startswith("on_") and name not in ("on_train_begin", "on_train_start", "on_train_end"):
                setattr(callback, name, self._timed(getattr(callback, name)))
        return callback

    def _timed(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            begun = time.thread_time()
            try:
                return hook(*args, **options)
            finally:
                self.seconds[hook.__name__].append(time.thread_time() - begun)

        return called


def huggingface(folder: Path, steps: int, options: dict[str, Any]) -> tuple[float, Hooks]:
    """The seconds of a run of the Hugging Face Trainer, and those of the callback's hooks."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PrinterCallback, Trainer, TrainingArguments

    from stabtree.integrations import HuggingFaceCallback

    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=256, intermediate_size=688, num_hidden_layers=10, num_attention_heads=4,
        max_position_embeddings=TOKENS,
    )  # fmt: skip
    data = [{"input_ids": (row := torch.randint(VOCABULARY, (TOKENS,))), "labels": row} for _ in range(64)]
    args = TrainingArguments(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=2, logging_steps=1, use_cpu=True,
        report_to="none", disable_tqdm=True, save_strategy="no",
    )  # fmt: skip
    hooks = Hooks()
    callback = hooks.timed(HuggingFaceCallback(folder / "run.jsonl", **options))
    trainer = Trainer(model=LlamaForCausalLM(config), args=args, train_dataset=data, callbacks=[callback])
    trainer.remove_callback(PrinterCallback)
    begun = time.process_time()
    trainer.train()
    return time.process_time() - begun, hooks


def lightning(folder: Path, steps: int, options: dict[str, Any]) -> tuple[float, Hooks]:
    """The seconds of a run of Lightning's Trainer, and those of the callback's hooks."""
    import torch
    from lightning.pytorch import LightningModule, Trainer

    from stabtree.integrations import LightningCallback

    class Model(LightningModule):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
            self.words = torch.nn.Embedding(VOCABULARY, 256)
            self.layers = torch.nn.TransformerEncoder(layer, 10)
            self.head = torch.nn.Linear(256, VOCABULARY)

        def training_step(self, batch: Any, _: int) -> Any:
            logits = self.head(self.layers(self.words(batch)))
            loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch)
            self.log("train_loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    torch.set_num_threads(1)
    hooks = Hooks()
    trainer = Trainer(
        max_steps=steps, max_epochs=-1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder,
        callbacks=[hooks.timed(LightningCallback(folder / "run.jsonl", **options))],
    )  # fmt: skip
    data = torch.utils.data.DataLoader(torch.randint(VOCABULARY, (256, TOKENS)), batch_size=2)  # type: ignore[arg-type,unused-ignore]
    begun = time.process_time()
    trainer.fit(Model(), data)
    return time.process_time() - begun, hooks


def keras(folder: Path, steps: int, options: dict[str, Any]) -> tuple[float, Hooks]:
    """The seconds of a run of Keras with torch behind it, and those of the callback's hooks."""
    import keras
    import numpy as np
    import torch

    from stabtree.integrations import KerasCallback

    torch.set_num_threads(1)
    x = flow = keras.layers.Input((TOKENS,), dtype="int32")
    flow = keras.layers.Embedding(VOCABULARY, 256)(flow)
    for _ in range(16):
        inner = keras.layers.Dense(1024, "relu")(keras.layers.LayerNormalization()(flow))
        flow = keras.layers.Add()([flow, keras.layers.Dense(256)(inner)])
    model = keras.Model(x, keras.layers.Dense(VOCABULARY)(flow))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.AdamW(1e-4), loss=loss)
    tokens = np.random.default_rng(0).integers(VOCABULARY, size=(2 * steps, TOKENS))
    hooks = Hooks()
    callback = hooks.timed(KerasCallback(folder / "run.jsonl", **options))
    begun = time.process_time()
    model.fit(tokens, tokens, batch_size=2, epochs=1, verbose=0, callbacks=[callback])
    return time.process_time() - begun, hooks


TRAINERS: dict[str, tuple[str, Callable[[Path, int, dict[str, Any]], tuple[float, Hooks]]]] = {
    "huggingface": ("transformers", huggingface),
    "lightning": ("lightning", lightning),
    "keras": ("keras", keras),
}
KINDS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "not looking at the model": {"stats_every": 0},
    "writing alone": {"stats_every": 0, "on_finding": None},
}


def main() -> None:
    """Print a row for each trainer and each way to use its callback."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    asked.add_argument("trainers", nargs="*", choices=[*TRAINERS, []])
    asked.add_argument("--steps", type=int, default=200)
    given = asked.parse_args()
    for name in given.trainers or TRAINERS:
        library, run = TRAINERS[name]
        if importlib.util.find_spec(library) is None:
            print(f"{name}: {library} is not installed")
            continue
        for kind, options in KINDS.items():
            with tempfile.TemporaryDirectory() as folder:
                total, hooks = run(Path(folder), given.steps, options)
            own = sum(map(sum, hooks.seconds.values()))
            usual = sum(statistics.median(times) * len(times) for times in hooks.seconds.values()) / given.steps
            later = sum(sum(times[1:]) for times in hooks.seconds.values()) / max(given.steps - 1, 1)
            step = (total - own) / given.steps
            print(
                f"{name:12} {kind:25} {step * 1e3:7.1f} ms a step, of it {own / given.steps / step:.2%},"
                f" {later / step:.2%} after the first;"
                f" {usual * 1e6:6.1f} µs at a usual step",
                flush=True,
            )


if __name__ == "__main__":
    main()
