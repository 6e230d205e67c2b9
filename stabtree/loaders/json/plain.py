"""Objects whose values are plain numbers, taken over some thousands at a time."""

from __future__ import annotations

from itertools import chain, compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from stabtree.common.lazy import np
from stabtree.loaders.tables.cells import may_be_misread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stabtree.common.lazy import Floats

# Up to here every whole number is a float64, so it does not matter which parser read it.
EXACT = 2.0**53


def by_keys(rows: Sequence[Mapping[str, Any]]) -> Iterable[tuple[tuple[str, ...], Sequence[int]]]:
    """Return the indices of the rows with the same keys, for each set of keys in the order of its first row."""
    kinds = set(map(tuple, rows))
    if len(kinds) == 1:
        return [(kinds.pop(), range(len(rows)))]
    indices: dict[tuple[str, ...], list[int]] = {}
    for index, row in enumerate(rows):
        indices.setdefault(tuple(row), []).append(index)
    return indices.items()


def numbers(rows: Sequence[Mapping[str, Any]], keys: list[str], *, texts: bool) -> Floats | None:
    """Return the values of the rows as (rows, keys); None if not all are plain numbers."""
    if not keys:
        return np.zeros((len(rows), 0))
    get = itemgetter(*keys)
    try:
        cells: Iterable[Any] = map(get, rows)
        if len(keys) > 1:
            cells = chain.from_iterable(cells)
        if texts:
            cells = list(cells)
            if str in set(map(type, cells)) and may_be_misread(cells):
                return None
        values = np.fromiter(cells, dtype=np.float64, count=len(rows) * len(keys))
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    # A null comes as NaN here, and beyond EXACT two parsers may differ.
    with np.errstate(invalid="ignore"):
        plain = bool((np.abs(values) <= EXACT).all())
    return values.reshape(len(rows), len(keys)) if plain else None


def holds_boolean(rows: Sequence[Mapping[str, Any]], keys: list[str], values: Floats) -> bool:
    """Return whether a 0 or a 1 of the rows is a boolean."""
    suspects = compress(keys, ((values == 0) | (values == 1)).any(axis=0))
    return any(bool in set(map(type, map(itemgetter(key), rows))) for key in suspects)
