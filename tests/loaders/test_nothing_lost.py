"""What a failed run hides: a NaN on one rank, in one of two rows, in a last row without a loss."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree import diagnose
from stabtree.common.answer import UNKNOWN
from stabtree.loaders import load_run
from stabtree.tree.model import Severity
from tests.conftest import falling
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOSS = [f"{value:.4f}" for value in falling(400)]


def rows(head: str, lines: list[str]) -> str:
    """A CSV file."""
    return "\n".join([head, *lines]) + "\n"


@pytest.mark.parametrize("names", [("rank0", "rank1"), ("cuda:0", "cuda:1"), ("0", "1")])
@pytest.mark.parametrize("empty", [None, 11])
def test_a_nan_on_one_rank_is_never_lost(tmp_path: Path, names: tuple[str, str], empty: int | None) -> None:
    """Ranks may be words, and one empty rank cell does not mix them up."""
    lines = [
        f"{i},{'' if 2 * i + r == empty else name},{'nan' if r == 0 and i >= 300 else LOSS[i]}"
        for i in range(400)
        for r, name in enumerate(names)
    ]
    run = load_run(write(tmp_path, rows("step,rank,loss", lines)))
    assert len(run.ranks) == 2
    assert np.isnan(run.series["loss"].values[300:]).all()


def test_of_two_rows_of_a_step_the_one_that_is_not_finite_counts(tmp_path: Path) -> None:
    """A micro-batch or a rank without a column of its own must not hide behind a later row."""
    lines = [f"{i},{value}" for i in range(400) for value in ("nan" if i >= 300 else LOSS[i], LOSS[i])]
    run = load_run(write(tmp_path, rows("step,loss", lines)))
    assert np.isnan(run.series["loss"].values).sum() == 100


def test_a_rank_that_falls_silent_is_a_gap(tmp_path: Path) -> None:
    """A loss that stops on one rank only is told, though the other rank fills the merged series."""
    one = write(tmp_path, rows("step,loss,grad_norm", [f"{i},{LOSS[i]},1" for i in range(400)]), "rank0.csv")
    two = rows("step,loss,grad_norm", [f"{i},{LOSS[i] if i < 300 else ''},1" for i in range(400)])
    run = load_run(one, write(tmp_path, two, "rank1.csv"))
    assert [(gap.metric, gap.first_step, gap.at_end) for gap in run.gaps] == [("loss", 300, True)]


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_last_rows_without_a_loss_are_a_gap(tmp_path: Path, count: int) -> None:
    """A trainer that stops at its first NaN, written by pandas, leaves one row without a loss."""
    lines = [f"{i},{LOSS[i] if i < 400 - count else ''},1" for i in range(400)]
    run = load_run(write(tmp_path, rows("step,loss,grad_norm", lines)))
    assert [(gap.metric, gap.first_step, gap.rows) for gap in run.gaps] == [("loss", 400 - count, count)]


FORMS: dict[str, Callable[[int, str], str]] = {
    "text": lambda step, loss: f"step {step} loss {loss}",
    "signs": lambda step, loss: f"iter {step}/400 | loss: {loss} | lr 0.001",
    "csv": lambda step, loss: f"{step};{loss}",
    "jsonl": lambda step, loss: json.dumps({"step": step, "loss": loss}),
}
BROKEN = [
    "qNaN",
    "-nan(ind)",
    "NaN (skipped)",
    "#DIV/0!",
    "diverged",
    "1.#QNAN0",
    "-1.#IND",
    "Array(nan, dtype=float32, weak_type=True)",
]
BROKEN += ["Tensor(shape=[1], dtype=float32, place=Place(gpu:0), stop_gradient=False,\n   [nan])", "np.float32(inf)"]
BROKEN += [
    "tensor(inf, device='cuda:0')",
    "<tf.Tensor: shape=(), dtype=float32, numpy=nan>",
    "Tensor(shape=[], value= nan)",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("word", [*BROKEN, "ERR", "undefined", "********", "nil", "infK"])
def test_a_word_in_the_place_of_a_number_is_never_lost(tmp_path: Path, word: str, form: str) -> None:
    """What libraries print for NaN is read as that; any other word is a cell that could not be read."""
    shown = f'"{word}"' if form == "csv" else word
    lines = [FORMS[form](step, LOSS[step] if step < 398 else shown) for step in range(400)]
    run = load_run(write(tmp_path, rows("step;loss" * (form == "csv"), lines).lstrip()))
    use = next(use for use in run.sources[0].columns if use.metric == "loss")
    assert (use.nonfinite, use.misread, use.misread_last) == ((2, 0, 0) if word in BROKEN else (0, 2, 2))


CUT: dict[str, tuple[str, str]] = {
    "400;na": ("csv", UNKNOWN),
    "400;i": ("csv", UNKNOWN),
    "400;0.": ("csv", Severity.OK),
    '{"step": 400, "loss": NaN, "lr": \n': ("jsonl", Severity.CRITICAL),
    '{"step": 400, "loss": Na': ("jsonl", UNKNOWN),
    '{"step": 400, "loss": 0.': ("jsonl", Severity.OK),
    "step 400 loss in": ("text", UNKNOWN),
}


@pytest.mark.parametrize("last", CUT)
def test_a_cut_line_that_may_hide_a_nan_is_no_pass(tmp_path: Path, last: str) -> None:
    """A number that is cut hides nothing."""
    form, verdict = CUT[last]
    whole = rows("step;loss" * (form == "csv"), [FORMS[form](step, loss) for step, loss in enumerate(LOSS)])
    assert diagnose(load_run(write(tmp_path, whole.lstrip() + last))).verdict == verdict


@pytest.mark.parametrize("series", [{"loss": [2.0, [1]]}, {"loss": [2.0, 1.0], "batch_id": [[1], {"a": 2}]}])
def test_cells_of_a_manifest_may_hold_anything(tmp_path: Path, series: dict[str, object]) -> None:
    """A list or an object in place of a number is a bad cell, not a crash."""
    content = json.dumps({"series": {"step": [1, 2], **series}})
    assert len(load_run(write(tmp_path, content, "manifest.json")).series["loss"]) in (1, 2)
