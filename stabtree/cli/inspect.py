"""`stabtree inspect`: how a run's files were read."""

from __future__ import annotations

from stabtree.cli.options import (
    CheckpointEvery,
    ColumnOpt,
    Dtype,
    Format,
    Json,
    Paths,
    RunName,
    StepColumn,
    emit,
    reading,
    screen,
)


def inspect(
    paths: Paths,
    column: ColumnOpt = None,
    step_column: StepColumn = None,
    dtype: Dtype = None,
    checkpoint_every: CheckpointEvery = None,
    format: Format = None,  # noqa: A002 - the option's name
    run_name: RunName = None,
    json: Json = False,
) -> None:
    """Show how a run's files are read: columns, steps, gaps, and what is missing for a full diagnosis."""
    from stabtree.loaders import load_run
    from stabtree.render.inspect import inspect_json, inspect_text

    run = load_run(*paths, **reading(column, step_column, dtype, checkpoint_every, format, run_name))
    if json:
        emit(inspect_json(run))
        return
    width, color = screen()
    emit(inspect_text(run, width=width, color=color))
