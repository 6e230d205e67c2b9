"""The checkpoint to restart from: never one from inside the trouble, nor from right before a NaN storm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.diagnosis.restart import advise, seen_by
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.advice import restart_line
from stabtree.report.json import to_dict
from stabtree.report.outputs import RenderOptions
from stabtree.report.screen import full
from stabtree.run import FileUse, Setting
from stabtree.tree.load import load_trees
from stabtree.tree.model import Take
from tests.conftest import falling, make_run, measures_of
from tests.measures.judged import AT, TREE, loss, nan_from

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run


def broken_at(step: int, rows: int = 1000, **config: Any) -> Run:
    """A run whose loss is NaN from a step on."""
    return make_run({"loss": np.where(np.arange(rows) < step, falling(rows), np.nan)}, **config)


@pytest.mark.parametrize(
    ("step", "config", "checkpoint", "fresh"),
    [
        (650, {"checkpoint_every": 100}, 600, None),
        (611, {"checkpoint_every": 100}, 600, None),  # 610 is the last good step: 600 is 10 before it
        (610, {"checkpoint_every": 100}, 500, 600),
        (601, {"checkpoint_every": 100}, 500, 600),
        (600, {"checkpoint_every": 100}, 500, None),
        (650, {"checkpoint_every": 1}, 639, 649),
        (205, {"checkpoint_every": 200}, 200, 200),  # no older one
        (5, {"checkpoint_every": 200}, None, None),
        (650, {"checkpoints": (100, 333, 641, 645, 649, 650)}, 333, 649),
        (650, {"checkpoints": (645,)}, 645, 645),
    ],
)
def test_a_checkpoint_from_right_before_the_storm_is_passed_over(
    step: int, config: dict[str, Any], checkpoint: int | None, fresh: int | None
) -> None:
    """The newest one that is at least 10 steps older than the last good step, unless there is none."""
    restart = diagnose(broken_at(step, **config)).findings[0].restart
    assert restart is not None
    assert (restart.checkpoint_step, restart.fresh_step) == (checkpoint, fresh)
    assert restart.lost_steps == 999 - (checkpoint or 0)


def test_the_reason_is_given() -> None:
    """The restart line names the checkpoint that was passed over, or warns of the one that had to do."""
    found = diagnose(broken_at(605, checkpoint_every=100))
    passed_over = "Not from step 600: that one was written right before the loss broke"
    assert passed_over in full(found, RenderOptions(width=300))
    assert to_dict(found)["findings"][0]["restart"]["fresh_step"] == 600
    assert "It was written right before the loss broke and is the oldest" in full(
        diagnose(broken_at(205, checkpoint_every=200)), RenderOptions(width=300)
    )
    sound = full(diagnose(broken_at(650, checkpoint_every=100)), RenderOptions(width=300))
    assert "right before the loss broke" not in sound


def test_the_checkpoint_lies_before_the_first_repeat_and_before_the_jump() -> None:
    """A loader bug is restarted from before the first repeat, a schedule bug from before the jump."""
    repeats = np.where((AT >= 420) & (AT < 500), 420, AT)
    values = loss(spike=(500, 4)) + np.where(AT > 500, 0.5, 0)
    run = make_run({"loss": values, "batch_id": repeats}, checkpoint_every=50)
    finding = diagnose(run, TREE).findings[0]
    assert finding.leaf.id == "spike-duplicate-batch"
    assert finding.restart is not None
    assert finding.restart.checkpoint_step == 400
    run = make_run({"loss": values, "lr": np.where(AT < 497, 1e-3, 1e-2)}, checkpoint_every=1)
    finding = diagnose(run, TREE).findings[0]
    assert finding.restart is not None
    assert (finding.leaf.id, finding.restart.checkpoint_step) == ("spike-lr-jump", 496)


def test_no_checkpoint_is_advised_from_inside_earlier_trouble() -> None:
    """A run that jumped at 300 and died at 550 diverged at 300, and restarts from before that."""
    values = np.where(AT < 300, 2.0, 50.0) + 0.02 * np.sin(AT * 1.7)
    found = diagnose(make_run({"loss": nan_from(550, values)}, checkpoint_every=100), TREE)
    assert (found.findings[0].leaf.id, found.findings[0].onset_step) == ("nan-backward", 300)
    assert found.findings[0].restart is not None
    assert found.findings[0].restart.checkpoint_step == 200


def words(run: Run) -> str:
    """The first finding's restart, in words."""
    restart = diagnose(run).findings[0].restart
    assert restart is not None
    return "".join(text for text, _ in restart_line(restart))


