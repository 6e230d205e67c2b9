"""The lines of every trainer, each in its own spelling."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from stabtree.loaders.source import Sure, open_source
from stabtree.loaders.text.loader import sniff
from stabtree.metrics.names import Names
from tests.loaders.make import write
from tests.loaders.text.textlogs import LOGS, MEGATRON, Points

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run


def run_of(folder: Path, content: str | bytes, run: str | None = None) -> Run:
    """The run that a text log holds."""
    return load_run(write(folder, content, "train.log"), run=run)


def points(run: Run, metric: str) -> Points:
    """(step, value) of a metric."""
    series = run.series.get(metric)
    return [] if series is None else list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


@pytest.mark.parametrize("name", LOGS)
def test_each_spelling_is_read_whole(name: str, tmp_path: Path) -> None:
    content, expected = LOGS[name]
    run = run_of(tmp_path, content)
    for metric, wanted in expected.items():
        got = points(run, metric)
        assert [step for step, _ in got] == [step for step, _ in wanted], metric
        np.testing.assert_allclose([value for _, value in got], [value for _, value in wanted], err_msg=metric)
    assert run.sources[0].skipped_count == 0


def test_a_loss_that_megatron_leaves_out_is_a_nan(tmp_path: Path) -> None:
    lines = [MEGATRON.format(i, f" lm loss: {i}.5E+00 |", " grad norm: 1.5 |", 0) for i in (1, 2, 3)]
    lines += [
        MEGATRON.format(4, "", " grad norm: nan |", 0),
        MEGATRON.format(5, "", "", 1),
        MEGATRON.format(6, "", "", 0),
    ]
    run = run_of(tmp_path, "".join(lines))
    assert [step for step, value in points(run, "loss") if math.isnan(value)] == [4, 5]
    assert run.series["loss"].steps.tolist() == [1, 2, 3, 4, 5]
    assert any("read as NaN" in note for note in run.notes)


OVERFLOW = (
    "[2031-04-18 01:46:53,259] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step."
)


def test_overflow_lines_go_to_the_step_that_follows(tmp_path: Path) -> None:
    content = (
        f"{OVERFLOW} Attempted loss scale: 65536, but hysteresis is 2. Reducing hysteresis to 1\n"
        "step: 1, loss: 4.5\n"
        f"{OVERFLOW} Attempted loss scale: 65536, reducing to 32768\n"
        f"{OVERFLOW} Attempted loss scale: 65536, reducing to 32768\n"
        "step: 2, loss: 4.25\nstep: 3, loss: 4.0\n"
    )
    run = run_of(tmp_path, content)
    assert points(run, "loss_scale") == [(1, 65536.0), (2, 32768.0)]
    assert points(run, "grad_norm") == [(1, math.inf), (2, math.inf)]
    assert not run.gaps


def test_overflows_without_a_loss_are_a_run_without_one(tmp_path: Path) -> None:
    content = f"{OVERFLOW} Attempted loss scale: 65536, reducing to 32768\n" + "".join(
        f"[2031-04-18 01:47:06,590] [INFO] [logging.py:96:log_dist] [Rank 0] step={i}0, skipped=6, "
        f"lr=[9.6e-06, 9.6e-06],"
        " mom=[(0.9, 0.95), (0.9, 0.95)]\n"
        for i in (1, 2, 3)
    )
    run = run_of(tmp_path, content)
    assert "loss" not in run.series
    assert "No loss is logged: the run is judged by grad_norm, loss_scale." in run.notes


def test_ranks_that_log_for_themselves_are_kept_apart(tmp_path: Path) -> None:
    content = "".join(f"[rank{rank}]: step {i} loss {i + rank / 4}\n" for i in range(1, 6) for rank in (0, 1))
    run = run_of(tmp_path, content)
    assert {rank: points_of["loss"].values.tolist() for rank, points_of in run.ranks.items()} == {
        "0": [1.0, 2.0, 3.0, 4.0, 5.0],
        "1": [1.25, 2.25, 3.25, 4.25, 5.25],
    }


@pytest.mark.parametrize(
    "prefix", ["[1,0]<stdout>:", "0: ", "[default7]:", "(TaskRunner pid=7) ", "2031-01-02 03:04:05,678 INFO "]
)
def test_a_prefix_changes_nothing(prefix: str, tmp_path: Path) -> None:
    content = "".join(f"{prefix}step: {i} loss: {i}.5 grad_norm: 0.25\n" for i in (1, 2, 3))
    run = run_of(tmp_path, content)
    assert points(run, "loss") == [(1, 1.5), (2, 2.5), (3, 3.5)]
    assert not run.ranks


def test_several_runs_in_one_file_are_named_and_never_mixed(tmp_path: Path) -> None:
    once = "".join(f"step: {i} loss: {5 - i} lr: 0.00{i}\n" for i in range(1, 5))
    content = f"learning_rate: 0.25\n{once}learning_rate: 0.5\n{once.replace('loss: ', 'loss: 1')}"
    with pytest.raises(StabtreeError, match="holds 2 runs: 1, 2"):
        run_of(tmp_path, content)
    assert points(run_of(tmp_path, content, "1"), "loss") == [(1, 4.0), (2, 3.0), (3, 2.0), (4, 1.0)]
    second = run_of(tmp_path, content, "2")
    assert points(second, "loss") == [(1, 14.0), (2, 13.0), (3, 12.0), (4, 11.0)]
    assert second.setting("lr") == 0.5


@pytest.mark.parametrize("head", ["", "=== Epoch {epoch} ===\n"])
def test_batches_of_epochs_are_one_run(head: str, tmp_path: Path) -> None:
    """Batches that are counted anew in every epoch are counted on, whether or not a line tells the epoch."""
    lines = ""
    for epoch in range(20):
        lines += head.format(epoch=epoch)
        lines += "".join(f"Step {i} loss: {1 + 3 * 0.99 ** (epoch * 20 + i):.4f}\n" for i in range(20))
    assert [step for step, _ in points(run_of(tmp_path, lines), "loss")] == list(range(400))


def test_each_attempt_in_a_log_is_a_run(tmp_path: Path) -> None:
    """Three attempts of the same length, and one restart after an early crash."""
    once = "".join(f"step: {i} loss: {4 - i / 20:.3f}\n" for i in range(40))
    with pytest.raises(StabtreeError, match="holds 3 runs"):
        run_of(tmp_path, once * 3)
    early = "".join(once.splitlines(keepends=True)[:8])
    assert "Attempt 2 of 2 in one log: its rows from 9 on." in run_of(tmp_path, early + once, "2").notes


def test_a_resume_is_no_new_run(tmp_path: Path) -> None:
    rows = [*range(1, 9), *range(5, 12)]
    run = run_of(tmp_path, "".join(f"step: {i} loss: {i}\n" for i in rows))
    assert run.series["loss"].steps.tolist() == list(range(1, 12))
    assert [(resume.from_step, resume.to_step) for resume in run.resumes] == [(8, 5)]


DUMPS = {
    "  lr .............. 0.25\n  fp16 .......... True\n  clip_grad ..... 1.0\n  save_interval ... 500\n": "megatron",
    "TrainingArguments(\nfp16=True,\nlearning_rate=0.25,\nmax_grad_norm=1.0,\nsave_steps=500,\n)\n": "hugging face",
    "Namespace(lr=0.25, dtype='fp16', clip_grad=1.0, save_interval=500)\n": "argparse",
    "lr: 0.25\ndtype: fp16\nclip_grad: 1.0\nsave_interval: 500\n": "yaml",
}


@pytest.mark.parametrize("dump", DUMPS, ids=DUMPS.values())
def test_the_configuration_is_read_from_the_log(dump: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, dump + "".join(f"step: {i} loss: {i}.5\n" for i in (1, 2, 3)))
    assert {key: run.setting(key) for key in ("lr", "dtype", "grad_clip", "checkpoint_every")} == {
        "lr": 0.25,
        "dtype": "fp16",
        "grad_clip": 1.0,
        "checkpoint_every": 500,
    }


def test_a_cut_last_line_does_not_change_a_number(tmp_path: Path) -> None:
    content = "".join(f"iter {i}: loss {i}.5000, time 174.07ms, mfu 1.00%\n" for i in range(4)) + "iter 4: loss 1"
    run = run_of(tmp_path, content)
    assert run.series["loss"].steps.tolist() == [0, 1, 2, 3]
    assert run.sources[0].skipped_count == 1


def test_a_line_among_interleaved_ones_is_found(tmp_path: Path) -> None:
    content = (
        "  Step 1 | Loss: 6.5 | KL: 1072.0000          DEBUG tensor x: shape=torch.Size([1, 31, 768]), mean=0.000273\n"
        "DEBUG tensor x after concat: shape=torch.Size([1, 39, 768]), device=cuda:0, mean=0.000313\n"
        "  Step 2 | Loss: 19.5 | KL: 1328.0000\n"
    )
    assert points(run_of(tmp_path, content), "loss") == [(1, 6.5), (2, 19.5)]


NO_LOGS = {
    "prose": "We train with a loss of 3.2 at step 100.\nThe learning rate was 3e-4; loss fell to 2.5 after epoch 3.\n"
    * 9,
    "source": "import torch\nfor step in range(10):\n    loss = 0.5\n    lr = 3e-4\n    step = 1\n    loss.backward()\n"
    * 9,
    "readme": "# Train\n```\nstep 1 loss 2.5\nstep 2 loss 2.4\nstep 3 loss 2.3\n```\n",
    "versions": "---\nbase_model: x\n---\n\n## Versions\n\n- TRL: 1.16\n- Torch: 2.5\n",
    "config": "learning_rate: 0.1\nbatch_size: 12\nmodel:\n  loss: mse\n  norm: layer\n",
}


@pytest.mark.parametrize("content", NO_LOGS.values(), ids=NO_LOGS)
def test_other_text_is_no_log(content: str, tmp_path: Path) -> None:
    assert sniff(open_source(write(tmp_path, content, "notes.txt")), Names()) == Sure.NO


@pytest.mark.parametrize(
    "line",
    [
        "a" * 3_000_000,
        "loss " * 200_000,
        "{'loss': " * 100_000,
        "[" * 500_000,
        "1 " * 500_000,
        "step 1 loss 1 " * 50_000,
        "a=" * 300_000,
    ],
)
def test_a_hostile_line_costs_no_more_than_its_length(line: str, tmp_path: Path) -> None:
    good = "".join(f"step {i} loss {i}.5\n" for i in range(2, 8))
    run = run_of(tmp_path, f"{good}{line}\nstep 8 loss 8.5\n")
    assert points(run, "loss")[-1] == (8, 8.5)


def test_a_long_log_is_read_by_its_layout_to_the_same_numbers(tmp_path: Path) -> None:
    odd = {500: "nan", 501: "inf", 502: "1.5E+00"}
    lines = [
        f"[2031-01-02 03:04:05] step {i}/9000 | loss: {odd.get(i, f'{i}.25')} | grad norm: {i / 4} | "
        f"lr: 1.0E-0{1 + i % 3} |\n" + ("saving checkpoint 3\n" if i % 100 == 0 else "")
        for i in range(1, 1001)
    ]
    run = run_of(tmp_path, "".join(lines))
    loss = run.series["loss"]
    assert loss.steps.tolist() == list(range(1, 1001))
    assert math.isnan(loss.values[499])
    assert loss.values[500] == math.inf
    assert loss.values[501] == 1.5
    assert loss.values[999] == 1000.25
    assert run.series["grad_norm"].values[799] == 200.0
    assert run.series["lr"].values[:3].tolist() == [0.01, 0.001, 0.1]


def test_lines_of_several_kinds_join_at_their_step(tmp_path: Path) -> None:
    lines = []
    for i in range(1, 301):
        lines.append(f"[INFO] step={i}, skipped=0, lr=[{i}e-6, {i}e-6], mom=[(0.9, 0.95)]\n")
        lines.append(f" samples/sec: 2.7 | iteration {i}/ 900 | lm_loss: {i}.5E+00 | number of nan iterations: 0 |\n")
        if i % 100 == 0:
            lines.append(f"step {i}: val_loss {i}.75\n")
    run = run_of(tmp_path, "".join(lines))
    assert run.sources[0].rows == 300
    assert points(run, "loss") == [(i, i + 0.5) for i in range(1, 301)]
    np.testing.assert_allclose(run.series["lr"].values, np.arange(1, 301) * 1e-6)
    assert points(run, "eval_loss") == [(100, 100.75), (200, 200.75), (300, 300.75)]


def test_a_gradient_that_espnet_reports_as_nan_is_one(tmp_path: Path) -> None:
    content = (
        "step: 1, loss: 4.5\n(trainer:617) WARNING: The grad norm is nan. Skipping updating the model.\n"
        "step: 2, loss: 4.25\nstep: 3, loss: 4.0\n"
    )
    assert [step for step, value in points(run_of(tmp_path, content), "grad_norm") if math.isnan(value)] == [2]


@pytest.mark.parametrize(
    "line",
    [
        "overflow detected, setting loss scale to: 0.031250.03125",
        "loss scale: 65536.0/12 | 9 / " + "9" * 5000,
        "epoch nan loss 2.5",
        "step 1e400 loss 2.5",
        "[2031-01-02] step 3 | loss: 1.5 | " + "1-" * 800,
    ],
)
def test_a_broken_line_breaks_nothing(line: str, tmp_path: Path) -> None:
    good = [f"[2031-01-02 03:04] step {i} | loss: {i}.5 | x 1-2-3-4-5-6-7-8-9-10 |\n" for i in range(1, 9)]
    run = run_of(tmp_path, "".join(good[:4]) + line + "\n" + "".join(good[4:]))
    assert {(i, i + 0.5) for i in range(1, 9)} <= set(points(run, "loss")) | {(3, 3.5)}


@pytest.mark.parametrize("total", ["10.5", "1e9", "nan", "9" * 5000])
def test_a_counter_that_turns_into_no_count_loses_no_row(total: str, tmp_path: Path) -> None:
    lines = [f"step {i}/{total if i == 4 else 10} loss {i}.5\n" for i in range(1, 9)]
    assert points(run_of(tmp_path, "".join(lines)), "loss") == [(i, i + 0.5) for i in range(1, 9)]


def test_the_sum_of_an_epoch_is_kept_apart_from_its_batches(tmp_path: Path) -> None:
    """Lines that sum up an epoch under the name of its batches' loss are a column of their own."""
    lines = [
        line
        for e in range(3)
        for line in (
            *(f"Epoch {e} - Batch {b} - loss: {e}.{b}\n" for b in (10, 20, 30)),
            f"Epoch {e} - loss: 9.5 - val_loss: {e}.75\n",
        )
    ]
    run = run_of(tmp_path, "".join(lines))
    assert points(run, "loss") == [(e * 30 + b, float(f"{e}.{b}")) for e in range(3) for b in (10, 20, 30)]
    assert points(run, "eval_loss") == [(e * 30 + 30, e + 0.75) for e in range(3)]
    assert "epoch_loss" in {use.name for use in run.sources[0].columns}


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("[Epoch {e}][Batch {b}], Speed: 123.4 samples/sec, CrossEntropy={v}, SmoothL1=0.2", "CrossEntropy"),
        ("[2031-05-08 04:06:17,722 INFO] Step {s}/900; acc:  12.00; xent: {v}; lr: 1.0; 112/870 tok/s; 4 sec", "xent"),
        ("(epoch: {e}, iters: {b}, time: 0.008, data: 3.5) GAN: {v} ", "GAN"),
        ("17:44:4{e} |   [update] seat0: Qloss={v} EV=+0.12", "Qloss"),
    ],
)
def test_a_loss_that_goes_by_its_kind_can_be_named(line: str, column: str, tmp_path: Path) -> None:
    """Lines whose only loss has the name of its kind are rows, and `--column` reads them."""
    rows = [line.format(e=e, b=b, s=30 * e + b, v=f"{e}.{b}") + "\n" for e in range(1, 4) for b in (10, 20, 30)]
    run = load_run(write(tmp_path, "".join(rows), "train.log"), columns={"loss": column})
    assert [value for _, value in points(run, "loss")] == [float(f"{e}.{b}") for e in range(1, 4) for b in (10, 20, 30)]


