"""Mixed precision: the loss scale, overflow, and what is neither."""

from __future__ import annotations

import numpy as np
import pytest

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
