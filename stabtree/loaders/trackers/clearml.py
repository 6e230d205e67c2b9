"""ClearML's offline mode: metrics.jsonl, in the folder of a session or in the zip that is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.text import first_few
from stabtree.loaders.json.lines import values
from stabtree.loaders.source import Sure
from stabtree.loaders.table import Skips
from stabtree.loaders.tables.collected import Collected, is_offline, member

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Points, Table
    from stabtree.metrics.names import Names

FILE = "metrics.jsonl"
# In the words of clearml/backend_interface/metrics/events.py, where it replaces them.
REPLACED = (
    "ClearML reports NaN and inf as 0.0 (\"NaN value encountered. Reporting it as '0.0'\"): {names} are exactly 0 from "
    "step {step:,} to the end, so they are read as NaN. clearml.Logger.set_reporting_nan_value keeps them apart."
)


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is the log of an offline session."""
    return Sure.SURELY.when(is_offline(source, (FILE, "task.json"), '"training_stats_'))


def read(source: Source, names: Names) -> Table:
    """Read the scalars, each named by its metric and variant.

    Raises:
        StabtreeError: if it holds none.
    """
    found, skips = Collected(), Skips()
    for events in values(member(source, FILE).split("\n"), skips):
        for event in (isinstance(events, list) and events) or ():
            match event:
                case {"type": "training_stats_scalar", "metric": metric, "variant": variant}:
                    name = "/".join(dict.fromkeys((str(metric), str(variant))))
                    found.add(name, event.get("iter"), event.get("value"))
                case _:
                    pass
    points, notes = _with_nan(found.points(), names)
    notes = (*notes, *skips.notes("Lines that are no JSON"))
    return found.table(source.path, "clearml, offline", names, points=points, notes=notes)


def _with_nan(points: Points, names: Names) -> tuple[Points, tuple[str, ...]]:
    """Return the values with NaN where ClearML stored 0.0, if a loss and a second series fall to it at one step.

    A loss alone that is 0 may be a loss without labels; a learning rate that is 0 at the end has decayed.
    """
    begins: dict[int, int] = {}
    for index, name in enumerate(points.names):
        own = np.flatnonzero(points.name == index)
        last = np.flatnonzero(points.value[own])
        if len(last) and last[-1] + 1 < len(own) and names.role(name) != "lr":
            begins[index] = int(points.step[own[last[-1] + 1]])
    first = min(begins.values(), default=0)
    together = [points.names[index] for index, step in begins.items() if step == first]
    if len(together) < 2 or not {"loss", "grad_norm"} & {names.role(name) for name in together}:
        return points, ()
    zeros = np.isin(points.name, list(begins)) & (points.step >= first) & (points.value == 0)
    note = REPLACED.format(names=first_few([points.names[index] for index in begins], 5), step=first)
    return replace(points, value=np.where(zeros, np.nan, points.value)), (note,)