SEEN = {600: "out/checkpoint-600", 700: "out/x"}
FIRST_ROWS = "Nothing to go back to: the trouble is there from the first rows. Fix the cause and start again"
SPARSE = make_run(
    {"loss": np.where(np.arange(0, 1000, 50) < 650, falling(20), np.nan)},
    steps=range(0, 1000, 50),
    checkpoints=(620, 700),
)


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (broken_at(650), "Restart from any checkpoint up to step 639 (10 steps before the last sound row)"),
        (broken_at(650, checkpoint_every=100), "one every 100 steps by the configuration, if it was kept"),
        (broken_at(650, checkpoints=(600,)), "Restart from the checkpoint of step 600"),
        (
            replace(broken_at(650, checkpoints=(600, 700)), checkpoints=SEEN),
            "Restart from the checkpoint of step 600 (out/checkpoint-600) with its optimizer state, before step 650;",
        ),
        (
            replace(broken_at(450, checkpoints=(600, 700)), checkpoints=SEEN),
            "no checkpoint is older than step 450: the oldest is of step 600 (out/checkpoint-600)",
        ),
        (broken_at(150), "Restart from any checkpoint up to step 139"),
        (broken_at(150, checkpoint_every=200), "the whole run is lost"),
        (SPARSE, "Restart from the checkpoint of step 620 with its optimizer state, before step 650"),
        (
            make_run({"loss": [np.nan] * 100}, checkpoint_every=10),
            "Nothing to go back to: the run is broken from its first row. Fix the cause and start again",
        ),
        (broken_at(4), FIRST_ROWS),
        (broken_at(4, checkpoint_every=200), FIRST_ROWS),
        (broken_at(4, checkpoint_every=2), "Restart from the checkpoint of step 2"),
        (
            replace(broken_at(20, 40), sources=(FileUse("log.csv", "csv", 40, steps_from="epoch"),)),
            "any checkpoint up to epoch 18 (1 epoch before the last sound row) with its optimizer state; at least 21",
        ),
    ],
)
def test_what_is_told_of_a_restart(run: Run, told: str) -> None:
    """No checkpoint is invented, one that was seen is named by its path, and what is unknown is not called lost."""
    assert told in words(run)


@pytest.mark.parametrize(
    ("config", "checkpoint"),
    [
        ({"checkpoint_every": 100}, 600),
        ({"checkpoint_every": 100, "save_total_limit": 4}, 600),
        ({"checkpoint_every": 100, "save_total_limit": 3}, None),  # 700, 800 and 900 are left
        ({"checkpoint_every": 100, "save_strategy": "no"}, None),
    ],
)
def test_what_the_trainer_deletes_is_not_advised(config: dict[str, Any], checkpoint: int | None) -> None:
    """A limit keeps the newest ones, and a strategy may keep none."""
    restart = diagnose(broken_at(650, **config)).findings[0].restart
    assert restart is not None
    assert restart.checkpoint_step == checkpoint


def test_what_is_lost_is_told_in_hours_where_time_is_logged() -> None:
    """The clock's, from the checkpoint to the end of the log; a clock that begins anew takes nothing off."""
    time = np.arange(1000) * 36.0
    time[800:] -= time[800]
    run = make_run({"loss": np.where(AT[:1000] < 650, falling(1000), np.nan), "wall_time": time}, checkpoint_every=100)
    restart = diagnose(run).findings[0].restart
    assert restart is not None
    assert restart.checkpoint_step == 600
    assert restart.lost_hours == pytest.approx(3.98)
    assert "399 steps (4.0 hours) must be rerun" in words(run)
    assert "hours" not in words(broken_at(650, checkpoint_every=100))


def test_overfitting_keeps_the_checkpoint_of_the_lowest_eval_loss() -> None:
    """It is used, not trained on: running the later steps again would overfit again."""
    at = np.arange(0, 1000)
    columns = {"loss": 3 * np.exp(-at / 300), "eval_loss": 2 + ((at - 300) / 300.0) ** 2 + 0.01 * np.sin(at)}
    best = next(f for f in diagnose(make_run(columns, checkpoints=(200, 400))).findings if f.leaf.id == "overfitting")
    assert best.restart is not None
    assert (best.restart.checkpoint_step, best.restart.lost_steps) == (200, 0)
    told = "".join(text for text, _ in restart_line(best.restart))
    assert told.startswith("Use the checkpoint of step 200")
    assert "again" not in told
    late = next(f for f in diagnose(make_run(columns, checkpoints=(400, 900))).findings if f.leaf.id == "overfitting")
    assert late.restart is not None
    assert late.restart.checkpoint_step == 400


