"""Whether a run began from scratch, by its configuration and its first rows."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.context.find import context_of
from tests.conftest import make_run
from tests.facts.context import known


@pytest.mark.parametrize(
    ("config", "phase"),
    [
        ({"init_from": "scratch"}, "from scratch"),
        ({"init_from": "resume"}, "continued"),
        ({"init_from": "gpt2-xl"}, "fine-tune"),
        ({"init_from": "some/model", "adapter": "lora"}, "LoRA"),
        ({"init_from": "some/model", "lora_rank": 16}, "LoRA"),
        ({"adapter": "full"}, "fine-tune"),
        ({}, None),
    ],
)
def test_a_phase_is_configured(config: dict[str, object], phase: str | None) -> None:
    """An adapter says more than the model that it is put on."""
    assert known("step, loss", **config).phase.value == phase


@pytest.mark.parametrize(("first", "phase"), [(10.4, "from scratch"), (2.1, "fine-tune"), (7.0, None)])
def test_a_first_loss_shows_whether_the_model_was_trained_before(first: float, phase: str | None) -> None:
    """Near ln(vocabulary) it was not, far below it was; in between it is open."""
    run = make_run({"loss": np.linspace(first, 1.0, 50)}, vocab_size=32_000)
    assert context_of(run).phase.value == phase


def test_a_late_first_row_shows_no_phase_by_its_loss() -> None:
    """What lies below a guess after 500 steps may have been learned in them."""
    run = make_run({"loss": np.linspace(2.0, 1.0, 50)}, steps=500 * np.arange(1, 51), vocab_size=128)
    assert context_of(run).phase.value is None


def test_a_log_that_begins_late_goes_on_with_another() -> None:
    """The steps before it were trained, and logged elsewhere."""
    run = make_run({"loss": np.linspace(2.0, 1.0, 50)}, steps=5000 + 10 * np.arange(50))
    found = context_of(run).phase
    assert (found.value, found.why) == ("continued", "the log begins at step 5,000")
