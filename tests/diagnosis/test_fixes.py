"""The fixes of a finding: this run's numbers, its framework's words, and their order."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.common.answer import Evidence
from stabtree.diagnosis.advice import ranked_fixes, with_run_values
from stabtree.diagnosis.fixes import FixFormatter
from stabtree.diagnosis.judged import CauseState, JudgedCause
from stabtree.diagnosis.walk import diagnose
from stabtree.facts import FACTS
from stabtree.facts.registry import Facts
from stabtree.loaders import load_run
from stabtree.predicates.clues import CLUES
from stabtree.predicates.clues.registry import Clues, Moment
from stabtree.report.full import full
from stabtree.report.json import to_dict
from stabtree.report.options import RenderOptions
from stabtree.run import FileUse
from stabtree.tree.load import load_trees
from stabtree.tree.model import Cause, Leaf, Severity
from tests.conftest import falling, make_run

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run

HF = (FileUse("out", "trainer_state", 1),)
WHY = (Evidence("the loss rises"),)


def of_run(run: Run, onset: int | None, good: int | None, max_lr: float = math.inf) -> FixFormatter:
    """What fills in the fixes of an incident of a run."""
    facts = Facts(run, FACTS, {})
    return FixFormatter(Clues(facts, Moment(onset, good), CLUES), facts.get("conditions"), max_lr)


def formatter(onset: int | None = 50, good: int | None = 49, **config: Any) -> FixFormatter:
    """What a run of 100 steps with a warm-up to 1e-3 says of its fixes."""
    return of_run(make_run({"loss": falling(100)}, **config), onset, good)


def leaf(*fixes: str) -> Leaf:
    """A leaf with these fixes."""
    return Leaf("x", "Q", "X", Severity.WARNING, fixes=fixes)


@pytest.mark.parametrize(
    ("fix", "config", "told"),
    [
        ("Halve it {lr/2}.", {"lr": 3e-3}, "Halve it (lr 0.003 → 0.0015)."),
        ("Halve it {lr/2}.", {"lr": 3e-5}, "Halve it (lr 3e-5 → 1.5e-5)."),
        ("Halve it {lr/2}.", {}, "Halve it."),
        ("Look at it {lr}.", {"lr": 3e-3}, "Look at it (lr 0.003)."),
        ("Look at it {lr}.", {}, "Look at it."),
        ("Clip {grad_clip<0.5}.", {"grad_clip": 1.0}, "Clip (max_grad_norm 1.0 → 0.5)."),
        ("Clip {grad_clip/2}.", {"grad_clip": 0.0}, "Clip."),
        ("Clip {grad_clip<0.5}.", {"grad_clip": 0.0}, "Clip (max_grad_norm 0.0 → 0.5)."),
        ("Double {warmup_steps*2}.", {"warmup_steps": 200}, "Double (warmup_steps 200 → 400)."),
        ("Lower {batch_size/2}.", {"batch_size": 64}, "Lower (batch_size 64 → 32)."),
        ("Switch {dtype=bf16}.", {"dtype": "fp16"}, "Switch."),
    ],
)
def test_a_fix_has_this_runs_numbers(fix: str, config: dict[str, Any], told: str) -> None:
    """What the configuration says, and what it would be then; what is not known is left out."""
    assert formatter(**config).format(fix) == told


@pytest.mark.parametrize(
    ("fix", "config", "told"),
    [
        ("Clip {grad_clip<0.5}.", {}, "Clip (max_grad_norm: 0.5)."),
        ("Halve {lr/2}.", {}, "Halve (learning_rate)."),
        ("Halve {lr/2}.", {"lr": 0.01}, "Halve (learning_rate 0.01 → 0.005)."),
        ("Switch {dtype=bf16}.", {"dtype": "fp16"}, "Switch (bf16=True)."),
        ("Keep it {save_total_limit}.", {}, "Keep it (save_total_limit)."),
    ],
)
def test_a_knob_is_called_as_the_framework_calls_it(fix: str, config: dict[str, Any], told: str) -> None:
    """Here Hugging Face's trainer; also where its value is not known."""
    found = formatter(**config)
    assert of_run(replace(found.run, sources=HF), 50, 49).format(fix) == told


