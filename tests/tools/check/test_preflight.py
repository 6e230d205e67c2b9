"""A configuration is judged before its run by what it says, and by nothing else."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.judging.judge import Judging
from stabtree.judging.settings import read_settings
from stabtree.run import CONFIG, Setting
from stabtree.tools.check import command
from stabtree.tools.check.plans import phase_of
from stabtree.tree.load import load_known, load_preflight, load_tree, load_trees
from stabtree.tree.model import Severity
from tests.conftest import falling, make_run
from tests.tools.check.preflights import FILES, FP16, GOOD, RL, SIDES, of, planned, unsaid

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run

TREE = load_preflight()
TEAM = """
name: ours
title: What our cluster asks of a run
source: the rules of our team
when: [config]

checks:
  - id: T1
    leaf: ours-rate
    ask: Is the learning rate above what our models take?
    short: lr above ours?
    test: setting_outside
    params: {key: lr, high: 1e-4}
    severity: critical
    title: The learning rate is above what our models take
    means: All four runs above it were lost within a day.
    fix: "Set it to 1e-4 {lr=0.0001}."
    source: the rules of our team
"""


def checked(run: Run, judging: Judging | None = None) -> Diagnosis:
    """The diagnosis of a configuration."""
    return command.checked(run, judging or Judging())


def leaves(found: Diagnosis) -> set[str]:
    """The leaves of all findings."""
    return {finding.leaf.id for finding in found.findings}


def answers(found: Diagnosis) -> dict[str, str]:
    """The verdict of each question that was asked."""
    return {visit.question.id: visit.answer.verdict for visit in chain(found.path, *found.further)}


def test_nothing_is_found_in_a_good_configuration() -> None:
    """A LoRA fine-tuning as the documents advise it is ok, and so is a run of reinforcement learning."""
    for run in (planned(), planned(RL)):
        found = checked(run)
        assert (found.verdict, leaves(found)) == ("ok", set())
        assert found.missing == () or run.setting("task") == "grpo"  # whose prompts have no labels to mask


@pytest.mark.parametrize("name", SIDES)
def test_a_rule_holds_on_both_sides_of_its_bar(name: str) -> None:
    """Beyond it the leaf is found, with the value, its place, and a fix; inside of it, it is not, and that is a no."""
    leaf, sides = name.partition(" ")[0], SIDES[name]
    found = checked(planned(sides.base, sides.yes))
    assert leaf in leaves(found)
    finding = next(item for item in found.findings if item.leaf.id == leaf)
    assert "run.yaml:" in finding.evidence[-1].text
    assert finding.actions
    assert Severity(found.verdict).rank >= finding.leaf.severity.rank
    inside = checked(planned(sides.base, sides.no))
    assert leaf not in leaves(inside)


def test_every_leaf_and_every_answer_has_a_configuration() -> None:
    """The table above ends at each leaf, and each edge of each question is walked."""
    assert {*(name.partition(" ")[0] for name in SIDES), *FILES} == {
        leaf.id for leaf in TREE.leaves.values() if leaf.severity is not Severity.OK
    }
    runs = [planned(sides.base, side) for sides in SIDES.values() for side in (sides.yes, sides.no)]
    runs.append(unsaid(planned(grad_clip=0.0), "grad_clip"))
    given = {pair for run in runs for pair in answers(checked(run)).items()}
    wanted = {(question.id, verdict) for question in TREE.questions.values() for verdict in question.go}
    open_ = wanted - given
    one_bar = {
        id_ for id_, node in TREE.questions.items() if node.test == "setting_outside" and "graded" not in node.params
    }
    assert {(id_, word) for id_, word in open_ if word != UNKNOWN} == {
        *((id_, "outside") for id_ in one_bar),
        ("C58", "no"),  # what is not misspelled is not there
    }


@pytest.mark.parametrize(
    "name",
    [
        *("apollo_adamw", "adamw_torch_xla", "adamw_torch_npu_fused", "galore_adamw_8bit_layerwise"),
        *("ao_adamw_4bit", "ao_adamw_8bit", "dion", "schedule_free_sgd"),
    ],
)
def test_an_optimizer_that_a_trainer_has_is_not_asked_about(name: str) -> None:
    """Names of transformers and of axolotl."""
    assert leaves(checked(planned(optimizer=name))) == set()


def test_a_name_that_is_nearly_a_known_one_is_asked_about_and_stops_nothing() -> None:
    """Nearness is no proof: the trainer may know a name that stabtree does not."""
    for key, name, near in (("optimizer", "adamw_trch", "adamw_torch"), ("lr_schedule", "cosinus", "cosine")):
        found = checked(planned({key: name}))
        assert found.verdict == "note"
        (finding,) = found.findings
        assert finding.leaf.title.endswith("right?")
        assert finding.evidence[-1].text.endswith(f"did you mean {near}?")


def test_a_setting_that_is_not_said_is_not_judged() -> None:
    """Without it no rule that reads it has an answer: nothing is taken for a default where no trainer is known."""
    for key in GOOD:
        without = checked(planned({key: None}))
        assert leaves(without) == set(), key
    empty = checked(of({"seed": 3}))
    assert (empty.verdict, leaves(empty)) == (UNKNOWN, set())
    assert set(answers(empty).values()) == {UNKNOWN}


def test_too_few_answers_are_no_verdict() -> None:
    """Where nothing is wrong in fewer than five rules, it is not judged; one fault in them counts all the same."""
    few: dict[str, Any] = {"grad_clip": 1.0, "lr": 1e-4}
    found = checked(of(few))
    assert (found.judged, found.verdict, leaves(found)) == (4, UNKNOWN, set())
    enough = checked(of({**few, "lora_rank": 8}))
    assert (enough.judged, enough.verdict) == (5, "ok")
    assert checked(of({"grad_clip": 0.0})).verdict == "warning"
    assert checked(of({"logs": "none"})).verdict == UNKNOWN


def test_what_nobody_chose_is_a_note() -> None:
    """A default that is a mistake where it is chosen is no alarm; but fp16 needs the clipping."""
    for key, value, leaf in (
        ("grad_clip", 0.0, "no-clipping-unsaid"),
        ("warmup_steps", 0, "warmup-none-gentle"),
        ("eval_strategy", "no", "eval-never-once"),
    ):
        run = unsaid(planned({key: value}), key)
        found = checked(run)
        assert (found.verdict, leaves(found)) == ("note", {leaf})
        assert "default of Some Trainer" in found.findings[0].evidence[-1].text
    assert "no-clipping" in leaves(checked(unsaid(planned(FP16, grad_clip=0.0), "grad_clip")))


@pytest.mark.parametrize(
    ("settings", "phase"),
    [
        ({"task": "grpo", "adapter": "lora"}, "rl"),
        ({"num_generations": 8}, "rl"),
        ({"task": "dpo", "adapter": "lora"}, "preference"),
        ({"beta": 0.1, "adapter": "lora"}, "preference"),
        ({"adapter": "qlora"}, "lora"),
        ({"adapter": "full"}, "full"),
        ({"task": "sft"}, "finetune"),
        ({"framework": "huggingface", "init_from": "some/model"}, "finetune"),
        ({"framework": "huggingface"}, ""),
        ({"framework": "megatron"}, "pretrain"),
        ({"framework": "megatron", "init_from": "some/model"}, ""),
        ({"task": "reward", "adapter": "lora"}, "other"),
        ({}, ""),
    ],
)
def test_the_phase_of_a_run_is_known_by_its_task_its_adapter_and_its_trainer(
    settings: dict[str, Any], phase: str
) -> None:
    """Each has rates of its own; where nothing says which it is, none of them is judged."""
    assert phase_of(of(settings)) == phase


def test_a_rule_for_others_is_not_missed() -> None:
    """What holds for reinforcement learning alone is neither answered nor told as missing for a fine-tuning."""
    found = checked(planned())
    assert answers(found)["C60"] == UNKNOWN
    assert "C60" not in {miss.id for miss in found.missing}


def test_a_log_is_never_walked_through_it() -> None:
    """Whatever its configuration says: none of its sections is there, not even where all trees are loaded."""
    run = make_run({"loss": falling(300)}, grad_clip=0.0, warmup_steps=0, optimizer="adam")
    assert not run.has(CONFIG)
    assert planned().has(CONFIG)
    for tree in (load_trees(run), load_trees(None)):
        assert not set(tree.questions) & set(TREE.questions)
    assert "preflight" not in {tree.name for tree in diagnose(run).trees}


def test_every_node_can_be_explained() -> None:
    """It is one of the shipped trees where something is explained, and no id of another tree stands in it."""
    assert set(TREE.questions) <= set(load_known().questions)
    assert load_tree("preflight").when == (CONFIG,)


def folder(place: Path, text: str = TEAM) -> str:
    """A folder of trees with a team's own."""
    (place / "rules").mkdir()
    (place / "rules" / "ours.yaml").write_text(text, encoding="utf-8")
    return str(place / "rules")