def test_a_bar_that_is_drawn_again_after_a_traceback_is_no_row(tmp_path: Path) -> None:
    """A bar that stands where it stood and says the same is no progress after an error."""
    bar = "Epoch 0:  50%|##  | {0}/90 [00:01<00:01, 50.0it/s, loss={0}.5]\n"
    rows = "".join(map(bar.format, range(1, 10)))
    error = "Traceback (most recent call last):\nRuntimeError: CUDA error\n"
    run = run_of(tmp_path, rows + error + bar.format(9))
    assert run.sources[0].rows == 9


def test_a_bar_that_counts_on_with_its_old_values_is_no_row(tmp_path: Path) -> None:
    """A NaN that the bar shows once more beside the next count was logged at one step."""
    bar = "Training:  50%|##  | {0}/90 [00:01<00:01, 50.0it/s, loss={1}]\n"
    losses = ["nan" if step == 20 else f"{step}.5" for step in range(90)]
    drawn = [bar.format(step, losses[max(step - 1, 0)]) + bar.format(step, losses[step]) for step in range(90)]
    run = load_run(write(tmp_path, "".join(drawn), "train.log"))
    assert [step for step, value in points(run, "loss") if math.isnan(value)] == [20]
    assert len(points(run, "loss")) == 90
    assert not run.lines, "no bar is a message"


