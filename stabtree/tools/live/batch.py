"""What a batch is known by again: a hash of what it holds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

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
    digest = hashlib.blake2b(str(before or "").encode(), digest_size=8)
    if not _add(digest, batch, 0):
        return None
    return int.from_bytes(digest.digest(), "big") >> (64 - BITS)


def _add(digest: Any, value: Any, depth: int) -> bool:
    """Add what a value holds to a hash; return whether there was anything."""
    if depth > DEEPEST:
        return False
    if isinstance(value, str | bytes | int | float):
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        digest.update(f"{type(value).__name__} {len(data)} ".encode() + data)
        return True
    if hasattr(value, "shape") and hasattr(value, "reshape"):
        # Values from all over it, by a stride that does not hit the same column of each row.
        shape = tuple(map(int, value.shape))
        size = math.prod(shape)
        stride = max(size // SAMPLE, 1)
        while math.gcd(stride, size) > 1:
            stride += 1
        digest.update(f"{shape} {value.dtype} ".encode())
        if hasattr(value, "detach"):
            import torch  # it is a tensor of it

            flat = value.detach().reshape(-1)[::stride].cpu().contiguous()
            digest.update(flat.view(torch.uint8).numpy().tobytes())  # numpy has no bfloat16
        else:
            flat = value.reshape(-1)[::stride]
            is_plain = hasattr(flat, "tobytes") and str(flat.dtype) != "object"
            digest.update(flat.tobytes() if is_plain else repr(flat.tolist()).encode("utf-8", "surrogatepass"))
        return True
    if isinstance(value, Mapping):
        items = [item for key in sorted(value, key=str) for item in (str(key), value[key])]
        digest.update(b"{")
        return sum([_add(digest, item, depth + 1) for item in items][1::2]) > 0
    if isinstance(value, list | tuple):
        digest.update(f"{len(value)}[".encode())
        return sum(_add(digest, item, depth + 1) for item in value) > 0
    own = getattr(value, "__dict__", None)
    return isinstance(own, dict) and _add(digest, own, depth + 1)
