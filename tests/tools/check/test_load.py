"""Configurations of any format, in any state, beside any others: the same settings, or two lines that say why not."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from stabtree.common.errors import StabtreeError
from stabtree.frameworks.load import frameworks
from stabtree.loaders import config as header
from stabtree.measures import MEASURES
from stabtree.tools.check.document import ConfigFile
from stabtree.tools.check.load import completed, load_config
from stabtree.tools.check.settings import read_settings
from stabtree.tools.check.tables import KINDS, SETTINGS
from tests.loaders.make import write
from tests.loaders.make_binary import wandb
from tests.tools.check.test_trainers import CASES

if TYPE_CHECKING:
    from stabtree.run import Run

ONE = {"learning_rate": 1e-3, "max_steps": 100, "optim": "adamw", "seed": 3}
HF = "per_device_train_batch_size: 4\noutput_dir: out\ngradient_accumulation_steps: 1\n"
MM = "optim_wrapper: {optimizer: {type: SGD, lr: 0.1}}\n"
MAIN = "output_dir: out\nper_device_train_batch_size: 4\nlearning_rate: 1e-4\nfp16: true\n"
DS = json.dumps({"fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 8}, "zero_optimization": {}})
MODEL = json.dumps({"architectures": ["NetForCausalLM"], "model_type": "net", "dtype": "bfloat16", "vocab_size": 99})


def said(run: Run) -> dict[str, Any]:
    """The settings of a run but the defaults of its trainer."""
    return {key: one.value for key, one in run.config.items() if not one.source.startswith("default of ")}


def loaded(place: Path, text: str) -> Run:
    """A run of YAML."""
    return load_config(write(place, f"seed: 1\n{text}\n", "run.yaml"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps(ONE)),
        ("a.yaml", "learning_rate: 1e-3\nmax_steps: 100\noptim: adamw\nseed: 3\n"),
        ("a.toml", 'learning_rate = 1e-3\nmax_steps = 100\noptim = "adamw"\nseed = 3\n'),
        ("a.conf", json.dumps(ONE, indent=1)),
    ],
)
def test_a_configuration_is_the_same_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    """JSON, YAML, TOML, and JSON under another name hold the same settings."""
    assert said(load_config(write(tmp_path, text, name))) == {
        "lr": 1e-3, "max_steps": 100, "optimizer": "adamw", "seed": 3
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b"", "is empty"),
        ("a.json", b'{"lr": 1', "not valid JSON"),
        ("a.json", b"[" * 200_000, "nests too deeply"),
        ("a.json", b'{"lr": ' + b"9" * 5000 + b"}", "a number too long"),
        ("a.json", b"[1, 2]", "holds no settings"),
        ("a.json", b'{"colour": "red"}', "holds no setting of a training"),
        ("a.json", MODEL.encode(), "no setting of a training"),
        ("a.yaml", b"lr: [1\n", "not valid YAML"),
        ("a.yaml", b"[" * 100_000, "nests too deeply"),
        ("a.yaml", b"a: &a [1,1,1,1,1,1,1,1,1]\n" + b"".join(
            b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("j"))
        ), "grows too large"),
        ("a.yaml", b"just words\n", "holds no settings"),
        ("a.yaml", b"lr: 1\n" + b"#" * (2 << 20), "larger than any configuration"),
        ("a.toml", b"lr = \n", "not valid TOML"),
        ("a.toml", b"lr = 1\na" + b".a" * 30_000 + b" = 1\n", "more than 32 parts (at line 2)"),
        ("a.toml", b"[a" + b" . 'b'" * 30_000 + b"]\n", "more than 32 parts"),
        ("a.toml", b"x = {" + b'"a".' * 30_000 + b"b = 1}\n", "more than 32 parts"),
        ("a.toml", b"a = " + b"[" * 100_000, "nests too deeply"),
        ("a.py", b"lr = 0.1\n", "is a program, not a configuration"),
        ("a.bin", b"\x80\x04\x95\x00\x01\x02", "is no configuration"),
        ("a.log", b"step 1 loss 2.0\nstep 2 loss 1.0\n", "is no configuration"),
        # A column says which optimizer it was, which is not enough to judge a configuration by.
        ("a.csv", b"epoch,step,train_loss,lr-Adam\n" + b"".join(b"%d,%d,2.5,0.1\n" % (n, n) for n in range(20)),
         "no log whose header"),
    ],
)  # fmt: skip
def test_what_is_no_configuration_is_refused_in_two_lines(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    """A broken, hostile or foreign file is an error that names the file and what is wrong."""
    with pytest.raises(StabtreeError) as caught:
        load_config(write(tmp_path, content, name))
    assert problem in caught.value.problem
    assert name in caught.value.where
    assert "metrics" not in caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A path without a file is an error, and so are no path and a folder without a configuration."""
    for paths, problem in (([tmp_path / "a.yaml"], "no such file"), ([], "no configuration"), ([tmp_path], "no log")):
        with pytest.raises(StabtreeError, match=problem):
            load_config(*paths)


