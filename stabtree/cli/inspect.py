"""`stabtree inspect`: how a run's files were read."""

from __future__ import annotations

from dataclasses import replace

from stabtree.cli.options import (
    CheckpointEvery,
    ColumnOpt,
    ConfigOpt,
    Dtype,
    Format,
    Json,
    Paths,
    Ranks,
    RunName,
    StepColumn,
    reading,
)
from stabtree.cli.shell.printing import emit, screen
from stabtree.cli.shell.progress import Busy


def inspect(
    paths: Paths,
    column: ColumnOpt = None,
    step_column: StepColumn = None,
    dtype: Dtype = None,
    checkpoint_every: CheckpointEvery = None,
    format: Format = None,  # noqa: A002 - the option's name
    run_name: RunName = None,
    ranks: Ranks = False,
    json: Json = False,
    config: ConfigOpt = None,
) -> None:
    """Show how a run's files are read: columns, steps, gaps, and what is missing for a full diagnosis."""
    from stabtree.judging.settings import read_settings
    from stabtree.loaders import load_run
    from stabtree.render.inspect import inspect_json, inspect_text

    settings = read_settings(config).without(
        {"column": column, "step_column": step_column, "checkpoint_every": checkpoint_every}
    )
    settings = settings.for_reading()
    how = reading(column, step_column, dtype, checkpoint_every, format, run_name, settings)
    with Busy(wanted=not json).doing(f"reading {', '.join(paths)}"):
        run = load_run(*paths, ranks=ranks, **how)
    run = replace(run, notes=(*filter(None, [settings.note]), *run.notes))
    if json:
        emit(inspect_json(run))
        return
    width, color = screen()
    emit(inspect_text(run, width=width, color=color))


def formats() -> None:
    """List the formats of logs that stabtree reads, by the names that --format takes."""
    from stabtree.loaders import LOADERS

    column = max(len(loader.name) for loader in LOADERS) + 2
    emit("\n".join(f"{loader.name:<{column}}{loader.about}" for loader in LOADERS))
