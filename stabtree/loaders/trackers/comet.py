"""Comet's OfflineExperiment: messages.json, JSON lines, in the zip that it leaves behind or beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.loaders.json.lines import values
from stabtree.loaders.source import Sure
from stabtree.loaders.table import Skips
from stabtree.loaders.tables.collected import Collected, is_offline, member

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

FILE = "messages.json"
CONTEXTS = {"validate": "eval"}


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is an offline experiment."""
    return Sure.SURELY.when(is_offline(source, (FILE, "experiment.json"), '"message_id"'))


def read(source: Source, names: Names) -> Table:
    """Read the metrics, each named by its context and its own name, and the parameters.

    Raises:
        StabtreeError: if it holds no metrics.
    """
    found, skips = Collected(), Skips()
    for message in values(member(source, FILE).split("\n"), skips):
        match message:
            case {"payload": {"metric": {"metricName": str(name), "metricValue": value, **metric}, **payload}}:
                context = str(payload.get("context") or "")
                if not name.startswith(context):
                    name = f"{CONTEXTS.get(context, context)}/{name}"
                found.add(name, metric.get("step"), value)
            case {"payload": {"param": {"paramName": name, "paramValue": value}}}:
                found.config[str(name)] = value
            case _:
                pass
    return found.table(source.path, "comet, offline", names, notes=skips.notes("Lines that are no JSON"))