def test_a_batch_is_named_as_the_log_writes_it(tmp_path: Path) -> None:
    """A hash of the batch is told, not the number that it is compared by; also where it is written in digits."""
    rows = [f"{step},{4 - step / 50},{'af5dd8' if step == 50 else step}" for step in range(100)]
    (tmp_path / "log.csv").write_text("\n".join(["step,loss,batch_id", *rows]) + "\n", encoding="utf-8")
    assert (
        of_run(load_run(tmp_path / "log.csv"), 50, 48).format("{batches}").strip()
        == "(batches 49, af5dd8, up to step 50)"
    )


def test_a_rate_that_is_not_configured_is_the_highest_one_logged_before_the_trouble() -> None:
    """What came after the onset is not what broke the run."""
    rate = np.where(np.arange(100) < 50, 2e-3, 9e-3)
    assert of_run(make_run({"lr": rate}), 40, 39).format("{lr/2}").strip() == "(lr 0.002 → 0.001)"
    assert of_run(make_run({"lr": [0.0] * 100}), 40, 39).format("Halve {lr/2}") == "Halve"


def test_the_batches_to_skip_are_those_since_the_last_good_step() -> None:
    """A few are named; many, or none that were logged, are not."""
    run = make_run({"batch_id": np.arange(1000, 1100)})
    assert of_run(run, 50, 48).format("Skip it {batches}.") == "Skip it (batches 1049, 1050, up to step 50)."
    assert of_run(run, 50, None).format("Skip it {batches}.") == "Skip it (batch 1050, step 50)."
    assert of_run(run, 50, 10).format("Skip it {batches}.") == "Skip it."
    assert formatter().format("Skip it {batches}.") == "Skip it."


def test_what_is_set_so_already_is_not_advised() -> None:
    """A threshold that is low enough, a format that is used; unless the leaf has nothing else to say."""
    found = formatter(grad_clip=0.5, dtype="bf16")
    fixes = leaf("Clip {grad_clip<0.5}.", "Switch {dtype=bf16}.", "Look.")
    assert [fix.text for fix in ranked_fixes(fixes, (), WHY, found)] == ["Look."]
    assert len(ranked_fixes(leaf("Clip {grad_clip<0.5}."), (), WHY, found)) == 1
    cause = JudgedCause(Cause("c", "no clipping", fixes=("Clip {grad_clip<1.0}.",)), CauseState.LIKELY)
    assert with_run_values([cause], found)[0].cause.fixes == ()


@pytest.mark.parametrize(("at", "told"), [(450, True), (150, False)])
def test_no_checkpoint_is_reloaded_that_is_not_there(at: int, told: bool) -> None:
    """A fix that takes a checkpoint from before the trouble is told only where one is as old."""
    loss = falling(600) + np.where(np.arange(600) >= at, 3.0, 0.0)
    found = diagnose(make_run({"loss": loss}, checkpoint_every=200))
    finding = next(finding for finding in found.findings if finding.leaf.id == "spike-persistent")
    assert finding.restart is not None
    assert (finding.restart.checkpoint_step is not None) is told
    text = " ".join((*finding.fixes, *(fix for judged in finding.causes for fix in judged.cause.fixes)))
    assert ("Evaluate the weights from before it" in text) is told
    assert "{" not in text


def test_nothing_is_restarted_for_a_note() -> None:
    """What is a mere note, or well, breaks no weight."""
    light = [leaf for leaf in load_trees().leaves.values() if leaf.severity.rank < Severity.WARNING.rank]
    assert light
    assert not [leaf.id for leaf in light if leaf.restart]


def test_fixes_of_what_the_log_shows_come_first_and_of_what_may_be_last() -> None:
    """Each with its reason: the cause's evidence, or what led to the finding; of a ruled-out cause nothing is told."""
    causes = [
        JudgedCause(Cause("a", "a bad batch", fixes=("Skip it.",)), CauseState.CONFIRMED, (Evidence("seen"),)),
        JudgedCause(Cause("b", "all labels are masked", fixes=("Unmask.",)), CauseState.POSSIBLE),
        JudgedCause(Cause("c", "a schedule: it jumps", fixes=("Plot it.",)), CauseState.NOT_CHECKABLE),
        JudgedCause(Cause("d", "labels that are masked", fixes=("No.",)), CauseState.RULED_OUT),
    ]
    found = ranked_fixes(leaf("Look."), causes, WHY, formatter())
    assert [(fix.text, fix.reason) for fix in found] == [
        ("Skip it.", "seen"),
        ("Look.", "the loss rises"),
        ("If all labels are masked: Unmask.", ""),
        ("If the cause is a schedule (it jumps): plot it.", ""),
    ]


