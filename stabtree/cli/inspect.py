"""`stabtree inspect`: how a run's files are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from stabtree.cli.options.judge import effective_settings
from stabtree.cli.options.output import OutputOptions  # noqa: TC001 - Typer reads it
from stabtree.cli.options.read import COLUMNS, Paths, ReadOptions, reading
from stabtree.cli.program.expand import Only
from stabtree.cli.shell.printing import emit, screen
from stabtree.cli.shell.progress import Busy


def inspect(
    paths: Paths,
    read: Annotated[ReadOptions, Only(*COLUMNS, "checkpoint_every", "run_name", "ranks")],
    out: Annotated[OutputOptions, Only("json")],
) -> None:
    """Show how a run's files are read: columns, steps, gaps, and what a full diagnosis would still need."""
    from stabtree.loaders import load_run
    from stabtree.report.inspect import inspect_text
    from stabtree.report.json.inspection import inspect_json

    settings = effective_settings(read).settings.for_reading()
    with Busy(wanted=not out.json).doing(f"reading {', '.join(paths)}"):
        run = load_run(*paths, ranks=read.ranks, **reading(read, settings))
    run = replace(run, notes=(*filter(None, [settings.note]), *run.notes))
    if out.json:
        emit(inspect_json(run))
        return
    width, color = screen()
    emit(inspect_text(run, width=width, color=color))
