"""`stabtree baseline`: accept what is found now, so that only new findings fail."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from stabtree.cli.options import (
    COLUMNS,
    OUTPUT,
    TREES,
    JudgeOptions,
    Only,
    Paths,
    ReadOptions,
    effective_settings,
    judging_by,
    loaded_runs,
    option,
)
from stabtree.cli.output import protect_run, write
from stabtree.cli.terminal import Busy, emit, notify
from stabtree.common.errors import UNUSABLE, StabtreeError
from stabtree.common.text import clean
from stabtree.report.page import counted

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
    from stabtree.tools.ci.baseline import BaselineWriter, changed, folder_of, placed, read_baseline, written
    from stabtree.tree.model import Severity

    effective = effective_settings(read, judge)
    file = output or effective.settings.baseline or DEFAULT
    if file == "-":
        hint = f"name a file, as in --output {DEFAULT}"
        raise StabtreeError("a baseline is kept in a file", where="--output -", hint=hint)
    before = read_baseline(file).runs.values() if update or Path(file).exists() else ()
    record = BaselineWriter(file, effective.levels | {Severity.WARNING})
    judging = judging_by(effective.settings, judge, record)
    with Busy(wanted=True).doing(f"judging {', '.join(paths)}"):
        loaded = loaded_runs(paths, read, effective.settings)
        unread = [(item.name, item.run) for item in loaded if isinstance(item.run, StabtreeError)]
        if unread and len(unread) == len(loaded):
            raise unread[0][1]
        judged = set()
        for run in (item.run for item in loaded):
            if not isinstance(run, StabtreeError):
                # The last of the rules is the baseline itself.
                protect_run([Path(file).resolve()], run, *judging.rules[:-1])
                judging.diagnosed(run)
                judged.add((placed(run, folder_of(file)), run.name))
    change = changed(chain.from_iterable(before), record.found, judged, add=not update)
    write(Path(file), written(change.entries))
    for name, error in unread:
        notify(f"note: {name} can't be read: {clean(error.problem)}")
    accepted = f"{counted(len(change.entries), 'finding')} accepted in {clean(file)}"
    emit(f"{accepted}: {change.new:,} new, {change.kept:,} as before, {change.dropped:,} dropped")
    if unread:
        raise typer.Exit(UNUSABLE)