def test_a_checkpoint_that_has_lost_what_the_best_one_knew_is_not_advised() -> None:
    """Half of what the eval loss had fallen is lost at 700: training again is better."""
    at = np.arange(0, 1000)
    columns = {"loss": 3 * np.exp(-at / 300), "eval_loss": 2 + ((at - 300) / 300.0) ** 2 + 0.01 * np.sin(at)}
    told = words(make_run(columns, checkpoints=(700, 900)))
    assert told.startswith("No checkpoint that was kept is of use: at the nearest, of step 700, the eval loss is 3.78")
    assert "train again and stop at step 300" in told


def test_a_run_that_got_over_it_is_not_sent_back() -> None:
    """A jump of the schedule whose spike healed by itself has no restart; one that left the loss higher has."""
    loss, at = falling(1000, 0.01), np.arange(1000)
    loss[500:504] += 4
    lr = np.where(at < 500, 1e-3, 1e-2)
    healed = diagnose(make_run({"loss": loss, "lr": lr}, checkpoint_every=100)).findings[0]
    higher = diagnose(make_run({"loss": loss + np.where(at < 504, 0, 1), "lr": lr}, checkpoint_every=100)).findings[0]
    assert healed.leaf.id == "spike-lr-jump"
    assert healed.restart is None
    assert higher.restart is not None
    assert higher.restart.checkpoint_step == 400


def test_what_the_log_tells_goes_before_what_is_configured() -> None:
    """Lines that say so, then the configuration; where the run was evaluated or an epoch ended says nothing."""
    run = replace(broken_at(650), epoch_ends={250: 0, 500: 1})
    evals = make_run({"eval_loss": [2.0, 1.5, 1.2]}, steps=[300, 450, 750]).series["eval_loss"]
    run = replace(run, series={**run.series, "eval_loss": evals})
    assert "any checkpoint up to step 639" in words(run)
    config = make_run({"loss": [1.0]}, always_save_checkpoint=False).config
    assert "step 450 with its optimizer state, before" in words(replace(run, config=config))
    assert "by the configuration" in words(replace(run, config=config))
    assert (
        "step 620 with its optimizer state, before step 650; 379 steps must be rerun (saved there by line 93 of the log"
        in words(replace(run, saved={300: 40, 620: 93}))
    )


def test_the_best_reward_of_an_untrained_policy_is_nothing_to_go_back_to() -> None:
    """A reward that falls once the first updates are made was never learned."""
    at = np.arange(0, 4000, 10)
    reward = np.where(at < 2000, 10.0, 1.0) + 0.1 * np.sin(at)
    run = make_run({"reward": reward}, steps=at.tolist(), checkpoint_every=100)
    late = make_run({"loss": falling(200)}, steps=at[200:].tolist()).series["loss"]
    found = {f.leaf.id: f for f in diagnose(replace(run, series={**run.series, "loss": late})).findings}
    restart = found["reward-collapse"].restart
    assert restart is not None
    assert restart.nothing == "at its best the model was not trained yet"


def test_a_rise_is_restarted_from_no_later_than_its_onset() -> None:
    """A rise is dated by the row at which it begins, and no checkpoint from after that is advised."""
    at = np.arange(1200)
    values = 1 + 2 * np.exp(-at / 50) + np.clip((at - 600) / 500, 0, 1) + 0.02 * np.sin(at * 1.7)
    found = diagnose(make_run({"loss": values}, checkpoints=(100, 500, 550, 900))).findings[0]
    assert found.leaf.id == "slow-rise"
    assert found.onset_step == pytest.approx(600, abs=5)
    assert found.restart is not None
    assert found.restart.checkpoint_step == 550
    none_older = diagnose(make_run({"loss": values}, checkpoints=(750, 900))).findings[0].restart
    assert none_older is not None
    assert none_older.checkpoint_step is None


def trained_on(at: np.ndarray, start: float) -> np.ndarray:
    """A loss that begins at a level, climbs to 20 by step 100, comes back to 2 by step 400, and jumps at step 800."""
    climb = np.interp(at, [0, 100, 400], [start, 20.0, 2.0])
    return np.where(at < 800, climb, 25.0) + 0.02 * np.sin(at * 1.7)


