"""`stabtree scan`: every run below folders, in parallel, worst first."""

from __future__ import annotations

import gc
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options.judge import FAILING, TREES, JudgeOptions, effective_settings, judging_with_baseline
from stabtree.cli.options.output import OutputOptions, output_option
from stabtree.cli.options.read import COLUMNS, ReadOptions, reading
from stabtree.cli.output.deliver import deliver_pieces
from stabtree.cli.output.places import protect_log, protect_rules, wanted
from stabtree.cli.program.expand import Only, option
from stabtree.cli.program.help import INPUT, OUTPUT
from stabtree.cli.shell.printing import notify
from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.report.outputs import HTML, RECORDS, SCREEN
from stabtree.report.outputs import output as output_of
from stabtree.tools.fleet.outputs.write_reports import address, write_reports

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from stabtree.cli.options.judge import EffectiveSettings
    from stabtree.judging.judge import Judging
    from stabtree.loaders.paths.stretch import Ends
    from stabtree.report.options import RenderOptions
    from stabtree.tools.fleet.record import Record
    from stabtree.tools.fleet.scan import Fleet

CACHE = "scan.sqlite"

Folders = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Folders to search for runs, metrics files, patterns.")
]


def _groupings(_start: str) -> list[str]:
    from stabtree.tools.fleet.outputs.groups import BY

    return [*BY]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """How many runs are listed, as typed."""

    by: Annotated[str, option(OUTPUT, "--by WHAT", "Group many runs by leaf, folder or verdict.", _groupings)] = "leaf"
    worst: Annotated[int | None, option(OUTPUT, "--worst N", "Show only the N worst runs (default: 20).")] = None
    reports: Annotated[
        Path | None,
        option(
            OUTPUT,
            "--reports DIR",
            "Write a report of each critical or warning run to DIR; --output html links to them.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """What does the work, and what is kept of it, as typed."""

    jobs: Annotated[int | None, option(INPUT, "-j, --jobs N", "Number of processes (default: one per core).")] = None
    engine: Annotated[str, option(INPUT, "--engine NAME", "Where to run: processes, serial or dask.")] = "processes"
    scheduler: Annotated[str, option(INPUT, "--scheduler ADDRESS", "The Dask scheduler for --engine dask.")] = ""
    timeout: Annotated[
        float | None,
        option(
            INPUT,
            "--timeout SECONDS",
            "Give up on a log, or a run's folder, after so long (default: 120); not with --engine dask.",
        ),
    ] = None
    cache: Annotated[Path | None, option(INPUT, "--cache FILE", "Keep the results in FILE for the next scan.")] = None
    no_cache: Annotated[bool, option(INPUT, "--no-cache", "Read every log again, and keep no results.")] = False


EPILOG = """\b
Examples:
  stabtree scan runs                        every run below, worst first
  stabtree scan runs --by folder            grouped by folder
  stabtree scan runs --output csv=runs.csv --output html=runs.html
  stabtree scan runs --output jsonl         one line of JSON for each run

\b
Logs that have not changed since the last scan are not read again.
The exit codes are those of diagnose.
"""


def scan(
    paths: Folders,
    read: Annotated[ReadOptions, Only(*COLUMNS, "steps", "checkpoint_every")],
    judge: Annotated[JudgeOptions, Only(*TREES, *FAILING, "literal", "answer", "baseline")],
    out: Annotated[OutputOptions, Only("json", "quiet", output=output_option(RECORDS))],
    shown: ListOptions,
    work: WorkOptions,
) -> None:
    """Find every run below folders, diagnose each, and list the worst first, grouped by cause."""
    from stabtree.loaders.paths.stretch import stretch_of

    gc.enable()  # a scan takes long, unlike other commands
    effective = effective_settings(read, judge)
    targets = wanted(out, RECORDS)
    _check(shown)
    kept = _kept(work)
    judging = judging_with_baseline(effective.settings, judge)
    _check_rules(judging)
    protect_rules(targets, *judging.rules)
    existing = {target for target in targets if target and target.exists()}
    how, ends = reading(read, effective.settings), stretch_of(read.steps)
    with _scanned(paths, judging, ends, kept, work, **how) as fleet:
        if existing:
            _protect(fleet.records(), existing)
        code = _exit_code(fleet, effective)
        if shown.reports:
            write_reports(fleet.records(), shown.reports, judging, how, ends)
        _deliver(fleet, targets, shown)
        if fleet.stopped:
            notify("note: the scan was interrupted; type the same command again to continue")
            raise KeyboardInterrupt
    if code:
        raise typer.Exit(code)


def _scanned(
    paths: list[str], judging: Judging, ends: Ends | None, cache: Path | None, work: WorkOptions, **how: object
) -> Fleet:
    from stabtree.tools.fleet.bar import Bar
    from stabtree.tools.fleet.scan import scan as scanned

    with Bar() as bar:
        return scanned(
            *paths,
            judging=judging,
            ends=ends,
            jobs=work.jobs,
            engine=work.engine,
            address=work.scheduler,
            timeout=work.timeout,
            cache=cache,
            tell=bar.tell,
            **how,
        )


def _deliver(fleet: Fleet, targets: Mapping[Path | None, str], shown: ListOptions) -> None:
    """Write all outputs.

    Raises:
        StabtreeError: where one can't be written, or there is no log.
    """
    for note in fleet.notes:
        notify(f"note: {note}")
    if not len(fleet) and fleet.stopped:
        return
    if not len(fleet):
        hint = "name a folder with runs below it; `stabtree info formats` lists what is read"
        raise StabtreeError("no log found", where="scan", hint=hint)
    page = next((target for target, name in targets.items() if name == HTML), None)
    screen = partial(output_of(RECORDS, SCREEN), by=shown.by, worst=shown.worst)
    html = partial(output_of(RECORDS, HTML), by=shown.by, reports=address(shown.reports, page))

    def pieces(name: str, look: RenderOptions) -> Iterator[str]:
        write = {SCREEN: screen, HTML: html}.get(name) or output_of(RECORDS, name)
        written: Iterator[str] = write(fleet.records(), look)
        return written

    deliver_pieces(pieces, targets)


def _protect(records: Iterable[Record], existing: Collection[Path]) -> None:
    """Refuse to overwrite a log that was scanned.

    Raises:
        StabtreeError: where a file to write is one that a run was read from, or that could not be read.
    """
    import json

    for record in records:
        run = json.loads(record.data).get("run") or {}
        for path in (record.path, *(item["path"] for item in run.get("inputs", ()))):
            protect_log(existing, path)


def _exit_code(fleet: Fleet, effective: EffectiveSettings) -> int:
    """Return the exit code, which says so if a fault of our own occurred and nothing was found."""
    from stabtree.judging.codes import FOUND, OUR_FAULT

    if effective.exit_zero:
        return 0
    code = effective.exit_code(fleet.verdicts(accept_partial=effective.accept_partial))
    return OUR_FAULT if fleet.faults and code != FOUND else code


def default_cache() -> Path:
    """Return the file that keeps results where none is named."""
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(home) / "stabtree" / CACHE


def _kept(work: WorkOptions) -> Path | None:
    """Return the file that keeps results, if any.

    Raises:
        StabtreeError: where one is named and none is wanted.
    """
    if not work.no_cache:
        return work.cache or default_cache()
    if work.cache is not None:
        raise StabtreeError("--no-cache and --cache are mutually exclusive", hint="leave one of them out")
    return None


def _check(shown: ListOptions) -> None:
    """Validate `--by` and `--worst`.

    Raises:
        StabtreeError: for the first that is wrong.
    """
    from stabtree.tools.fleet.outputs.groups import check_by

    check_by(shown.by)
    if shown.worst is not None and shown.worst < 1:
        raise StabtreeError(f"{shown.worst} is too few", where="--worst", hint="type a number from 1 up")


def _check_rules(judging: Judging) -> None:
    """Refuse what no run could be judged by, before any is read.

    Raises:
        StabtreeError: where a tree can't be read, or something is set, answered or ignored that does not exist.
    """
    from stabtree.common.lazy import np
    from stabtree.run import Run, Series

    nothing = Series("loss", np.zeros(0, dtype=np.int64), np.zeros(0), "loss")
    judging.diagnosed(Run("nothing", {"loss": nothing}))
