"""Which metric a column's name stands for, by the names in `metrics.yaml`.

Names are compared after `normalize`, so `Train/Loss`, `train loss` and `train_loss` are one name. Where several columns
of a file carry one metric, the alias that comes first in its list wins.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from pathlib import Path

from stabtree.common.yaml12 import read, typed
from stabtree.metrics.metric import Metric, MetricTable, Role

FILE = Path(__file__).with_name("metrics.yaml")
# The names of nested modules, joined, come nowhere near this; what is longer is text.
MAX_NAME = 300
NO_AXIS = ("", 0)
_WHOLE, LATE = frozenset(("opt", "optim", "optimizer", "optimization", "train", "training", "total", "global")), 99
# RLlib logs what each policy learns under its name: `info/learner/default_policy/learner_stats/total_loss`.
_RLLIB = re.compile(r"^(?:info/)?learners?/[^/]+/(?:learner_stats/)?(?=[^/]+$)")
# TRL logs the mean of each reward function between two words.
_REWARD_FUNCTION = re.compile(r"^(?:train/)?rewards/([^/]+)/mean$")
_SEPARATORS = re.compile(r"[\s\-./:|\\]+")
# `2d` and `3D` are no discriminator beside a number.
_WORDS = re.compile(r"[1-3][dD](?![A-Za-z0-9])|[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
_LOSS_AT_END = re.compile(r"(.*)(loss)(?:es)?\d*")


def normalize(name: str) -> str:
    """Return the form in which names are compared: lower case, every separator an underscore."""
    return _SEPARATORS.sub("_", name.strip().lower())


def words(name: str) -> list[str]:
    """Return the words of a name in lower case, however they are separated.

    >>> words("TrainLoss"), words("Qloss"), words("val/losses")
    (['train', 'loss'], ['q', 'loss'], ['val', 'loss'])
    """
    found = []
    for word in _WORDS.findall(name):
        at_end = _LOSS_AT_END.fullmatch(word.lower())
        found += [part for part in at_end.groups() if part] if at_end else [word.lower()]
    return found


@cache
def table() -> MetricTable:
    """Return the known metrics and the names of the columns that say which row it is."""
    found = read(FILE)
    for name, metric in found["metrics"].items():
        metric["name"] = name
        if metric.pop("train", False):
            aliases = metric.get("aliases", "").split()
            metric["aliases"] = " ".join([*aliases, *(f"train_{alias}" for alias in aliases)])
    return typed({**found, "metrics": [*found["metrics"].values()]}, MetricTable, FILE.name)


def all_metrics() -> tuple[Metric, ...]:
    """Return the known metrics."""
    return table().metrics


@cache
def by_name() -> dict[str, Metric]:
    """Return the metrics by canonical name."""
    return {metric.name: metric for metric in all_metrics()}


@cache
def with_role(*roles: Role) -> frozenset[str]:
    """Return the metrics that have one of these roles."""
    return frozenset(metric.name for metric in all_metrics() if metric.role in roles)


def is_time(metric: str) -> bool:
    """Return whether a metric is one of time: a clock, how long a step takes, how much is done in a second."""
    return metric in with_role(Role.CLOCK)


def axis(column: str) -> tuple[str, int]:
    """Return the axis that a column is (`step`, `epoch`, ...), and its index among the names of it; else nothing."""
    if len(column) > MAX_NAME:
        return NO_AXIS
    return _axes().get(normalize(column)) or _axes().get("_".join(words(column)), NO_AXIS)


@cache
def _axes() -> dict[str, tuple[str, int]]:
    """Return (axis, index among its names) by name."""
    found: dict[str, tuple[str, int]] = {}
    for name, aliases in table().axes.items():
        found |= {alias: (name, index) for index, alias in enumerate(aliases)}
    return found


@cache
def _exact() -> dict[str, tuple[str, int]]:
    return {alias: (metric.name, index) for metric in all_metrics() for index, alias in enumerate(metric.names)}


@cache
def _max_parts() -> int:
    """Return how many words the longest alias of a grouped metric has."""
    aliases = chain.from_iterable(metric.names for metric in all_metrics() if metric.grouped)
    return max(alias.count("_") + 1 for alias in aliases)


def match(column: str) -> tuple[str, int] | None:
    """Return the metric that a column name stands for, and its index among the aliases (0 is best).

    A grouped metric is recognised as a prefix (`grad_norm/embed`, `weight_norm.block0`) or as a suffix
    (`block0.attn/absmax`); it comes back as `metric/<group>`.

    >>> match("train/Learning_Rate")
    ('lr', 3)
    >>> match("param_norm/head")
    ('weight_norm/head', 1)
    """
    if len(column) > MAX_NAME:
        return None
    column = _RLLIB.sub("rllib_", column.removeprefix("ray/tune/"))
    column = _REWARD_FUNCTION.sub(r"reward_function/\1", column)
    found = _exact().get(normalize(column)) or _exact().get("_".join(words(column)))
    if found:
        return found
    return _grouped(column)


def _grouped(column: str) -> tuple[str, int] | None:
    """Return the grouped metric of which a column is one group, as `metric/<group>`, and the index of its alias."""
    parts = [part for part in re.split(r"[/.:|]", column.strip()) if part]
    # The name of a metric has few parts, so that of a long name only the two ends are tried.
    most = _max_parts()
    begin, end = min(most, len(parts) - 1), max(most + 1, len(parts) - most)
    for cut in (*range(1, begin + 1), *range(end, len(parts))):
        for name, group in ((parts[:cut], parts[cut:]), (parts[cut:], parts[:cut])):
            if len(name) <= most and (found := _with_groups(normalize("/".join(name)))):
                whole = _WHOLE.issuperset(words(".".join(group)))  # as `opt/grad_norm`: no group, after known names
                return (found[0], LATE) if whole else (f"{found[0]}/{'.'.join(group)}", found[1])
    return None


def _with_groups(alias: str) -> tuple[str, int] | None:
    """Return the grouped metric that a name stands for before its group, and the index of the alias."""
    found = _exact().get(alias)
    metric = by_name()[found[0]] if found else None
    if metric and metric.grouped and alias not in metric.alone:
        return found
    return None
