"""The adapters for the competitors' tools name leaves and faults that the benchmark knows, and fail softly."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import peers
from benchmarks.peers import DIVERGENCE, GRAD_NONFINITE, NAN, Finding, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# The leaves and kinds of fault that faultbench's scorer knows, as its README lists them.
LEAVES = {
    *("s1.nan_fp32", "s1.nan_bf16", "s1.nan_fp16_overflow", "s2.bad_batch", "s2.lr_discontinuity", "s2.dup_batch"),
    *("s2.recoverable", "s2.persistent", "s2.spike", "s3.grad_nonfinite_fp16", "s3.overflow_no_scaler"),
    *("s3.scale_constant", "s3.scale_collapse", "s3.healthy_backoff", "s4.lr_rising", "s4.weight_norm"),
    *("s4.grad_norm_rising", "s4.slow_rise", "s4.plateau", "other.flat_from_start", "other.lr_too_low"),
    *("other.lr_too_high", "other.double_softmax", "other.zero_grad_missing", "other.dead_relu", "other.overfit"),
    *("other.lr_frozen", "other.scaler_to_zero", "other.slow_learning", "other.resume_dup_steps"),
}
FAULTS = {
    *("NAN_BAD_DATA", "NAN_BF16", "NAN_FP16_OVERFLOW_NOSCALER", "NAN_LOG0_FP32", "NAN_LR_EXPLOSION"),
    *("SPIKE_BAD_BATCH", "SPIKE_DUP_BATCH", "SPIKE_LR_JUMP", "SPIKE_PERSISTENT", "FP16_SCALE_COLLAPSE"),
    *("FP16_SCALE_CONSTANT_OVERFLOW", "DIV_BAD_DATA_RAMP", "DIV_LR_RISING", "DIV_WD_LOW_NORM_GROWTH"),
    *("DOUBLE_SOFTMAX", "FLAT_LR_TOO_LOW", "FLAT_PARAMS_NOT_IN_OPT", "SCHED_LR_FROZEN", "DEAD_RELU", "OVERFIT"),
}
RUNMEDIC = peers.TOOLS["runmedic"]


def a_run(folder: Path) -> Path:
    """A folder with one run in it."""
    run = folder / "runs" / "one"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text('{"dtype": "fp32", "metrics_file": "metrics.csv"}', encoding="utf-8")
    (run / "metrics.csv").write_text("step,loss,lr\n0,4.5,\n1,nan,1e-3\n", encoding="utf-8")
    return run.parent


@pytest.mark.parametrize("name", peers.TOOLS)
def test_a_table_names_leaves_that_the_benchmark_has(name: str) -> None:
    """Every finding goes to a leaf of the benchmark, or to one that the dtype or the other findings decide."""
    assert set(peers.TOOLS[name].leaves.values()) <= LEAVES | {NAN, GRAD_NONFINITE, DIVERGENCE}
    assert set(peers.NAN_LEAVES.values()) <= LEAVES
    assert set(peers.CAUSES) <= FAULTS


@pytest.mark.parametrize("name", peers.TOOLS)
def test_a_tool_that_is_not_installed_is_reported(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report says what to install; nothing is written."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    peers.score(name, a_run(tmp_path), tmp_path / "preds.json")
    assert capsys.readouterr().out.startswith(f"{name} is not installed: {sys.executable} -m pip install '{name}")
    assert not (tmp_path / "preds.json").exists()


def test_the_script_ends_cleanly_whatever_is_installed(tmp_path: Path) -> None:
    """`--all` says one line per tool and exits with 0."""
    command = [sys.executable, peers.__file__, str(a_run(tmp_path)), "--all", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert len(done.stdout.splitlines()) == len(peers.TOOLS)


def test_a_tool_that_gives_no_answer_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crash of a tool and a missing metrics file leave the run without a prediction, with a line that says so."""
    runs = a_run(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: True)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0")
    crashing = Tool(("no_such_module", "{file}"), peers.read_losslint, {}, jsonl_only=True)
    monkeypatch.setitem(peers.TOOLS, "losslint", crashing)
    peers.score("losslint", runs, tmp_path / "preds.json")
    (runs / "one" / "metrics.csv").unlink()
    peers.score("losslint", runs, tmp_path / "preds.json")
    printed = capsys.readouterr()
    assert printed.err.count("losslint gave no answer on 'one'") == 2
    assert printed.out.count("0 runs judged, 1 without an answer") == 2
    assert json.loads((tmp_path / "preds.json").read_text(encoding="utf-8")) == {}


def said(*findings: tuple[str, str, str], dtype: str = "fp32") -> tuple[bool, str, str | None]:
    """The prediction for (id, about, level) findings, in short."""
    found: Iterable[Finding] = [Finding(id_, about, level, 7.0, "text") for id_, about, level in findings]
    made = peers.predict(RUNMEDIC, found, dtype)
    return made["healthy"], made["section"], made["leaf"]


def test_findings_become_a_prediction() -> None:
    """The alarm highest in the table decides; remarks raise none; the dtype and a spike complete the leaf."""
    divergence, spikes = ("divergence", "train_loss", "critical"), ("loss_spikes", "train_loss", "warning")
    assert said() == (True, "none", None)
    assert said(("constant_lr_plateau", "", "info")) == (True, "4", "s4.plateau")
    assert said(divergence) == (False, "4", "s4.slow_rise")
    assert said(spikes, divergence) == (False, "2", "s2.persistent")
    assert said(("loss_spikes", "", "info"), divergence) == (False, "4", "s4.slow_rise")
    assert said(divergence, ("non_finite", "train_loss", "critical"), dtype="bf16") == (False, "1", "s1.nan_bf16")
    assert said(("non_finite", "grad_norm", "critical"), dtype="fp16") == (False, "3", "s3.grad_nonfinite_fp16")
    assert said(("non_finite", "batch_id", "critical")) == (True, "none", None)
    assert said(("a_newer_check", "", "warning")) == (False, "other", None)


def test_a_csv_becomes_json_lines(tmp_path: Path) -> None:
    """Numbers, NaN and hashes pass; an empty cell is not logged; a row that is too long loses only what has no name."""
    source = tmp_path / "metrics.csv"
    source.write_text("step,loss,lr,batch_id\n0,4.5,,ab12,9\n1,nan,1e-3,\n", encoding="utf-8")
    lines = peers.to_jsonl(source, tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert rows[0] == {"step": 0, "loss": 4.5, "batch_id": "ab12"}
    assert math.isnan(rows[1].pop("loss"))
    assert rows[1] == {"step": 1, "lr": 1e-3}
