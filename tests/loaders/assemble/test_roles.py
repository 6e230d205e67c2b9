"""What a column is by what stands beside it, in tables of any format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.profile.build import profile_of
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree import Run

ROWS = 40
AT = np.arange(ROWS)
FALLS = 2 * np.exp(-AT / 10) + 0.5 + np.random.default_rng(1).normal(0, 0.02, ROWS)
RISES = 3 - FALLS


def read(folder: Path, form: str, columns: Mapping[str, object]) -> Run:
    """The run of a table in one of two formats; a number stands for one that is the same in every row."""
    held = {
        name: np.broadcast_to(np.asarray(values, float), ROWS).round(5).tolist() for name, values in columns.items()
    }
    rows = [dict(zip(held, row, strict=True)) for row in zip(*held.values(), strict=True)]
    text = {
        "a.csv": ",".join(held) + "\n" + "".join(",".join(map(str, row.values())) + "\n" for row in rows),
        "a.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
    }
    return load_run(write(folder, text[form], form))


@pytest.mark.parametrize("form", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize(
    ("columns", "origins"),
    [
        pytest.param(
            {"train_loss": FALLS, "loss": FALLS + 1, "v_acc": RISES, "acc": 3 * RISES},
            {"loss": "train_loss", "eval_quality": "v_acc"},
            id="pairs",
        ),
        pytest.param(
            {"train_acc": RISES, "acc": RISES - 0.5, "train_loss": FALLS},
            {"loss": "train_loss", "eval_quality": "acc"},
            id="the other of a pair",
        ),
        pytest.param(
            {"train/loss": FALLS, "valid/loss": FALLS + 1, "Validation/acc": RISES, "Training/acc": RISES},
            {"loss": "train/loss", "eval_loss": "valid/loss", "eval_quality": "Validation/acc"},
            id="heads",
        ),
        pytest.param(
            {"loss": FALLS, "opt/grad_norm": RISES, "optim/grad_norm_x": RISES},
            {"loss": "loss", "grad_norm": "opt/grad_norm"},
            id="tags of the optimizer",
        ),
        pytest.param(
            {"Loss_D": FALLS, "Loss_G": RISES, "D_x": 0.5, "D_G_z": 0.5}, {"loss": "Loss_G"}, id="adversaries"
        ),
        pytest.param({"episode": AT, "team_score": RISES}, {"reward": "team_score"}, id="a score of episodes"),
        pytest.param(
            {"train/returns_stat": RISES, "test/returns_stat": RISES}, {"reward": "test/returns_stat"}, id="evaluations"
        ),
        pytest.param({"train_ppl": np.exp(FALLS)}, {"loss": "log(train_ppl)"}, id="perplexity"),
        pytest.param({"ppl": np.exp(100.0), "acc": 0.0}, {"loss": "log(ppl)"}, id="perplexity at its cap"),
        pytest.param({"accuracy": RISES, "f1": RISES}, {"eval_quality": "accuracy"}, id="accuracy alone"),
        pytest.param({"success_rate": RISES}, {"eval_quality": "success_rate"}, id="a success rate alone"),
        pytest.param({"mean_dice": 0.0}, {"eval_quality": "mean_dice"}, id="Dice alone"),
        pytest.param({"wer": FALLS}, {"eval_loss": "wer"}, id="an error rate alone"),
        pytest.param(
            {"loss": FALLS, "grad_norm_sq": FALLS},
            {"loss": "loss", "grad_norm": "sqrt(grad_norm_sq)"},
            id="a squared norm",
        ),
        pytest.param(
            {"train_loss": FALLS, "val_de_loss": FALLS, "val_fr_loss": 3 * FALLS, "val_de_acc": 0, "val_fr_acc": RISES},
            {"loss": "train_loss", "eval_loss": "val_de_loss", "eval_quality": "val_de_acc"},
            id="several held-out sets",
        ),
    ],
)
def test_roles_by_structure(
    tmp_path: Path, form: str, columns: Mapping[str, object], origins: Mapping[str, str]
) -> None:
    """Pairs, heads, endings, adversaries; and what alone is an outcome."""
    run = read(tmp_path, form, {"epoch": AT, **columns})
    assert {metric: series.origin for metric, series in run.series.items()} == origins
    assert columns.keys() - {"episode"} <= {*origins.values(), *(name.removesuffix(" (column)") for name in run.others)}


@pytest.mark.parametrize("form", ["a.csv", "a.jsonl"])
def test_rewards_of_episodes_that_nobody_counts(tmp_path: Path, form: str) -> None:
    """Rows without a counter follow each other where they hold a reward and no labels."""
    assert read(tmp_path, form, {"episode_reward": RISES, "length": 3}).series["reward"].values[0] == pytest.approx(
        RISES[0], abs=1e-4
    )


def test_a_measured_series_is_no_setting(tmp_path: Path) -> None:
    """Whatever word its name ends in; a schedule is one."""
    noise = np.random.default_rng(2).normal(0.9, 0.01, ROWS)
    columns = {"step": AT, "loss": FALLS, "gate/mean_decay": noise, "ssm/alpha": noise, "momentum": AT / 41}
    run = read(tmp_path, "a.csv", columns)
    assert [str(use.role) for use in run.sources[0].columns[2:]] == ["other", "other", "setting"]
    assert [profile_of(one).shows_training for one in run.others.values()] == [True, True, False]


def test_the_term_that_is_not_finite_reaches_the_run(tmp_path: Path) -> None:
    """Under its own name, beside those that are finite."""
    run = read(tmp_path, "a.jsonl", {"epoch": AT, "box": np.nan, "obj": FALLS, "cls": 0.0, "total": np.nan})
    assert run.series["loss"].origin == "total"
    finite = {name: bool(np.isfinite(one.values).all()) for name, one in run.others.items()}
    assert finite == {"box": False, "obj": True, "cls": True}


@pytest.mark.parametrize(("name", "leaf"), [("cross_entropy", "loss-unbounded"), ("nll", "healthy")])
def test_only_the_name_tells_that_a_loss_cannot_be_negative(tmp_path: Path, name: str, leaf: str) -> None:
    """The likelihood of a density may exceed 1."""
    assert diagnose(read(tmp_path, "a.csv", {"step": AT, name: FALLS - AT / 8})).end.id == leaf


def test_the_layers_of_one_step_are_no_run(tmp_path: Path) -> None:
    """What to name instead is said."""
    with pytest.raises(StabtreeError, match="40 rows of one step, each of another layer_id"):
        read(tmp_path, "a.csv", {"layer_id": AT, "norm": RISES, "rank_loss": FALLS, "step": 200})


def test_a_step_that_never_moves_counts_nothing(tmp_path: Path) -> None:
    """The rows are numbered, and a note says why."""
    run = read(tmp_path, "a.csv", {"step": 0, "loss": FALLS})
    assert run.series["loss"].steps.tolist() == AT.tolist()
    assert "Column step is 0 in all 40 rows: it counts no steps." in run.notes


@pytest.mark.parametrize("name", ["batch", "minibatch", "seen"])
def test_what_starts_again_in_each_epoch_counts_whatever_its_name(tmp_path: Path, name: str) -> None:
    """It is counted on."""
    run = read(tmp_path, "a.csv", {"epoch": AT // 10, name: AT % 10 * 20, "loss": FALLS})
    assert run.series["loss"].steps.tolist() == (20 * AT).tolist()
    assert run.sources[0].steps_from == name
