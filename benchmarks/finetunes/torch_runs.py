"""Fine-tunes with the trainers of Hugging Face and TRL, and with plain loops on torch."""

from __future__ import annotations

import contextlib
import functools
import math
import shutil
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.finetunes.bases import held_out, tokenizer_of, trained
from benchmarks.finetunes.faults import Watch, optimizer_of, samples, spoil_model
from benchmarks.finetunes.plain_logs import written
from benchmarks.finetunes.truth import Made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.finetunes.faults import Samples
    from benchmarks.finetunes.plan import Job


class Samplewise(torch.utils.data.Dataset):  # type: ignore[misc,unused-ignore]
    """Samples one by one, named as models call them."""

    def __init__(self, of: Samples) -> None:
        self.of = of

    def __len__(self) -> int:
        return len(self.of[0])

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.of[0][index], "labels": self.of[1][index]}


def prepared(job: Job, folder: Path) -> tuple[Any, Watch, Samples, Samples]:
    """Load the model of a run with its data and its faults."""
    torch.manual_seed(job.seed)
    model = trained(job.base, folder)
    training, evaluated, held = samples(job)
    if job.lora:
        import peft

        targets = ["c_attn", "c_proj"] if job.base == "words" else ["q_proj", "v_proj", "o_proj"]
        settings = peft.LoraConfig(r=8, lora_alpha=16, target_modules=targets, fan_in_fan_out=job.base == "words")
        model = peft.get_peft_model(model, settings)
    spoil_model(job, model)
    watch = Watch(job, model, lambda: held_out(model, *held))
    model.train()
    return model, watch, training, evaluated


def settings_of(job: Job, out: Path) -> dict[str, Any]:
    """Return the settings that Hugging Face's trainers share."""
    return {
        "output_dir": str(out),
        "max_steps": job.steps,
        "per_device_train_batch_size": job.batch,
        "per_device_eval_batch_size": 32,
        "gradient_accumulation_steps": job.accumulate,
        "learning_rate": job.rate,
        "logging_steps": job.log_every,
        "eval_strategy": "steps" if job.eval_every else "no",
        "eval_steps": job.eval_every or None,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "train_sampling_strategy": "random" if job.shuffled else "sequential",
        "seed": job.seed,
        "bf16": False,
        "gradient_checkpointing": False,
    }


def hugging_face(job: Job, folder: Path) -> Made:
    """Run the Trainer of transformers, or SFTTrainer of TRL."""
    import transformers

    model, watch, training, evaluated = prepared(job, folder)
    out = folder / "runs" / job.id
    if job.framework == "sft":
        import trl

        settings = trl.SFTConfig(**settings_of(job, out), dataset_kwargs={"skip_prepare_dataset": True})
        extra = {"processing_class": tokenizer_of(job.base)}
        kind = trl.SFTTrainer
    else:
        settings = transformers.TrainingArguments(
            **settings_of(job, out), remove_unused_columns=False, prediction_loss_only=True, label_names=["labels"]
        )
        extra, kind = {}, transformers.Trainer
    trainer = kind(
        model=model,
        args=settings,
        train_dataset=listed(job, training),
        eval_dataset=listed(job, evaluated) if job.eval_every else None,
        data_collator=functools.partial(collated, masked=job.framework == "sft"),
        optimizers=optimizer_of(job, watch),
        **extra,
    )
    return finished(job, out, trainer, watch)


def listed(job: Job, of: Samples) -> Any:
    """Return samples in the form that the trainer takes."""
    if job.framework != "sft":
        return Samplewise(of)
    import datasets

    return datasets.Dataset.from_dict({"input_ids": of[0].tolist(), "labels": of[1].tolist()})


def collated(rows: list[dict[str, Any]], *, masked: bool) -> dict[str, Any]:
    """Stack samples to a batch."""
    batch = {name: torch.stack([torch.as_tensor(row[name]) for row in rows]) for name in ("input_ids", "labels")}
    return {**batch, "attention_mask": torch.ones_like(batch["input_ids"])} if masked else batch


def finished(job: Job, out: Path, trainer: Any, watch: Watch) -> Made:
    """Run a trainer of Hugging Face to its end, and keep the log that is wanted."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    file = out / "train.log"
    with file.open("w", encoding="utf-8") as stream, contextlib.redirect_stdout(stream):
        trainer.train()
    trainer.save_state()
    history = trainer.state.log_history
    if job.form == "state":
        file.unlink()
        file = out / "trainer_state.json"
    else:
        (out / "trainer_state.json").unlink()
    rows = [(row["step"], float(row["loss"])) for row in history if "loss" in row]
    evals = [(row["step"], float(row["eval_loss"])) for row in history if "eval_loss" in row]
    finite = all(math.isfinite(value) for row in history for value in row.values() if isinstance(value, float))
    return Made(file, rows, evals, watch.held, watch.broke, finite)


def batches(job: Job, of: Samples) -> Iterator[Samples]:
    """Go through the samples again and again, in a new order each time where they are shuffled."""
    random = torch.Generator().manual_seed(job.seed)
    count = len(of[0])
    while True:
        order = torch.randperm(count, generator=random) if job.shuffled else torch.arange(count)
        for place in range(0, count - job.batch + 1, job.batch):
            chosen = order[place : place + job.batch]
            yield of[0][chosen], of[1][chosen]


def plain(job: Job, folder: Path) -> Made:
    """Run a loop as people write it."""
    model, watch, training, evaluated = prepared(job, folder)
    optimizer, schedule = optimizer_of(job, watch)
    data = batches(job, training)
    rows: list[dict[str, float]] = []
    for step in range(1, job.steps + 1):
        total = 0.0
        for _ in range(job.accumulate):
            inputs, labels = next(data)
            loss = model(input_ids=inputs, labels=labels)["loss"] / job.accumulate
            loss.backward()
            total += float(loss.detach())
        norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        row = {"step": step, "loss": total, "lr": schedule.get_last_lr()[0], "grad_norm": norm}
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if job.eval_every and step % job.eval_every == 0:
            model.eval()
            with torch.no_grad():
                row["val_loss"] = float(model(input_ids=evaluated[0], labels=evaluated[1])["loss"])
            model.train()
        if step % job.log_every == 0 or "val_loss" in row:
            rows.append(row)
    logged = [(int(row["step"]), row["loss"]) for row in rows]
    evals = [(int(row["step"]), row["val_loss"]) for row in rows if "val_loss" in row]
    finite = all(math.isfinite(row["grad_norm"]) for row in rows)
    return Made(written(job, folder, rows), logged, evals, watch.held, watch.broke, finite)
