"""Runs that were once judged wrongly, each made anew: what must be said of them and of their kind."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.loaders.text.messages import Saves
from stabtree.tree.load import load_trees
from tests.cli.command import run

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ROWS = 800


def diagnosed(folder: Path, **columns: NDArray[Any]) -> dict[str, Any]:
    """Return what `--json` says of a CSV with these columns, and its exit code as `code`."""
    names = ["step", *columns]
    rows = zip(np.arange(len(columns["loss"])), *columns.values(), strict=True)
    lines = [",".join(names), *(",".join(f"{value:g}" for value in row) for row in rows)]
    (folder / "run.csv").write_text("\n".join(lines), encoding="utf-8")
    done = run("diagnose", str(folder / "run.csv"), "--json")
    return {**json.loads(done.stdout), "code": done.returncode}


def falling(rows: int = ROWS) -> NDArray[np.float64]:
    """Return a loss that falls from 3 to 1 and settles, with a scatter of 0.02."""
    return 1 + 2 * np.exp(-np.arange(rows) / 120) + np.random.default_rng(3).normal(0, 0.02, rows)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 12, 22, 30])
def test_more_spikes_are_not_healthier(tmp_path: Path, count: int) -> None:
    """However many spikes of 15 sigma a loss has, they warn."""
    loss, grad_norm = falling(), np.random.default_rng(4).normal(1, 0.08, ROWS)
    at = np.linspace(150, 770, count).astype(int) if count > 1 else np.array([400])
    loss[at] += 0.3
    grad_norm[at] *= 12
    assert diagnosed(tmp_path, loss=loss, grad_norm=grad_norm)["code"] == 1


@pytest.mark.parametrize("repeats", [5, 12, 30])
def test_a_stuck_loader_is_told_to_fix_its_sampler(tmp_path: Path, repeats: int) -> None:
    """Where the ids show one batch over and over, its memorised loss is no progress that was lost."""
    loss, batch_id = falling(), np.arange(ROWS) * 37.0
    stuck = slice(380, 380 + repeats)
    loss[stuck] *= 0.7 ** np.arange(1, repeats + 1)
    loss[stuck.stop] = 2.9
    batch_id[stuck] = batch_id[379]
    found = diagnosed(tmp_path, loss=loss, lr=np.full(ROWS, 3e-4), batch_id=batch_id)["findings"][0]
    assert found["id"] == "spike-duplicate-batch"
    assert found["causes"][0]["kind"] == "loader-order"
    assert "sampler" in found["actions"][0]["text"]


@pytest.mark.parametrize(
    ("values", "verdict", "code"),
    [((2.0, 1.9), "unknown", 3), ((2.0, 9.0, 40.0), "unknown", 3), ((2.0, 1.9, 1.8, 1.7, 1.6), "ok", 0)],
)
def test_a_few_rows_show_no_fault_at_most(tmp_path: Path, values: tuple[float, ...], verdict: str, code: int) -> None:
    """So few rows prove no health: there is no fault so far where they fall, else they are not judged."""
    result = diagnosed(tmp_path, loss=np.array(values))
    assert (result["verdict"], result["code"]) == (verdict, code)
    assert result["head"][0].startswith("No fault so far, 5 rows") is (verdict == "ok")


def test_an_exception_reports_no_checkpoint() -> None:
    """A message about saved tensors is no saved checkpoint; a trainer's own report is."""
    assert not Saves.is_save("CheckpointError: torch.utils.checkpoint: A different number of tensors was saved during")
    assert Saves.is_save("Saving model checkpoint to out/checkpoint-500")


def test_the_hook_that_is_advised_changes_no_output() -> None:
    """A forward hook that returns anything but None takes the place of the module's output."""
    text = next(fix for fix in load_trees().entries["P9"].fixes if "register_forward_hook" in fix)
    printed: list[str] = []
    names = {"name": "block", "torch": SimpleNamespace(is_tensor=lambda _: True), "print": printed.append}
    hook = eval(re.search(r"register_forward_hook\((.*)\)", text)[1], names)  # type: ignore[index]  # noqa: S307
    for finite in (True, False):
        output = SimpleNamespace(isfinite=lambda finite=finite: np.array([finite]))
        assert hook(None, None, output) is None
    assert printed == ["block"]
