"""The callback of the Hugging Face Trainer, in runs of a tiny model on the CPU that the Trainer really trains."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tools.live.events import HOLD_ROWS
from tests.tools.live.integrations.logs import alarms, example, rows_of

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'stabtree[test-integrations]'")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the library says of itself when it is imported
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed: the Trainer needs it")
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from stabtree.integrations import HuggingFaceCallback
from stabtree.tools.live.callbacks import huggingface

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")  # the frameworks warn of each other

VOCABULARY, LENGTH, BATCH = 32, 16, 8
QUIET = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "logging_steps": 1}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def model() -> Any:
    """A language model of some 30,000 weights."""
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=LENGTH,
        )
    )  # fmt: skip


class Texts:
    """Sequences that count up; the labels of some batches are noise.

    Args:
        noisy: the steps whose batches are.
    """

    def __init__(self, noisy: range = range(0)) -> None:
        random = torch.Generator().manual_seed(0)
        begin = torch.randint(VOCABULARY, (512, 1), generator=random)
        stride = torch.randint(1, 4, (512, 1), generator=random)
        self.rows = (begin + stride * torch.arange(LENGTH)) % VOCABULARY
        self.noise = torch.randint(VOCABULARY, self.rows.shape, generator=random)
        self.noisy = noisy
        self.given = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        step = self.given // BATCH + 1
        self.given += 1
        return {"input_ids": self.rows[index], "labels": (self.noise if step in self.noisy else self.rows)[index]}


class Poison(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Makes the weights NaN right before a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_begin(self, _args: Any, state: Any, _control: Any, model: Any = None, **_: Any) -> None:
        """Spoil the first of the weights."""
        if state.global_step == self.step - 1:
            with torch.no_grad():
                next(model.parameters()).fill_(math.nan)


def trainer(folder: Path, *, fault: Any = None, data: Any = None, watch: Any = None, **options: Any) -> Any:
    """A Trainer of 60 steps."""
    watch = watch or HuggingFaceCallback(folder / "run.jsonl", stats_every=20)
    given = {"max_steps": 60, "learning_rate": 3e-3, "save_strategy": "no", **QUIET, **options}
    args = TrainingArguments(output_dir=str(folder / "out"), **given)
    callbacks = [fault, watch] if fault else [watch]
    return Trainer(model=model(), args=args, train_dataset=data or Texts(), callbacks=callbacks)


def fit(folder: Path, **options: Any) -> int:
    """Train, and return the last step."""
    training = trainer(folder, **options)
    training.train()
    return int(training.state.global_step)


def test_a_healthy_run_is_written_whole_and_goes_on_to_its_end(tmp_path: Path) -> None:
    """Every step is a row with what the Trainer logs, nothing is found, and the Trainer's summary is no row."""
    assert fit(tmp_path) == 60
    assert [row["step"] for row in rows_of(tmp_path)] == list(range(1, 61))
    assert all({"loss", "grad_norm", "learning_rate", "epoch"} <= row.keys() for row in rows_of(tmp_path))
    assert not alarms(tmp_path)
    run = load_run(tmp_path / "run.jsonl")
    looked = [series for name, series in run.series.items() if name.startswith("update_ratio/")]
    assert {step for series in looked for step in series.steps.tolist()} == {1, 20, 40, 60}


def test_the_configuration_is_that_of_the_arguments(tmp_path: Path) -> None:
    """What the arguments say is read back from the log, a fraction of the steps as steps, no interval that is off."""
    fit(tmp_path, max_steps=20, weight_decay=0.1, max_grad_norm=0.5, save_strategy="steps", save_steps=0.25)
    config = {key: setting.value for key, setting in load_run(tmp_path / "run.jsonl").config.items()}
    expected = {
        "dtype": "fp32", "lr": 3e-3, "lr_schedule": "linear", "weight_decay": 0.1, "grad_clip": 0.5, "max_steps": 20,
        "checkpoint_every": 5, "log_interval": 1, "batch_size": BATCH, "vocab_size": VOCABULARY, "device": "cpu",
        "checkpoints": (5, 10, 15, 20),
    }  # fmt: skip
    assert expected.items() <= config.items()
    assert not {"eval_every", "epochs"} & config.keys()


