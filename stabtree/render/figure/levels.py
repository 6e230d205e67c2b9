"""How high a value stands on the axis of its strip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.render.figure.model import Strip


def levels(values: Floats, strip: Strip) -> Floats:
    """The height of finite values between the ends of the axis, 0 to 1; beyond an end is at the end."""
    low, high = strip.low, strip.high
    if not high > low:
        return np.full(len(values), 0.5)
    with np.errstate(all="ignore"):
        if strip.log:
            values, low, high = np.log(values), float(np.log(low)), float(np.log(high))
        # Halved first: the distance of the largest numbers from each other is none that a float can hold.
        share = (values / 2 - low / 2) / (high / 2 - low / 2)
    found: Floats = np.clip(np.nan_to_num(share), 0, 1)
    return found
