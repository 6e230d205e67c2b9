"""The table of endings and its grammar: each line that the table gives as an example, and lines of ordinary logs."""

from __future__ import annotations

import re
import time

import pytest

from stabtree.common.endings import FINISHED, UNCLEAR, ending_of, endings_of, table
from stabtree.tree.load import load_tree

EXAMPLES = [(name, line) for name, lines in table().examples.items() for line in lines]
# Not the planned end, and what no line at any other place than the end may report.
ORDINARY = (
    "{'loss': 1.0, 'reached_preemption': False}",
    "preempted: False",
    "WARNING Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode",
    "Job 3 was not preempted",
    "enemies killed: 3",
    "process hangup detection is enabled",
    "train Error 1 0.5",
    "Test Error: 0.1",
    "Mean Squared Error: nan",
    "loss: MeanSquaredError",
    "except ImportError:",
    "except torch.cuda.OutOfMemoryError:",
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
    "12 passed, 0 failed in 3 s",
    "errors=0 warnings=3",
    "1234 train COMPLETED 0:0",
    "word error rate 0.07, failure rate 0.0",
    "restartPolicy: OnFailure, max_failures: 3, abort_on_nan=True",
    "dead neurons 3%",
    "worker 3 died, restarted as pid 5521",
    "Download failed, trying mirror",
    "Optimization terminated successfully.",
    "Patience ran out after 10 evaluations without improvement",
    "| trial_1 | TERMINATED | 7000 |",
    '    raise RuntimeError("Loss is NaN, stopping training")',
)


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_an_example_has_its_ending(name: str, line: str) -> None:
    """It is kept by its words, and is of no other ending."""
    assert re.search(table().words, line.lower())
    assert ending_of(line, last=True) == name


@pytest.mark.parametrize("line", ORDINARY)
def test_an_ordinary_line_has_no_ending(line: str) -> None:
    """Words of endings in prose, in settings and in names of metrics report none, also in the last line."""
    assert ending_of(line, last=True) in ("", FINISHED)


def test_words_count_only_in_the_last_lines() -> None:
    """What failed while training went on did not end it, unless a program or a machine says so in its own form."""
    assert ending_of("heartbeat lost", last=True) == UNCLEAR
    assert ending_of("heartbeat lost") == ""
    assert ending_of("Process exited with code 1") == "exit-status"


def test_every_ending_has_its_question() -> None:
    """But for failures that other questions name by their message, what is left open, and the planned end."""
    questions = load_tree("errors").questions
    asked = {question.params.get("ending") for question in questions.values()} - {None}
    assert questions["E.exit-status"].test == "failed_without_reason"
    assert asked | {"exit-status", "failure", "finished", UNCLEAR} == table().examples.keys()


def test_a_long_line_takes_no_longer_than_its_length() -> None:
    """What may stand before a word, or between two, has a bound."""
    began = time.process_time()
    for piece in ("failed job ", "exit code ", "time memory ", "a: ", "  ", "job ", "0 ", "[", "x" * 300):
        endings_of((piece * 400)[:400])
        ending_of((piece * 400)[:400], last=True)
    assert time.process_time() - began < 5
