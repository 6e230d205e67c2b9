"""What the one series of an export is, which does not say: its file or folder does, or its course."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.stats import blocks, kendall_z
from stabtree.common.text import clean
from stabtree.metrics.metric import Role
from stabtree.metrics.names import NAMELESS
from stabtree.metrics.role import PLAIN, describe_name
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from stabtree.loaders.table import Column, Table
    from stabtree.metrics.names import Names

# How clearly a series without any name must fall to be taken for a loss: one in 20 without a trend does.
TREND_Z, LEVELS, MIN_ROWS = 1.64, 20, 8
# What a series without any name may be instead, and the course by which it was chosen.
OTHERWISE = {"loss": ("reward", "it falls"), "reward": ("loss", "it rises from below 0 to above")}
_EXPORT = frozenset(("wall_time", "step", NAMELESS))
_TAG = re.compile(r"[-_]tag[-_](.+)")


class OneSeries(NamedTuple):
    """What the series of an export was taken for.

    Attributes:
        column: its column.
        metric: what it was read as.
        note: why.
        kind: how a loss moves by nature; else nothing.
    """

    column: str
    metric: str
    note: str
    kind: str = ""


def one_series(table: Table, names: Names) -> OneSeries | None:
    """Return what the one series of an export is, by the names of its file and folder, else by its course."""
    only = _only_series(table)
    if only is None or only in names.asked.values():
        return None
    for title, plain in _titles(table.path):
        metric, kind = _by_title(title, names, plain=plain)
        if metric:
            note = f"Its one series is called {clean(title, 60)}: read as the {metric}."
            return OneSeries(only, metric, note, kind)
    metric = _by_course(table.columns[only])
    if not metric:
        return None
    other, shape = OTHERWISE[metric]
    text = f"Nothing says what its one series is: read as the {metric}, since {shape}. "
    return OneSeries(only, metric, f"{text}If it is no {metric}: --column {other}={only}.")


def _by_title(title: str, names: Names, *, plain: bool) -> tuple[str, str]:
    """Return the metric that a title names, and how a loss of that name moves by nature."""
    reading = describe_name(title)
    if (reading.loss or reading.role is Role.REWARD) and plain and reading.order > PLAIN:
        return "", ""
    if metric := names.metric(title):
        return metric, ""
    if reading.loss:
        return "eval_loss" if reading.held_out else "loss", reading.kind
    return ("reward", "") if reading.role is Role.REWARD else ("", "")


def _only_series(table: Table) -> str | None:
    """Return the column of an export that holds one series and does not say which."""
    found = [name for name in table.columns if normalize(name) == NAMELESS]
    column = table.columns[found[0]] if found else None
    if not column or not column.count or not _EXPORT.issuperset(map(normalize, table.columns)):
        return None
    return found[0]


def _titles(path: str) -> list[tuple[str, bool]]:
    """Return what an export may be called after (tag, file, folder), and whether only a plain name counts there."""
    *folders, file = re.split(r"[\\/]", path)
    stem = file.removesuffix(".gz").removesuffix(".csv")
    titles = [(tag, False) for tag in _TAG.findall(stem)[:1]]
    titles.append((stem, False))
    return [*titles, *((folder, True) for folder in folders[-1:])]


def _by_course(column: Column | None) -> str:
    """Return what a series can be: a loss falls and is positive; only a reward rises from below 0 to above."""
    values = column.held[np.isfinite(column.held)] if column else np.empty(0)
    if len(values) < MIN_ROWS:
        return ""
    levels = blocks(values, min(LEVELS, len(values) // 2))[0]
    trend = kendall_z(levels)
    if trend < -TREND_Z and float(values.min()) >= 0:
        return "loss"
    if trend > TREND_Z and values[0] < 0 < levels[-1]:
        return "reward"
    return ""
