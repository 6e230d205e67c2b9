"""Measured without noise hold in a few rows, in any column, and at any place of a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command import run

if TYPE_CHECKING:
    from pathlib import Path

TERMS = "epoch,loss,box_loss,obj_loss\n41,nan,nan,0.015\n42,nan,nan,0.0151\n"
ROSE = "epoch,loss\n0,0.945\n1,0.495\n2,0.466\n3,0.795\n4,0.852\n5,nan\n6,nan\n"
GRADIENT_FIRST = "step,loss,grad_norm\n0,1.08,nan\n1,nan,nan\n2,nan,nan\n"
LAST_ROW = "step,loss,grad_norm\n8270,1.435,3.5\n8275,1.394,4.2\n8280,2.233,nan\n"
ONE_ROW = "step,reward,value_loss,policy_loss\n8391,25.7,inf,0.01\n"
SAME = "epoch,val_accuracy\n" + "".join(f"{epoch},0.110204\n" for epoch in range(16))
HELD_OUT = "epoch,loss,val_loss\n" + "".join(f"{epoch},{1 - epoch / 100},nan\n" for epoch in range(61, 75))
JUMP = "step,loss\n393,2.406\n394,2.375\n395,2.421\n396,2.4\n397,1.36e15\n398,inf\n399,inf\n"
NO_RATE = "step,loss,lr\n" + "".join(f"{step},{1.6 + (step * step * 7 % 13) / 100},0\n" for step in range(80))
NO_GRADIENT = "step,reward,reward_std,frac_reward_zero_std,grad_norm\n" + "".join(
    f"{step},0.{60 + step % 7},0.13,0.5,0.0\n" for step in range(1, 5)
)


def first(text: str, folder: Path) -> dict[str, Any]:
    """The leading finding of a log."""
    (folder / "log.csv").write_text(text, encoding="utf-8")
    found: dict[str, Any] = json.loads(run(str(folder / "log.csv"), "--json").stdout)
    return dict(found["findings"][0])


@pytest.mark.parametrize(
    ("text", "leaf", "severity", "onset", "restart"),
    [
        (TERMS, "nan-unlocated", "critical", 41, 40),
        (ROSE, "nan-backward", "critical", 3, 2),
        (GRADIENT_FIRST, "nan-backward", "critical", 0, None),
        (LAST_ROW, "grad-never-finite", "critical", 8280, 8275),
        (ONE_ROW, "series-nonfinite", "critical", 8391, 8390),
        (SAME, "quality-zero", "warning", 0, None),
        (HELD_OUT, "eval-nonfinite", "critical", 61, None),
        (JUMP, "nan-backward", "critical", 397, 386),
        (NO_RATE, "lr-zero", "warning", 0, None),
        (NO_GRADIENT, "rl-no-gradient", "warning", 1, None),
    ],
)
def test_a_few_rows_are_enough(
    text: str, leaf: str, severity: str, onset: int, restart: int | None, tmp_path: Path
) -> None:
    """Each is found at its row; sound weights are not thrown away, nor those from before an excerpt."""
    found = first(text, tmp_path)
    advised = found.get("restart") or {}
    assert (found["id"], found["severity"], found["onset_step"]) == (leaf, severity, onset)
    assert advised.get("up_to_step") == restart


def test_an_excerpt_is_not_told_as_a_start(tmp_path: Path) -> None:
    """Its first row is no first row of the run; the term that broke is named, and the inputs are not blamed."""
    (tmp_path / "log.csv").write_text(TERMS, encoding="utf-8")
    shown = run(str(tmp_path / "log.csv"), "--full").stdout
    assert "box_loss is not finite, while" in shown
    for word in ("first row", "start again", "NaN in the inputs themselves"):
        assert word not in shown


def test_a_policy_that_never_learned_has_nothing_to_lose(tmp_path: Path) -> None:
    """A reward that was never above its first rows does not collapse; one that rose before does."""
    never = [-1135, -1142, -1143, -1142, -1185, -1220, -1228, -1230, -1223, -1236, -1244, -1241]
    rose = [-1230, -1100, -900, -500, -210, -200, -205, -600, -1100, -1235, -1240, -1238]
    for rewards, leaf in ((never, ""), (rose, "reward-collapse")):
        rows = "".join(f"{2048 * at},{reward},{3000 + at % 3}\n" for at, reward in enumerate(rewards, 1))
        (tmp_path / "log.csv").write_text(f"step,reward,value_loss\n{rows}", encoding="utf-8")
        found = json.loads(run(str(tmp_path / "log.csv"), "--json").stdout)["findings"]
        assert ("reward-collapse" in [item["id"] for item in found]) is bool(leaf)