def test_a_team_adds_rules_of_its_own(tmp_path: Path) -> None:
    """In a tree that waits for `config`: it is walked beside the shipped one, or alone, and over no log."""
    trees = folder(tmp_path)
    beside = checked(planned(), Judging(trees=trees))
    assert (beside.verdict, leaves(beside)) == ("critical", {"ours-rate"})
    assert [action.text for action in beside.findings[0].actions] == ["Set it to 1e-4 (learning_rate 0.0002 → 0.0001)."]
    alone = checked(planned(grad_clip=0.0), Judging(tree=f"{trees}/ours.yaml"))
    assert leaves(alone) == {"ours-rate"}
    assert "T1" not in load_trees(None, trees).questions


def test_a_tree_of_logs_in_the_same_folder_is_left_alone(tmp_path: Path) -> None:
    """A rule about a log has nothing to ask of a configuration."""
    trees = folder(tmp_path, TEAM.replace("when: [config]\n", ""))
    assert "T1" not in checked(planned(), Judging(trees=trees)).tree.questions
    assert "T1" in load_trees(None, trees).questions


SHARED = """
set = {Q2.1.sigma = 4.0, C31.high = 20.0}
ignore = ["spike-minor", "log-hides-nan"]
accept = [{leaf = "warmup-none", reason = "our models take it"}, {leaf = "loss-ends", reason = "cut on purpose"}]
"""