@pytest.mark.parametrize(
    ("name", "text", "value", "note"),
    [
        ("a.yaml", "lr: fast\nseed: 1\n", None, "a.yaml:1, lr is 'fast'"),
        ("a.yaml", "seed: 1\nlr: [1, 2]\n", None, "a.yaml:2, lr"),
        ("a.yaml", "seed: 1\nlr: .inf\n", None, "not a number"),
        ("a.yaml", "seed: 1\nlr: 1e999\n", None, "not a number"),
        ("a.yaml", "seed: 1\none: {lr: 0.1}\ntwo: {lr: 0.2}", None, "one.lr and two.lr say lr in two ways"),
        ("a.yaml", "seed: 1\nlr: 1\nlr: 2\n", 2, "lr"),
        ("a.json", '{"seed": 1, "lr": 1, "lr": 2}', 2, "the key 'lr' is given twice"),
        ("a.json", '{"lr": 2, // "x\n "seed": 1, /* c\n */}', 2, "has comments or trailing commas"),
        ("a.yaml", b"# caf\xe9\nlr: 2\nseed: 1\n", 2, "replaced"),
    ],
)
def test_what_is_odd_in_a_file_is_a_note(
    tmp_path: Path, name: str, text: str | bytes, value: float | None, note: str
) -> None:
    """A setting whose value can't be one is left out; of a repeated key the last counts; comments cost nothing."""
    run = load_config(write(tmp_path, text, name))
    assert (run.setting("lr"), run.setting("seed")) == (value, 1)
    assert [told for told in run.notes if note in told]


def test_nothing_of_a_file_reaches_the_screen_raw(tmp_path: Path) -> None:
    """Escape codes, line ends and passwords in keys and values are gone from settings, sources and notes."""
    values = {
        "run_name": "a\x1b[31m\nb",
        "optimizer": {"type": "x\x1b]0;title\x07y"},
        "lr": "\x1b[2J\n::error::",
        "training\x1b[31m": {},
        "seed": "https://me:secret@host/",
    }
    run = load_config(write(tmp_path, json.dumps(values), "a.json"))
    told = [run.name, *run.notes, *(f"{one.value}{one.source}" for one in run.config.values())]
    assert not any("\x1b" in text or "\n" in text or "secret" in text for text in told)
    assert len(run.notes) == 2


