"""The options that say what is printed, and where to."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from stabtree.cli.options import values
from stabtree.cli.program.expand import option
from stabtree.cli.program.help import OUTPUT
from stabtree.report.options import Length
from stabtree.report.outputs import RUN, SCREEN, names


def output_option(kind: str) -> Any:
    """Declare `--output` for a kind of result."""
    others = ", ".join(name for name in names(kind) if name != SCREEN)
    return option(
        OUTPUT,
        "--output NAME[=FILE]",
        f"Print {SCREEN} (default), {others}, or write it to FILE; may be given several times.",
        values.outputs(kind),
    )


def full_option(about: str) -> Any:
    """Declare `--full` for a command that leaves out other things than `diagnose` does."""
    return option(OUTPUT, "--full", about)


class OutputOptions(Struct, frozen=True):
    """What is printed, as typed; the short forms are of `--output`."""

    output: Annotated[tuple[str, ...], output_option(RUN)] = ()
    json: Annotated[bool, option(OUTPUT, "--json", "Short for --output json.")] = False
    quiet: Annotated[bool, option(OUTPUT, "-q, --quiet", "Print one line: short for --output headline.")] = False
    plot: Annotated[
        str | None,
        option(
            OUTPUT,
            "--plot FILE",
            "Also draw the run: short for --output svg=FILE.",
        ),
    ] = None
    full: Annotated[bool, full_option("Print everything: all numbers, and the log's rows around the onset.")] = False
    no_plots: Annotated[bool, option(OUTPUT, "--no-plots", "Draw no figures.")] = False

    @property
    def length(self) -> Length:
        """How much a report says."""
        return Length.FULL if self.full else Length.SCREEN
