"""Messages of text logs, and how the runs ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.full import full
from stabtree.report.words import headline
from stabtree.run import Setting
from stabtree.tree.load import load_trees
from tests.leaves.errors import LINES
from tests.leaves.make import logged

if TYPE_CHECKING:
    from pathlib import Path

TREE = load_trees()


@pytest.mark.parametrize("leaf", LINES)
def test_every_message_is_found_with_its_line(leaf: str) -> None:
    """A hand-written line of each kind is reported with its number and its severity."""
    found = diagnose(logged(LINES[leaf]))
    told = [one for item in found.findings for one in (item, *item.also)]
    finding = next((item for item in told if item.leaf.of == TREE.leaves[leaf].of), None)
    assert finding is not None
    assert finding.evidence[0].text.startswith("line 41: ")
    assert finding.leaf.severity in (found.verdict, "warning", "note")


def test_what_the_run_survived_is_a_note() -> None:
    """An error after which rows of metrics go on has not ended the run."""
    found = diagnose(logged(LINES["cuda-oom"], after=30))
    (finding,) = (item for item in found.findings if item.leaf.of == "E.oom")
    assert finding.leaf.id == "cuda-oom-survived"
    assert "survived" in finding.leaf.title
    assert finding.onset_step is None


@pytest.mark.parametrize("line", ["Test Error: ", "Mean Squared Error: 0.31", "Validation Error : 4.2"])
def test_an_error_that_is_measured_is_no_exception(line: str) -> None:
    """What a program measures is called an error as well; one that Python raises still counts."""
    assert not [item for item in diagnose(logged(line)).findings if item.leaf.of == "E.exception"]
    assert [item for item in diagnose(logged("ValueError: 0.31")).findings if item.leaf.of == "E.exception"]


def test_a_log_of_nothing_but_an_error_is_judged() -> None:
    """A run that died before its first row is critical, and never ok."""
    run = logged("Traceback (most recent call last):", LINES["cuda-oom"], rows=0)
    found = diagnose(run)
    assert not run.series
    assert found.verdict == "critical"
    assert found.findings[0].leaf.id == "cuda-oom"
    assert "Healthy" not in full(found)


def test_many_lines_are_bounded_and_counted() -> None:
    """Of lines that differ in digits only the first ones are kept; an escape code does not get through."""
    spam = [f"WARNING: worker {n} is slow, connection {n}" for n in range(5000)]
    run = logged(*spam, "\x1b[31mRuntimeError: \x1b]0;x\x07CUDA out of memory\x1b[0m")
    assert len(run.lines) < 600
    assert any("4,995 more lines" in note for note in run.notes)
    assert all(line.text.isprintable() for line in run.lines)
    assert diagnose(run).verdict == "critical"


@pytest.mark.parametrize(("planned", "survived"), [(40, True), (41, False)])
def test_what_comes_after_the_last_planned_step_did_not_end_the_run(planned: int, survived: bool) -> None:
    """Steps 0 to 39 are all of 40 planned ones, and an exception after them is none of the training's."""
    run = logged("ValueError: could not save the figure")
    assert run.series["loss"].steps[-1] == 39
    found = diagnose(replace(run, config={**run.config, "max_steps": Setting(planned, "args")}))
    leaf = next(item.leaf.id for item in found.findings if item.leaf.of == "E.exception")
    assert leaf.endswith("survived") == survived


