"""`stabtree.Recorder` in a training loop: what it writes, what it refuses, and that it never ends the training."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stabtree import NaNMonitor, NonFiniteError, Recorder, StabtreeError
from stabtree.loaders import load_run, load_runs
from stabtree.run import RUN_HEADER
from tests.conftest import falling


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a log but the headers of its runs, by a parser that knows no NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = path.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line, parse_constant=refuse) for line in lines if line]
    return [row for row in found if RUN_HEADER not in row]


def test_what_is_logged_is_read_back(tmp_path: Path) -> None:
    """Numbers of any kind, NaN and both infinities, as standard JSON; None is left out, and aliases are known."""
    path = tmp_path / "new" / "run.jsonl"
    with Recorder(path) as rec:
        rec.config(dtype="bf16", optimizer="AdamW", lr=math.nan, betas=(0.9, 0.95), path=path)
        rec.log(0, loss=np.float32(2.5), lr=1e-3, eval_loss=None, train_acc=True)
        rec.log(1, {"weight_norm/attn": np.array([3.0])}, loss=math.nan, grad_norm=math.inf)
        rec.log(2, loss=-math.inf, learning_rate=2)
    found = rows(path)
    assert found[0] == {"step": 0, "loss": 2.5, "lr": 1e-3, "train_acc": 1}
    assert found[1] == {"step": 1, "weight_norm/attn": 3.0, "loss": "NaN", "grad_norm": "Infinity"}
    run = load_run(path)
    assert (run.setting("dtype"), run.setting("optimizer")) == ("bf16", "AdamW")
    np.testing.assert_array_equal(run.series["loss"].values, [2.5, math.nan, -math.inf])
    assert run.series["grad_norm"].values.tolist() == [math.inf]
    assert run.series["weight_norm/attn"].steps.tolist() == [1]


def test_text_can_write_no_line_of_its_own(tmp_path: Path) -> None:
    """Line ends, escape codes and lone surrogates in names and texts stay inside their line, as ASCII."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as rec:
        rec.log(0, {'x\n{"step": 9}\x1b[31m': 1.0, "phase": "a\r\nb\ud800"}, loss=1.0)
    assert len(rows(path)) == 1
    assert path.read_bytes().isascii()
    assert b"\x1b" not in path.read_bytes()


def test_what_is_no_number_is_told_once_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The rest of the row is written, and the training goes on; a step that is none costs its row alone."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as rec:
        for step in range(3):
            rec.log(step, {"hist": np.ones(3), "odd": object()}, loss=1.0)  # type: ignore[dict-item]
        rec.log("x", loss=1.0)  # type: ignore[arg-type]
        rec.log(math.nan, loss=1.0)  # type: ignore[arg-type]
        loop: dict[str, Any] = {}
        loop["again"] = loop
        rec.config(loop=loop)
        rec.log(3, loss=2.0)
    assert [row["loss"] for row in rows(path) if "step" in row] == [1.0, 1.0, 1.0, 2.0]
    told = [record.getMessage() for record in caplog.records]
    assert [word in text for word, text in zip(("hist", "odd", "step", "configuration"), told, strict=True)] == [
        True
    ] * 4


class Spiteful:
    """A thing of which nothing can be asked."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __hash__ = __float__ = __int__ = __repr__  # type: ignore[assignment]


@pytest.mark.parametrize(
    "odd", [10**400, -(10**5000), Spiteful(), float, b"\0"], ids=["e400", "e5000", "own", "type", "b"]
)
def test_no_value_ends_a_training(tmp_path: Path, odd: Any) -> None:
    """Whatever is given as a value, a step or a setting, the other rows are written and the log is read."""
    path = tmp_path / "run.jsonl"
    with Recorder(path, on_finding="warn") as rec:
        rec.config(odd=odd)
        rec.log(0, {"odd": odd}, loss=odd)
        rec.log(odd, loss=1.0)
        rec.batch(1, odd)
        rec.log(1, loss=2.0)
    assert rows(path)[-1]["loss"] == 2.0
    assert load_run(path).last_step == 1


def test_a_file_that_was_closed_by_others_ends_no_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither while rows are written nor at the end; it is told."""
    with Recorder(tmp_path / "run.jsonl") as rec:
        os.close(rec._rows._file._descriptor or 0)
        rec.log(0, loss=1.0)
    assert "its end may be lost" in caplog.text