def judging(place: Path, text: str) -> Judging:
    """How a project with these settings judges."""
    (place / "stabtree.toml").write_text(text, encoding="utf-8")
    return Judging(read_settings(str(place / "stabtree.toml")))


def test_one_file_of_settings_serves_logs_and_configurations(tmp_path: Path) -> None:
    """What it says of the other kind is passed over; what is of neither is a mistake in both."""
    both = judging(tmp_path, SHARED)
    found = checked(planned(grad_clip=12.0, log_filters_nan=True, warmup_steps=0), both)
    assert {item.leaf.id for item in found.ignored} == {"log-hides-nan", "warmup-none"}
    assert found.verdict == "ok"
    run = make_run({"loss": falling(300), "lr": [1e-3] * 300, "grad_norm": [1.0] * 300}, dtype="fp32")
    assert both.diagnosed(run).overrides == {"Q2.1": {"sigma": 4.0}}
    for wrong in ('ignore = ["no-such-leaf"]', "set = {C999.high = 2.0}"):
        by = judging(tmp_path, wrong)
        with pytest.raises(StabtreeError, match=r"no-such-leaf|C999"):
            checked(planned(), by)
        with pytest.raises(StabtreeError, match=r"no-such-leaf|C999"):
            by.diagnosed(run)


def test_a_value_of_another_kind_is_not_judged() -> None:
    """A word where a number belongs, or a flag, is no number: the rule stays open."""
    odd: list[Run] = [planned({"lr": "auto", "min_lr": None}), planned({"grad_clip": True})]
    assert all(leaves(checked(run)) == set() for run in odd)


def test_beta2_that_is_no_average_has_no_span() -> None:
    """A beta2 of 1 or more is a mistake of its own, and no division by zero follows from it."""
    assert leaves(checked(planned(beta2=1.0))) == {"beta-impossible"}


def test_what_deepspeed_prints_is_not_what_is_logged() -> None:
    """`steps_per_print` says how often DeepSpeed prints; of the trainer's log it says nothing."""
    run = of({"log_interval": 2000, "max_steps": 3000, "grad_clip": 1.0, "lr": 1e-4})
    assert "log-too-rare" in leaves(checked(run))
    printed = replace(run, config={**run.config, "log_interval": Setting(2000, "ds.json, steps_per_print")})
    assert leaves(checked(printed)) == set()
