"""Tests of stabtree.context, which the fact `context` hands to questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stabtree.context.find import context_of
from stabtree.run import ColumnUse, FileUse
from tests.conftest import make_run

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.run import Run


def run_of(columns: str, format_: str = "csv", rows: int = 1, **config: Any) -> Run:
    """Return a run with one file of these columns, separated by commas, and a configuration."""
    used = tuple(ColumnUse(name.strip(), None) for name in columns.split(","))
    return replace(make_run({"loss": [1.0]}, **config), sources=(FileUse("log", format_, rows, used),))


def known(columns: str, **config: Any) -> Context:
    """Return the context of such a run."""
    return context_of(run_of(columns, **config))