@pytest.mark.parametrize("trainer", CASES)
def test_a_cut_file_is_an_error_or_less_of_the_same(tmp_path: Path, trainer: str) -> None:
    """However much of a configuration is there: it is refused, or says something, and nothing crashes."""
    name, text, _ = CASES[trainer]
    for place in range(1, 10, 2):
        with contextlib.suppress(StabtreeError):
            assert load_config(write(tmp_path, text.encode()[: len(text) * place // 10], name)).config


CONSTANT = "lr: 1e-4\nmax_steps: 100\nscheduler: {name: cosine_annealing, T_max: 10000, eta_min: %s}"
SAVES = "trainer:\n  max_epochs: 3\n  callbacks:\n"
SAVE = "    - {class_path: a.ModelCheckpoint, init_args: {save_top_k: %d, every_n_train_steps: %d}}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Null, `auto`, an interpolation and -1 are no values and no mistakes.
        *((text, {}) for text in ("lr: null", "lr: auto", "lr: ${base.lr}", "lr: ???", "lr: ''", "max_steps: -1")),
        # A section of any name is looked into for words that mean one thing wherever they stand.
        ("hp: {learning_rate: 0.5, max_grad_norm: 0}", {"lr": 0.5, "grad_clip": 0.0}),
        ("stage_one: {inner: {lr: 0.5}}", {"lr": 0.5}),
        ("max_epoch: 3\nlearningRate: 0.5", {"epochs": 3.0, "lr": 0.5}),
        ("SGDConfig: {lr: 0.5}", {"lr": 0.5}),
        ("optim_cfg: {type: sgd, lr: 0.5}", {"optimizer": "sgd", "lr": 0.5}),
        ("lr: 0.1\nhp: {lr: 0.5}", {"lr": 0.1}),
        ("lora: {r: 8, lr: 1e-4}", {"lora_rank": 8, "adapter": "lora", "lr": 1e-4}),
        ("lr: 0.1\nlr_config: {policy: step, warmup: linear, warmup_iters: 50}",
         {"lr": 0.1, "lr_schedule": "step", "warmup_steps": 50}),
        # What the section of a key means is not guessed.
        ("sampler: {temperature: 2, name: x}", {}),
        ("val_loader: {batch_size: 3}", {}),
        ("discriminator: {optimizer: {lr: 0.1}}", {}),
        ("model: {vision: {dtype: fp16}}", {}),
        ("profiler: {warmup_steps: 5}", {}),
        ("epsilon: 0.1", {}),
        ("zero_optimization: {stage: 2, batch_size: 4}", {"framework": "deepspeed"}),
        ("optimizer: {name: adam, schedule_fn: {lr: 0.1}, name_of: {lr: 3}}", {"optimizer": "adam"}),
        ("scheduler: {name: cosine, lr: {warmup: 3}}", {"lr_schedule": "cosine"}),
        # What a flag switches off is not there.
        ("use_peft: false\nlora_r: 8", {"adapter": "full"}),
        ("lora_enable: false\npeft: {r: 8}", {"adapter": "full"}),
        ("use_lora: true\nlora_r: 8", {"adapter": "lora", "lora_rank": 8}),
        ("use_lr_scheduler: false\nlr_scheduler: {name: cosine}", {}),
        ("ema: {enabled: false, lr: 3}\nhp: {enabled: false, lr: 3}", {}),
        ("fp16: {enabled: false}\nbf16: {enabled: true}", {"dtype": "bf16", "mixed": True}),
        # A constant rate has no schedule that could end, nor has one that is stepped once an epoch.
        (CONSTANT % "1e-4", {"lr": 1e-4, "max_steps": 100, "lr_schedule": "cosine_annealing"}),
        (CONSTANT % "1e-6", {"lr": 1e-4, "max_steps": 100, "lr_schedule": "cosine_annealing", "min_lr": 1e-6,
                             "schedule_steps": 10000}),
        ("epochs: 50\nscheduler: {name: cosine, T_max: 50}", {"epochs": 50, "lr_schedule": "cosine"}),
        ("init_lr: 1e-5\nend_lr: 10.0", {"lr": 1e-5}),  # a test of rates
        # Of several callbacks that save the most frequent counts, and all checkpoints that any of them keeps.
        (SAVES + SAVE % (1, 500) + SAVE % (-1, 100), {"framework": "lightning", "epochs": 3, "checkpoint_every": 100}),
        (SAVES + SAVE % (1, 500) + SAVE % (2, 100),
         {"framework": "lightning", "epochs": 3, "checkpoint_every": 100, "save_total_limit": 3}),
        # Stages that follow one another are not judged as one.
        ("sft: {lr: 2e-4, epochs: 2, lora_r: 8}\ndpo: {lr: 5e-5, epochs: 2, beta: 0.1}",
         {"epochs": 2, "lora_rank": 8, "adapter": "lora", "beta": 0.1}),
        ("save_strategy: epoch\nsave_steps: 10\neval_strategy: steps\neval_steps: 20",
         {"save_strategy": "epoch", "eval_strategy": "steps", "eval_every": 20}),
    ],
)  # fmt: skip
def test_settings_are_those_of_the_run(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    """Of what stands at the top or in a known section first."""
    run = loaded(tmp_path, text)
    assert said(run) == {"seed": 1, **expected}
    assert not [note for note in run.notes if "two ways" not in note]


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
        # Of more keys than any configuration has, the first ones are compared.
        (json.dumps({"learning_rte": 1} | {f"learning_rate_{number}x": 1 for number in range(9000)})[1:-1], None),
    ],
)
def test_a_key_that_is_nearly_a_known_one_is_told(tmp_path: Path, text: str, near: str | None) -> None:
    """Only where that one is not said, and never a word that is made of words that configurations have."""
    if near is None:
        found, near = (
            load_config(write(tmp_path, f'{{{text}, "seed": 1}}', "a.json")).setting("misspelled"),
            "learning_rate",
        )
    else:
        found = loaded(tmp_path, text).setting("misspelled")
    assert str(found or "").partition("mean ")[2].rstrip("?") == near


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Null is not said; what is said, left open or said as a share is no default.
        (f"{HF}max_grad_norm:\nwarmup_ratio: 0.1\nlearning_rate: auto",
         {"grad_clip": 1.0, "warmup_steps": None, "lr": None}),
        (f"{HF}save_strategy: epoch", {"checkpoint_every": None}),
        ("zero_optimization: {stage: 2}\nfp16: {enabled: true}", {"grad_clip": 0}),
        ("trainer: {max_epochs: 3}", {"eval_strategy": "epoch", "save_strategy": "epoch"}),
        ("trainer: {max_epochs: 3, val_check_interval: 100}", {"eval_strategy": None, "eval_every": 100}),
        # The other file, on which this one is built, may set it.
        (MM, {"grad_clip": 0}),
        (f"_base_: [other.py]\n{MM}", {"grad_clip": None}),
        # Of a script with a loop of its own, a part of a configuration and a trainer's state nothing is assumed.
        *((f"{HF}global_step: 3\n{part}", {"grad_clip": None, "checkpoint_every": None})
          for part in ("with_tracking: true", "num_warmup_steps: 5", "defaults: [base]", "log_history: []")),
    ],
)  # fmt: skip
def test_a_trainer_does_by_itself_what_is_not_said(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    run = loaded(tmp_path, text)
    assert {key: run.setting(key) for key in expected} == expected


def test_all_defaults_are_values_of_known_settings() -> None:
    """Each key is one of ours, and its value one that a configuration could say."""
    for trainer in frameworks().values():
        for unset in (trainer.unset, *trainer.unset_by_task.values()):
            for key, value in unset.items():
                assert value is None or SETTINGS[key][0](value) == value, (trainer.id, key)


def test_no_spelling_means_two_settings() -> None:
    """A word stands for one setting, each section knows only settings that there are; logs are read here as there."""
    words = [word for key, (_, others) in SETTINGS.items() for word in (key, *others)]
    assert sorted(words) == sorted(set(words))
    assert {key for kind in KINDS.values() for key in (*kind.own.values(), *kind.shared)} - {"*"} <= SETTINGS.keys()
    named = [name for kind in KINDS.values() for name in kind.named]
    assert sorted(named) == sorted(set(named))
    other = {key for key in SETTINGS.keys() & header.KEYS.keys() if SETTINGS[key][0] is not header.KEYS[key][0]}
    assert other == {"optimizer", "lr_schedule", "task", "save_strategy", "adapter"} & header.KEYS.keys()


NAMES = sorted({*SETTINGS, *(name for kind in KINDS.values() for name in kind.named)})
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    PLAIN | st.sampled_from(["auto", "16-true"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([*NAMES, "params", "enabled", "betas", "trainer/lr"]), inner),
    max_leaves=12,
)  # fmt: skip


@hypothesis_settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(NAMES), JSON, min_size=1))
def test_any_values_give_settings_of_their_kind(values: dict[str, Any]) -> None:
    """Whatever stands at the known keys and in the known sections, what comes out can be read again as it is."""
    reading = read_settings(ConfigFile(Path("a.json"), values))
    for key, one in completed(reading.settings).items():
        assert key == "framework" or SETTINGS[key][0](one.value) == one.value
    assert all(note.isprintable() for note in reading.notes)


