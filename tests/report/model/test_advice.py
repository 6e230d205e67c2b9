"""What to do now: its order, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.result import Fix, Happening, Incident, JudgedCause
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.model.advice import do_now
from stabtree.tree.load import load_trees
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Sequence


def found(name: str) -> tuple[Incident, Sequence[Happening]]:
    """The main finding of a fixture, and what happened around it."""
    run = load_run(FIXTURES / "phase19" / name)
    diagnosis = diagnose(run, load_trees(run))
    return diagnosis.findings[0], diagnosis.timeline


def told(*fixes: str, restart: bool = True, before: int = 0, causes: tuple[JudgedCause, ...] = ()) -> list[str]:
    """What is told of fixes, without the restart; so many steps before its checkpoint something moved."""
    finding, _ = found("fp16-overflow")
    assert finding.restart is not None
    assert finding.restart.checkpoint_step is not None
    events = (Happening(finding.restart.checkpoint_step - before, "weight_norm/a", "grows"),) if before else ()
    kept = finding.restart if restart else None
    made = replace(finding, advice=tuple(map(Fix, fixes)), restart=kept, causes=causes)
    return [action.text for action in do_now(replace(made, departures=events)) if action.fix]


def test_what_mends_comes_before_what_tests_and_that_before_what_to_log() -> None:
    """Whatever order the tree has; of causes that only may be one comes before what to log."""
    fixes = (
        "Log grad_norm at every step.",
        "If the cause is a bad shard: drop it.",
        "If the cause is a bad host: replace that.",
        "Plot the schedule.",
        "Halve the weight decay.",
    )
    assert told(*fixes, restart=False) == [fixes[4], fixes[1], fixes[3]]
    assert told(*fixes[:3], restart=False) == [fixes[1], fixes[0], fixes[2]]


def test_a_fix_that_goes_on_stays_behind_the_one_before_it() -> None:
    """`Mend it` and `Or ...` say nothing alone."""
    fixes = ("Plot the schedule.", "Mend it before the restart.", "Clip the gradient.", "Or lower its peak.")
    assert told(*fixes, restart=False) == ["Clip the gradient.", "Or lower its peak.", "Plot the schedule."]


def test_the_fix_of_a_cause_that_the_log_shows_comes_first() -> None:
    """Even where it only tests: what the log shows is worth more than what helps in general."""
    finding, _ = found("fp16-overflow")
    shown = replace(finding.causes[0], cause=replace(finding.causes[0].cause, fixes=("Look at the batch.",)))
    assert told("Look at the batch.", "Use more data.", causes=(shown,)) == [
        "Look at the batch.",
        "Use more data.",
    ]
    assert told("Look at the batch.", "Use more data.") == ["Use more data.", "Look at the batch."]


@pytest.mark.parametrize(
    ("fix", "left"),
    [
        ("Reload the last checkpoint before the spike.", ""),
        ("Keep the checkpoint from before the rise.", ""),
        ("Take the checkpoint of the lowest eval loss, and stop there next time.", "Stop there next time."),
        ("Halve the rate and restart from before the rise; then wait.", "Halve the rate; then wait."),
        ("Stop the run; restart from before the first bad row.", "Stop the run."),
        ("Reload the last checkpoint and step through one batch by hand (explain Q1.3).", None),
        ("Go back to the checkpoint before the rise with half the rate, and let it decay.", None),
    ],
)
def test_a_fix_does_not_say_again_what_the_restart_says(fix: str, left: str | None) -> None:
    """What it says besides is kept; without a restart all of it is."""
    assert told(fix) == ([fix] if left is None else [left] if left else [])
    assert told(fix, restart=False) == [fix]


@pytest.mark.parametrize("nothing", ["", "the run is broken from its first row"])
def test_before_a_start_from_nothing_the_batch_is_looked_at(nothing: str) -> None:
    """Without a checkpoint the same run breaks again: the check of the batch is first, and the restart last."""
    finding, _ = found("nan-forward")
    assert finding.restart is not None
    back = replace(finding.restart, checkpoint_step=None, nothing=nothing)
    actions = do_now(replace(finding, restart=back, departures=()))
    assert "isfinite on its inputs, its logits and its loss" in actions[0].text
    assert [action.fix == "" for action in actions] == [False, False, True]
    assert do_now(replace(finding, departures=()))[0].fix == ""


def test_to_go_back_further_is_told_where_the_restart_does_not() -> None:
    """Where a series moved before the checkpoint that is advised, that checkpoint is not old enough."""
    fix = "Go back to before the weights left their course, not only to before the loss broke."
    assert told(fix) == []
    assert told(fix, before=5) == [fix]


def test_nothing_is_told_twice_in_other_words() -> None:
    """Neither the same change of a setting, nor the same words about a cause that may be."""
    rate = ("Lower the learning rate (lr 0.1 → 0.05).", "If the cause is noise: halve the peak (lr 0.1 → 0.05).")
    assert told(*rate) == [rate[0]]
    words = "Compute log_softmax(logits) in one call, never log(softmax(x))"
    again = "If the cause is log(0): compute log_softmax(logits) or cross_entropy in one call, never log(softmax(x))."
    assert told(f"{words}.", again, "Use bf16.") == [f"{words}.", "Use bf16."]
