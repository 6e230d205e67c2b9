"""`stabtree scan`: every run below folders, in parallel, worst first."""

from __future__ import annotations

import gc
import sys
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, cast

import typer
from msgspec import Struct

from stabtree.cli.options import (
    COLUMNS,
    INPUT,
    JUDGED,
    OUTPUT,
    JudgeOptions,
    Only,
    OutputOptions,
    ReadOptions,
    effective_settings,
    judging_with_baseline,
    option,
    output_option,
    reading,
    tell_of_links,
)
from stabtree.cli.output import deliver_pieces, protect_log, protect_rules, wanted
from stabtree.cli.terminal import emit, notify
from stabtree.common.errors import StabtreeError
from stabtree.report.outputs import DEFAULT_OPTIONS, JSON, JSONL, RECORDS, SCREEN
from stabtree.report.outputs import output as output_of
from stabtree.report.page import counted

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence

    from stabtree.report.outputs import RenderOptions
    from stabtree.tools.fleet.record import Record

EVERY_SECONDS = 15  # a line on how far it is, where it goes to no terminal
Folders = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Folders to search for runs, metrics files, patterns, addresses.")
]


class WorkOptions(Struct, frozen=True):
    """What does the work, and how many runs are listed, as typed."""

    worst: Annotated[int | None, option(OUTPUT, "--worst N", "Show only the N worst runs (default: 20).")] = None
    jobs: Annotated[int | None, option(INPUT, "-j, --jobs N", "Number of processes (default: one per core).")] = None
    engine: Annotated[str, option(INPUT, "--engine NAME", "Where to run: processes or serial.")] = "processes"


EPILOG = """\b
Examples:
  stabtree scan runs                        every run below, worst first
  stabtree scan runs -o runs.csv -o runs.html
  stabtree scan runs --output jsonl         a line a run, once it is judged

\b
The exit codes are those of diagnose.
"""


def scan(
    paths: Folders,
    read: Annotated[ReadOptions, Only(*COLUMNS, "steps", "checkpoint_every")],
    judge: Annotated[JudgeOptions, Only(*JUDGED, "expect_complete", "literal", "answer", "baseline")],
    out: Annotated[OutputOptions, Only("json", "quiet", output=output_option(RECORDS))],
    work: WorkOptions,
) -> None:
    """Find every run below folders, diagnose each, and list the worst first, grouped by cause."""
    from stabtree.common.errors import FOUND, OUR_FAULT
    from stabtree.loaders.paths.joined import stretch_of
    from stabtree.tools.fleet.scan import scan as scanned

    gc.enable()  # a scan takes long, unlike other commands
    effective = effective_settings(read, judge)
    targets = wanted(out, RECORDS)
    if work.worst is not None and work.worst < 1:
        raise StabtreeError(f"{work.worst} is too few", where="--worst", hint="type a number from 1 up")
    judging = judging_with_baseline(effective.settings, judge)
    protect_rules(targets, *judging.rules)
    existing = {target for target in targets if target and target.exists()}
    with _progress(lines=targets.get(None) == JSONL) as tell:
        fleet = scanned(
            *paths,
            judging=judging,
            ends=stretch_of(read.steps),
            jobs=work.jobs,
            engine=work.engine,
            documents=not {JSON, JSONL}.isdisjoint(targets.values()),
            tell=tell,
            **reading(read, effective.settings),
        )
    tell_of_links(fleet.outside)
    for path in (path for record in fleet for path in record.files if existing):
        protect_log(existing, path)
    if not len(fleet) and not fleet.stopped:
        hint = "name a folder with runs below it; `stabtree info formats` lists what is read"
        raise StabtreeError("no log found", where="scan", hint=hint)

    def pieces(name: str, look: RenderOptions) -> Iterator[str]:
        worst = {} if name != SCREEN or work.worst is None else {"worst": work.worst}
        return cast("Iterator[str]", output_of(RECORDS, name)(fleet, look, **worst))

    if targets.get(None) == JSONL:
        del targets[None]  # written already
    if len(fleet):
        deliver_pieces(pieces, targets)
    if fleet.stopped:
        notify("note: the scan was interrupted: runs are missing")
        raise KeyboardInterrupt
    code = effective.exit_code(fleet)
    if any(run.fault for run in fleet) and code != FOUND:
        code = OUR_FAULT
    if code:
        raise typer.Exit(code)


@contextmanager
def _progress(*, lines: bool) -> Iterator[Callable[[Sequence[Record], Counter[str], int], None]]:
    """Yield what shows how far a scan is: a line that moves on a terminal, elsewhere another every so often.

    Args:
        lines: whether to print each run as a line of JSON when it is judged.
    """
    from rich.console import Console

    begin = told = time.monotonic()
    moves = sys.stderr is not None and sys.stderr.isatty()
    with Console(stderr=True).status("", spinner="line") if moves else nullcontext() as status:

        def progress(records: Sequence[Record], found: Counter[str], waiting: int) -> None:
            nonlocal told
            if lines and records:
                emit("".join(output_of(RECORDS, JSONL)(records, DEFAULT_OPTIONS)))
            counts = ", ".join(f"{count:,} {badge}" for badge, count in found.most_common())
            now = time.monotonic()
            line = f"{counted(found.total(), 'run')} in {now - begin:,.0f} s, {waiting:,} folders to go: {counts}"
            if status is not None:
                status.update(line)
            elif now - told >= EVERY_SECONDS:
                told = now
                notify(line)

        yield progress
