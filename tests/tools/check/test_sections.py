"""Settings in sections of any name, what is switched off, left open or misspelled, and defaults of trainers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.frameworks.load import frameworks
from stabtree.predicates import PREDICATES
from stabtree.tools.check.load import load_config
from stabtree.tools.check.tables import SETTINGS
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run

HF = "per_device_train_batch_size: 4\noutput_dir: out\ngradient_accumulation_steps: 1\n"


def loaded(place: Path, text: str) -> Run:
    """A run of YAML."""
    return load_config(write(place, f"seed: 1\n{text}\n", "run.yaml"))


def said(place: Path, text: str) -> dict[str, Any]:
    """The settings of YAML but its seed and the defaults of its trainer."""
    config = loaded(place, text).config
    keys = [key for key, one in config.items() if not one.source.startswith("default of ") and key != "seed"]
    return {key: config[key].value for key in keys}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hp: {learning_rate: 0.5, max_grad_norm: 0}", {"lr": 0.5, "grad_clip": 0.0}),
        ("stage_one: {inner: {lr: 0.5}}", {"lr": 0.5}),
        ("max_epoch: 3\nlearningRate: 0.5", {"epochs": 3.0, "lr": 0.5}),
        ("SGDConfig: {lr: 0.5}", {"lr": 0.5}),
        ("optim_cfg: {type: sgd, lr: 0.5}", {"optimizer": "sgd", "lr": 0.5}),
        ("lr: 0.1\nhp: {lr: 0.5}", {"lr": 0.1}),
        ("sampler: {temperature: 2, name: x}", {}),
        ("val_loader: {batch_size: 3}", {}),
    ],
)
def test_a_section_of_any_name_is_looked_into(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    """For words that mean one thing wherever they stand; what stands at the top or in a known section counts first."""
    assert said(tmp_path, text) == expected


def test_two_sections_that_differ_say_nothing(tmp_path: Path) -> None:
    """Which of two stages a rate is of is not guessed, and a note says so."""
    run = loaded(tmp_path, "one: {lr: 0.1, epochs: 2}\ntwo: {lr: 0.2, epochs: 2}")
    assert "lr" not in run.config
    assert run.config["epochs"].value == 2
    assert any("one.lr and two.lr say lr in two ways" in note for note in run.notes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use_peft: false\nlora_r: 8", {"adapter": "full"}),
        ("is_peft: false\nlora_r: 8", {"adapter": "full"}),
        ("lora_enable: false\npeft: {r: 8}", {"adapter": "full"}),
        ("use_lora: true\nlora_r: 8", {"adapter": "lora", "lora_rank": 8}),
        ("use_lr_scheduler: false\nlr_scheduler: {name: cosine}", {}),
        ("ema: {enabled: false, lr: 3}\nhp: {enabled: false, lr: 3}", {}),
        ("fp16: {enabled: false}\nbf16: {enabled: true}", {"dtype": "bf16", "mixed": True}),
    ],
)
def test_what_a_flag_switches_off_is_not_there(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    """Its section, its words, and for an adapter both names that it goes by."""
    assert said(tmp_path, text) == expected


def test_a_constant_rate_has_no_schedule_that_could_end(tmp_path: Path) -> None:
    """Where the lowest rate is the peak, or where the schedule is stepped once an epoch."""
    constant = "lr: 1e-4\nmax_steps: 100\nscheduler: {name: cosine_annealing, T_max: 10000, eta_min: 1e-4}"
    assert {"min_lr", "schedule_steps"}.isdisjoint(said(tmp_path, constant))
    assert "schedule_steps" not in said(tmp_path, "epochs: 50\nscheduler: {name: cosine, T_max: 50}")
    assert said(tmp_path, constant.replace("eta_min: 1e-4", "eta_min: 1e-6"))["schedule_steps"] == 10000


def test_all_checkpoints_of_a_run_count(tmp_path: Path) -> None:
    """One callback that keeps everything keeps everything; the most frequent says how often."""
    text = "trainer:\n  max_epochs: 3\n  callbacks:\n"
    one = "    - {class_path: a.ModelCheckpoint, init_args: {save_top_k: %d, every_n_train_steps: %d}}\n"
    both = said(tmp_path, text + one % (1, 500) + one % (-1, 100))
    assert both["checkpoint_every"] == 100
    assert "save_total_limit" not in both
    assert said(tmp_path, text + one % (1, 500) + one % (2, 100))["save_total_limit"] == 3


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("learning_rte: 0.1", "learning_rate"),
        ("max_grad_nrom: 0.1", "max_grad_norm"),
        ("training: {weight_dcay: 0.1}", "weight_decay"),
        ("learning_rte: 0.1\nlr: 0.1", ""),
        ("model_type: llama", ""),
        ("eval_batch_size: 3", ""),
        ("devices: 3", ""),
        ("warmup_step: 3", ""),
        ("model: {hiden_size: 3}", ""),
    ],
)
def test_a_key_that_is_nearly_a_known_one_is_told(tmp_path: Path, text: str, near: str) -> None:
    """Only where that one is not said, and never a word that is made of words that configurations have."""
    found = loaded(tmp_path, text).setting("misspelled")
    assert str(found or "").partition("mean ")[2].rstrip("?") == near


def test_a_trainer_does_by_itself_what_is_not_said(tmp_path: Path) -> None:
    """Null is not said; what is said, left open or said as a share is no default."""
    config = loaded(tmp_path, f"{HF}max_grad_norm:\nwarmup_ratio: 0.1\nlearning_rate: auto").config
    assert (config["grad_clip"].value, config["grad_clip"].source) == (1.0, "default of Hugging Face Trainer")
    assert {"warmup_steps", "lr"}.isdisjoint(config)
    assert "checkpoint_every" not in loaded(tmp_path, f"{HF}save_strategy: epoch").config
    assert loaded(tmp_path, "zero_optimization: {stage: 2}\nfp16: {enabled: true}").config["grad_clip"].value == 0


@pytest.mark.parametrize("text", ["with_tracking: true", "num_warmup_steps: 5", "defaults: [base]", "log_history: []"])
def test_a_file_that_is_not_the_whole_has_no_defaults(tmp_path: Path, text: str) -> None:
    """Of a script with a loop of its own, a part of a configuration and a trainer's state nothing is assumed."""
    config = loaded(tmp_path, f"{HF}global_step: 3\n{text}").config
    assert not any(one.source.startswith("default of ") for one in config.values())


