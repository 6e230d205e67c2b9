"""Which series a run is judged by where no column has a known name of the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree import StabtreeError, diagnose, load_run
from stabtree.tree.load import load_trees
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree import Run

TREES = load_trees()
ROWS = 120
AT = np.arange(ROWS)
FALLING = 2 * np.exp(-AT / 30) + 0.5 + np.random.default_rng(1).normal(0, 0.02, ROWS)
RISING = 3 - FALLING


def table(**columns: object) -> str:
    """A CSV of the columns; a number stands for one that is the same in every row."""
    held = {name: np.broadcast_to(np.asarray(values), ROWS) for name, values in columns.items()}
    rows = zip(*held.values(), strict=True)
    return ",".join(held) + "\n" + "".join(",".join(f"{value:.6g}" for value in row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        ({"step": AT, "loss_vae": FALLING}, "loss_vae"),
        ({"step": AT, "xent": FALLING, "ppl": FALLING, "sec": FALLING}, "xent"),
        ({"step": AT, "box_loss": FALLING, "loss_overall": FALLING}, "loss_overall"),
        ({"step": AT, "eval_c4_loss": FALLING, "aux_mse": FALLING}, "aux_mse"),
        ({"step": AT, "a_loss": 0.5, "b_loss": FALLING}, "b_loss"),
        ({"step": AT, "D_loss": FALLING, "G_loss": RISING}, "G_loss"),
        ({"step": AT, "loss": FALLING, "xent": RISING}, "loss"),
    ],
)
def test_the_column_max_like_a_loss_is_taken(tmp_path: Path, columns: dict[str, object], chosen: str) -> None:
    """A known name first, then a total, one that moves, the training side; and a note says how to take another."""
    run = load_run(write(tmp_path, table(**columns)))
    assert run.series["loss"].origin == chosen
    assert (chosen == "loss") or any("--column loss=" in note for note in run.notes)


def test_an_eval_loss_alone_is_no_training_loss(tmp_path: Path) -> None:
    """What asks for the training loss has no answer, and a note says so; the run is judged by what it has."""
    run = load_run(write(tmp_path, table(step=AT, val_loss=FALLING)))
    assert list(run.series) == ["eval_loss"]
    assert "No training loss is logged: the run is judged by eval_loss." in run.notes
    found = diagnose(run, TREES)
    assert found.verdict == "ok"
    assert {"Q1.1", "Q2.1"} <= {miss.id for miss in found.missing if miss.metrics == ("loss",)}


def test_a_run_by_its_reward_alone(tmp_path: Path) -> None:
    """Its verdict rests on the reward: one that is lost at the end is an alarm, one that rises is ok."""
    rises = load_run(write(tmp_path, table(**{"time/total_timesteps": AT, "rollout/ep_rew_mean": RISING}), "a.csv"))
    lost = np.where(AT < 70, RISING, 0.2)
    falls = load_run(write(tmp_path, table(iteration=AT, AverageReturn=lost, n_koeff=0.1, novelty=AT), "b.csv"))
    assert "loss" not in rises.series
    assert [str(diagnose(run, TREES).verdict) for run in (rises, falls)] == ["ok", "critical"]
    assert diagnose(falls, TREES).findings[0].leaf.id == "reward-collapse"


BURSTS = np.where(AT % 17 == 5, 30.0, 1.0) + AT * 0.05


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"D_loss": FALLING, "G_loss": BURSTS}, "adversarial"),
        ({"actor_loss": BURSTS}, "policy"),
        ({"td_loss": BURSTS}, "value"),
    ],
)
def test_a_loss_that_moves_by_nature_raises_no_alarm_for_it(
    tmp_path: Path, columns: dict[str, object], kind: str
) -> None:
    """Bursts and rises of it are none; NaN, and a thousand times its level for good, are."""
    run = load_run(write(tmp_path, table(step=AT, **columns)))
    assert run.setting("loss_kind") == kind
    assert diagnose(run, TREES).verdict in ("ok", "note")
    name = list(columns)[-1]
    for late in (np.nan, 1e5 * (1 + FALLING)):
        text = table(step=AT, **{**columns, name: np.where(AT < 60, BURSTS, late)})
        assert diagnose(load_run(write(tmp_path, text)), TREES).verdict in ("critical", "warning")


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("run-x-tag-train_loss.csv", "loss"),
        ("sac_reward.csv", "reward"),
        ("run-a-tag-epoch_val_loss.csv", "eval_loss"),
        ("a.csv", "loss"),
    ],
)
def test_an_export_of_one_series_is_called_after_its_file(tmp_path: Path, name: str, metric: str) -> None:
    """TensorBoard's `Wall time,Step,Value`: by the tag in the name, by the name, else by its course."""
    text = "Wall time,Step,Value\n" + "".join(f"{1e9 + i},{i},{FALLING[i]:.5g}\n" for i in range(ROWS))
    run = load_run(write(tmp_path, text, name))
    assert list(run.series) == ["wall_time", metric]
    assert "one series" in run.notes[0]


