"""A picture as PNG; needs the extra `stabtree[png]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from types import ModuleType

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.options import RenderOptions

ZOOM = 2  # dots of the picture for each of the drawing: sharp on any screen


def renderer() -> ModuleType:
    """Return the library that draws.

    Raises:
        StabtreeError: where it is not installed.
    """
    try:
        import resvg_py
    except ImportError:
        problem, hint = "a PNG needs a library that is not installed", "pip install 'stabtree[png]', or name a .svg"
        raise StabtreeError(problem, where="--output png", hint=hint) from None
    found: ModuleType = resvg_py
    return found


def output(diagnosis: Diagnosis, look: RenderOptions, /) -> bytes:  # noqa: ARG001 - as every output
    """Return the picture of a diagnosis.

    Raises:
        StabtreeError: where the library is not installed.
    """
    from stabtree.report.figure.svg import drawn

    return png(drawn(diagnosis, dark=False))


def png(drawing: str) -> bytes:
    """Return an SVG as PNG.

    Args:
        drawing: the SVG, of one palette: the library knows no variables.

    Raises:
        StabtreeError: where the library is not installed.
    """
    return bytes(renderer().svg_to_bytes(svg_string=drawing, zoom=ZOOM))