def test_a_run_that_goes_on_appends_and_completes_a_cut_line(tmp_path: Path) -> None:
    """A line that a killed process left half is ended; steps that go back are a restart, and no row is lost."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as rec:
        for step in range(30):
            rec.log(step, loss=2.0 - step / 100, lr=1e-3)
    path.write_bytes(path.read_bytes()[:-12])
    with Recorder(path) as rec:
        for step in range(20, 50):
            rec.log(step, loss=1.5 - step / 100, lr=1e-3)
    run = load_run(path)
    assert run.series["loss"].steps.tolist() == [*range(50)]
    assert run.series["loss"].values[[19, 20]].tolist() == [pytest.approx(1.81), pytest.approx(1.3)]
    assert [(resume.from_step, resume.to_step) for resume in run.resumes] == [(28, 20)]
    assert len(path.read_text(encoding="utf-8").splitlines()) == 62  # and a header of each process


@pytest.mark.parametrize("held", ["step,loss\n1,2\n", "\x89PNG\r\n", "[1, 2]"])
def test_a_file_of_something_else_is_not_written_to(tmp_path: Path, held: str) -> None:
    """A table, a picture, any file but one of JSON lines: refused with two lines, and left as it is."""
    path = tmp_path / "run.csv"
    path.write_bytes(held.encode("latin-1"))
    with pytest.raises(StabtreeError, match="something else than JSON lines"):
        Recorder(path)
    assert path.read_bytes() == held.encode("latin-1")


def test_a_log_that_cannot_be_opened_is_refused_at_once(tmp_path: Path) -> None:
    """Before the training begins, with what to do."""
    for path in (tmp_path, tmp_path / "a\0b", Path("/proc/none/run.jsonl") if os.name == "posix" else tmp_path):
        with pytest.raises(StabtreeError, match="can't be written"):
            Recorder(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full, a disk that is always full")
def test_a_full_disk_ends_no_training(caplog: pytest.LogCaptureFixture) -> None:
    """It is told once, and every call goes on."""
    with Recorder("/dev/full") as rec:
        for step in range(5):
            rec.log(step, loss=1.0)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "No space left" in caplog.text


def test_a_line_cut_by_a_full_disk_is_ended_by_the_next(tmp_path: Path) -> None:
    """What a disk took only half costs that row; the rows after it are whole once there is room again."""
    pytest.importorskip("resource", reason="this system can't limit the size of a file")
    path = tmp_path / "run.jsonl"
    code = f"""
