"""Sacred: the metrics.json of its FileStorageObserver, one object with the steps and values of each metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.loaders.json.lines import parse_object
from stabtree.loaders.tables.collected import Collected

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names


def read(source: Source, names: Names) -> Table:
    """Read all metrics of a run.

    Raises:
        StabtreeError: if it is no JSON, or holds no values.
    """
    found, content = Collected(), parse_object("\n".join(source.lines()))
    if content is None:
        raise StabtreeError("is JSON that can't be read, or is cut", where=source.path, hint="copy it again")
    for name, metric in content.items():
        match metric:
            case {"steps": [*steps], "values": [*values]}:
                for step, value in zip(steps, values, strict=False):
                    if isinstance(value, dict):
                        value = value.get("value")  # noqa: PLW2901 - a number of NumPy is stored with its type
                    found.add(name, step, value)
                found.bad += abs(len(steps) - len(values))
            case _:
                pass
    return found.table(source.path, "sacred", names)
