"""numpy, imported at its first use.

`--help` and `explain` read predicate signatures, which needs the predicate modules but no array;
importing numpy there would double their start-up time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

__all__ = ["Bools", "Floats", "Ints", "np"]
