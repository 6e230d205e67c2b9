"""What the core offers its tools to add: commands, outputs, and functions that the core can call.

The core imports no tool. It looks up what it needs by name, and each function is imported when it is first called.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOOLS = "stabtree.tools"
"""The package whose `__init__` holds the tables of the tools; the core works without it."""


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return what the tools add under the name of a table; empty where no tools are installed."""
    try:
        tools = import_module(TOOLS)
    except ModuleNotFoundError as error:
        if error.name != TOOLS:
            raise
        return {}
    return dict(getattr(tools, name))


def load(address: str) -> Any:
    """Import what an address names, as `stabtree.tools.ci.baseline:read_baseline`."""
    module, _, attribute = address.partition(":")
    return getattr(import_module(module), attribute)


def function(name: str) -> Callable[..., Any]:
    """Return the function that a tool adds to the core under this name.

    Raises:
        StabtreeError: where no installed tool has it.
    """
    functions = table("FUNCTIONS")
    if name not in functions:
        raise StabtreeError(f"{name} needs the tools of stabtree", hint="install stabtree with its tools")
    found: Callable[..., Any] = load(functions[name])
    return found
