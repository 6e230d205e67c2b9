"""The table of endings: each line that it gives as an example, and lines of ordinary logs."""

from __future__ import annotations

import re
import time

import pytest

from stabtree.common.endings import ending_of, is_failure, table
from stabtree.tree.load import load_tree

EXAMPLES = [(name, line) for name, lines in table().examples.items() for line in lines]
ORDINARY = (
    "{'loss': 1.0, 'reached_preemption': False}",
    "preempted: False",
    "WARNING Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode",
    "Job 3 was not preempted",
    "enemies killed: 3",
    "The player was Killed by the monster",
    "process hangup detection is enabled",
    "train Error 1 0.5",
    "Test Error: 0.1",
    "Mean Squared Error: nan",
    "loss: MeanSquaredError",
    "except ImportError:",
    "except torch.cuda.OutOfMemoryError:",
    "except Exception:",
    "Registered SIGTERM handler",
    "INFO: installing signal handlers for SIGTERM and SIGINT",
    "Process finished with exit code 0",
    "return code: 0.5",
    "slurmstepd: error: Exceeded step memory limit at some point.",
    "State: COMPLETED",
    "Terminated after 100 episodes",
    "Epoch 3 signal: 9",
    "EarlyStopping counter: 3 out of 10",
    "early_stopping: True",
    "Training is finished in epoch: False",
)


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_an_example_has_its_ending(name: str, line: str) -> None:
    """It is kept by its words, is of no other ending, and marks a log that holds nothing else."""
    assert re.search(table().words, line, re.IGNORECASE)
    assert ending_of(line) == name
    assert bool(table().any.search(f"first line\n{line}\nlast line")) is is_failure(name)


@pytest.mark.parametrize("line", ORDINARY)
def test_an_ordinary_line_has_no_ending(line: str) -> None:
    """Words of endings in prose, in settings and in names of metrics report none."""
    assert not is_failure(ending_of(line))


def test_every_ending_has_its_question() -> None:
    """But for failures that other questions name by their message, and the planned end."""
    questions = load_tree("errors").questions
    asked = {question.params.get("ending") for question in questions.values()} - {None}
    assert questions["E.exit-status"].test == "failed_without_reason"
    assert asked | {"exit-status"} == table().patterns.keys() - {"failure", "finished"}


def test_many_empty_lines_are_searched_once() -> None:
    """What may stand before a word is looked for in its line, not from each empty line to the end of all."""
    empty = "hello\n" + "\n" * 20_000
    began = time.process_time()
    assert table().any.search(empty) is None
    assert table().any.search(f"{empty}  Killed\n") is not None
    assert time.process_time() - began < 20