def test_rates_and_limits_are_those_of_their_kind(tmp_path: Path) -> None:
    """SGD takes a hundred times what Adam does; Lightning keeps the best by a metric, which may be older."""
    usual, keeps = MEASURES["rate_unusual"].func, MEASURES["keeps_too_few"].func
    for name, verdict in (("adamw", "yes"), ("sgd", "unknown")):
        run = loaded(tmp_path, f"{HF}model_name_or_path: m\noptim: {name}\nlearning_rate: 0.1")
        assert usual(run, phase="finetune", low=1e-5, high=3e-4).verdict == verdict
    text = "trainer: {max_epochs: 9, callbacks: [{class_path: ModelCheckpoint, init_args: {save_top_k: 1}}]}"
    assert keeps(loaded(tmp_path, text), fault_steps=200).verdict == "few"
    assert keeps(loaded(tmp_path, f"{HF}save_total_limit: 1"), fault_steps=200).verdict == "yes"


# ---- files beside each other


def test_the_files_of_one_training_are_merged(tmp_path: Path) -> None:
    """The DeepSpeed file that the training names and the model's configuration add what only they say."""
    for name, text in (
        ("train.yaml", f"{MAIN}deepspeed: configs/ds.json\n"),
        ("ds.json", DS),
        ("ds_other.json", DS.replace("8", "4")),
        ("config.json", MODEL),
        ("other.json", "{"),
        ("args.json", "{"),
    ):
        write(tmp_path, text, name)
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    run = load_config(tmp_path)
    expected = {"lr": 1e-4, "initial_loss_scale": 256, "vocab_size": 99, "weights_dtype": "bf16"}
    assert {key: run.setting(key) for key in expected} == expected
    assert {source.path.rsplit("/", 1)[-1] for source in run.sources} == {"train.yaml", "ds.json", "config.json"}
    assert all(any(name in note for note in run.notes) for name in ("ds_other.json", "args.json"))


