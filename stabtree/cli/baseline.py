"""`stabtree baseline`: accept what is found now, so that only what comes later counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stabtree.cli.options import (
    CheckpointEvery,
    ColumnOpt,
    ConfigOpt,
    Dtype,
    FailOn,
    Format,
    Ignore,
    Literally,
    Paths,
    Ranks,
    RunName,
    SetOpt,
    StepColumn,
    Steps,
    TreeOpt,
    TreesOpt,
    reading,
)
from stabtree.cli.output.outputs import spare, write
from stabtree.cli.shell.help import OUTPUT
from stabtree.cli.shell.printing import emit, tell
from stabtree.cli.shell.progress import Busy
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.codes import UNUSABLE

if TYPE_CHECKING:
    from stabtree.judging.baseline import Update

USUAL = "stabtree-baseline.json"
FileOpt = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help=f"The file to write, or to add to (default: `baseline` of the settings, else {USUAL}).",
        rich_help_panel=OUTPUT,
    ),
]
UpdateOpt = Annotated[
    bool,
    typer.Option("--update", help="Accept nothing new, only drop what no longer occurs.", rich_help_panel=OUTPUT),
]


def baseline(
    paths: Paths,
    output: FileOpt = None,
    update: UpdateOpt = False,
    fail_on: FailOn = None,
    tree: TreeOpt = None,
    trees: TreesOpt = None,
    literal: Literally = False,
    set_: SetOpt = None,
    ignore: Ignore = None,
    steps: Steps = None,
    column: ColumnOpt = None,
    step_column: StepColumn = None,
    dtype: Dtype = None,
    checkpoint_every: CheckpointEvery = None,
    format: Format = None,  # noqa: A002 - the option's name
    run_name: RunName = None,
    ranks: Ranks = False,
    config: ConfigOpt = None,
) -> None:
    """Accept what is found in runs now: `diagnose --baseline FILE` then fails on what is new or worse.

    Warnings and worse are accepted, notes with --fail-on note. The file keeps what it holds of other runs, and the
    reasons and dates that people wrote into it.
    """
    from stabtree.judging.baseline import BaselineWriter, changed, folder_of, placed, read_baseline, written
    from stabtree.judging.judge import Judging
    from stabtree.judging.levels import levels_of
    from stabtree.judging.settings import read_settings
    from stabtree.judging.stretch import cut, stretch_of
    from stabtree.loaders import load_runs
    from stabtree.tree.model import Severity

    said: dict[str, Any] = {"tree": tree, "trees": trees, "fail_on": fail_on, "set": set_}
    said |= {"column": column, "step_column": step_column, "checkpoint_every": checkpoint_every}
    settings, ends = read_settings(config).without(said), stretch_of(steps)
    file = output or settings.baseline or USUAL
    if file == "-":
        hint = f"name a file, as in --output {USUAL}"
        raise StabtreeError("a baseline is kept in a file", where="--output -", hint=hint)
    old = read_baseline(file) if update or Path(file).exists() else None
    kept = [entry for entries in old.runs.values() for entry in entries] if old else []
    record = BaselineWriter(file, levels_of(fail_on or list(settings.fail_on)) | {Severity.WARNING})
    judging = Judging(
        *(settings, tree, trees, literal), set=tuple(set_ or ()), ignore=tuple(ignore or ()), baseline=record
    )
    how = reading(column, step_column, dtype, checkpoint_every, format, run_name, settings)
    with Busy(wanted=True).doing(f"judging {', '.join(paths)}"):
        loaded = [cut(item, ends) for item in load_runs(*paths, ranks=ranks, **how)]
        unread = [(item.name, item.run) for item in loaded if isinstance(item.run, StabtreeError)]
        runs = [item.run for item in loaded if not isinstance(item.run, StabtreeError)]
        if not runs:
            raise unread[0][1]
        for run in runs:
            spare([Path(file).resolve()], run, *judging.rules[:-1])
            judging.diagnosed(run)
    judged = {(placed(run, folder_of(file)), run.name) for run in runs}
    change = changed(kept, record.found, judged, add=not update)
    write(Path(file), written(change.entries))
    for name, error in unread:
        tell(f"note: {name} is not read: {clean(error.problem)}")
    emit(_summary(change, file))
    if unread:
        raise typer.Exit(UNUSABLE)


def _summary(change: Update, file: str) -> str:
    """How much is accepted now."""
    held = f"{len(change.entries):,} finding{'' if len(change.entries) == 1 else 's'} accepted in {clean(file)}"
    return f"{held}: {change.new:,} new, {change.kept:,} as before, {change.dropped:,} dropped"
