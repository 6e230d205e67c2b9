"""What to do: what helps most against the cause comes first, and nothing that this run has done already."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.walk import diagnose
from tests.conftest import falling, make_run
from tests.measures.judged import AT, ROWS, loss

ONES, STILL, BROKEN, RISING = np.ones(ROWS), 2.3 + (falling(ROWS) - 4) / 1e3, loss(nan_from=650), loss(rise=(300, 30))
JUMPED = loss(spike=(500, 4)) + np.where(AT > 500, 0.5, 0)
BACKING_OFF = 65536 / 2.0 ** np.clip(AT - 640, 0, 30)
NORM = np.where(AT < 295, 1.0, 1e4)
CONFIRMED, LIKELY, POSSIBLE = CauseState.CONFIRMED, CauseState.LIKELY, CauseState.POSSIBLE
MADE = [
    ({"loss": JUMPED, "lr": np.where(AT < 497, 1e-3, 1e-2)}, {}, "lr-jump", CONFIRMED, "fix-schedule", "lower-lr"),
    ({"loss": STILL, "lr": 1e-9 * ONES}, {"optimizer": "adamw"}, "lr-too-low", CONFIRMED, "raise-lr", "lower-lr"),
    ({"loss": RISING, "lr": ONES}, {"optimizer": "adam"}, "lr-too-high", LIKELY, "lower-lr", "raise-lr"),
    ({"loss": BROKEN, "loss_scale": BACKING_OFF}, {"dtype": "fp16"}, "fp16-overflow", LIKELY, "use-bf16-or-fp32", ""),
    ({"loss": BROKEN}, {"dtype": "fp32"}, "loss-numerics", POSSIBLE, "locate-nan", "use-bf16-or-fp32"),
    (
        {"loss": RISING, "grad_norm": NORM},
        {"grad_clip": 1.0},
        "lr-too-high",
        POSSIBLE,
        "lower-lr",
        "clip-gradients",
    ),
]


@pytest.mark.parametrize(("columns", "config", "cause", "state", "first", "never"), MADE)
def test_what_to_do_follows_from_the_cause(
    columns: dict[str, Any], config: dict[str, Any], cause: str, state: CauseState, first: str, never: str
) -> None:
    """A proven cause is mended and not tested for, a restart is told, and nothing to log is of other kinds of runs."""
    run = make_run(columns, **config)
    found = diagnose(run).findings[0]
    assert (found.causes[0].cause.id, found.causes[0].state) == (cause, state)
    assert found.undecided is (state is POSSIBLE)
    kinds = [action.kind for action in found.actions]
    assert kinds[0] == first
    assert never not in kinds
    texts = [text for action in found.actions for text in (action.text, *(then for _, then in action.branches))]
    assert not [text for text in texts if {"{", "}", "…"} & {*text}]
    assert ("restart-from-before" in kinds) is (found.restart is not None)
    assert not [name for name in found.log_next if run.has(name) or name == "value_loss"]
