"""What the configuration says of a run, and how that is known."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.context.find import context_of
from stabtree.context.model import CONFIGURED, INFERRED, LOGGED, PARTS, UNKNOWN, as_dict
from stabtree.run import FileUse, Setting
from tests.conftest import make_run


@pytest.mark.parametrize(
    ("spelled", "name"),
    [("adamw_torch_fused", "adamw"), ("torch.optim.SGD", "sgd"), ("PAGED_ADAMW_8BIT", "adamw"), ("mine", None)],
)
def test_an_optimizer_goes_by_its_usual_name(spelled: str, name: str | None) -> None:
    """However it is spelled; one of somebody's own is not known."""
    assert context_of(make_run({"loss": [1.0]}, optimizer=spelled)).optimizer.value == name


def test_a_scaled_loss_is_that_of_fp16() -> None:
    """A scale above 1 is needed by fp16 alone; a constant 1 is how trainers print that there is none."""
    scaled = context_of(make_run({"loss": [1.0, 1.0], "loss_scale": [65536.0, 32768.0]})).precision
    assert (scaled.value, scaled.how) == ("fp16", INFERRED)
    assert context_of(make_run({"loss": [1.0], "loss_scale": [1.0]})).precision.how == UNKNOWN


def test_a_loss_of_bf16_numbers_alone_is_that_of_bf16() -> None:
    """They have 8 bits of mantissa; what is printed with two decimals may have as few by chance."""
    stored = [0.9453125, 0.97265625, 0.984375, 1.0, 1.015625, 0.99609375]
    found = context_of(make_run({"loss": stored})).precision
    assert (found.value, found.how) == ("bf16", INFERRED)
    assert context_of(make_run({"loss": [*stored, 0.98]})).precision.how == UNKNOWN
    assert context_of(make_run({"loss": [2.75, 2.5, 2.25, 2.0, 1.75, 1.5, 1.25]})).precision.how == UNKNOWN


def test_what_a_log_prints_is_logged_and_what_a_file_says_is_configured() -> None:
    """By where the setting was read."""
    run = replace(make_run({"loss": [1.0]}), sources=(FileUse("a/train.log", "text", 1),))
    printed = replace(run, config={"dtype": Setting("bf16", "a/train.log")})
    given = replace(run, config={"dtype": Setting("bf16", "args.json")})
    assert context_of(printed).precision.how == LOGGED
    assert context_of(given).precision.how == CONFIGURED


def test_the_peak_rate_is_the_highest_that_was_logged() -> None:
    """Else the one that is configured; what is not finite is no rate."""
    logged = make_run({"loss": [1.0, 1.0, 1.0], "lr": [1e-4, 3e-4, np.nan]}, lr=1e-3)
    assert context_of(logged).peak_lr.value == 3e-4
    assert context_of(make_run({"loss": [1.0]}, lr=1e-3)).peak_lr.value == 1e-3


def test_a_context_as_plain_values_has_every_part() -> None:
    """Those that are not known too."""
    plain = as_dict(context_of(make_run({"loss": [1.0]})))
    assert tuple(plain) == PARTS
    assert plain["task"] == {"value": None, "how": UNKNOWN, "why": ""}
    assert plain["outcome"]["better"] == "lower"
