"""Values as JSON holds them: plain ones, which a terminal and a service may show as they are."""

from __future__ import annotations

import json
import math
import re
from enum import StrEnum
from typing import Any

from stabtree.common.lazy import np

_HIDDEN = re.compile(
    "(?<=#)#|[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)  # controls, and what turns text around


def written(value: Any, indent: int | None = 2) -> str:
    """Return plain values as ASCII JSON with a final newline, in which no service sees a command."""
    return inert(json.dumps(value, indent=indent, allow_nan=False)) + "\n"


def inert(text: str) -> str:
    """Return JSON with the same values, in which no service sees a command, and a terminal shows nothing hidden."""
    # `##[...]` and `##vso[...]` are commands to GitHub and Azure anywhere in a line.
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def number(value: float | None) -> float | None:
    """Return a number fit for JSON: None where it is not finite."""
    if value is not None and math.isfinite(value):
        return float(value)
    return None


def plain(value: Any) -> Any:
    """Return a setting or a parameter fit for JSON; computed ones are often numbers of numpy."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, StrEnum):
        return str(value)
    return value


def picked(item: object, *names: str) -> dict[str, Any]:
    """Return some attributes of a value by name, tuples as lists and numbers that are not finite as None."""
    values = {name: getattr(item, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else plain(value) for name, value in values.items()}
