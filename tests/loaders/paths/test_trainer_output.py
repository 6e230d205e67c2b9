"""The output folder of the Hugging Face trainer is one run with all that lies in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run, load_runs
from tests.loaders.make import write
from tests.loaders.make_binary import write_events

if TYPE_CHECKING:
    from pathlib import Path

GPT = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 128, "dtype": "float32"}


def loss(step: int, shift: float = 0.0) -> float:
    """A loss that falls from ln(128), as single precision holds it."""
    return 4.75 - step / 128 + shift


def checkpoint(
    folder: Path, step: int, model: dict[str, object] | None = None, *, name: str = "", up: float = 0
) -> None:
    """A checkpoint with the history of all rows before it."""
    place = folder / (name or f"checkpoint-{step}")
    place.mkdir(parents=True, exist_ok=True)
    rows = [{"step": s, "loss": loss(s, up), "learning_rate": 0.1} for s in range(1, step + 1)]
    state = {"global_step": step, "save_steps": 50, "log_history": rows}
    write(place, json.dumps(state), "trainer_state.json")
    write(place, json.dumps(model or GPT), "config.json")


def events(folder: Path, first: int, last: int, start: float, shift: float = 0.0) -> None:
    """The events of one start of the script, in a folder of their own."""
    rows = [(s, {"train/loss": loss(s, shift), "train/learning_rate": 0.1}) for s in range(first, last + 1)]
    write_events(folder / "runs" / f"Jan01_{int(start // 1e8)}_host", rows, start)


def test_a_crash_is_read_to_its_last_row(tmp_path: Path) -> None:
    """The newest state ends at its checkpoint, the events where the run ended."""
    for step in (50, 100):
        checkpoint(tmp_path, step)
    events(tmp_path, 1, 130, 1.7e9)
    run = load_run(tmp_path)
    assert run.series["loss"].steps.tolist() == list(range(1, 131))
    assert (run.setting("checkpoints"), run.setting("checkpoint_every"), run.setting("vocab_size")) == (
        (50, 100),
        50,
        128,
    )
    assert run.setting("dtype") is None  # weights in fp32 may be those of mixed precision
    assert not run.resumes


def test_a_resume_is_seen_though_the_state_forgets_it(tmp_path: Path) -> None:
    """Two folders of events, whose rows before the seam are those of the state: one run."""
    checkpoint(tmp_path, 200, name=".")
    events(tmp_path, 1, 130, 1.7e9)
    events(tmp_path, 101, 200, 1.8e9)
    assert len(load_runs(tmp_path)) == 1
    run = load_run(tmp_path)
    assert [(found.from_step, found.to_step) for found in run.resumes] == [(130, 101)]
    assert run.last_step == 200


def test_another_attempt_in_the_folder_is_another_run(tmp_path: Path) -> None:
    """Its losses are not those of the state, so nothing of it is lost or mixed in."""
    checkpoint(tmp_path, 100, name=".")
    events(tmp_path, 1, 60, 1.7e9, shift=1.0)
    events(tmp_path, 1, 100, 1.8e9)
    with pytest.raises(StabtreeError, match=r"holds 2 runs: ., runs/Jan01_17_host"):
        load_run(tmp_path)
    assert len(load_runs(tmp_path)) == 2
    assert load_run(tmp_path, run="runs/Jan01_17_host").series["loss"].values[0] == loss(1, 1.0)
    assert load_run(tmp_path, run=".").last_step == 100


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"dtype": "bfloat16"}, {"dtype": "bf16", "vocab_size": 128}),
        ({"dtype": None, "torch_dtype": "float16"}, {"dtype": "fp16", "vocab_size": 128}),
        (
            {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "a", "1": "b", "2": "c"}},
            {"n_classes": 3},
        ),
        ({"architectures": ["BertForSequenceClassification"]}, {}),
        (
            {
                "architectures": ["BertForSequenceClassification"],
                "id2label": {"0": "a", "1": "b"},
                "problem_type": "multi_label_classification",
            },
            {},
        ),
        ({"architectures": "broken", "vocab_size": [3]}, {}),
        ({"vocab_size": 10**9}, {}),  # a loss far below ln(vocabulary): the model was trained before
    ],
)
def test_what_a_model_tells_of_its_training(
    tmp_path: Path, model: dict[str, object], expected: dict[str, object]
) -> None:
    """What the loss is over, and weights of 16 bits; never a vocabulary that the loss is not over."""
    checkpoint(tmp_path, 30, {**GPT, **model})
    run = load_run(tmp_path)
    assert {key: run.setting(key) for key in ("dtype", "vocab_size", "n_classes") if run.setting(key)} == expected


def test_broken_events_cost_themselves(tmp_path: Path) -> None:
    """The state is read, and a note says what was not."""
    checkpoint(tmp_path, 30)
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "events.out.tfevents.1.host").write_bytes(b"\0" * 100)
    run = load_run(tmp_path)
    assert len(run.series["loss"]) == 30
    assert any(note.startswith("Not read: ") for note in run.notes)
