"""A picture as PNG; needs the extra `stabtree[png]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from types import ModuleType

ZOOM = 2  # dots of the picture for each of the drawing: sharp on any screen


def renderer() -> ModuleType:
    """The library that draws.

    Raises:
        StabtreeError: where it is not installed.
    """
    try:
        import resvg_py
    except ImportError:
        problem, hint = "a PNG takes a library that is not installed", "pip install 'stabtree[png]', or name a .svg"
        raise StabtreeError(problem, where="--plot", hint=hint) from None
    found: ModuleType = resvg_py
    return found


def png(drawing: str) -> bytes:
    """An SVG as PNG.

    Args:
        drawing: the SVG, of one palette: the library knows no variables.

    Raises:
        StabtreeError: where the library is not installed.
    """
    return bytes(renderer().svg_to_bytes(svg_string=drawing, zoom=ZOOM))
