"""Many runs as a pandas DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.judging.outcome import ORDER
from stabtree.tools.fleet.outputs.csv import COLUMNS, row

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from stabtree.tools.fleet.record import Record

WHOLE = ("onset_step", "restart_step", "rows", "last_step", "more")
TEXTS = ("path", "run", "leaf", "section", "title", "problem")


def frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return a row a run, with the columns of the CSV; verdicts and badges are ordered, the worst is the greatest."""
    import pandas as pd

    kinds = dict.fromkeys(WHOLE, "Int64") | dict.fromkeys(TEXTS, "string") | {"seconds": "float64"}
    order = pd.CategoricalDtype([*map(str, reversed(ORDER))], ordered=True)
    rows = pd.DataFrame(map(row, records), columns=list(COLUMNS), dtype=object)  # a float would round a large step
    return rows.astype({**kinds, "verdict": order, "badge": order})
