"""Spikes that heal, that last, and that are none."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from tests.conftest import falling, make_run
from tests.predicates.judged import AT, ROWS, Case, check, loss

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
