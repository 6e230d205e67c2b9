"""Which trainer a configuration is for, and which one wrote a log: by what no other trainer writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stabtree.frameworks.load import frameworks
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.frameworks.model import Framework


def of_config(values: Mapping[str, Any]) -> str:
    """Return the trainer that a configuration is for; empty where nothing tells."""
    words = config_words(values)
    for one in sorted(frameworks().values(), key=lambda one: one.config.order):
        if any(mark <= words for mark in one.config.marks):
            return one.id
    return ""


def config_words(values: Mapping[str, Any]) -> set[str]:
    """Return the keys of a configuration, and `a.b` for each one in a section."""
    found = set()
    for key, value in values.items():
        word = plain_word(key)
        found.add(word)
        if isinstance(value, Mapping):
            found |= {f"{word}.{plain_word(inner)}" for inner in value}
    return found


def plain_word(key: object) -> str:
    """Return a key as it is compared: `_target_` and `Target` are `target`."""
    return normalize(str(key)).strip("_")


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """What of a log tells who wrote it.

    Attributes:
        columns: their names as they are written, in order.
        path: where it lies.
        format: the format that it was read as.
        begins_at: the first value of the first column; None where that is not known.
    """

    columns: Sequence[str]
    path: str = ""
    format: str = ""
    begins_at: float | None = None


def of_log(log: LoggedFile) -> str:
    """Return the trainer that wrote a log; empty where nothing tells."""
    names = {normalize(column) for column in log.columns}
    found = _surely(log) or _by_columns(names) or _by_order(log)
    for one in frameworks().values():
        if one.log.beside and one.built_on == found and any(one.log.beside in name for name in names):
            return one.id
    return found


def _in_order() -> list[Framework]:
    return sorted(frameworks().values(), key=lambda one: one.log.order)


def _surely(log: LoggedFile) -> str:
    """Return the trainer that alone writes to such a path, such a column or such a format."""
    for one in _in_order():
        signs = one.log
        if signs.path and signs.path in log.path:
            return one.id
        if signs.prefix and any(column.lower().startswith(signs.prefix) for column in log.columns):
            return one.id
        if signs.format and log.format.startswith(signs.format):
            return one.id
    return ""


def _by_columns(names: set[str]) -> str:
    for one in _in_order():
        if any(mark <= names for mark in one.log.marks):
            return one.id
    return ""


def _by_order(log: LoggedFile) -> str:
    """Return the trainer whose CSV has the epoch from 0, then metrics by alphabet, each with its `val_` twin."""
    if not log.columns or not log.format.startswith("csv"):
        return ""
    first, *names = log.columns
    begins = first == "epoch" and log.begins_at in (None, 0)
    if begins and _are_twins(names):
        return next((one.id for one in _in_order() if one.log.csv_logger), "")
    return ""


def _are_twins(names: list[str]) -> bool:
    """Return whether names are those of metrics by alphabet, the loss among them, each with its `val_` twin."""
    own = {name for name in names if not name.startswith("val_") and name not in ("lr", "learning_rate")}
    held_out = {name.removeprefix("val_") for name in names if name.startswith("val_")}
    return "loss" in own and own == held_out and names == sorted(names)
