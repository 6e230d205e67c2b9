"""Reads what a trainer logged: any supported file, several ranks, or the folder of a run.

A format is one module with `sniff` and `read`, one line in `formats.LOADERS` and its places in `formats.RANKS`. All are
imported with the first name that is asked for here: who reads a configuration needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stabtree.loaders.formats import LOADERS, Loader
    from stabtree.loaders.paths.load import Loaded, check_options, find_runs, load_run, load_runs

__all__ = ["LOADERS", "Loaded", "Loader", "check_options", "find_runs", "load_run", "load_runs"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("stabtree.loaders.paths.load"), name)
