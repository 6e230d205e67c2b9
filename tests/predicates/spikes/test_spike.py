"""Spikes that heal, that last, and that are none."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.diagnosis.judged import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import falling, make_run
from tests.leaves.make import healthy
from tests.leaves.precision import leading
from tests.predicates.judged import AT, ROWS, Case, check, loss

TREES = load_trees()
CASES: dict[str, Case] = {
    "a healed spike does not hide the jump after it": (
        {"loss": loss(spike=(700, 5)) + np.where(AT > 740, 1.0, 0)},
        {},
        "spike-persistent",
    ),
    "a blow-up in the last rows does not raise its own bar": (
        {"loss": loss() + np.where(AT >= 980, np.exp(AT.clip(980) - 980.0), 0)},
        {},
        "spike-open",
    ),
    "a tiny step that stays is no persistent spike": (
        {"loss": np.round(falling(ROWS, 0.0), 1) + np.where(AT > 800, 0.02, 0)},
        {},
        "spike-minor",
    ),
    "a jump to 10,000 times the loss is no small one, however often it comes": (
        {"loss": loss() * np.where(AT % 250 == 249, 1e4, 1)},
        {},
        "spike-unexplained",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_that_is_easily_judged_wrong(case: Case) -> None:
    """The worst finding is what an engineer would name, and no finding blames what was not logged."""
    check(case)


def test_a_burst_of_a_loss_beside_a_reward_is_no_spike() -> None:
    """The same burst is one where no reward was logged."""
    loss = falling(600, 0.02)
    loss[400] += 8
    assert diagnose(make_run({"loss": loss})).verdict == "warning"
    found = diagnose(make_run({"loss": loss, "reward": np.linspace(0.1, 0.8, 600)}))
    assert not [finding for finding in found.findings if finding.leaf.id.startswith("spike")]


def test_a_rise_of_the_norm_before_a_spike_is_shown_with_its_lead() -> None:
    """The precursor is confirmed under the spike's leaf, with its lead in steps; without one it is not."""
    cause = next(c for f in diagnose(leading(), TREES).findings for c in f.causes if c.cause.id == "P12.lead")
    assert cause.state is CauseState.CONFIRMED
    assert "by 8 steps" in cause.evidence[0].text
    sudden = make_run(healthy(loss=leading().series["loss"].values))
    cause = next(c for f in diagnose(sudden, TREES).findings for c in f.causes if c.cause.id == "P12.lead")
    assert cause.state is CauseState.NOT_CONFIRMED


@pytest.mark.parametrize(("begin", "asked"), [(0, False), (1, True)])
def test_the_letter_asks_every_step_past_the_hundredth_with_a_hundred_rows_before_it(begin: int, asked: bool) -> None:
    """The 101st row is step 101 where steps begin at 1, and step 100, which is not past 100, where they begin at 0."""
    values = np.tile([1.99, 2.01], 130)
    values[100] = 3.0
    found = diagnose(make_run({"loss": values}, np.arange(260) + begin), TREES, literal=True)
    assert any(finding.onset_step == 100 + begin for finding in found.findings) is asked
