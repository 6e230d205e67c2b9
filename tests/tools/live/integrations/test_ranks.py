"""Two ranks of torch.distributed that train one model really: what is found stops both at the same step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

REASON = "torch is not installed: pip install 'stabtree[test-integrations]'"
torch = pytest.importorskip("torch", reason=REASON)

pytestmark = pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()), reason="torch without gloo"
)

FAULT = 60
HEAD = f"""
import math, os, sys, torch, stabtree
import torch.distributed as dist
torch.set_num_threads(1)
torch.manual_seed(0)
RANK, FAULT = int(os.environ["RANK"]), {FAULT}
"""
LOOP = """
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
try:
    with stabtree.Recorder("run.jsonl", on_finding={on_finding!r}) as rec:
        for step in range(400):
            x = torch.randn(16, 8) * (math.nan if step >= FAULT and RANK in {broken} else 1)
            loss = torch.nn.functional.cross_entropy(model(x), torch.randint(4, (16,)))
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if RANK in {logging}:
                rec.log(step, loss=loss, grad_norm=norm, lr=1e-2)
            if rec.should_stop:
                break
except stabtree.TrainingStoppedError as error:
    print("raised", error.news.finding.leaf.id)
print(f"rank {{RANK}} ended at {{step}}", flush=True)
"""
HUGGING_FACE = """
from stabtree.integrations import HuggingFaceCallback
from transformers import Trainer, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 4)
    def forward(self, x, labels):
        return {"loss": torch.nn.functional.cross_entropy(self.net(x), labels)}

rows = [{"x": torch.randn(8) * (math.nan if i >= FAULT * 8 else 1), "labels": i % 4} for i in range(1600)]
class Ordered(Trainer):
    def _get_train_sampler(self, *_):
        return torch.utils.data.SequentialSampler(rows)

how = dict(max_steps=200, logging_steps=1, report_to=[], use_cpu=True, per_device_train_batch_size=4, disable_tqdm=True)
args = TrainingArguments("out", save_strategy="no", learning_rate=1e-2, **how)
trainer = Ordered(model=Model(), args=args, train_dataset=rows, callbacks=[HuggingFaceCallback("run.jsonl")])
trainer.train()
print(f"rank {RANK} ended at {trainer.state.global_step}", flush=True)
"""
LIGHTNING = """
from lightning.pytorch import LightningModule, Trainer
from stabtree.integrations import LightningCallback

class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 4)
    def training_step(self, batch, _):
        x, y = batch
        x = x * (math.nan if self.global_step >= FAULT else 1)
        return torch.nn.functional.cross_entropy(self.net(x), y)
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-2)

loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(1600, 8), torch.randint(4, (1600,))), batch_size=4
)
how = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
how |= dict(max_steps=200, accelerator="cpu", devices=2, strategy="ddp")
trainer = Trainer(callbacks=[LightningCallback("run.jsonl")], **how)
trainer.fit(Model(), loader)
print(f"rank {RANK} ended at {trainer.global_step}", flush=True)
"""


# A rank that tears torch down while the other still talks to it may be aborted, whatever they logged.
TOGETHER = """
if dist.is_initialized():
    dist.barrier()
sys.stdout.flush()
os._exit(0)
"""


def ended(folder: Path, code: str) -> dict[int, int]:
    """Run a script with two ranks; the step at which each of them ended."""
    (folder / "train.py").write_text(HEAD + code + TOGETHER, encoding="utf-8")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        launch, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {int(rank): int(step) for rank, step in re.findall(r"rank (\d) ended at (\d+)", done.stdout)}


@pytest.mark.parametrize(("on_finding", "broken"), [("warn", (1,)), ("raise", (0, 1))])
def test_a_loop_stops_on_all_ranks_at_the_same_step(tmp_path: Path, on_finding: str, broken: tuple[int, ...]) -> None:
    """By `should_stop` and by what is raised; a fault of one rank's batch reaches the others with its gradient."""
    steps = ended(tmp_path, LOOP.format(on_finding=on_finding, broken=broken, logging=(0, 1)))
    assert steps.keys() == {0, 1}
    assert FAULT < steps[0] == steps[1] < FAULT + 60


def test_ranks_that_log_nothing_are_not_waited_for(tmp_path: Path) -> None:
    """Where rank 0 alone logs, it alone learns what it found; its loop tells the others."""
    told = LOOP.replace(
        "if rec.should_stop:",
        "flag = torch.tensor(float(rec.should_stop is not None)); dist.broadcast(flag, 0)\n            if flag:",
    )
    steps = ended(tmp_path, told.format(on_finding="warn", broken=(0, 1), logging=(0,)))
    assert FAULT < steps[0] == steps[1] < FAULT + 20


@pytest.mark.parametrize(("package", "code"), [("transformers", HUGGING_FACE), ("lightning", LIGHTNING)])
def test_a_callback_stops_all_ranks_at_the_same_step(tmp_path: Path, package: str, code: str) -> None:
    """In the trainer's own way."""
    pytest.importorskip(package)
    steps = ended(tmp_path, code)
    assert steps.keys() == {0, 1}
    assert FAULT < steps[0] == steps[1] < FAULT + 20