CHAIN = (
    ("Traceback (most recent call last):", "KeyError: 'input_ids'"),
    ("During handling of the above exception, another exception occurred:",),
    ("Traceback (most recent call last):", "RuntimeError: the collator got no input_ids"),
    ("Traceback (most recent call last):", "ChildFailedError: train.py FAILED"),
    ("Traceback (most recent call last):", "    except BaseException: raise", "OSError: no such shard"),
)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ((0,), "line 21: KeyError: 'input_ids' (it begins at line 20)"),
        ((0, 1, 2), "line 24: RuntimeError: the collator got no input_ids (it begins at line 20)"),
        ((0, 1, 2, 3), "line 24: RuntimeError"),  # the launcher tells of the consequence
        ((0, 3), "line 21: KeyError"),
        ((4,), "line 22: OSError: no such shard (it begins at line 20)"),
    ],
)
def test_of_a_chain_of_tracebacks_the_last_exception_is_told(tmp_path: Path, parts: tuple[int, ...], told: str) -> None:
    """Neither the head of the first one nor what another program says afterwards."""
    lines = [f"step {step} loss {3 - step / 10:.1f}" for step in range(1, 20)]
    lines += [line for part in parts for line in CHAIN[part]]
    (tmp_path / "a.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = diagnose(load_run(tmp_path / "a.log")).findings[0]
    assert found.leaf.id == "exception"
    assert told in found.evidence[0].text


@pytest.mark.parametrize(
    ("lines", "leaf"),
    [
        (("AssertionError",), "exception"),
        (("container exited with status 137 (OOMKilled)",), "host-memory"),
        (("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",), "gpu-fault"),
        (("Process exited with code 1",), "exit-status"),
        (
            ("slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 12:00 ***", "srun: error: n1: task 0: Terminated"),
            "cancelled",
        ),
        (("slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 12:00 DUE TO TIME LIMIT ***",), "time-limit"),
    ],
)
def test_a_run_that_died_is_not_healthy(lines: tuple[str, ...], leaf: str) -> None:
    """The words of shells, containers, schedulers and the kernel each have their right name."""
    found = diagnose(logged(*lines))
    assert found.findings[0].leaf.id == leaf
    assert found.verdict in ("critical", "warning")


def test_an_exit_status_says_nothing_beside_what_caused_it() -> None:
    """It is the consequence of the exception above it."""
    leaves = {
        part.leaf.id
        for item in diagnose(logged("ValueError: x", "make: *** [train] Error 1")).findings
        for part in item.parts
    }
    assert leaves == {"exception"}


def test_what_a_run_was_started_with_is_not_how_it_ended() -> None:
    """Flags, metrics and handlers that are named after an ending report none."""
    run = logged(
        "{'reached_preemption': False}", "Registered a handler for SIGTERM", "enemies killed: 3", "exit code 0"
    )
    assert diagnose(run).verdict == "ok"


@pytest.mark.parametrize(
    ("rows", "planned", "last", "short"),
    [
        (300, 10_000, "", True),
        (290, 300, "", False),  # the last rows need not be logged
        (300, None, "", False),
        (300, 10_000, "step 300 loss nan", False),
        (300, 10_000, "RuntimeError: CUDA out of memory", False),
        (300, 10_000, "Early stopping at step 299", False),
        (300, 10_000, "WARNING: worker 3 is slow", True),
    ],
)
def test_a_log_that_stops_long_before_the_plan_is_not_judged(
    tmp_path: Path, rows: int, planned: int | None, last: str, short: bool
) -> None:
    """The title gives both steps, where nothing else says why it stops."""
    head = f"max_steps: {planned}" if planned else "seed: 1"
    lines = [head, *(f"step {step} loss {2 - step / 400:.4f} lr 1e-4" for step in range(rows)), last]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    diagnosis = diagnose(load_run(tmp_path / "train.log"))
    found = [item for item in diagnosis.findings if item.leaf.id == "stops-short"]
    assert bool(found) is short
    assert (diagnosis.verdict == "unknown") is short
    assert not diagnosis.partial
    assert ("The log stops at step 299 of 10,000" in headline(diagnosis)) is short
    for item in found:
        assert item.leaf.severity == "note"
        assert item.evidence[0].text == "the log stops at step 299 of 10,000"


def test_the_last_line_of_ones_own_code_is_named(tmp_path: Path) -> None:
    """Not that of an installed package, in which most errors are raised."""
    rows = "".join(f"step {step} loss {3 - step / 100:.3f}\n" for step in range(1, 60))
    path = tmp_path / "train.log"
    path.write_text(
        rows
        + "Traceback (most recent call last):\n"
        + '  File "/home/me/train.py", line 12, in <module>\n    main()\n'
        + '  File "/home/me/model.py", line 48, in step\n    out = self.head(x)\n'
        + '  File "/venv/lib/python3.11/site-packages/torch/linear.py", line 134, in forward\n    return f(x)\n'
        + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x288 and 512x64)\n",
        encoding="utf-8",
    )
    found = diagnose(str(path))
    assert found.findings[0].leaf.id == "exception"
    assert "model.py:48, in step" in found.findings[0].fixes[0]


@pytest.mark.parametrize("line", ["Error: The operation was canceled.", "asyncio.exceptions.CancelledError"])
def test_a_cancelled_job_is_no_error_of_python(tmp_path: Path, line: str) -> None:
    """However it is printed."""
    rows = "".join(f"step {step} loss {3 - step / 100:.3f}\n" for step in range(1, 60))
    path = tmp_path / "train.log"
    path.write_text(f"{rows}{line}\n", encoding="utf-8")
    assert [item.leaf.id for item in diagnose(str(path)).findings][:1] == ["cancelled"]