def test_all_defaults_are_values_of_known_settings() -> None:
    """Each key is one of ours, and its value one that a configuration could say."""
    for trainer in frameworks().values():
        for unset in (trainer.unset, *trainer.unset_by_task.values()):
            for key, value in unset.items():
                assert value is None or SETTINGS[key][0](value) == value, (trainer.id, key)


def test_a_file_of_many_keys_is_searched_for_slips_to_an_end(tmp_path: Path) -> None:
    """Of more keys than any configuration has, the first ones are compared."""
    text = json.dumps({"learning_rte": 1, "seed": 1} | {f"learning_rate_{number}x": 1 for number in range(200_000)})
    assert str(load_config(write(tmp_path, text, "a.json")).setting("misspelled")).startswith("learning_rte")


MM = "optim_wrapper: {optimizer: {type: SGD, lr: 0.1}}\n"


def test_no_default_counts_where_the_file_is_built_on_another(tmp_path: Path) -> None:
    """The other one may set it."""
    assert "grad_clip" in loaded(tmp_path, MM).config
    assert "grad_clip" not in loaded(tmp_path, f"_base_: [other.py]\n{MM}").config


def test_a_rate_that_is_raised_from_a_first_one_is_no_schedule_that_climbs(tmp_path: Path) -> None:
    """A test of rates goes from `init_lr` up to `end_lr`."""
    assert "min_lr" not in loaded(tmp_path, "init_lr: 1e-5\nend_lr: 10.0").config
    assert loaded(tmp_path, "lr: 1e-5\nend_lr: 10.0").config["min_lr"].value == 10


def test_the_best_of_one_metric_may_be_older_than_the_fault(tmp_path: Path) -> None:
    """Lightning's `save_top_k` keeps those by the metric that it watches; a limit keeps the newest."""
    keeps = PREDICATES["keeps_too_few"].func
    text = "trainer: {max_epochs: 9, callbacks: [{class_path: ModelCheckpoint, init_args: {save_top_k: 1}}]}"
    assert keeps(loaded(tmp_path, text), fault_steps=200).verdict == "few"
    assert keeps(loaded(tmp_path, f"{HF}save_total_limit: 1"), fault_steps=200).verdict == "yes"


def test_stages_that_differ_are_not_judged_as_one(tmp_path: Path) -> None:
    """What they agree in is; a rate that each has for itself is neither's."""
    run = loaded(tmp_path, "sft: {lr: 2e-4, epochs: 2, lora_r: 8}\ndpo: {lr: 5e-5, epochs: 2, beta: 0.1}")
    assert {key: run.setting(key) for key in ("lr", "epochs", "lora_rank", "beta")} == {
        "lr": None,
        "epochs": 2,
        "lora_rank": 8,
        "beta": 0.1,
    }
    assert any("say lr in two ways" in note for note in run.notes)


def test_what_lightning_does_each_epoch_it_does_not_where_steps_are_said(tmp_path: Path) -> None:
    """It evaluates and saves after each epoch by itself."""
    config = loaded(tmp_path, "trainer: {max_epochs: 3}").config
    assert {config[key].value for key in ("eval_strategy", "save_strategy")} == {"epoch"}
    config = loaded(tmp_path, "trainer: {max_epochs: 3, val_check_interval: 100}").config
    assert "eval_strategy" not in config
    assert config["eval_every"].value == 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lora: {r: 8, lr: 1e-4, epochs: 2, batch_size: 4}", {"lr": 1e-4, "epochs": 2, "batch_size": 4}),
        ("lr: 0.1\nlr_config: {policy: step, warmup: linear, warmup_iters: 50}", {"lr": 0.1, "warmup_steps": 50}),
        ("output_dir: o\nnum_train_epochs: 3\nsave_steps: 7", {"framework": "huggingface", "checkpoint_every": 7}),
    ],
)
def test_what_stands_in_a_section_for_one_thing_counts_for_the_run(
    tmp_path: Path, text: str, expected: dict[str, Any]
) -> None:
    """The rate of an adapter is that of the run; the shape of a warm-up is not its length, and no mistake."""
    run = loaded(tmp_path, text)
    assert {key: run.setting(key) for key in expected} == expected
    assert not run.notes


def test_the_usual_rates_are_those_of_adam(tmp_path: Path) -> None:
    """SGD takes a hundred times as much."""
    usual = PREDICATES["rate_unusual"].func
    for name, verdict in (("adamw", "yes"), ("sgd", "unknown")):
        run = loaded(tmp_path, f"{HF}model_name_or_path: m\noptim: {name}\nlearning_rate: 0.1")
        assert usual(run, phase="finetune", low=1e-5, high=3e-4).verdict == verdict