def test_an_export_that_can_be_anything_asks(tmp_path: Path) -> None:
    """A rise of positive values is a reward, or a loss that diverges: the user has to say."""
    rows = "".join(f"{1e9 + i},{i},{RISING[i]:.5g}\n" for i in range(ROWS))
    with pytest.raises(StabtreeError) as error:
        load_run(write(tmp_path, "Wall time,Step,Value\n" + rows, "a.csv"))
    assert "--column reward=Value" in error.value.hint


def origins(run: Run) -> dict[str, str]:
    """The column of each metric."""
    return {metric: series.origin for metric, series in run.series.items()}


@pytest.mark.parametrize(
    ("columns", "metric", "column"),
    [
        ({"v_loss": RISING, "loss": FALLING}, "eval_loss", "v_loss"),
        ({"eval mean loss": RISING, "train loss": FALLING}, "eval_loss", "eval mean loss"),
        ({"loss": FALLING, "eval/mIoU": RISING, "eval/recall": RISING}, "eval_quality", "eval/mIoU"),
        ({"loss": FALLING, "total_gnorm": RISING, "grad/layer_gamma_norm": RISING}, "grad_norm", "total_gnorm"),
        ({"loss": FALLING, "rollout/return": RISING}, "reward", "rollout/return"),
        ({"D_A": FALLING, "G_A": RISING, "cycle_A": FALLING}, "loss", "cycle_A"),
    ],
)
def test_what_is_logged_beside_the_loss(tmp_path: Path, columns: dict[str, object], metric: str, column: str) -> None:
    """Held-out data, rewards and gradients under names that the table of metrics lacks."""
    assert origins(load_run(write(tmp_path, table(step=AT, **columns))))[metric] == column


def test_a_close_choice_offers_the_other_column(tmp_path: Path) -> None:
    """The ranking is kept on the run; the note names the runner-up, which can be typed as it is."""
    path = write(tmp_path, table(step=AT, **{"train loss": FALLING, "mean loss": FALLING + 1}))
    run = load_run(path)
    assert [one.column for one in run.loss_ranking.candidates] == ["train loss", "mean loss"]
    text = "Using train loss as the training loss, not mean loss; override with --column 'loss=mean loss'."
    assert text in run.notes


LOGS = {
    "a.csv": table(step=AT, loss=FALLING, lr=0.1, seed=1),
    "parts.csv": table(epoch=AT, **{"train/box_loss": FALLING, "train/cls_loss": FALLING, "lr/pg0": 0.1}),
    "a.log": "".join(f"Epoch {i} phase: {side} loss: {4 - i / 50}\n" for i in range(40) for side in ("train", "val")),
    "b.csv": table(step=AT, loss=FALLING, **{"x" * 120: FALLING}),
}


@pytest.mark.parametrize("name", LOGS)
def test_every_printed_name_can_be_typed(tmp_path: Path, name: str) -> None:
    """Whatever its role, as `inspect` prints it: the columns that reading made or shortened as well."""
    path = write(tmp_path, LOGS[name], name)
    for use in load_run(path).sources[0].columns:
        run = load_run(path, columns={"loss": use.name})
        assert {item.name: item.metric for item in run.sources[0].columns}[use.name] == "loss"
