"""The settings of one file: of each the best spelling, read, and what follows from several of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from stabtree.common.text import clean, masked
from stabtree.loaders.config import positive_of
from stabtree.loaders.configs.collect import found_in, is_open
from stabtree.loaders.configs.framework import framework_in
from stabtree.loaders.configs.keys import KEYS
from stabtree.run import Setting

if TYPE_CHECKING:
    from stabtree.loaders.configs.collect import Spelled
    from stabtree.loaders.configs.document import ConfigFile, Path_

# Counts of steps that trainers take as a share of all steps where they are below 1.
_SHARES = ("log_interval", "eval_every", "checkpoint_every")


def settings_of(file: ConfigFile) -> tuple[dict[str, Setting], list[str]]:
    """The settings of a file, and a note for each value of the wrong kind."""
    framework = framework_in(file.values)
    settings: dict[str, Setting] = {}
    shares: dict[str, Setting] = {}
    notes = []
    for one in found_in(file.values, framework):
        key = "warmup_ratio" if one.key == "warmup_steps" and _is_share(one.value) else one.key
        if key in settings or key in shares or _is_unset(one):
            continue
        source = written(file, one.path)
        if key in _SHARES and _is_share(one.value):
            shares[key] = Setting(float(one.value), source)
            continue
        try:
            settings[key] = Setting(KEYS[key][0](one.value), source)
        except (ValueError, OverflowError, TypeError) as error:
            shown = masked(clean(repr(one.value), 40))
            notes.append(f"{source} is {shown}, not {clean(error, 60)}: ignored.")
    if framework:
        settings["framework"] = Setting(framework, file.name)
    steps = settings["max_steps"].value if "max_steps" in settings else None
    if isinstance(steps, int):
        for key, share in shares.items():
            settings[key] = Setting(math.ceil(float(share.value) * steps), share.source)  # type: ignore[arg-type]
    return settings, notes


def _is_share(value: Any) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _is_unset(one: Spelled) -> bool:
    """Whether a value says that nothing is set: what is not there, -1, and 0 of what can't be 0."""
    if is_open(one.value):
        return True
    number = isinstance(one.value, int | float) and not isinstance(one.value, bool)
    return number and (one.value == -1 or (one.value == 0 and KEYS[one.key][0] is positive_of))


def written(file: ConfigFile, path: Path_) -> str:
    """Where a value stands: `config.yaml:12, optimizer.lr`."""
    line = file.lines.get(path)
    words = masked(clean(".".join(map(str, path)), 80))
    return f"{file.name}:{line}, {words}" if line else f"{file.name}, {words}"