def test_of_several_trainings_one_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    """Two trainings in a folder are not mixed: the one that says more is read, a note names the other."""
    write(tmp_path, f"{MAIN}max_steps: 10\nseed: 1\n", "a.yaml")
    write(tmp_path, "output_dir: out\nper_device_train_batch_size: 8\nweight_decay: 0.5\n", "b.yaml")
    run = load_config(tmp_path)
    assert run.config["weight_decay"].source.startswith("default of ")
    assert run.setting("micro_batch_size") == 4
    assert any("b.yaml" in note for note in run.notes)


def test_hydra_keeps_its_configuration_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """A run's folder holds `.hydra/config.yaml`; Hydra's own settings beside it are not the run's."""
    (tmp_path / ".hydra").mkdir()
    write(tmp_path / ".hydra", "optimizer: {_target_: torch.optim.SGD, lr: 0.1}\n", "config.yaml")
    write(tmp_path / ".hydra", "hydra: {job: {name: x}}\nseed: 9\nlr: 3\nbatch_size: 2\n", "hydra.yaml")
    assert said(load_config(tmp_path)) == {"optimizer": "sgd", "lr": 0.1}


@pytest.mark.parametrize("name", ["/etc/hosts.json", "../ds.json", "nowhere/ds.json"])
def test_a_file_is_followed_only_where_it_lies_beside(tmp_path: Path, name: str) -> None:
    """A configuration from someone else opens nothing outside of its folder; a note says what was not read."""
    (tmp_path / "inner").mkdir()
    write(tmp_path, DS, "ds.json")
    run = load_config(write(tmp_path / "inner", f"{MAIN}deepspeed: {name}\n", "train.yaml"))
    assert "initial_loss_scale" not in run.config
    assert any("does not lie beside it" in note for note in run.notes)


