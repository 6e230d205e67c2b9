"""Mixed precision: the loss scale, overflow, and what is neither."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.facts.scale import ScaleHistory
from stabtree.predicates import PREDICATES
from tests.conftest import facts_of, make_run
from tests.predicates.judged import AT, NOISY, ONES, Case, check, loss, lowered, nan_from

CASES: dict[str, Case] = {
    "dead in fp16 with a scale that never moved": (
        {"loss": loss(nan_from=900), "loss_scale": ONES * 65536, "grad_norm": nan_from(900)},
        {"dtype": "fp16"},
        "scale-constant",
    ),
    "dead in fp16, grad_norm blank from then on": (
        {"loss": loss(nan_from=900), "loss_scale": ONES * 65536},
        {"dtype": "fp16"},
        "scale-constant",
    ),
    "a scale that collapses though no grad_norm was logged": (
        {"loss": loss(), "loss_scale": lowered(600, 40)},
        {"dtype": "fp16"},
        "scale-collapse",
    ),
    "a scale on its floor, overflow after overflow": (
        {"loss": loss(), "loss_scale": lowered(600, 16), "grad_norm": nan_from(600)},
        {"dtype": "fp16"},
        "scale-collapse",
    ),
    "a scale that found its level at the start": (
        {"loss": loss(), "loss_scale": 65536.0 * 0.5 ** np.clip(20 - AT, 0, 20), "grad_norm": ONES},
        {"dtype": "fp16"},
        "healthy",
    ),
    "overflows at the start, a structural NaN at 900": (
        {
            "loss": loss(nan_from=900),
            "grad_norm": np.where(AT < 5, np.inf, nan_from(900, NOISY)),
            "loss_scale": np.where(AT < 5, 65536.0 / 2 ** AT.clip(0, 5), 4096.0),
        },
        {"dtype": "fp16"},
        "nan-forward",
    ),
    "bf16 with the placeholder scale 1": (
        {"loss": loss(), "loss_scale": ONES, "grad_norm": np.where(AT == 500, np.inf, 1.0)},
        {"dtype": "bf16"},
        "grad-nonfinite",
    ),
    "gradients that break though nothing names the dtype": (
        {"loss": loss(), "grad_norm": nan_from(500)},
        {},
        "grad-nonfinite",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_that_is_easily_judged_wrong(case: Case) -> None:
    """The worst finding is what an engineer would name, and no finding blames what was not logged."""
    check(case)


def test_a_scale_at_the_end_of_its_format_has_no_more_halvings() -> None:
    """From 2^16 to the smallest normal number of fp32 are 142 of them, whatever is logged below."""
    scale = np.where(AT < 750, 2.0 ** (16 - np.clip(AT - 500, 0, 165.0)), 0.0)
    history = facts_of(make_run({"loss": loss(), "loss_scale": scale})).get("scale")
    assert isinstance(history, ScaleHistory)
    assert (history.drops, round(history.net_halvings), history.lowest) == (142, 142, 0.0)


def test_a_broken_loss_leaves_open_whose_nan_it_is() -> None:
    """No scale helps where no gradient is finite, but a NaN loss may be an overflow of the forward pass."""
    scale = np.where(AT < 750, 2.0 ** (16 - np.clip(AT - 499, 0, 165.0)), 0.0)
    columns = {"loss": loss(nan_from=500), "loss_scale": scale, "grad_norm": nan_from(500)}
    asked = PREDICATES["no_scale_helps"].ask(facts_of(make_run(columns, dtype="fp16")), {"min_scale": 1e-6})
    assert asked.verdict == "possible"


def test_a_scale_that_keeps_falling_falls_from_its_first_lower_row_on() -> None:
    """Not from the last row at its top."""
    scale = 65536.0 * 0.5 ** np.clip((AT - 499) // 40, 0, 12)
    asked = PREDICATES["scale_drifts_down"].ask(
        facts_of(make_run({"loss": loss(), "loss_scale": scale})), {"octaves": 4, "late_halvings": 2}
    )
    assert (asked.verdict, asked.last_good_step, asked.onset_step) == ("yes", 538, 539)
