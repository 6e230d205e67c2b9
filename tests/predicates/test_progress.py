"""Losses that get on, that never hold, and that leave the eval loss behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.judged import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.run import Series
from stabtree.tree.load import load_trees
from tests.conftest import ask, falling, make_run
from tests.leaves.make import with_rerun
from tests.leaves.precision import never_held

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run

TREES = load_trees()
AT = np.arange(1000)


def test_overfitting_shows_though_the_training_loss_is_at_its_bottom() -> None:
    """A training loss of nearly 0 that rises a little is no reason to doubt; one that rises with the eval loss is."""
    at = np.arange(1000)
    eval_loss = 1.1 + 1.5 * np.exp(-at / 50) + np.clip(at - 300, 0, None) / 1000
    for floor, wanted in ((0.005, True), (1.0, False)):
        rise = 0.001 if wanted else 0.6
        loss = floor + 2.5 * np.exp(-at / 50) + rise * np.clip(at - 300, 0, None) / 1000
        found = diagnose(make_run({"loss": loss, "eval_loss": eval_loss}), TREES)
        assert ("overfitting" in [finding.leaf.id for finding in found.findings]) == wanted


def test_what_was_slow_from_the_start_is_dated_by_the_first_row() -> None:
    """No row in the middle of a slow fall is where it began."""
    loss = 2.4 + 0.03 * falling(1000, 0.2)
    answer = ask("leaves_start", make_run({"loss": loss}, steps=10 + 10 * AT, task="regression"))
    assert (answer.verdict, answer.onset_step) == ("slow", 10)


def test_what_has_not_learned_does_not_overfit() -> None:
    """Eval and training loss jump about far above their beginning: the one ends high by chance."""
    noise = np.random.default_rng(9).normal(0, 3, (2, 1000))
    loss, eval_loss = 30 + noise[0], 28 + noise[1] + 20 * (np.arange(1000) > 500)
    loss[0] = 2.5
    found = diagnose(make_run({"loss": loss, "eval_loss": eval_loss}), TREES)
    assert "overfitting" not in [finding.leaf.id for finding in found.findings]


def test_the_level_of_a_loss_says_nothing_by_itself() -> None:
    """A constant that is added to the loss turns no healthy run into one that learns slowly, and hides no flat one."""
    rng = np.random.default_rng(3)
    flat, fell = 2.3 + rng.normal(0, 0.03, 600), falling(600)
    for added in (-10.0, 0.0, 10.0, 1000.0):
        assert leaves(make_run({"loss": flat + added})) >= {"flat-from-start"}
        assert not leaves(make_run({"loss": fell + added})) & {"flat-from-start", "slow-learning", "worse-than-start"}


def test_a_run_that_learned_before_it_blew_up_is_not_worse_than_its_start() -> None:
    """The scatter of the loss once it has blown up says nothing of how low it had come."""
    loss = 2.6 + 2 * np.exp(-np.arange(300) / 20) + np.random.default_rng(4).normal(0, 0.03, 300)
    loss[150:] = 2700 + np.random.default_rng(5).normal(0, 150, 150)
    assert "worse-than-start" not in leaves(make_run({"loss": loss}))


def test_a_loss_that_hardly_falls_is_told_in_any_unit() -> None:
    """A squared error may begin far below a guess between classes: what it hardly loses is hardly learned."""
    loss = 2.4 + 0.03 * falling(600) + np.random.default_rng(5).normal(0, 0.01, 600)
    quality = np.random.default_rng(6).normal(0.1, 0.01, 600)
    for unit in (1.0, 1e-3, 1e-6):
        assert "slow-learning" in leaves(make_run({"loss": unit * loss}, task="regression"))
        small = {"loss": unit * (2.4 + 0.4 * (loss - 2.4)), "eval_quality": quality}
        assert "slow-learning" in leaves(make_run(small))


def test_a_model_that_was_trained_before_may_win_little() -> None:
    """A fine-tune that wins one percent is healthy, one that wins nothing is not, and scatter decides neither."""
    at, noise = np.arange(600), np.random.default_rng(8).normal(0, 1, 600)
    wins, nothing = 2.0 - 0.03 * at / 600, np.full(600, 2.0)
    for level, width, flat in ((wins, 0.02, False), (nothing, 0.02, True), (nothing, 0.4, False)):
        found = leaves(make_run({"loss": level + width * noise}, lora_rank=8))
        assert ("flat-from-start" in found) is flat
        assert "slow-learning" not in found


def test_a_held_out_loss_that_moves_shows_that_something_is_trained() -> None:
    """A training loss without a trend says little of a fine-tune whose held-out loss is another every time."""
    loss = 1.3 + np.random.default_rng(9).normal(0, 0.005, 400)
    still, moves = np.full(8, 1.2571), 1.2571 + 2e-4 * np.array([0, 1, -1, 2, 0, 3, -2, 1])
    for held_out, flat in ((still, True), (moves, False)):
        steps = {"eval_loss": 50 * np.arange(8)}
        series = {"eval_loss": Series("eval_loss", steps["eval_loss"], held_out, "")}
        run = make_run({"loss": loss}, lora_rank=8)
        assert ("flat-from-start" in leaves(replace(run, series={**run.series, **series}))) is flat


def test_no_gradient_is_flat_at_any_length() -> None:
    """Twelve rows, or a log that begins late: a gradient of exactly 0 needs no statistics."""
    for rows, begin in ((12, 0), (140, 2000)):
        loss = 2.3 + np.random.default_rng(1).normal(0, 0.1, rows)
        run = make_run({"loss": loss, "grad_norm": np.zeros(rows)}, steps=begin + 5 * np.arange(rows))
        assert "no-gradient" in leaves(run)


def test_a_warm_up_is_no_flat_run() -> None:
    """Sixty steps of a warm-up of a thousand are worth two at the full rate, which need not show."""
    loss = 10.8 * (1 - 0.005 * np.linspace(0, 1, 60)) + np.random.default_rng(2).normal(0, 0.02, 60)
    lr = 1e-3 * np.arange(1, 61) / 1000
    task, hardly = "language-model", {"flat-from-start", "slow-learning"}
    assert leaves(make_run({"loss": loss}, steps=10 * np.arange(60), task=task)) & hardly
    assert not leaves(make_run({"loss": loss, "lr": lr}, lr=1e-3, task=task)) & hardly


def test_a_loss_of_nothing_but_zeros_is_called_zero() -> None:
    """All labels masked: that it is 0 says more than that it never moves."""
    assert {"loss-zero"} == leaves(make_run({"loss": np.zeros(600)}))


def test_a_loss_that_begins_below_zero_is_flat_within_its_own_scatter() -> None:
    """A Dice loss that never leaves its first level has learned nothing; one that falls far has, whatever its share."""
    scatter = np.random.default_rng(5).normal(0, 0.004, 400)
    assert "flat-from-start" in leaves(make_run({"loss": scatter - 0.067}))
    learned = -0.067 - 0.7 * (1 - np.exp(-np.arange(400) / 60))
    assert not leaves(make_run({"loss": scatter + learned})) & {"flat-from-start", "slow-learning"}


def test_one_row_of_an_attempt_before_is_not_where_a_resumed_run_begins() -> None:
    """A log that goes on at step 13,000, one row of an earlier attempt beside it, is not called flat from its start."""
    run = make_run({"loss": np.append(2.2, 2.2 + np.random.default_rng(6).normal(0, 0.02, 600))})
    series = Series("loss", np.append(1, 13_000 + np.arange(600)), run.series["loss"].values, "")
    assert "flat-from-start" in leaves(run)
    assert "flat-from-start" not in leaves(replace(run, series={"loss": series}))


def leaves(run: Run) -> set[str]:
    """What is found in a run."""
    return {finding.leaf.id for finding in diagnose(run, TREES).findings}


def test_a_run_that_never_holds_needs_another_rate_to_tell() -> None:
    """P17 is confirmed by a rerun at another learning rate, ruled out by one that holds, else not checkable."""

    def state(found: Diagnosis) -> CauseState:
        return CauseState(next(c.state for f in found.findings for c in f.causes if c.cause.id == "P17.init"))

    assert state(diagnose(never_held(1e-3), TREES)) is CauseState.NOT_CHECKABLE
    assert state(diagnose(with_rerun(never_held(1e-3), never_held(1e-4)), TREES)) is CauseState.CONFIRMED
    found = diagnose(with_rerun(never_held(1e-3), make_run({"loss": falling(1000)}, lr=1e-4)), TREES)
    assert state(found) is CauseState.RULED_OUT
    too_short = make_run({"loss": falling(200)}, lr=1e-4)
    assert state(diagnose(with_rerun(never_held(1e-3), too_short), TREES)) is CauseState.NOT_CHECKABLE


@pytest.mark.parametrize("level", [0.0, 3.0])
def test_a_rise_from_below_zero_is_judged_as_one_from_above(level: float) -> None:
    """A share of a level at or below 0 means nothing; there a rise is compared with what the training loss fell."""
    evals = level + np.where(AT < 200, -0.5, 9.5 * (AT / 1000) - 0.5)
    found = ask("overfits", make_run({"loss": level + 1 - 3 * AT / 1000, "eval_loss": evals}))
    assert found.verdict == "yes"


def test_the_best_eval_loss_and_the_last_are_stated_as_logged() -> None:
    """Best value, its step, the value now and by how much: what a person looks for first."""
    evals = np.array([3.0, 2.0, 1.5, 1.453, 1.47, 1.52, 1.55, 1.58, 1.63, 1.66])
    run = make_run({"eval_loss": evals, "loss": np.linspace(2.5, 0.2, 10)})
    first, second = ask("overfits", run).evidence
    assert "eval_loss is 14% above its best, 1.453 at step 3: 1.66 now (13.0% with" in first.text
    assert "the training loss goes from" in second.text


def test_a_larger_scatter_weakens_a_rise() -> None:
    """The same rise is stronger where the evaluations scatter less, and no rise where the scatter explains it."""
    noise = np.random.default_rng(4).normal(0, 1, 30)
    course = 1 + 2 * np.exp(-np.arange(30) / 2) + 0.02 * np.clip(np.arange(30) - 10, 0, None)
    strengths = []
    for scatter in (0.0, 0.02, 0.3):
        run = make_run({"eval_loss": course + scatter * noise, "loss": np.linspace(3, 0.1, 30)})
        strengths.append(ask("overfits", run).strength or 0.0)
    assert strengths[0] > strengths[1] > 0 > strengths[2]


def test_one_evaluation_after_the_best_is_no_verdict() -> None:
    """A single bad evaluation at the end comes near at most; a second one that confirms it is a finding."""
    evals, loss = [3.0, 2.0, 1.5, 1.2, 1.0, 2.0, 2.1], np.linspace(2, 0.5, 7)
    once = ask("overfits", make_run({"eval_loss": np.array(evals[:6]), "loss": loss[:6]}))
    twice = ask("overfits", make_run({"eval_loss": np.array(evals), "loss": loss}))
    assert once.verdict == "no"
    assert -1 <= (once.strength or 0.0) < 0
    assert twice.verdict == "yes"


def test_the_last_of_many_evaluations_alone_is_no_verdict() -> None:
    """Among many evaluations, too, a single bad one at the end is no finding."""
    evals = np.append(np.linspace(2, 0.5, 12), 1.0)
    assert ask("overfits", make_run({"eval_loss": evals, "loss": np.linspace(2, 0.3, 13)})).verdict == "no"


def test_an_eval_loss_alone_shows_overfitting() -> None:
    """Where no training loss is logged, the held-out loss is all there is: a lasting rise of it is a finding."""
    rising = np.where(AT < 200, 2.0 - AT / 400, 1.5 + (AT - 200) / 1000)
    assert ask("overfits", make_run({"eval_loss": rising})).verdict == "yes"
    assert ask("overfits", make_run({"eval_loss": 2.0 - AT / 1000})).verdict == "no"


def test_a_quality_that_wins_back_a_part_does_not_get_better() -> None:
    """A rising eval loss is overfitting where the quality ends below what it was at the best eval loss."""
    evals, loss = np.r_[np.linspace(2, 1, 10), np.linspace(1, 2, 50)], np.linspace(2, 0.1, 60)
    lost = np.r_[np.full(12, 0.8), np.linspace(0.8, 0.5, 18), np.linspace(0.5, 0.7, 30)]
    better, back = (
        make_run({"eval_loss": evals, "loss": loss, "eval_quality": up}) for up in (lost + AT[:60] / 99, lost)
    )
    assert ask("overfits", better).verdict == "better"
    assert ask("overfits", back).verdict == "yes"


def test_a_loss_that_falls_from_where_its_first_updates_threw_it_is_worse() -> None:
    """While it is above its first row, it has won nothing, however steadily it falls; below that it has."""
    at = np.arange(200)
    thrown = np.r_[4.0, 5 + 8 * np.exp(-at[1:] / 30) - at[1:] / 1000]
    assert ask("leaves_start", make_run({"loss": thrown})).verdict == "worse"
    assert ask("leaves_start", make_run({"loss": np.r_[4.0, thrown[1:] - 2.5]})).verdict == "yes"


def test_a_quality_that_was_next_to_nothing_has_little_to_lose() -> None:
    """A detector at a hundredth of what it should reach has not learned yet; a good one that falls so has lost much."""
    course = np.r_[np.linspace(0.01, 1, 40), np.linspace(1, 0.4, 20)]
    poor, good = (make_run({"loss": np.linspace(9, 8, 60), "eval_quality": best * course}) for best in (0.02, 0.8))
    assert ask("quality_falls", poor).verdict == "no"
    assert ask("quality_falls", good).verdict == "collapsed"


def test_a_kl_without_information_is_a_collapse() -> None:
    """Beside a reconstruction alone, and not while some nats are left of an annealed one."""
    kl = np.where(AT < 300, 20.0, 0.05)
    loss = {"loss": np.linspace(9, 3, 1000)}
    assert ask("code_collapses", make_run({**loss, "recon_loss": loss["loss"], "kl_loss": kl})).verdict == "yes"
    assert ask("code_collapses", make_run({**loss, "recon_loss": loss["loss"], "kl_loss": 100 * kl})).verdict == "no"
    assert ask("code_collapses", make_run({**loss, "kl_loss": kl})).verdict == "no"


def test_a_rise_within_the_scatter_of_single_evaluations_is_no_overfitting() -> None:
    """However many evaluations show that it is real: which of them is the best one is chance."""
    course = 0.7 + np.clip(AT - 300, 0, None) / 2000 + np.exp(-AT / 50)
    noise = np.random.default_rng(2).normal(0, 0.25, 1000)
    loss = falling(1000)
    assert ask("overfits", make_run({"loss": loss, "eval_loss": course})).verdict == "yes"
    assert ask("overfits", make_run({"loss": loss, "eval_loss": course + noise})).verdict == "no"


def test_a_quality_that_never_was_above_a_guess_has_not_fallen() -> None:
    """A correlation that wanders around 0 as far below it as above was never there."""
    course = np.array([-0.1, -0.067, 0.069, 0.083, 0.123, 0.074, -0.017, -0.038, -0.047, -0.012])
    answers = []
    for above in (0.0, 0.12):
        run = make_run({"loss": falling(10)})
        quality = Series("eval_quality", np.arange(10), course + above, "val_rank_ic")
        answers.append(ask("quality_falls", replace(run, series={**run.series, "eval_quality": quality})).verdict)
    assert answers == ["no", "yes"]


def test_an_evaluation_is_not_blamed_where_training_learned_nothing_either() -> None:
    """A held-out accuracy of 0 beside a training accuracy of 0 and a loss at chance is no fault of the evaluation."""
    still = make_run({"loss": np.full(40, np.log(2)), "eval_quality": np.zeros(40)})
    learns = make_run({"loss": falling(40), "eval_quality": np.zeros(40)})
    accuracy = {"accuracy": Series("accuracy", np.arange(40), np.full(40, 0.01))}
    answers = [ask("quality_falls", replace(run, others=accuracy)).verdict for run in (still, learns)]
    assert answers == ["no", "zero"]


def test_the_beginning_is_said_as_it_was_read() -> None:
    """The level is the median of the first rows; a first row that lies far from it is named."""
    values = 2.3 + 0.01 * np.sin(AT * 1.7)
    odd = np.where(AT == 0, 6.15, values)
    plain, named = (ask("leaves_start", make_run({"loss": loss})).evidence[0].text for loss in (values, odd))
    assert "rows" not in plain
    assert "the median of 10 rows (the first is 6.15)" in named


def test_a_loss_at_chance_may_scatter_more_widely_than_it_is_apart() -> None:
    """Compared is what its levels can be: rows that scatter by a tenth around ln 2 stand there, ones below do not."""
    noise = np.random.default_rng(7).normal(0, 0.07, 3000)
    assert ask("stands_at_chance", make_run({"loss": np.log(2) + noise})).verdict == "yes"
    assert ask("stands_at_chance", make_run({"loss": 0.94 * np.log(2) + noise})).verdict == "no"
    assert ask("stands_at_chance", make_run({"loss": np.log(2) + noise[:15]})).verdict == "no"


def test_a_preference_that_never_beats_a_guess_is_at_chance() -> None:
    """A DPO loss begins at ln 2 by construction: one that comes down to 1.05 from 1.45 is worse than not trained."""
    at = np.arange(200)
    loss = 1.05 + 0.4 * np.exp(-at / 40) + np.random.default_rng(7).normal(0, 0.02, 200)
    dpo = [ask("stands_at_chance", make_run({"loss": loss - gap}, algorithm="dpo")) for gap in (0.0, 0.9)]
    assert [answer.verdict for answer in dpo] == ["yes", "no"]


def test_a_rise_from_next_to_nothing_is_a_finite_share_of_it() -> None:
    """A best eval loss as small as a float can be gives no infinite share."""
    found = ask("overfits", make_run({"eval_loss": np.tile([2e-313, 1.0, 1.0, 2e-313], 20)}))
    numbers = [item.observed for item in found.evidence if item.observed is not None]
    assert numbers
    assert np.isfinite(numbers).all()


def test_a_loss_without_a_finite_row_was_not_learned_by_heart_for_all_that_is_known() -> None:
    """Its levels are no numbers, so there is nothing to compare."""
    assert ask("memorised", make_run({"loss": np.full(30, np.inf)})).verdict == "unknown"