import resource, stabtree
rec = stabtree.Recorder({str(path)!r})
rec.log(0, loss=1.0)
size = rec.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5, resource.RLIM_INFINITY))
rec.log(1, loss=1.0)
rec.log(2, loss=1.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
rec.log(3, loss=1.0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in (lines[1], lines[-1])] == [0, 3]
    assert (len(lines), lines[2]) == (4, '{"ste')


def test_a_killed_process_leaves_every_line_that_was_logged(tmp_path: Path) -> None:
    """Nothing waits in a buffer: after a kill without warning the last row is there, whole."""
    path = tmp_path / "run.jsonl"
    code = f"""
import os, signal, stabtree
rec = stabtree.Recorder({str(path)!r})
for step in range(100):
    rec.log(step, loss=1.0)
os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert [row["step"] for row in rows(path)] == [*range(100)]


def test_what_waits_for_its_row_is_written_at_the_end_of_the_process(tmp_path: Path) -> None:
    """A Recorder that nobody closed writes the batch of the last step when Python ends."""
    path = tmp_path / "run.jsonl"
    code = f"import stabtree\nrec = stabtree.Recorder({str(path)!r})\nrec.log(0, loss=1.0)\nrec.batch(1, [1, 2])\n"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert [row["step"] for row in rows(path)] == [0, 1]
    assert rows(path)[1]["batch_id"] > 0


def test_several_writers_never_mix_within_a_line(tmp_path: Path) -> None:
    """Processes that append to one file at a time leave whole lines, all of them."""
    path = tmp_path / "run.jsonl"
    code = f"""
import stabtree, sys
with stabtree.Recorder({str(path)!r}) as rec:
    for step in range(300):
        rec.log(step, loss=1.0, writer=int(sys.argv[1]), text="x" * 3000)
"""
    writers = [subprocess.Popen([sys.executable, "-c", code, str(number)]) for number in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert sorted((row["writer"], row["step"]) for row in rows(path)) == [
        (n, step) for n in range(3) for step in range(300)
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_writes_nothing(tmp_path: Path) -> None:
    """A worker of a data loader that calls the Recorder of its parent neither writes nor closes its log."""
    path = tmp_path / "run.jsonl"
    code = f"""
import os, stabtree
rec = stabtree.Recorder({str(path)!r})
rec.batch(0, [1])
if not (child := os.fork()):
    rec.log(5, loss=5.0)
    rec.batch(6, [2])
    rec.close()
    raise SystemExit
os.waitpid(child, 0)
rec.log(0, loss=1.0)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8")
    assert [(row["step"], row["loss"]) for row in rows(path)] == [(0, 1.0)]
    assert done.stderr.count("make a Recorder there") == 1


def test_a_copy_is_the_same_and_a_pickle_is_refused(tmp_path: Path) -> None:
    """Whatever holds it may be copied; what would write from another process says what to do instead."""
    with Recorder(tmp_path / "run.jsonl") as rec:
        assert copy.deepcopy({"rec": rec})["rec"] is copy.copy(rec) is rec
        with pytest.raises(StabtreeError, match="make one in each process"):
            pickle.dumps(rec)


@pytest.mark.skipif(sys.platform == "win32", reason="there a log that is written to can't be moved")
def test_a_log_that_was_moved_away_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rotation, or where somebody deleted it, the rows go on under the name, the configuration first."""
    monkeypatch.setattr("stabtree.tools.live.writer.LOOK_SECONDS", 0.0)
    path = tmp_path / "run.jsonl"
    with Recorder(path) as rec:
        rec.config(dtype="fp32")
        rec.config(lr=0.1)
        rec.log(0, loss=1.0)
        path.rename(tmp_path / "run.jsonl.1")
        rec.log(1, loss=1.0)
        path.unlink()
        rec.log(2, loss=1.0)
    assert [row.get("step") for row in rows(tmp_path / "run.jsonl.1")] == [None, 0]
    assert rows(path) == [{"step": 2, "loss": 1.0}]
    headers = [
        json.loads(file.read_text(encoding="utf-8").splitlines()[0]) for file in (path, tmp_path / "run.jsonl.1")
    ]
    assert headers[0]["config"] == {"dtype": "fp32", "lr": 0.1}
    assert headers[0][RUN_HEADER]["id"] == headers[1][RUN_HEADER]["id"]


def test_ranks_write_files_that_are_proved_to_be_one_run(tmp_path: Path) -> None:
    """`run.jsonl`, `run.rank1.jsonl`, ...: read as the ranks of one run, named one by one or by their folder."""
    paths = []
    for rank in range(3):
        with Recorder(tmp_path / "run.jsonl", rank=rank) as rec:
            paths.append(rec.path)
            for step, loss in enumerate(falling(40, seed=rank)):
                rec.log(step, loss=loss)
    assert [path.name for path in paths] == ["run.jsonl", "run.rank1.jsonl", "run.rank2.jsonl"]
    for given in (paths, [tmp_path]):
        (only,) = load_runs(*given)
        assert not isinstance(only.run, StabtreeError)
        assert sorted(only.run.ranks) == ["0", "1", "2"]


def test_what_was_kept_for_a_step_is_in_its_row(tmp_path: Path) -> None:
    """The batch of a step that is logged joins its row, that of another one has a row of its own, in order."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as rec:
        for step in range(4):
            rec.batch(step, {"x": np.full((4, 8), step)})
            if step % 2:
                rec.log(step, loss=1.0)
        rec.batch(9, [1])
        rec.log(4, loss=1.0)
        rec.log(2, loss=1.0)  # gone back
    found = rows(path)
    assert [(row["step"], sorted(row)) for row in found[:4]] == [
        (0, ["batch_id", "step"]),
        (1, ["batch_id", "loss", "step"]),
        (2, ["batch_id", "step"]),
        (3, ["batch_id", "loss", "step"]),
    ]
    assert [row["step"] for row in found[4:]] == [4, 9, 2]


def test_the_same_batch_has_the_same_id_and_others_another(tmp_path: Path) -> None:
    """By what it holds, in every process, micro-batches in their order; what holds nothing has none."""
    path = tmp_path / "run.jsonl"
    big = np.zeros((4096, 64))  # as many rows as values are looked at: not only its first column counts
    other = big.copy()
    other[:, 17] = 1.0
    batches = [{"a": 1, "b": "x"}, {"b": "x", "a": 1}, ("x", 1), [big], [other], np.ones(3, "f4"), np.ones(3)]
    with Recorder(path) as rec:
        for step, batch in enumerate(batches):
            rec.batch(step, batch)
        rec.batch(10, [1])
        rec.batch(10, [2])
        rec.batch(11, [2])
        rec.batch(11, [1])
        rec.batch(12, object())
        rec.log(12, loss=1.0)
    found = {row["step"]: row["batch_id"] for row in rows(path) if "batch_id" in row}
    assert found[0] == found[1] == 253105526327852
    assert len(set(found.values())) == len(found) - 1
    assert sorted(found) == [*range(7), 10, 11]
    assert load_run(path).series["batch_id"].values.tolist() == [*found.values()]


def test_the_monitor_sees_every_row(tmp_path: Path) -> None:
    """NaN in the loss or the gradient counts at its row; under a loss scale an infinite gradient is its business."""
    with Recorder(tmp_path / "run.jsonl") as rec:
        rec.log(0, loss=1.0, grad_norm=1.0)
        rec.log(1, loss=1.0, grad_norm=math.inf, loss_scale=1024.0)
        rec.log(2, loss=1.0, grad_norm=math.inf)
        rec.log(3, loss=math.nan)
        assert (rec.monitor.state.nan_steps, rec.monitor.state.last_good_step) == ([2, 3], 1)
    monitor = NaNMonitor("raise")
    with Recorder(tmp_path / "raise.jsonl", monitor=monitor) as rec, pytest.raises(NonFiniteError):
        rec.log(0, loss=math.nan)
    assert rows(tmp_path / "raise.jsonl") == [{"step": 0, "loss": "NaN"}]


def test_a_monitor_of_several_ranks_is_asked_by_the_loop_alone(tmp_path: Path) -> None:
    """`log` may be called on one rank only, where waiting for the others would never end."""
    monitor = NaNMonitor("raise", sync=lambda bad: bad)
    with Recorder(tmp_path / "run.jsonl", monitor=monitor) as rec:
        rec.log(0, loss=math.nan)
        assert monitor.state.total == 0
        with pytest.raises(NonFiniteError):
            rec.monitor.check_loss(math.nan, 0)


def test_writing_needs_python_alone(tmp_path: Path) -> None:
    """Neither numpy nor torch nor yaml is imported until something is judged or a model is looked at."""
    code = f"""
import sys, stabtree
with stabtree.Recorder({str(tmp_path / "run.jsonl")!r}) as rec:
    rec.config(lr=1.0)
    rec.batch(0, [1])
    rec.log(0, loss=1.0)
print(sorted({{"numpy", "torch", "yaml", "pandas"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8")
    assert done.stdout == "[]\n"


def test_the_rank_is_that_of_torch_distributed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is imported and initialised; it is never imported for that."""

    class Distributed:
        is_available = staticmethod(lambda: True)
        is_initialized = staticmethod(lambda: True)
        get_rank = staticmethod(lambda: 3)

    torch = type(sys)("torch")
    torch.distributed = Distributed  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    with Recorder(tmp_path / "run.jsonl") as rec:
        assert (rec.rank, rec.path.name) == (3, "run.rank3.jsonl")
    with Recorder(tmp_path / "run.jsonl", rank=0) as rec:
        assert rec.path.name == "run.jsonl"
