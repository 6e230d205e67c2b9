"""The incidents of a run: which one leads, what followed from it, and from before which the restarts are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.json import to_dict
from stabtree.report.screen import screen
from stabtree.tree.load import load_trees
from stabtree.tree.model import Take
from tests.conftest import FIXTURES, make_run
from tests.leaves.make import AT, healthy

if TYPE_CHECKING:
    from pathlib import Path

RUNS = [folder for tree in ("phase19", "convergence") for folder in sorted((FIXTURES / tree).iterdir())]


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_every_restart_lies_before_what_harmed_the_weights(folder: Path) -> None:
    """Before the incident itself, and before every other one that asks for a restart and lasts."""
    run = load_run(folder)
    found = diagnose(run, load_trees(run)).findings
    harmful = [item for item in found if item.restart and item.leaf.take in (Take.BEFORE, Take.LOW)]
    harmful = [item for item in harmful if item.leaf.lasting]
    for item in found:
        if item.restart is None or item.restart.take is not Take.BEFORE:
            continue
        step = item.restart.checkpoint_step
        step = item.restart.up_to_step if step is None else step
        own = () if item.leaf.take is Take.NEWEST else (item,)
        for other in (*own, *harmful):
            assert step is None or other.onset_step is None or step <= other.onset_step


def test_what_drives_training_leads_and_what_it_led_to_follows() -> None:
    """Answers grow to their longest before no prompt teaches anything."""
    at = np.arange(90)
    columns = {
        "reward": np.minimum(0.3 + at / 40, 1.0),
        "frac_reward_zero_std": np.where(at >= 40, 1.0, 0.3 + 0.1 * np.sin(at)),
        "completion_length": np.where(at >= 20, 40.0, 8.0 + np.sin(at)),
        "clipped_ratio": np.where(at >= 20, 1.0, 0.0),
    }
    found = diagnose(make_run(columns, max_completion_length=40))
    assert found.findings[0].leaf.id == "length-hacking"
    assert "no-advantage" in [item.leaf.id for item in found.findings[0].consequences]
    assert "What followed: " in screen(found)


def test_what_lasts_to_the_end_leads_what_the_run_came_back_from() -> None:
    """Of two warnings the open one is the verdict, whichever came first."""
    spiked = healthy()["loss"][::-1] + np.where((AT >= 100) & (AT < 104), 30.0, 0.0)
    found = diagnose(make_run(healthy(loss=spiked)))
    first = found.findings[0]
    assert first.open
    assert all(first.leaf.severity.rank >= item.leaf.severity.rank for item in found.findings)


def test_the_rows_that_show_an_incident_are_those_of_the_log() -> None:
    """The last good one, the onset, the worst, and the end, each with its values."""
    loss = healthy()["loss"] + np.where(AT >= 411, 3.0, 0.0) + np.where(AT == 420, 5.0, 0.0)
    found = diagnose(make_run(healthy(loss=loss)))
    rows = {row.what: row for row in found.findings[0].rows}
    assert [rows[what].step for what in ("last good", "onset", "worst", "end")] == [410, 411, 420, 599]
    assert all(row.values["loss"] == loss[row.step] for row in rows.values())
    assert [row["step"] for row in to_dict(found)["findings"][0]["rows"]] == [410, 411, 420, 599]


def test_nothing_came_back_that_is_restarted() -> None:
    """A spike is over or it is not: one screen never says both."""
    for height in (0.0, 0.05, 0.1, 0.2, 0.5, 1.0):
        loss = healthy()["loss"] + np.where((AT >= 300) & (AT < 304), 4.0, 0.0) + np.where(AT >= 304, height, 0.0)
        text = screen(diagnose(make_run(healthy(loss=loss))))
        assert "It came back:" not in text or "Restart from" not in text
