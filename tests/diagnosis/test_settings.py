"""The configuration of a run judged with its log: settings among the causes, and a line where the log is quiet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.diagnosis.judged import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.run import Setting
from tests.conftest import make_run
from tests.leaves.make import healthy, nan_from, noisy

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run

ADAM = {"optimizer": "adamw", "lr": 3e-4}


def with_settings(run: Run, **settings: Any) -> Run:
    """A run with a configuration."""
    return replace(run, config={key: Setting(value, "manifest.json") for key, value in settings.items()})


def quiet(**settings: Any) -> Diagnosis:
    """The diagnosis of a healthy log with a configuration beside it."""
    columns = {name: values for name, values in healthy().items() if name != "lr"}
    return diagnose(with_settings(make_run(columns), **settings))


def broken(**settings: Any) -> Diagnosis:
    """The diagnosis of a run whose gradient grows until the loss is NaN."""
    columns = {name: values for name, values in healthy().items() if name != "lr"}
    growth = np.where(np.arange(600) >= 290, 2.0 ** np.clip(np.arange(600) - 289, 0, 60), 1.0)
    run = make_run({"loss": nan_from(300, columns["loss"]), "grad_norm": nan_from(300, noisy(1.0) * growth)})
    return diagnose(with_settings(run, **settings))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lr": 0.06}, "lr = 0.06"),
        ({"weight_decay": 10.0}, "weight_decay = 10"),
        ({"beta1": 0.999, "beta2": 0.9}, "wrong order"),
        ({"precisions": "fp16+bf16"}, "both switched on"),
    ],
)
def test_a_quiet_log_says_which_setting_is_unusual(settings: dict[str, Any], words: str) -> None:
    """In one line, which the screen shows; it alarms nobody."""
    found = quiet(**{**ADAM, **settings})
    assert found.verdict == "ok"
    assert len(found.setting_notes) == 1
    assert words in found.setting_notes[0]
    assert "manifest.json" not in found.setting_notes[0]
    assert found.setting_notes[0][:40] in found.to_text()
    assert found.setting_notes[0] in found.to_dict()["notes"]


@pytest.mark.parametrize(
    "settings", [{}, {"weight_decay": 0.1}, {"warmup_steps": 0}, {"grad_clip": 0.0}, {"checkpoint_every": 10**6}]
)
def test_a_quiet_log_says_nothing_of_what_is_usual_or_past(settings: dict[str, Any]) -> None:
    """A warm-up that is over, or how often a run was saved, decides nothing any more."""
    assert not quiet(**{**ADAM, **settings}).setting_notes


def test_a_setting_that_explains_a_failure_is_a_cause_with_its_number() -> None:
    """And its fix comes first."""
    found = broken(optimizer="adamw", lr=0.06)
    incident = found.findings[0]
    assert incident.causes[0].state is CauseState.LIKELY
    assert "0.06 →" in incident.fixes[0]
    assert not found.setting_notes


def test_two_causes_that_lower_the_same_setting_are_one() -> None:
    """A screen names one rate."""
    incident = broken(optimizer="adamw", lr=0.06).findings[0]
    rates = [item for item in incident.causes if item.cause.fixes and "lr 0.06" in item.cause.fixes[0]]
    assert len(rates) == 1


def test_both_precisions_are_a_cause_of_a_nan() -> None:
    """Which of the two the trainer took is open, so it is no proof."""
    causes = {item.cause.id: item.state for item in broken(**ADAM, precisions="fp16+bf16").findings[0].causes}
    assert causes["C38.cause"] in (CauseState.LIKELY, CauseState.POSSIBLE)


@pytest.mark.parametrize(("decay", "named"), [(10.0, True), (0.31, False)])
def test_a_weight_decay_counts_where_it_removes_much_of_a_weight(decay: float, named: bool) -> None:
    """0.31 at a rate of 1e-5 removes 0.2% in 600 steps: whatever happened, that was not it."""
    loss = 5.0 + 0.01 * np.random.default_rng(1).normal(size=600)
    run = make_run({"loss": loss, "grad_norm": noisy(1.0)})
    found = diagnose(with_settings(run, optimizer="adamw", lr=1e-3 if named else 1e-5, weight_decay=decay))
    causes = {item.cause.id for item in found.findings[0].causes}
    assert ("C29.cause" in causes) is named
