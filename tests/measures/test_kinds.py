"""What whole kinds of runs are told: the finding that leads, its onset and its severity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import make_run

TREES = load_trees()
RANK = ("ok", "note", "warning", "critical")


def noise(rows: int, size: float, seed: int = 3) -> Any:
    """Normal noise."""
    return np.random.default_rng(seed).normal(0, size, rows)


def falls(rows: int, seed: int = 3) -> Any:
    """A loss that falls from 3 to 0.6 within the first half of its rows, and scatters by 0.03."""
    return 0.6 + 2.4 * np.exp(-np.arange(rows) / (rows / 4)) + noise(rows, 0.03, seed)


def early() -> Any:
    """A loss that jumps to several times its level in its first rows."""
    values = falls(500)
    values[[4, 9, 17, 23]] *= (4, 6, 5, 5)
    return values


def flat(rows: int) -> Any:
    """A loss at 1.7 in its noise."""
    return 1.7 + noise(rows, 0.1)


ZIGZAG = np.array((3.1, 2.2, 2.45, 2.0, 2.25, 1.85))
KINDS = {
    # name: (series, leaf or nothing, earliest and latest onset, verdict)
    "several early spikes": ({"loss": early()}, "spike-minor", (4, 4), "note"),
    "a climb up to the end": (
        {"loss": 2.0 + np.maximum(np.arange(140) - 90, 0) * 0.018 + noise(140, 0.04)},
        "slow-rise",
        (88, 98),
        "warning",
    ),
    "both losses in the last of six epochs": (
        {"loss": np.array((1.9, 1.55, 1.3, 1.18, 1.1, 4.9)), "eval_loss": np.array((2, 1.7, 1.45, 1.36, 1.3, 4.6))},
        "spike-open",
        (5, 5),
        "warning",
    ),
    "six rows that alternate on their way down": ({"loss": ZIGZAG, "eval_loss": 1.05 * ZIGZAG}, "", (0, 0), "ok"),
    "rows that only alternate": ({"loss": np.resize((1.5, 0.5), 30)}, "not-shown", None, "note"),
    "a rate of 0, the loss flat": ({"loss": flat(60), "lr": np.zeros(60)}, "lr-zero", (0, 0), "warning"),
    "a rate of 0, the loss falls": ({"loss": falls(60), "lr": np.zeros(60)}, "lr-zero-elsewhere", (0, 0), "note"),
    "a rate below 0": ({"loss": flat(60), "lr": np.full(60, -1e-4)}, "lr-zero", (0, 0), "warning"),
    "an eval loss that is a placeholder": (
        {"loss": 0.8 - 0.015 * np.arange(20), "eval_loss": np.full(20, 1e4)},
        "",
        (0, 0),
        "ok",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_told_as_what_it_is(kind: str) -> None:
    """The leading finding, its onset and the verdict follow from the numbers."""
    series, leaf, onset, verdict = KINDS[kind]
    found = diagnose(make_run(series), TREES)
    leads = found.findings[0] if found.findings else None
    assert (found.verdict, leads.leaf.id if leads else "") == (verdict, leaf)
    if leads and onset:
        assert leads.onset_step is not None
        assert onset[0] <= leads.onset_step <= onset[1]


@pytest.mark.parametrize("rows", [150, 300, 1000])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("gradient", [False, True])
def test_more_spikes_never_read_as_healthier(rows: int, width: int, gradient: bool) -> None:
    """Of one log with 1 to 22 spikes of 15 sigma the severity never falls; the onset is the first of them."""
    told = []
    for count in (1, 3, 5, 8, 12, 22):
        if count * (width + 2) > 0.6 * rows:
            break
        loss, grad_norm = falls(rows, 5), 1 + noise(rows, 0.1)
        tops = np.linspace(0.2 * rows, 0.95 * rows, count + 2)[1:-1].astype(int)
        for top in tops:
            loss[top : top + width] += 15 * 0.03
            grad_norm[top : top + width] *= 12
        found = diagnose(make_run({"loss": loss} | ({"grad_norm": grad_norm} if gradient else {})), TREES)
        assert found.findings[0].leaf.id.startswith("spike-")
        assert tops[0] <= found.findings[0].onset_step < tops[0] + width
        told.append(RANK.index(found.verdict))
    assert told == sorted(told)
    assert told[-1] > told[0]
