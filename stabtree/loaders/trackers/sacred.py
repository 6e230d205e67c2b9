"""Sacred: the metrics.json of its FileStorageObserver, one object with the steps and values of each metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.json.lines import parse
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
    found = Collected()
    try:
        content = parse("\n".join(source.lines()))
    except ValueError as error:
        raise StabtreeError(clean(error, 120), where=source.path, hint="copy it again") from None
    for name, metric in content.items():
        steps, values = (metric.get(key) if isinstance(metric, dict) else None for key in ("steps", "values"))
        if not isinstance(steps, list) or not isinstance(values, list):
            continue
        for step, value in zip(steps, values, strict=False):
            # A number of NumPy is stored with its type.
            found.add(name, step, value.get("value") if isinstance(value, dict) else value)
        found.bad += abs(len(steps) - len(values))
    return found.table(source.path, "sacred", names)
