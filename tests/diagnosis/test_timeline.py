"""What the timeline holds besides the series that left their course."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.facts.movers import Move, Movers
from stabtree.loaders import load_run
from stabtree.tree.load import load_trees
from tests.cli.command import run
from tests.conftest import FIXTURES, make_run


def test_the_onset_of_the_finding_is_always_told() -> None:
    """A gradient that climbs for many rows before the loss breaks stands at the row where that began."""
    steps = np.arange(0, 1500, 5)
    noise = np.random.default_rng(3).normal(0, 0.02, len(steps))
    loss = 2.0 * np.exp(-steps / 900) + 0.3 + noise
    grad_norm = 1.0 + np.abs(noise)
    loss[200:] = np.nan
    grad_norm[186:200] = 1.5 ** np.arange(8, 22)
    grad_norm[200:] = np.nan
    diagnosis = diagnose(make_run({"loss": loss, "grad_norm": grad_norm}, steps=steps))
    finding = diagnosis.findings[0]
    assert finding.onset_step is not None
    assert finding.onset_step < 1000
    assert diagnosis.timeline[0].step <= finding.onset_step


def test_what_shows_a_cause_stands_where_it_began() -> None:
    """A loader that repeats its batches long before the spike is the first thing that happened."""
    steps = np.arange(1000)
    loss = np.full(1000, 1.0) + np.random.default_rng(4).normal(0, 0.02, 1000)
    loss[800:806] = 9.0
    batch_id = steps.astype(float)
    batch_id[700:800] = 700.0 - 20 + np.arange(100) % 5
    diagnosis = diagnose(make_run({"loss": loss, "batch_id": batch_id}))
    repeats = [event for event in diagnosis.timeline if event.metric == "batch_id"]
    assert [(event.step, event.first) for event in repeats] == [(700, True)]
    assert diagnosis.timeline[0] is repeats[0]


def test_the_gradient_breaks_where_the_path_says_that_it_does() -> None:
    """Not only from where it is lost for good: both steps are told, and the event stands at the first."""
    run = load_run(FIXTURES / "phase19" / "fp16-overflow")
    found = diagnose(run, load_trees(run))
    assert any("grad_norm broke at step 676" in item.text for item in found.findings[0].evidence)
    broke = [event for event in found.timeline if event.metric == "grad_norm"]
    assert [(event.step, event.text) for event in broke] == [(676, "not finite, for good from step 730 on")]
    assert [event.step for event in found.timeline] == sorted(event.step for event in found.timeline)


@pytest.mark.parametrize(("until", "told"), [(600, True), (250, False)])
def test_a_rate_that_rises_up_to_the_onset_is_told_where_it_is_the_cause(until: int, *, told: bool) -> None:
    """It goes on as it did, so it was not the first to move; a warm-up that was over long before tells nothing."""
    at = np.arange(600)
    loss = np.interp(at, [0, 300, 600], [3.0, 1.0, 3.0]) + 0.02 * np.sin(at * 1.7)
    lr = 1e-3 + 1e-4 * np.minimum(at, until)
    happened = diagnose(make_run({"loss": loss, "lr": lr}, optimizer="adam")).timeline
    rises = [event for event in happened if event.metric == "lr"]
    assert bool(rises) == told
    assert all((event.step, event.first) == (0, False) for event in rises)
    assert all(event.text.startswith("rises 0.001 → 0.0") for event in rises)


@pytest.mark.parametrize(("output", "looks"), [("-q", False), ("--json", True)])
def test_who_moved_first_is_worked_out_for_those_who_tell_it(
    output: str, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line tells the verdict alone, and spares what takes a fifth of a diagnosis."""
    asked: list[int] = []

    def watched(self: Movers, step: int) -> dict[str, Move]:
        asked.append(step)
        return moved(self, step)

    moved = Movers._moved
    monkeypatch.setattr(Movers, "_moved", watched)
    assert run("diagnose", str(FIXTURES / "phase19" / "spike-bad-batch"), output).returncode == 1
    assert bool(asked) == looks
