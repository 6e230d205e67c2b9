"""`stabtree demo`: a failed run that comes with stabtree, diagnosed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from stabtree.cli.diagnose import diagnose
from stabtree.cli.options.judge import JudgeOptions
from stabtree.cli.options.output import OutputOptions  # noqa: TC001 - Typer reads it
from stabtree.cli.program.expand import Only
from stabtree.cli.shell.printing import notify

if TYPE_CHECKING:
    from pathlib import Path

RUN = "fp16-overflow"


def demo(out: Annotated[OutputOptions, Only("output", "json", "quiet")]) -> None:
    """Diagnose a failed run that comes with stabtree: an overflow in fp16.

    The exit code is 0, whatever is found.
    """
    run = demo_run()
    diagnose([str(run)], judge=JudgeOptions(exit_zero=True), out=out)
    if not (out.json or out.quiet or out.output):
        notify(f"\nThis run is in {run}\nFor one of yours: stabtree PATH")


def demo_run() -> Path:
    """Return the folder of the run."""
    from stabtree.tree.shipped import shipped_runs

    return shipped_runs() / "phase19" / RUN
