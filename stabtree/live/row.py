"""What a row of a Recorder is: plain numbers and texts, and a line of JSON that every reader takes."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from stabtree.common.text import clean

PLAIN = (float, str)
MOST_STEP = 2**53
"""The largest whole number that every reader of JSON keeps."""

_encode = json.JSONEncoder(default=str).encode


def line_of(row: Mapping[str, Any]) -> bytes:
    """A row as a line, in ASCII."""
    return _encode(row).encode() + b"\n"


def plain(value: Any) -> float | int | str:
    """A number of an array library, or a boolean, as a plain one."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        float(value)  # what has too many digits is refused
        return int(value)
    item = getattr(value, "item", None)
    return float(item() if item else value)


def whole(step: Any) -> int:
    """A step as a plain number.

    Raises:
        ValueError: for one that no reader keeps; or whatever `int` raises.
    """
    number = int(step)
    if abs(number) > MOST_STEP:
        raise ValueError("has too many digits")
    return number


def shown(value: object) -> str:
    """What to call a value in a message, whatever it is."""
    try:
        return clean(repr(value), 60)
    except Exception:  # whatever its class does
        return f"something of type {type(value).__name__}"


def spelled(value: float | str) -> float | int | str:
    """A value as JSON has it, which knows no NaN and no infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def fetched(rows: Iterable[dict[str, Any]]) -> None:
    """Put plain numbers for the tensors of some rows: those of a device come at once, which waits for it once."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    places: dict[Any, list[tuple[dict[str, Any], str]]] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex():
                places.setdefault(value.device, []).append((row, name))
    for device, found in places.items():
        wide = torch.float32 if device.type == "mps" else torch.float64
        values = torch.stack([row[name].detach().reshape(()).to(wide) for row, name in found]).tolist()
        for (row, name), value in zip(found, values, strict=True):
            row[name] = value


def plain_settings(value: Any) -> Any:
    """A setting as JSON has it: what it does not know is spelled out."""
    if isinstance(value, Mapping):
        return {str(key): plain_settings(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_settings(item) for item in value]
    return value if value is None else spelled(value) if isinstance(value, int | float) else str(value)
