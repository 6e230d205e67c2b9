"""What a batch is known by again: a hash of what it holds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

SAMPLE = 1 << 12
"""So many values of each tensor are looked at, evenly spread: enough to tell any two batches apart."""
DEEPEST = 8
BITS = 48
"""15 digits: a whole number of so many is read by everyone as it was written."""


def batch_id(batch: object, before: int | None = None) -> int | None:
    """Return a number that two batches share only where they hold the same, the same in every process.

    Args:
        batch: tensors, arrays, numbers, texts, or lists and mappings of them; of a tensor on a GPU the values that are
            looked at are fetched.
        before: the number of another batch of the same step, of which this one is a later part.

    Returns:
        The number; None where nothing was found that can be distinguished.
    """
    known = hashlib.blake2b(digest_size=8)
    if before is not None:
        known.update(str(before).encode())
    if not _add(known, batch, 0):
        return None
    return int.from_bytes(known.digest(), "big") >> (64 - BITS)


def _add(known: Any, value: Any, depth: int) -> bool:
    """Add what a value holds to a hash; whether there was anything."""
    if depth > DEEPEST:
        return False
    if isinstance(value, Mapping):
        items = sorted(((str(key), item) for key, item in value.items()), key=lambda pair: pair[0])
        return sum(_named(known, name, item, depth) for name, item in items) > 0
    if isinstance(value, list | tuple | set | frozenset):
        return _add_items(known, value, depth)
    if isinstance(value, str | bytes | int | float):
        _add_scalar(known, value)
        return True
    if hasattr(value, "shape") and hasattr(value, "reshape"):
        return _add_array(known, value)
    own = getattr(value, "__dict__", None)
    return isinstance(own, dict) and _add(known, own, depth + 1)


def _add_items(known: Any, items: Collection[Any], depth: int) -> bool:
    known.update(f"{len(items)}[".encode())
    if isinstance(items, set | frozenset):
        items = sorted(items, key=repr)
    return sum(_add(known, item, depth + 1) for item in items) > 0


def _add_scalar(known: Any, value: str | bytes | float) -> None:
    if isinstance(value, bytes):
        data = value
    else:
        data = str(value).encode("utf-8", "surrogatepass")
    known.update(f"{type(value).__name__} {len(data)} ".encode() + data)


def _named(known: Any, name: str, value: Any, depth: int) -> bool:
    known.update(f"{name}=".encode("utf-8", "surrogatepass"))
    return _add(known, value, depth + 1)


def _add_array(known: Any, value: Any) -> bool:
    """Add the shape of an array and values from all over it."""
    shape = tuple(map(int, value.shape))
    size = math.prod(shape)
    stride = max(size // SAMPLE, 1)
    while math.gcd(stride, size) > 1:  # else it may hit the same column of each row
        stride += 1
    if hasattr(value, "detach"):
        value = value.detach()
    flat = value.reshape(-1)[::stride]
    known.update(f"{shape} {value.dtype} ".encode())
    known.update(_bytes(flat))
    return True


def _bytes(flat: Any) -> bytes:
    """Return the values of an array of one dimension."""
    if hasattr(flat, "numpy") and hasattr(flat, "cpu"):
        import torch  # it is a tensor of it

        flat = flat.cpu().contiguous().view(torch.uint8).numpy()  # numpy has no bfloat16
    if hasattr(flat, "tobytes") and str(flat.dtype) != "object":
        found: bytes = flat.tobytes()
        return found
    return repr(flat.tolist()).encode("utf-8", "surrogatepass")
