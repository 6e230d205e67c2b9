"""`--plot FILE`: the figure of a run as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.output.outputs import write
from stabtree.cli.shell.help import OUTPUT
from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Container

    from stabtree.diagnosis.result import Diagnosis

PNG, SVG = ".png", ".svg"
PlotOpt = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw the run into FILE, .svg or .png (pip install 'stabtree[png]').",
        rich_help_panel=OUTPUT,
    ),
]


def picture(plot: str | None, places: Container[Path | None]) -> Path | None:
    """The file to draw into, if any.

    Raises:
        StabtreeError: where its name does not say what kind of picture it is, a library lacks, or an output goes there.
    """
    if plot is None:
        return None
    path = Path(plot).resolve()
    if path.suffix.lower() not in (PNG, SVG):
        hint = f"type --plot {path.stem or 'run'}{SVG}"
        raise StabtreeError("the name of a picture ends in .svg or .png", where=f"--plot {plot}", hint=hint)
    if path in places:
        raise StabtreeError("an output goes to the same file", where=f"--plot {plot}", hint="name another file")
    if path.suffix.lower() == PNG:
        from stabtree.render.figure.png import renderer

        renderer()  # before a long log is read
    return path


def save(diagnosis: Diagnosis, path: Path | None) -> None:
    """Draw a diagnosis into a file, if one is wanted.

    Raises:
        StabtreeError: where it can't be written.
    """
    if path is None:
        return
    from stabtree.render.figure.svg import drawn

    if path.suffix.lower() == SVG:
        write(path, drawn(diagnosis), "--plot")
        return
    from stabtree.render.figure.png import png

    write(path, png(drawn(diagnosis, dark=False)), "--plot")
