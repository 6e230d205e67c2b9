"""Times with a unit, as Composer takes them: `5000ba` are batches, `1ep` is an epoch, `0.03dur` a share of the run."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.tools.check.configs.spelled import Spelled

_TIME = re.compile(r"(\d+(?:\.\d*)?(?:e\d+)?) ?(ba|iter|ep|dur|sp|samp|tok|t|sec|min|hr)", re.IGNORECASE)
_STEPS = ("ba", "iter")
_TIMED = ("max_steps", "warmup_steps", "eval_every", "checkpoint_every", "log_interval")
# What a number of epochs says, and a share of the run.
_EPOCHS: Mapping[str, tuple[str, str]] = {
    "max_steps": ("epochs", ""),
    "eval_every": ("eval_strategy", "epoch"),
    "checkpoint_every": ("save_strategy", "epoch"),
}


def in_steps(one: Spelled) -> Spelled:
    """A time in steps or epochs as what it says; one in another unit as no value."""
    if isinstance(one.value, str) and one.key in _TIMED:
        found = _TIME.fullmatch(one.value)
    else:
        found = None
    if not found:
        return one
    number, unit = float(found[1]), found[2].lower()
    if unit in _STEPS:
        return replace(one, value=number)
    if unit == "dur" and one.key == "warmup_steps":
        return replace(one, key="warmup_ratio", value=number)
    if unit == "ep" and one.key in _EPOCHS:
        key, word = _EPOCHS[one.key]
        return replace(one, key=key, value=word or number)
    return replace(one, value=None)
