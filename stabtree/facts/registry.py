"""What facts share: the memory of what a series showed, and its finite part."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from stabtree._lazy import np

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree._lazy import Floats, Ints
    from stabtree.answer import Evidence
    from stabtree.run import Series

P = ParamSpec("P")
T = TypeVar("T")


def per_series(function: Callable[Concatenate[Series, P], T]) -> Callable[Concatenate[Series, P], T]:
    """Remember what a pure function of a series found: several questions ask about the same spikes or levels."""
    known: WeakKeyDictionary[Series, dict[Any, T]] = WeakKeyDictionary()

    @wraps(function)
    def remembered(series: Series, /, *args: P.args, **options: P.kwargs) -> T:
        found = known.setdefault(series, {})
        key = (args, tuple(sorted(options.items())))
        if key not in found:
            found[key] = function(series, *args, **options)
        return found[key]

    return remembered


@per_series
def finite(series: Series) -> tuple[Ints, Floats]:
    """Steps and values of the finite entries, values cut to ±1e100 so that their squares stay finite too."""
    values = series.values
    if len(values) and abs(float(values.max())) <= 1e100 and abs(float(values.min())) <= 1e100:
        return series.steps, values  # a NaN would have made the comparison false
    keep = np.isfinite(values)
    return series.steps[keep], np.clip(values[keep], -1e100, 1e100)


def seen(*evidence: Evidence | None) -> tuple[Evidence, ...]:
    """The evidence that there is, in order."""
    return tuple(item for item in evidence if item is not None)
