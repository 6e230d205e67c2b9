"""What is made at its first use: numpy, and values that few readers want.

`--help` and `explain` read measure signatures, which needs the measure modules but no array;
importing numpy there would double their start-up time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """A tuple that is made when it is first used, and kept; it equals that tuple, and is pickled as one.

    Args:
        make: makes the tuple.
    """

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], tuple[T, ...]]) -> None:
        self._make: Callable[[], tuple[T, ...]] | None = make
        self._made: tuple[T, ...] = ()

    def _all(self) -> tuple[T, ...]:
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
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


class Imported(MutableMapping[str, T]):
    """Objects by name. A module is imported when the first of its objects is asked for.

    Args:
        package: where the modules are.
        names: module, relative to the package -> the names of its objects, with blanks between.
    """

    def __init__(self, package: str, names: Mapping[str, str]) -> None:
        self._package = package
        self._modules = {name: module for module, held in names.items() for name in held.split()}
        self._known: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._known:
            self._known[name] = getattr(import_module(f"{self._package}.{self._modules[name]}"), name)
        return self._known[name]

    def __setitem__(self, name: str, value: T) -> None:
        self._modules.setdefault(name, "")
        self._known[name] = value

    def __delitem__(self, name: str) -> None:
        del self._modules[name]
        self._known.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)
