"""Where a NaN began."""

from __future__ import annotations

import numpy as np
import pytest

from tests.predicates.judged import AT, Case, check, loss, nan_from

CASES: dict[str, Case] = {
    "a gradient that explodes slowly": (
        {"loss": loss(nan_from=900), "grad_norm": nan_from(900, np.exp(np.clip(AT - 600, 0, 300) / 43))},
        {"dtype": "fp32"},
        "nan-backward",
    ),
    "a grad_norm logged after clipping proves nothing": (
        {"loss": loss(nan_from=900), "grad_norm": nan_from(900)},
        {"dtype": "fp32"},
        "nan-unlocated",
    ),
    "a loss that explodes before it breaks": (
        {"loss": nan_from(900, loss() * np.exp(np.clip(AT - 850, 0, 50) / 3)), "grad_norm": nan_from(900)},
        {"dtype": "fp32"},
        "nan-backward",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_that_is_easily_judged_wrong(case: Case) -> None:
    """The worst finding is what an engineer would name, and no finding blames what was not logged."""
    check(case)
