"""`stabtree baseline`: accept what is found now, so that only new findings fail."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options.judge import TREES, JudgeOptions, effective_settings, judging_by
from stabtree.cli.options.read import COLUMNS, Paths, ReadOptions, reading
from stabtree.cli.output.places import protect_run
from stabtree.cli.output.write import write
from stabtree.cli.program.expand import Only, option
from stabtree.cli.program.help import OUTPUT
from stabtree.cli.shell.printing import emit, notify
from stabtree.cli.shell.progress import Busy
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.codes import UNUSABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.judging.accepted import KnownFinding
    from stabtree.judging.judge import Judging
    from stabtree.judging.settings import Settings
    from stabtree.loaders import Loaded
    from stabtree.run import Run
    from stabtree.tools.ci.baseline import Update

DEFAULT = "stabtree-baseline.json"
FileOpt = Annotated[
    str | None,
    option(
        OUTPUT,
        "-o, --output FILE",
        f"The file to write, or to add to (default: `baseline` of the settings, else {DEFAULT}).",
    ),
]
UpdateOpt = Annotated[bool, option(OUTPUT, "--update", "Accept nothing new; only drop what no longer occurs.")]


def baseline(
    paths: Paths,
    read: Annotated[ReadOptions, Only(*COLUMNS, "steps", "checkpoint_every", "run_name", "ranks")],
    judge: Annotated[JudgeOptions, Only(*TREES, "fail_on", "literal")],
    output: FileOpt = None,
    update: UpdateOpt = False,
) -> None:
    """Accept what is found in runs now: `diagnose --baseline FILE` then fails only on what is new or worse.

    Warnings and worse are accepted, with --fail-on note also notes. The file keeps what it holds about other runs, and
    the reasons and dates that people wrote into it.
    """
    from stabtree.tools.ci.baseline import BaselineWriter, changed, folder_of, placed, written
    from stabtree.tree.model import Severity

    effective = effective_settings(read, judge)
    file = output or effective.settings.baseline or DEFAULT
    if file == "-":
        hint = f"name a file, as in --output {DEFAULT}"
        raise StabtreeError("a baseline is kept in a file", where="--output -", hint=hint)
    kept = _kept(file, update=update)
    record = BaselineWriter(file, effective.levels | {Severity.WARNING})
    judging = judging_by(effective.settings, judge, record)
    with Busy(wanted=True).doing(f"judging {', '.join(paths)}"):
        loaded = _loaded(paths, read, effective.settings)
        runs = [item.run for item in loaded if not isinstance(item.run, StabtreeError)]
        _judge(runs, judging, file)
    judged = {(placed(run, folder_of(file)), run.name) for run in runs}
    change = changed(kept, record.found, judged, add=not update)
    write(Path(file), written(change.entries))
    unread = [(item.name, item.run) for item in loaded if isinstance(item.run, StabtreeError)]
    for name, error in unread:
        notify(f"note: {name} can't be read: {clean(error.problem)}")
    emit(_summary(change, file))
    if unread:
        raise typer.Exit(UNUSABLE)


def _kept(file: str, *, update: bool) -> list[KnownFinding]:
    """Return what the baseline holds already.

    Raises:
        StabtreeError: where it can't be read, or is to be updated and does not exist.
    """
    from stabtree.tools.ci.baseline import read_baseline

    if not update and not Path(file).exists():
        return []
    return list(chain.from_iterable(read_baseline(file).runs.values()))


def _loaded(paths: list[str], read: ReadOptions, settings: Settings) -> list[Loaded]:
    """Return the runs that paths hold.

    Raises:
        StabtreeError: where none can be read.
    """
    from stabtree.loaders import load_runs
    from stabtree.loaders.paths.stretch import cut, stretch_of

    ends = stretch_of(read.steps)
    loaded = [cut(item, ends) for item in load_runs(*paths, ranks=read.ranks, **reading(read, settings))]
    unread = [item.run for item in loaded if isinstance(item.run, StabtreeError)]
    if unread and len(unread) == len(loaded):
        raise unread[0]
    return loaded


def _judge(runs: Sequence[Run], judging: Judging, file: str) -> None:
    """Judge all runs, which records what is found.

    Raises:
        StabtreeError: where the baseline would overwrite something that is read.
    """
    rules = judging.rules[:-1]  # the last is the baseline itself
    for run in runs:
        protect_run([Path(file).resolve()], run, *rules)
        judging.diagnosed(run)


def _summary(change: Update, file: str) -> str:
    """Return how much is accepted now."""
    count = len(change.entries)
    accepted = f"{count:,} finding{'' if count == 1 else 's'} accepted in {clean(file)}"
    return f"{accepted}: {change.new:,} new, {change.kept:,} as before, {change.dropped:,} dropped"
