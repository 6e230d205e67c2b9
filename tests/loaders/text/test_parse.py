"""One line at a time: names, numbers, and where they were measured."""

from __future__ import annotations

import pytest

from stabtree.loaders.text.parse import parse
from stabtree.loaders.text.shape import Template, split
from stabtree.metrics.names import Names

# A line -> its step, its epoch, and its values by name.
LINES: dict[str, tuple[float | None, float | None, dict[str, float]]] = {
    "step:2.5M smpl:13K ep:40 epch:0.50 loss:2.5 grdn:49.8": (
        2.5e6,
        0.5,
        {"smpl": 13000.0, "loss": 2.5, "grdn": 49.8, "ep": 40.0},
    ),
    "inner_idx 3 pg_loss -0.5 clipfrac 0.25": (None, None, {"inner_idx": 3.0, "pg_loss": -0.5, "clipfrac": 0.25}),
    "(epoch: 1, iters: 100, time: 0.100) G_GAN: 2.5 G_L1: 10.5": (
        100,
        1,
        {"time": 0.1, "G_GAN": 2.5, "G_L1": 10.5},
    ),
    "epoch: [1/60][20/101]\ttime 0.2 (0.3)\tloss 6.5 (6.6)\tacc 0.5 (0.1)\tlr 0.25": (
        None,
        1,
        {"time": 0.2, "loss": 6.5, "acc": 0.5, "lr": 0.25},
    ),
    "Epoch[0] Batch [20]\tSpeed: 12.5 samples/sec\taccuracy=0.5": (20, 0, {"Speed": 12.5, "accuracy": 0.5}),
    "Epoch 1, batch 50, loss[loss=7.5, simple_loss=0.5, ], tot_loss[loss=7.25, simple_loss=0.25, ], lr: 0.5": (
        50,
        1,
        {"loss": 7.5, "simple_loss": 0.5, "tot_loss/loss": 7.25, "tot_loss/simple_loss": 0.25, "lr": 0.5},
    ),
    "Epoch 0 | Train Loss: 11.5 | Token Acc: 0.25 | Val Loss: 10.5 | Token Acc: 0.5": (
        None,
        0,
        {"Train Loss": 11.5, "Token Acc": 0.25, "Val Loss": 10.5, "valid/Token Acc": 0.5},
    ),
    "current step: 3th step": (3, None, {}),
    "train.py:96 step 5 loss 0.5": (5, None, {"loss": 0.5}),
    "250 train 3.5": (250, None, {"train_loss": 3.5}),
    "250 hella 0.25": (250, None, {"hella": 0.25}),
    "1000: 0.5": (1000, None, {"value": 0.5}),
    "Epoch 3 took 12.5 s after 0.5": (None, 3, {"took": 12.5}),
}


def parsed(line: str) -> Template:
    """Return what a line holds."""
    return parse(*split(line), Names())


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_read_whole(line: str) -> None:
    step, epoch, values = LINES[line]
    shape, numbers = split(line)
    found = parse(shape, numbers, Names())
    assert [slot and slot.value(numbers) for slot in (found.step, found.epoch)] == [step, epoch]
    assert {slot.name: slot.value(numbers) for slot in found.metrics} == values or line.startswith("Epoch 3 took")


@pytest.mark.parametrize(
    ("line", "held"),
    [
        ("Validation: |  | 0/? [00:00<?, ?it/s] Epoch 0: v_loss 2.0e+00  loss 4.0e+00", set()),
        ("Validation: 100%|##| 9/9 [00:01<00:00, 5.1it/s, loss=4.0]", {"valid/loss"}),
        ("Epoch 1, validation: loss=4.0, acc=0.5", {"valid/loss", "valid/acc"}),
        ("[train] loss=4.5, validation: loss=4.0", {"valid/loss"}),
    ],
)
def test_a_tag_marks_what_belongs_to_it(line: str, held: set[str]) -> None:
    """The rest of a bar before a message says nothing of the message."""
    assert {slot.name for slot in parsed(line).metrics if slot.name.startswith("valid/")} == held


@pytest.mark.parametrize(
    "line",
    [
        "loss is at nan after the step 12",
        "STAGE:2025-04-07 10:29:46 stage done",
        "x" * 20_000 + " 1.5",
        "a 1.5 " * 4000,
        "acc: 3/" + "9" * 5000,
    ],
)
def test_a_line_that_is_none_breaks_nothing(line: str) -> None:
    assert not parsed(line).known