@pytest.mark.parametrize(("start", "checkpoint"), [(4.0, 750), (1.5, None)])
def test_what_never_came_back_from_its_first_trouble_has_nothing_to_go_back_to(
    start: float, checkpoint: int | None
) -> None:
    """A jump is restarted from before it, unless the loss was up since the first rows."""
    restart = diagnose(make_run({"loss": trained_on(np.arange(1000), start)}, checkpoint_every=250)).findings[0].restart
    assert restart is not None
    assert restart.checkpoint_step == checkpoint
    assert (
        "Nothing to go back to: loss is off its level from step" in "".join(t for t, _ in restart_line(restart))
    ) == (checkpoint is None)


def test_a_scale_that_collapsed_has_not_touched_the_weights() -> None:
    """Steps that overflow are skipped, so the newest checkpoint is as good as any."""
    tree = load_trees()
    taking = [leaf for leaf in tree.leaves.values() if leaf.restart and leaf.take is Take.NEWEST]
    newest = {leaf.id for leaf in taking if "end" not in leaf.events}
    assert newest == {"scale-collapse", "scale-drifts-down"}
    known = measures_of(broken_at(2000, checkpoint_every=100)).get("checkpoints")
    restart = advise(known, 500, 499, storm=False, take=Take.NEWEST)
    assert restart is not None
    assert (restart.checkpoint_step, restart.lost_steps) == (900, 99)
    assert "the newest with sound weights" in "".join(text for text, _ in restart_line(restart))


def test_the_newest_checkpoint_is_not_one_from_inside_other_trouble() -> None:
    """The loss scale sinks, and then the loss is NaN: the checkpoint from before the NaN counts for both."""
    at = np.arange(1000)
    scale = 2.0 ** np.maximum(16 - at // 50, -3)
    columns = {
        "loss": np.where(at < 650, falling(1000), np.nan),
        "loss_scale": scale,
        "grad_norm": 1 + 0.1 * np.sin(at),
    }
    found = diagnose(make_run(columns, checkpoint_every=100, dtype="fp16")).findings
    steps = {f.leaf.id: f.restart.checkpoint_step for f in found if f.restart is not None}
    assert steps.keys() & {"scale-collapse", "scale-drifts-down"}
    assert set(steps.values()) == {600}


@pytest.mark.parametrize(("at_end", "best"), [(0.1, 699), (0.95, None)])
def test_an_outcome_that_got_better_than_ever_shows_sound_weights(at_end: float, best: int | None) -> None:
    """The best checkpoint is worth more than one from before the jump; where the run ends at its best, none is."""
    steps = np.arange(1000)
    jumped = np.where(steps < 400, 1.0, 3.0) + np.random.default_rng(1).normal(0, 0.02, 1000)
    accuracy = np.select([steps < 400, steps < 600, steps <= 700], [0.5, 0.4, 0.9 + (steps - 600) / 2000], at_end)
    run = make_run({"loss": jumped, "eval_quality": accuracy})
    found = advise(measures_of(run).sure("checkpoints"), 400, 399, storm=False)
    assert (found.before_step if found else None) == best
    critic = seen_by(measures_of(run).sure("checkpoints"), "critic_loss")
    before = advise(critic, 400, 399, storm=False)
    assert before is not None
    assert before.up_to_step == 399


def test_a_model_that_was_best_before_training_leaves_no_checkpoint() -> None:
    """What the first evaluation measured is the model as it was loaded."""
    run = make_run({"loss": falling(100), "eval_loss": np.linspace(1.0, 3.0, 100)})
    found = advise(measures_of(run).sure("checkpoints"), 0, None, storm=False, take=Take.BEST)
    assert found is not None
    assert "".join(text for text, _ in restart_line(found)) == (
        "No checkpoint is worth keeping: at its best the model was not trained yet. Fix the cause and start again"
    )


def test_a_run_that_crashed_goes_on_from_the_newest_checkpoint(tmp_path: Path) -> None:
    """Where one was saved; where nothing says so, nobody needs to be reminded."""
    rows = "".join(f"{{'loss': {3 - row / 20:.3f}, 'step': {10 * row}}}\n" for row in range(1, 30))
    log = tmp_path / "train.log"
    log.write_text(f"{rows}torch.cuda.OutOfMemoryError: CUDA out of memory.\n", encoding="utf-8")
    run = load_run(log)
    assert diagnose(run, load_trees()).findings[0].restart is None
    saved = replace(run, config={**run.config, "checkpoints": Setting((100, 200), "test")})
    restart = diagnose(saved, load_trees()).findings[0].restart
    assert restart is not None
    assert restart.checkpoint_step == 200
