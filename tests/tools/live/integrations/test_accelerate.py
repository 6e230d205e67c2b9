"""The tracker of accelerate, in a loop that accelerate really runs."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stabtree.loaders import load_run
from stabtree.tools.live.recorder.recorder import Recorder

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'stabtree[test-integrations]'")
pytest.importorskip("accelerate", reason="accelerate is not installed")
from accelerate import Accelerator

from stabtree.integrations import AccelerateTracker

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "how-to" / "trainers.md"
BROKEN, STEPS = 60, 100


def trained(tracker: AccelerateTracker, *, broken: int = BROKEN) -> int:
    """Return the last step of a loop that stops where any process asks it to."""
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True, log_with=tracker)
    accelerator.init_trackers("project", config={"learning_rate": 1e-2, "optimizer": "AdamW"})
    model: Any = torch.nn.Linear(8, 3)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), 1e-2))
    step = 0
    for step in range(STEPS):
        x = torch.randn(32, 8)
        loss = torch.nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        if step >= broken:
            loss = loss * math.nan
        optimizer.zero_grad()
        accelerator.backward(loss)
        norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        accelerator.log({"train": {"loss": loss.detach(), "grad_norm": norm}, "note": "text", "nothing": None}, step)
        if tracker.should_stop:
            accelerator.set_trigger()
        if accelerator.check_trigger():
            break
    accelerator.end_training()
    return step


def test_a_loss_that_becomes_nan_stops_the_loop(tmp_path: Path) -> None:
    """Within a few rows; the log holds the settings, and the nested names."""
    path = tmp_path / "run.jsonl"
    assert BROKEN <= trained(AccelerateTracker(path)) <= BROKEN + 5
    run = load_run(path)
    assert run.setting("lr") == 1e-2
    assert {"loss", "grad_norm"} <= set(run.series)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert all("note" not in row and "nothing" not in row for row in rows)


def test_two_processes_leave_the_loop_at_the_same_step(tmp_path: Path) -> None:
    """The main one sees the finding; accelerate's own trigger tells the other. Each prints its last step."""
    code = f"""
from pathlib import Path
from stabtree.integrations import AccelerateTracker
from tests.tools.live.integrations.test_accelerate import trained
print("stopped at", trained(AccelerateTracker(Path({str(tmp_path / "run.jsonl")!r}))))
"""
    script = tmp_path / "train.py"
    script.write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    stops = [int(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("stopped at")]
    assert len(stops) == 2, done.stderr
    assert len(set(stops)) == 1
    assert BROKEN <= stops[0] <= BROKEN + 5
    assert not (tmp_path / "run.rank1.jsonl").exists()


def test_a_recorder_of_the_users_own_stays_open(tmp_path: Path) -> None:
    """What becomes of a finding is then what the Recorder was told."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        assert trained(AccelerateTracker(recorder)) == STEPS - 1
        recorder.log(STEPS, {"train/loss": 1.0})
    assert load_run(path).series["loss"].steps[-1] == STEPS


def test_only_the_main_process_opens_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are not asked to write, and see nothing that stops them."""
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType

    PartialState()
    second = {"process_index": 1, "num_processes": 2, "distributed_type": DistributedType.MULTI_CPU}
    for name, value in second.items():
        monkeypatch.setitem(PartialState._shared_state, name, value)
    tracker = AccelerateTracker(tmp_path / "run.jsonl")
    tracker.store_init_configuration({"lr": 1.0})
    tracker.log({"loss": math.nan}, 1)
    tracker.finish()
    assert tracker.should_stop is None
    assert not list(tmp_path.iterdir())


def test_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/how-to/trainers.md shows of accelerate is code that runs as it stands there."""
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text(encoding="utf-8").partition("## accelerate")[2]
    block = section.partition("```python\n")[2].partition("```")[0]
    model = torch.nn.Linear(8, 3)
    loader = torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=8)
    exec(block, {"model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1), "loader": loader})  # noqa: S102 - our own page
    assert load_run(tmp_path / "run.jsonl").series["loss"].steps.tolist() == list(range(8))
