"""`stabtree demo`: a failed run that comes with stabtree, diagnosed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.cli.diagnose import diagnose
from stabtree.cli.options import Json  # noqa: TC001 - typer reads it
from stabtree.cli.output.outputs import OutputOpt, Quiet  # noqa: TC001
from stabtree.cli.shell.printing import tell

if TYPE_CHECKING:
    from pathlib import Path

RUN = "fp16-overflow"


def demo(output: OutputOpt = None, json: Json = False, quiet: Quiet = False) -> None:
    """Diagnose a failed run that comes with stabtree: an overflow in fp16.

    Exit code 0, whatever is found.
    """
    run = demo_run()
    diagnose([str(run)], output=output, json=json, quiet=quiet, exit_zero=True)
    if not (json or quiet or output):
        tell(f"\nThis run lies in {run}\nOne of yours: stabtree PATH")


def demo_run() -> Path:
    """The folder of the run."""
    from stabtree.judging.calibrate.faults import shipped_runs

    return shipped_runs() / "phase19" / RUN