def test_one_change_is_not_advised_twice_among_the_first() -> None:
    """Who has halved the rate need not read of it again before other fixes."""
    found = ranked_fixes(leaf("Halve {lr/2}.", "Really halve {lr/2}.", "Look."), (), WHY, formatter(lr=0.01))
    assert [fix.text.split()[0] for fix in found] == ["Halve", "Look.", "Really"]


def nan_run() -> Run:
    """A bf16 run whose gradient climbs before its loss is NaN."""
    at = np.arange(600)
    norm = np.where(at < 380, 1.0, np.exp(np.minimum(at - 380, 60) / 3.0))
    loss = np.where(at < 400, falling(600), np.nan)
    return make_run({"loss": loss, "grad_norm": norm}, dtype="bf16", lr=3e-3, grad_clip=5.0)


def test_all_are_in_the_full_report_and_in_json() -> None:
    """With the numbers of the run, which JSON has as well."""
    found = diagnose(nan_run())
    finding = found.findings[0]
    assert len(finding.first_fixes) == 3
    assert len(finding.fixes) > 3
    told = to_dict(found)["findings"][0]
    assert told["fixes"] == list(finding.fixes)
    assert [item["fix"] for item in told["first_fixes"]] == list(finding.fixes[:3])
    text = full(found, RenderOptions(width=400))
    assert all(fix in text for fix in finding.fixes)
    assert any("lr 0.003 → 0.0015" in fix for fix in finding.fixes)
    assert not any("Should it be" in fix or "{" in fix for fix in finding.fixes)


def test_a_rate_that_is_advised_is_below_what_is_far_too_high() -> None:
    """Where the change that a fix asks for would still be far too high, it goes down tenfold until it is not."""
    told = of_run(make_run({"loss": falling(100)}, lr=1.0), 50, 49, 0.01).format("Lower it {lr/10}.")
    assert told == "Lower it (lr 1.0 → 0.001)."
    told = of_run(make_run({"loss": falling(100)}, lr=1.0), 50, 49, 0.01).format("Halve the peak learning rate {lr/2}.")
    assert told == "Lower the peak learning rate (lr 1.0 → 0.001)."
    assert of_run(make_run({"loss": falling(100)}, lr=0.05), 50, 49, 0.01).format("{lr/10}") == " (lr 0.05 → 0.005)"


@pytest.mark.parametrize(("onset", "peak"), [(0, "0.0002"), (10, "0.0002"), (300, "0.0002"), (390, "0.0002")])
def test_a_row_of_the_warm_up_is_no_rate_to_change(onset: int, peak: str) -> None:
    """Trouble in the first rows is that of the peak that the warm-up leads to."""
    lr = np.interp(np.arange(400), [0, 60, 399], [2e-6, 2e-4, 1e-5])
    run = make_run({"loss": falling(400), "lr": lr})
    assert of_run(run, onset, None).format("Halve it {lr/2}.") == f"Halve it (lr {peak} → 0.0001)."


def test_a_rate_that_jumps_with_the_trouble_is_not_the_one_to_change() -> None:
    """What the schedule did from the onset on is another matter than the rate that the run held."""
    run = make_run({"loss": falling(400), "lr": np.where(np.arange(400) < 300, 1e-3, 0.2)})
    assert of_run(run, 299, 298).format("Halve it {lr/2}.") == "Halve it (lr 0.001 → 0.0005)."


def test_the_number_format_is_the_reason_for_no_fix() -> None:
    """A rise in a run whose format is known: the reason is the rise."""
    loss = np.concatenate((falling(300), 1 + np.linspace(0, 2, 300)))
    finding = diagnose(make_run({"loss": loss}, dtype="fp32")).findings[0]
    assert finding.leaf.id == "slow-rise"
    assert finding.advice[0].reason.startswith("the loss rises from")


def test_a_scale_that_is_a_number_is_not_dynamic() -> None:
    """A fix that sets a word is not done where a number stands."""
    assert not formatter(loss_scale=1024.0).is_done("Scale dynamically {loss_scale=dynamic}.")
    assert formatter(loss_scale="dynamic").is_done("Scale dynamically {loss_scale=dynamic}.")
