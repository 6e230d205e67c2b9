"""Messages of text logs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.screen.full import full
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
    assert [item.leaf.id for item in found.findings if item.leaf.of == "E.oom"] == ["cuda-oom-survived"]


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
