"""Fine-tunes with Lightning."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch.utils.data import DataLoader

from benchmarks.finetunes.faults import Watch, optimizer_of
from benchmarks.finetunes.torch_runs import Samplewise, prepared
from benchmarks.finetunes.truth import Made

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.finetunes.plan import Job
    from benchmarks.finetunes.truth import Rows


class Tuned(pl.LightningModule):  # type: ignore[misc,unused-ignore]
    """A model in training, with what it logged."""

    def __init__(self, job: Job, watch: Watch) -> None:
        super().__init__()
        self.model = watch.model
        self.job = job
        self.watch = watch
        self.rows: Rows = []
        self.evals: Rows = []

    def training_step(self, batch: dict[str, Any], _: int) -> Any:
        """Return the loss of a batch."""
        loss = self.model(**batch)["loss"]
        self.log("train_loss", loss)
        if (self.global_step + 1) % self.job.log_every == 0:
            self.rows.append((self.global_step, float(loss.detach())))
        return loss

    def validation_step(self, batch: dict[str, Any], _: int) -> None:
        """Log the loss of a held-out batch."""
        loss = self.model(**batch)["loss"]
        self.log("val_loss", loss)
        self.evals.append((self.global_step, float(loss)))

    def configure_optimizers(self) -> Any:
        """Return the optimizer and its schedule."""
        optimizer, schedule = optimizer_of(self.job, self.watch)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def lightning(job: Job, folder: Path) -> Made:
    """Run Lightning's Trainer."""
    _, watch, training, evaluated = prepared(job, folder)
    out = folder / "runs" / job.id
    shutil.rmtree(out, ignore_errors=True)
    logger = (CSVLogger if job.form == "csv" else TensorBoardLogger)(str(out), name="logs")
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=logger,
        max_steps=job.steps,
        log_every_n_steps=job.log_every,
        check_val_every_n_epoch=None,
        val_check_interval=job.eval_every * job.accumulate if job.eval_every else None,
        limit_val_batches=1.0 if job.eval_every else 0,
        accumulate_grad_batches=job.accumulate,
        gradient_clip_val=1.0,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    module = Tuned(job, watch)
    loader = DataLoader(Samplewise(training), batch_size=job.batch, shuffle=job.shuffled)
    trainer.fit(module, loader, DataLoader(Samplewise(evaluated), batch_size=64))
    pattern = "metrics.csv" if job.form == "csv" else "events.out*"
    return Made(next(out.rglob(pattern)), module.rows, module.evals, watch.held, watch.broke)
