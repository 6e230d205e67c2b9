"""What is made at its first use: numpy, and values that few readers want.

`--help` and `explain` read measure signatures, which needs the measure modules but no array;
importing numpy there would double their start-up time.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
else:

    class _Numpy:
        """Hands out numpy's attributes, keeping each after its first use."""

        def __getattr__(self, name: str) -> Any:
            import numpy as real  # noqa: ICN001 - `np` is this very stand-in

            value = getattr(real, name)
            self.__dict__[name] = value
            return value

    np = _Numpy()
    Floats = Ints = Bools = Any

T = TypeVar("T")

__all__ = ["Bools", "Floats", "Imported", "Ints", "Later", "np"]


class Later(Sequence[T]):
    """A tuple that `make` makes at its first use, and that is kept; it equals that tuple, and is pickled as one."""

    __slots__ = ("_all",)

    def __init__(self, make: Callable[[], tuple[T, ...]]) -> None:
        self._all = cache(make)

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return self._all() == (other._all() if isinstance(other, Later) else other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._all(),)


class Imported(UserDict[str, T]):
    """Objects by name. A module is imported when the first of its objects is asked for."""

    def __init__(self, package: str, names: Mapping[str, str]) -> None:
        """Take the names of the objects of each module of a package, with blanks between."""
        self.data: dict[str, Any] = {}  # until an object is asked for, its module
        for module, held in names.items():
            self.data.update(dict.fromkeys(held.split(), f"{package}.{module}"))

    def __getitem__(self, name: str) -> T:
        if isinstance(self.data[name], str):
            self.data[name] = getattr(import_module(self.data[name]), name)
        found: T = self.data[name]
        return found
