"""What a configuration says of its trainer, or of its model, and which trainer wrote a log: by what no other writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from stabtree.frameworks.load import frameworks
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.frameworks.load import Framework


def of_config(values: Mapping[str, Any]) -> str:
    """Return the trainer that a configuration is for; empty where nothing shows it."""
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


class LoggedFile(Struct, frozen=True):
    """What of a log shows who wrote it.

    Attributes:
        columns: their names as they are written, in order.
        path: where it lies.
        format: the format that it was read as.
        begins_at: the first value of the first column; None where that is not known.
        rows: its rows; 0 where that is not known.
        filled: how many cells of a column hold anything, of columns that were read.
    """

    columns: Sequence[str]
    path: str = ""
    format: str = ""
    begins_at: float | None = None
    rows: int = 0
    filled: Mapping[str, int] = {}


class Recognised(Struct, frozen=True):
    """A trainer, and what shows it.

    Attributes:
        id: the trainer; empty where nothing shows it.
        why: the columns, the folder or the format that no other trainer writes.
        sure: whether the trainer names itself, by a folder or a format of its own.
    """

    id: str = ""
    why: str = ""
    sure: bool = False


def of_log(log: LoggedFile) -> Recognised:
    """Return the trainer that wrote a log."""
    columns = tuple(log.columns)
    found = _by_place(log, columns) or _by_columns(columns) or _by_layout(log) or Recognised()
    if not found.id:
        return found
    return _by_columns(columns, found.id) or _beside(log, found.id) or found


def _built_on(id_: str) -> list[Framework]:
    return [one for one in _in_order() if one.built_on == id_]


def _beside(log: LoggedFile, built_on: str) -> Recognised | None:
    for one in _built_on(built_on):
        for column in log.columns:
            if one.log.beside and one.log.beside in normalize(column):
                return Recognised(one.id, f"column {column}")
    return None


@cache
def _in_order() -> list[Framework]:
    return sorted(frameworks().values(), key=lambda one: one.log.order)


@lru_cache(maxsize=64)
def _prefixed(columns: tuple[str, ...]) -> Mapping[str, str]:
    """Return the first column that only one trainer writes, by trainer."""
    found = {}
    for one in _in_order():
        column = next((name for name in columns if one.log.prefix and name.lower().startswith(one.log.prefix)), "")
        if column:
            found[one.id] = column
    return found


def _by_place(log: LoggedFile, columns: tuple[str, ...]) -> Recognised | None:
    """Return the trainer that alone writes to such a path, such a column or such a format."""
    prefixed = _prefixed(columns)
    for one in _in_order():
        signs = one.log
        if signs.path and signs.path in log.path:
            return Recognised(one.id, f"folder {signs.path}", sure=True)
        if one.id in prefixed:
            return Recognised(one.id, f"column {prefixed[one.id]}")
        if signs.format and log.format.startswith(signs.format):
            return Recognised(one.id, f"format {signs.format}", sure=True)
    return None


@lru_cache(maxsize=64)
def _by_columns(columns: tuple[str, ...], built_on: str = "") -> Recognised | None:
    """Return the trainer that writes such columns, of those that are built on another one or of all."""
    names = {normalize(column) for column in columns}
    for one in _built_on(built_on) if built_on else _in_order():
        mark = next((mark for mark in one.log.marks if mark <= names), None)
        if mark:
            return Recognised(one.id, f"columns {', '.join(sorted(mark))}")
    return None


def _by_layout(log: LoggedFile) -> Recognised | None:
    """Return the trainer whose CSV has such an order of columns, or such gaps in them."""
    if not log.columns or not log.format.startswith("csv"):
        return None
    # Keras writes the epoch from 0, then metrics by alphabet, the loss among them, each with its `val_` twin.
    first, *names = log.columns
    own = {name for name in names if not name.startswith("val_") and name not in ("lr", "learning_rate")}
    held_out = {name.removeprefix("val_") for name in names if name.startswith("val_")}
    twins = "loss" in own and own == held_out and names == sorted(names)
    if first == "epoch" and log.begins_at in (None, 0) and twins:
        return next((Recognised(one.id, "order of the columns") for one in _in_order() if one.log.csv_logger), None)
    if _is_sparse(log):
        why = "training and validation in rows of their own"
        return next((Recognised(one.id, why) for one in _in_order() if one.log.sparse_csv), None)
    return None


def _is_sparse(log: LoggedFile) -> bool:
    """Return whether `epoch` and `step` are there, and no row holds both training and validation."""
    if not {"epoch", "step"} <= set(log.columns):
        return False
    train = max((count for name, count in log.filled.items() if name.startswith("train")), default=0)
    held_out = max((count for name, count in log.filled.items() if name.startswith("val")), default=0)
    return bool(train and held_out) and train + held_out <= log.rows


WEIGHTS_DTYPE = "weights_dtype"

# The heads whose loss is a cross-entropy over the vocabulary.
_LANGUAGE_HEADS = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration")


def of_model(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the configuration of a model says of its training: what its loss is over, and its weights' precision.

    The latter is that of the run only where no trainer's flag says otherwise: mixed precision has weights in fp32.
    """
    found: dict[str, Any] = {}
    head = _head(values)
    labels = _label_count(values)
    # A model that was built in code has no head until it is saved; two labels are what every model begins with.
    if (not head and labels <= 2) or head.endswith(_LANGUAGE_HEADS):
        found["vocab_size"] = values.get("vocab_size")
    elif (not head or head.endswith("Classification")) and labels > 1:
        single = values.get("problem_type") in (None, "single_label_classification")
        found["n_classes"] = labels if single else None
    found[WEIGHTS_DTYPE] = values.get("dtype") or values.get("torch_dtype")
    return found


def _head(values: Mapping[str, Any]) -> str:
    """Return the name of the class that a model was saved as; empty where it is not known."""
    heads = values.get("architectures")
    if isinstance(heads, list) and heads:
        return str(heads[0])
    return ""


def _label_count(values: Mapping[str, Any]) -> int:
    """Return how many labels a model has names for."""
    labels = values.get("id2label")
    return len(labels) if isinstance(labels, Mapping) else 0
