"""What a row of a Recorder is: plain numbers and texts, and a line of JSON that every reader takes."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from stabtree.common.text import clean
from stabtree.tools.live.monitor import as_float

PLAIN = (float, str)
MAX_STEP = 2**53
"""The largest whole number that every reader of JSON keeps."""

_encode = json.JSONEncoder(default=str).encode


def line_of(row: Mapping[str, Any]) -> bytes:
    """Return a row as a line, in ASCII."""
    return _encode(row).encode() + b"\n"


def plain(value: Any) -> float | int | str:
    """Return a number of an array library, or a boolean, as a plain one."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        float(value)  # what has too many digits is refused
        return int(value)
    return as_float(value)


def whole(step: Any) -> int:
    """Return a step as a plain number.

    Raises:
        ValueError: for one that no reader keeps; or whatever `int` raises.
    """
    number = int(step)
    if abs(number) > MAX_STEP:
        raise ValueError("has too many digits")
    return number


def shown(value: object) -> str:
    """Return what to call a value in a message, whatever it is."""
    try:
        return clean(repr(value), 60)
    except Exception:  # whatever its class does
        return f"something of type {type(value).__name__}"


def spelled(value: float | str) -> float | int | str:
    """Return a value as JSON has it, which knows no NaN and no infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return "NaN"
        if value > 0:
            return "Infinity"
        return "-Infinity"
    return value


def is_broken(value: Any) -> bool:
    """Return whether a number is at hand and not finite; one that lies on a GPU is not waited for."""
    if type(value) in (int, str) or getattr(getattr(value, "device", None), "type", "cpu") != "cpu":
        return False
    try:
        return not math.isfinite(float(plain(value)))
    except Exception:  # no number: reported when its row is written
        return False


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
        wide = torch.float64
        if device.type == "mps":  # which has none
            wide = torch.float32
        values = torch.stack([row[name].detach().reshape(()).to(wide) for row, name in found]).tolist()
        for (row, name), value in zip(found, values, strict=True):
            row[name] = value


def plain_settings(value: Any) -> Any:
    """Return a setting as JSON has it: what it does not know is spelled out."""
    if isinstance(value, Mapping):
        return {str(key): plain_settings(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_settings(item) for item in value]
    if value is None:
        return value
    if isinstance(value, int | float):
        return spelled(value)
    return str(value)