def test_no_secret_of_the_arguments_is_written(tmp_path: Path) -> None:
    """Only what loaders read of the arguments is told."""
    args = TrainingArguments(output_dir=str(tmp_path), hub_token="hf_secret", use_cpu=True)  # noqa: S106
    state = transformers.TrainerState(max_steps=10, logging_steps=1, eval_steps=1, save_steps=1)
    assert "token" not in str(huggingface.settings(args, state, model()))


@pytest.mark.parametrize("interval", [1, 10])
def test_nan_stops_the_run_also_where_the_filter_hides_it(tmp_path: Path, interval: int) -> None:
    """A run whose weights go NaN ends soon, however seldom the Trainer logs, and a clean checkpoint is told."""
    options = {"save_strategy": "steps", "save_steps": 10, "logging_steps": interval}
    assert 41 <= fit(tmp_path, fault=Poison(41), **options) <= 41 + HOLD_ROWS + 1
    finding = diagnose(load_run(tmp_path / "run.jsonl")).findings[0]
    assert finding.leaf.severity == "critical"
    assert finding.onset_step in (41, 42)
    assert finding.restart is not None
    assert finding.restart.checkpoint_step == 30  # that of step 40 was written right before


def test_a_run_that_is_only_watched_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With `stop_on=None` the same run is told of, with the command to type, and not stopped."""
    watch = HuggingFaceCallback(tmp_path / "run.jsonl", stop_on=None)
    assert fit(tmp_path, fault=Poison(41), watch=watch) == 60
    assert f"stabtree diagnose {tmp_path / 'run.jsonl'}" in caplog.text


def test_once_stopped_no_checkpoint_is_saved(tmp_path: Path) -> None:
    """A checkpoint at the end of the epoch or the step would push out the last good one."""
    options = {"save_strategy": "epoch", "save_total_limit": 1, "max_steps": -1, "num_train_epochs": 2}
    fit(tmp_path, fault=Poison(70), **options)
    assert [path.name for path in (tmp_path / "out").glob("checkpoint-*")] == ["checkpoint-64"]
    assert rows_of(tmp_path)[-1]["step"] < 80


def test_a_resumed_run_goes_on_with_its_log(tmp_path: Path) -> None:
    """The rows after the checkpoint are written again, and the checkpoints from before are still known."""
    options = {"save_strategy": "steps", "save_steps": 10, "max_steps": 25}
    trainer(tmp_path, **options).train()
    trainer(tmp_path, **options | {"max_steps": 40}).train(resume_from_checkpoint=str(tmp_path / "out/checkpoint-20"))
    run = load_run(tmp_path / "run.jsonl")
    assert run.series["loss"].steps.tolist() == list(range(1, 41))
    assert run.config["checkpoints"].value == (10, 20, 30, 40)
    assert [(one.from_step, one.to_step) for one in run.resumes] == [(25, 21)]


def test_of_several_processes_the_main_one_writes_and_says_when_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others write nothing; they ask at the Trainer's logs alone, where all do, or one would wait forever."""
    watch = HuggingFaceCallback(tmp_path / "run.jsonl")
    args = SimpleNamespace(world_size=2, device="cpu", output_dir=str(tmp_path), logging_nan_inf_filter=True)
    state = SimpleNamespace(is_world_process_zero=False, global_step=7)
    control = SimpleNamespace(should_log=False, should_training_stop=False, should_save=True)
    asked: list[int] = []

    def main_says(*_: object) -> bool:
        asked.append(state.global_step)
        return True

    monkeypatch.setattr(huggingface, "main_says", main_says)
    watch.on_train_begin(args, state, control)
    watch.on_pre_optimizer_step(args, state, control)
    watch.on_step_end(args, state, control)
    watch.on_log(args, state, control, logs={"mine": 1.0})
    assert asked == []
    state.global_step, control.should_log = 8, True
    watch.on_step_end(args, state, control)
    watch.on_log(args, state, control, logs={"loss": 1.0})
    assert (asked, control.should_training_stop, control.should_save) == ([8], True, False)
    assert not [*tmp_path.iterdir()]


def test_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page on callbacks shows of the Trainer is code that runs as it stands there."""
    monkeypatch.chdir(tmp_path)
    exec(example("Hugging Face"), {"model": model(), "dataset": Texts()})  # noqa: S102 - our own page
    assert load_run(tmp_path / "run.jsonl").series["loss"].steps.tolist() == list(range(1, 21))