def test_the_values_below_a_bar_are_of_its_epoch(tmp_path: Path) -> None:
    """Lightning's rich bar names the epoch, and prints what it measured on the lines below."""
    bar = "Epoch {0}/11 ━━━     8/43 0:00:00 • 0:00:01 99.18it/s v_num: 0.000\n"
    rows = [bar + "                      train_loss: 0.{0}\n                      val_loss: 0.{0}5\n"]
    run = load_run(write(tmp_path, "".join(row.format(epoch) for row in rows for epoch in (4, 5, 6)), "train.log"))
    assert points(run, "loss") == [(4, 0.4), (5, 0.5), (6, 0.6)]


def test_what_python_logs_of_a_part_of_the_data_counts_on_through_the_epochs(tmp_path: Path) -> None:
    """The number behind `Train` is a batch, and what an epoch ends with is no row of its batches."""
    content, begin = "", "2031-01-02 03:04:05,123 - my_loggers - INFO: "
    for epoch in (1, 2, 3):
        content += f"{begin} Epoch {epoch} begin\n"
        content += "".join(f"{begin}Train {batch}: loss:{2 / epoch}\n" for batch in (100, 200, 300))
        content += f"{begin}Epoch{epoch}:----loss:{900 / epoch}, test loss:{1 / epoch}\n"
    run = run_of(tmp_path, content)
    assert points(run, "loss") == [(step, 2 / ((step - 100) // 300 + 1)) for step in range(100, 1000, 100)]
    assert [step for step, _ in points(run, "eval_loss")] == [300, 600, 900]
    behind = "".join(f"train loss = {5 - i}.5\nloss: {4 - i}.25, Performance is better... saving\n" for i in range(4))
    assert len(run_of(tmp_path, behind).series["loss"]) == 4
