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
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stabtree import Recorder, StabtreeError
from stabtree.loaders import load_run, load_runs
from stabtree.run import RUN_HEADER
from tests.conftest import falling

NAN = math.nan
MOVABLE = pytest.mark.skipif(sys.platform == "win32", reason="there a log that is written to can't be moved")


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a log but the headers of its runs, by a parser that knows no NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = path.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line, parse_constant=refuse) for line in lines if line]
    return [row for row in found if RUN_HEADER not in row]


def process(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A process of Python that runs some code."""
    words = [sys.executable, "-c", f"import os, signal, sys, stabtree\n{code}", *arguments]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")


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
    assert run.series["weight_norm/attn"].steps.tolist() == [1]


def test_text_can_write_no_line_of_its_own(tmp_path: Path) -> None:
    """Line ends, escape codes and lone surrogates in names and texts stay inside their line, as ASCII."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as rec:
        rec.log(0, {'x\n{"step": 9}\x1b[31m': 1.0, "phase": "a\r\nb\ud800"}, loss=1.0)
    assert len(rows(path)) == 1
    assert path.read_bytes().isascii()
    assert b"\x1b" not in path.read_bytes()


class Spiteful:
    """A thing of which nothing can be asked."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __hash__ = __float__ = __int__ = __repr__  # type: ignore[assignment]


@pytest.mark.parametrize(
    "odd",
    [10**400, -(10**5000), Spiteful(), float, b"\0", np.ones(3), NAN],
    ids=["e400", "e5000", "own", "type", "b", "many", "nan"],
)
def test_no_value_ends_a_training(tmp_path: Path, odd: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is given as a value, a step or a setting is reported once, and the other rows are written."""
    path, loop = tmp_path / "run.jsonl", dict[str, Any]()
    loop["again"] = loop
    with Recorder(path, on_finding="warn") as rec:
        rec.config(loop=loop)
        rec.config(odd=odd)
        for step in range(3):
            rec.log(step, {"odd": odd}, loss=2.0)
            rec.log(odd, loss=1.0)
        rec.batch(1, odd)
        rec.log(3, loss=2.0)
    assert [row["step"] for row in rows(path) if "loss" in row] == [0, 1, 2, 3]
    assert load_run(path).last_step == 3
    told = [record.getMessage() for record in caplog.records]
    assert len([text for text in told if "is no step" in text]) == 1
    assert len([text for text in told if "odd is no number" in text]) == (odd is not NAN)


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


@pytest.mark.parametrize("wrong", [{"rank": -1}, {"rank": "1"}, {"stats_every": 0.5}])
def test_an_argument_that_makes_no_sense_is_refused_at_once(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """Before the training begins."""
    with pytest.raises(StabtreeError, match=f"^Recorder: {[*wrong][-1]}: "):
        Recorder(tmp_path / "run.jsonl", **wrong)


def test_a_file_that_was_closed_by_others_ends_no_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither while rows are written nor at the end; it is told."""
    with Recorder(tmp_path / "run.jsonl") as rec:
        os.close(rec._rows._file._descriptor)
        rec.log(0, loss=1.0)
    assert "its end may be lost" in caplog.text


def test_a_line_cut_by_a_full_disk_is_ended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, and costs that row; the rows after it are whole once there is room again."""
    path, write = tmp_path / "run.jsonl", os.write
    room = iter([5])

    def full(descriptor: int, data: Any) -> int:
        if size := next(room, 0):
            return write(descriptor, data[:size])
        raise OSError(28, "No space left on device")

    with Recorder(path) as rec:
        rec.log(0, loss=1.0)
        with monkeypatch.context() as disk:
            disk.setattr(os, "write", full)
            rec.log(1, loss=1.0)
            rec.log(2, loss=1.0)
        rec.log(3, loss=1.0)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in (lines[1], lines[-1])] == [0, 3]
    assert (len(lines), lines[2]) == (4, '{"ste')
    assert caplog.text.count("No space left") == 1


def test_processes_that_are_killed_leave_whole_lines(tmp_path: Path) -> None:
    """Nothing waits in a buffer, and several that append to one file at a time never mix within a line."""
    path = tmp_path / "run.jsonl"
    code = f"""
rec = stabtree.Recorder({str(path)!r})
for step in range(300):
    rec.log(step, loss=1.0, writer=int(sys.argv[1]), text="x" * 3000)
os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
"""
    for writer in [process(code, str(number)) for number in range(2)]:
        writer.communicate()
    found = sorted((row["writer"], row["step"]) for row in rows(path))
    assert found == [(number, step) for number in range(2) for step in range(300)]


def test_a_recorder_that_nobody_closed_writes_what_waits_and_needs_python_alone(tmp_path: Path) -> None:
    """Neither it nor its monitor imports numpy, torch or yaml until something is judged or a model is looked at."""
    path = tmp_path / "run.jsonl"
    code = f"""
rec = stabtree.Recorder({str(path)!r})
rec.config(lr=1.0)
rec.log(0, loss=1.0)
rec.batch(1, [1, 2])
stabtree.NaNMonitor().check_loss(1.0, 0)
print(sorted({{"numpy", "torch", "yaml", "pandas", "rich"}} & sys.modules.keys()))
"""
    assert process(code).communicate() == ("[]\n", "")
    assert [row["step"] for row in rows(path)] == [0, 1]
    assert rows(path)[1]["batch_id"] > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_writes_nothing(tmp_path: Path) -> None:
    """A worker of a data loader that calls the Recorder of its parent neither writes nor closes its log."""
    path = tmp_path / "run.jsonl"
    code = f"""
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
    _, told = process(code).communicate()
    assert [(row["step"], row["loss"]) for row in rows(path)] == [(0, 1.0)]
    assert told.count("make a Recorder there") == 1


def test_a_copy_is_the_same_and_a_pickle_is_refused(tmp_path: Path) -> None:
    """Whatever holds it may be copied; what would write from another process says what to do instead."""
    with Recorder(tmp_path / "run.jsonl") as rec:
        assert copy.deepcopy({"rec": rec})["rec"] is copy.copy(rec) is rec
        with pytest.raises(StabtreeError, match="make one in each process"):
            pickle.dumps(rec)


@MOVABLE
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
    headers = [json.loads(file.read_bytes().splitlines()[0]) for file in (path, tmp_path / "run.jsonl.1")]
    assert headers[0]["config"] == {"dtype": "fp32", "lr": 0.1}
    assert headers[0][RUN_HEADER]["id"] == headers[1][RUN_HEADER]["id"]


def test_ranks_write_files_that_are_proved_to_be_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run.jsonl`, `run.rank1.jsonl`, ...: read as the ranks of one run; the rank is that of torch.distributed."""
    known = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 2)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(distributed=known))
    paths = []
    for rank in (0, 1, None):
        with Recorder(tmp_path / "run.jsonl", rank=rank) as rec:
            paths.append(rec.path)
            for step, loss in enumerate(falling(40, seed=rank or 0)):
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
    found = [(row["step"], "batch_id" in row, "loss" in row) for row in rows(path)]
    assert found[:4] == [(step, True, step % 2 == 1) for step in range(4)]
    assert [step for step, *_ in found[4:]] == [4, 9, 2]


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
        for step, part in ((10, 1), (10, 2), (11, 2), (11, 1)):
            rec.batch(step, [part])
        rec.batch(12, object())
        rec.log(12, loss=1.0)
    found = {row["step"]: row["batch_id"] for row in rows(path) if "batch_id" in row}
    assert found[0] == found[1] == 253105526327852
    assert len(set(found.values())) == len(found) - 1
    assert sorted(found) == [*range(7), 10, 11]
    assert load_run(path).series["batch_id"].values.tolist() == [*found.values()]