def test_the_later_of_two_named_files_counts_and_a_note_says_where_they_differ(tmp_path: Path) -> None:
    """A base and what overrides it are named in that order."""
    base = write(tmp_path, "lr: 0.1\nseed: 1\n", "base.yaml")
    over = write(tmp_path, "lr: 0.2\nseed: 1\n", "over.yaml")
    run = load_config(base, over)
    assert (run.config["lr"].value, run.config["lr"].source) == (0.2, "over.yaml:1, lr")
    assert run.notes == ("base.yaml:1, lr says 0.1; over.yaml:1, lr says 0.2, which counts.",)


def test_deepspeed_is_added_to_the_trainer_that_it_is_named_with(tmp_path: Path) -> None:
    """In either order: it is read once, the trainer's defaults count, and two precisions are two."""
    write(tmp_path, "output_dir: o\nper_device_train_batch_size: 1\nbf16: true\ndeepspeed: b.json\n", "a.yaml")
    write(tmp_path, '{"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}', "b.json")
    for names in (["a.yaml"], ["a.yaml", "b.json"], ["b.json", "a.yaml"]):
        run = load_config(*(tmp_path / name for name in names))
        expected = {"framework": "huggingface", "precisions": "fp16+bf16", "checkpoint_every": 500}
        assert {key: run.setting(key) for key in expected} == expected
        assert len(run.sources) == 2


def test_the_header_of_a_log_is_a_configuration(tmp_path: Path) -> None:
    """What W&B kept of a run whose configuration is lost, named as a file or by its folder."""
    settings = {"output_dir": "out", "warmup_ratio": 0.1, "learning_rate": 1e-4, "optim": "adamw", "max_steps": 50}
    file = write(tmp_path, wandb([{"_step": 1, "loss": 2.0}], settings), "run-a.wandb")
    for path in (file, tmp_path):
        run = load_config(path)
        assert (run.setting("lr"), run.setting("optimizer"), run.setting("max_steps")) == (1e-4, "adamw", 50)


def test_of_what_a_log_prints_only_the_sure_is_read(tmp_path: Path) -> None:
    """A printed warm-up of 0 steps may be one by a share, and a batch that of one device: neither is read."""
    text = "TrainingArguments(\nwarmup_steps=0,\nlearning_rate=0.001,\nper_device_train_batch_size=4,\n"
    text += "seed=1,\nweight_decay=0.1,\n)\n"
    rows = "".join(f"{{'loss': {2 - step / 20}, 'learning_rate': 0.001, 'epoch': {step / 10}}}\n" for step in range(9))
    config = load_config(write(tmp_path, text + rows, "train.log")).config
    assert config["lr"].value == 0.001
    assert {"warmup_steps", "batch_size", "micro_batch_size"}.isdisjoint(config)
