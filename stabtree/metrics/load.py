"""`metrics.yaml`, read once and only when a column is first looked up: starting up needs no YAML."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.data import DataFile, compiled, flag, one_of, text, words
from stabtree.metrics import metric
from stabtree.metrics.metric import Metric, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.data import Reader

FILE = Path(__file__).with_name("metrics.yaml")
_AXES: Mapping[str, Reader] = dict.fromkeys(("run", "rank", "phase", "epoch", "step"), words)
_METRIC: Mapping[str, Reader] = {
    "meaning": text,
    "role": one_of(*Role),
    "better": one_of("lower", "higher"),
    "aliases": words,
    "train": flag,
    "alone": words,
    "grouped": flag,
    "flag": flag,
    "log": text,
}


class MetricTable(NamedTuple):
    """What the file holds.

    Attributes:
        metrics: the known metrics.
        axes: the names of columns that say which row it is, best first, by `step`, `epoch`, `rank`, `run` and `phase`.
    """

    metrics: tuple[Metric, ...]
    axes: Mapping[str, tuple[str, ...]]


@cache
def table() -> MetricTable:
    """Return the known metrics and the names of the columns that say which row it is."""
    return compiled("metrics", metric, sys.modules[__name__]) or read(FILE)


def read(path: Path) -> MetricTable:
    """Read a table of metrics.

    Raises:
        StabtreeError: with all mistakes of the file.
    """
    file = DataFile(path)
    parts = file.section((), file.value, {"axes": dict, "metrics": dict})
    file.lacks((), parts, ("axes", "metrics"))
    axes = file.section(("axes",), parts.get("axes"), _AXES)
    file.lacks(("axes",), axes, tuple(_AXES))
    metrics = tuple(_metric(file, name, value) for name, value in parts.get("metrics", {}).items())
    file.check()
    return MetricTable(metrics, axes)


def _metric(file: DataFile, name: str, value: object) -> Metric:
    """Return a metric; one that lacks something is noted in the file's mistakes."""
    path = ("metrics", name)
    found = file.section(path, value, _METRIC)
    file.lacks(path, found, ("meaning", "log"))
    aliases = found.pop("aliases", ())
    if found.pop("train", False):
        aliases = (*aliases, *(f"train_{alias}" for alias in aliases))
    return Metric(name, found.pop("meaning", ""), aliases, role=Role(found.pop("role", Role.OTHER)), **found)
