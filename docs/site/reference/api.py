"""The types of the Python API that a user does not import by name but gets: a page of them, for autodoc to fill."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

from docs.site.markup import code, text
from docs.site.reference.docstrings import about
from docs.site.reference.hints import types

if TYPE_CHECKING:
    from collections.abc import Iterable

HEAD = """# Types

What the functions of [Python](python.md) give and take besides the classes that are named there. They are data: frozen,
made by stabtree, and read by their attributes. Names that are not imported from `stabtree` itself may move to another
module.
"""


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    rooms = groupby(sorted(types(), key=lambda kind: (_room(kind), kind.__name__)), key=_room)
    return {"reference/types.md": "\n".join([HEAD, *(_section(room, kinds) for room, kinds in rooms)])}


def _room(kind: type) -> str:
    return ".".join(kind.__module__.split(".")[:2])


def _section(room: str, kinds: Iterable[type]) -> str:
    told = "\n".join(f".. autoclass:: {kind.__module__}.{kind.__name__}\n   :members:" for kind in kinds)
    return f"## {code(room)}\n\n{text(about(sys.modules[room]))}\n\n```{{eval-rst}}\n{told}\n```\n"
