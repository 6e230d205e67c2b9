"""The clues that causes and fixes may ask for. Trees name them; a new one is one function in one of these modules."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Clue

    CLUES: dict[str, Clue]

_MODULES = ("course", "rates", "events")


def __getattr__(name: str) -> Any:
    # A run in which nothing is found needs none of them.
    if name != "CLUES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stabtree.predicates.clues.registry import Clue

    modules = (import_module(f"{__name__}.{module}") for module in _MODULES)
    found = {item.name: item for module in modules for item in vars(module).values() if isinstance(item, Clue)}
    globals()["CLUES"] = found
    return found
