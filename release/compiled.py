"""Writes `stabtree/compiled.json`, which spares each start the parsing of our YAML: `python -m release.compiled`.

`release/hook.py` calls it too, so that a wheel holds the file, and an editable install has it.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from stabtree.common import data
from stabtree.common.data import CONTAINER, TAG
from stabtree.frameworks import load as frameworks
from stabtree.metrics import load as metrics
from stabtree.tree import calibration, load, shipped

if TYPE_CHECKING:
    from pathlib import Path


def written(file: Path | None = None, *, checkout: bool = True) -> Path:
    """Compile what the package reads from YAML, write it, and return the file.

    Args:
        file: where to write it; where the package looks for it, unless given.
        checkout: whether it is for this checkout, or for a wheel.
    """
    found: dict[str, object] = {name: load.built(name) for name in shipped.shipped()}
    found["metrics"] = metrics.read(metrics.FILE)
    found["frameworks"] = frameworks.read(frameworks.FOLDER)
    found["calibrations"] = calibration.read()
    lines = [data.key(checkout=checkout)]
    for name, value in found.items():
        lines += [name, json.dumps(encoded(value), ensure_ascii=False, separators=(",", ":"))]
    file = file or data.FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def encoded(value: Any) -> Any:
    """Return a value as JSON holds it: a list is a tuple, and an object with a tag is no plain mapping."""
    if isinstance(value, Enum):
        return {TAG: type(value).__name__, CONTAINER: value.value}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, frozenset):
        return {TAG: "frozenset", CONTAINER: sorted(value)}
    if isinstance(value, list):
        return {TAG: "list", CONTAINER: [_inner(item) for item in value]}
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value) if not _is_default(value, field)}
        return {TAG: type(value).__name__, **encoded(given)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {TAG: type(value).__name__, **encoded(value._asdict())}
    if isinstance(value, tuple):
        return [_inner(item) for item in value]
    return {name: encoded(item) for name, item in value.items()}


def _inner(value: Any) -> Any:
    """Return an item of a container: a tuple has a tag there, since only what an object holds is known to be one."""
    if type(value) is tuple:
        return {TAG: "tuple", CONTAINER: [_inner(item) for item in value]}
    return encoded(value)


def _is_default(value: Any, field: Field[Any]) -> bool:
    if field.default_factory is not MISSING:
        return bool(getattr(value, field.name) == field.default_factory())
    return field.default is not MISSING and getattr(value, field.name) == field.default


if __name__ == "__main__":
    print(written())
