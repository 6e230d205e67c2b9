"""`stabtree scan`: every run below folders, in parallel, worst first."""

from __future__ import annotations

import gc
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stabtree.cli.options import (
    AcceptPartial,
    AnswerOpt,
    BaselineOpt,
    CheckpointEvery,
    ColumnOpt,
    ConfigOpt,
    Dtype,
    ExitZero,
    FailOn,
    Format,
    Ignore,
    Json,
    Literally,
    SetOpt,
    StepColumn,
    Steps,
    TreeOpt,
    TreesOpt,
    in_force,
    judging_by,
    reading,
)
from stabtree.cli.output.outputs import Quiet, deliver_pieces, spare_rules, spare_unread, wanted
from stabtree.cli.output.reports import address, write_reports
from stabtree.cli.shell.help import INPUT, OUTPUT
from stabtree.cli.shell.printing import tell
from stabtree.common.errors import StabtreeError
from stabtree.render.outputs import FLEET, HTML, SCREEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from stabtree.fleet.scan import Fleet
    from stabtree.judging.judge import Judging
    from stabtree.judging.record import Record
    from stabtree.render.look import Look

BY = ("leaf", "folder", "verdict")
CACHE = "scan.sqlite"

Folders = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Folders that runs lie below, metrics files, patterns.")
]
FleetOutputOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="NAME[=FILE]",
        help=f"Print {', '.join(FLEET)} (default: {SCREEN}), or write it to FILE; may be given several times.",
        rich_help_panel=OUTPUT,
    ),
]
By = Annotated[
    str,
    typer.Option("--by", metavar="WHAT", help="Group many runs by leaf, folder or verdict.", rich_help_panel=OUTPUT),
]
Worst = Annotated[
    int | None,
    typer.Option("--worst", metavar="N", help="Of many runs list the N worst (default: 20).", rich_help_panel=OUTPUT),
]
Reports = Annotated[
    Path | None,
    typer.Option(
        "--reports",
        metavar="DIR",
        help="Write a report of each critical or warning run there; --output html links to them.",
        rich_help_panel=OUTPUT,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", help="Processes (default: as many as cores).", rich_help_panel=INPUT),
]
EngineOpt = Annotated[
    str,
    typer.Option(
        "--engine", metavar="NAME", help="What does the work: processes, serial or dask.", rich_help_panel=INPUT
    ),
]
Scheduler = Annotated[
    str,
    typer.Option("--scheduler", metavar="ADDRESS", help="The Dask scheduler of --engine dask.", rich_help_panel=INPUT),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        help="How long one log or run's folder may take (default: 120); not with --engine dask.",
        rich_help_panel=INPUT,
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        "--cache", metavar="FILE", help="Keep what was found there, for the next scan.", rich_help_panel=INPUT
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Read all anew, and keep nothing.", rich_help_panel=INPUT)]


def scan(
    paths: Folders,
    tree: TreeOpt = None,
    fail_on: FailOn = None,
    exit_zero: ExitZero = False,
    accept_partial: AcceptPartial = False,
    literal: Literally = False,
    set_: SetOpt = None,
    answer: AnswerOpt = None,
    ignore: Ignore = None,
    baseline: BaselineOpt = None,
    output: FleetOutputOpt = None,
    json: Json = False,
    quiet: Quiet = False,
    by: By = "leaf",
    worst: Worst = None,
    reports: Reports = None,
    steps: Steps = None,
    column: ColumnOpt = None,
    step_column: StepColumn = None,
    dtype: Dtype = None,
    checkpoint_every: CheckpointEvery = None,
    format: Format = None,  # noqa: A002 - the option's name
    jobs: Jobs = None,
    engine: EngineOpt = "processes",
    scheduler: Scheduler = "",
    timeout: Timeout = None,
    cache: Cache = None,
    no_cache: NoCache = False,
    trees: TreesOpt = None,
    config: ConfigOpt = None,
) -> None:
    """Find every run below folders, diagnose each, and tell the worst first, those of one cause together."""
    from stabtree.fleet.scan import scan as scanned
    from stabtree.judging.stretch import stretch_of

    gc.enable()  # a scan lasts, unlike other commands
    said: dict[str, Any] = {"tree": tree, "trees": trees, "fail_on": fail_on, "set": set_, "baseline": baseline}
    said |= {"column": column, "step_column": step_column, "checkpoint_every": checkpoint_every}
    settings, passed, levels = in_force(config, accept_partial=accept_partial, **said)
    places = wanted(output, json=json, quiet=quiet, known=FLEET)
    _check(by=by, worst=worst)
    kept = _kept(cache, no_cache=no_cache)
    judging = judging_by(
        *(settings, tree, trees), literal=literal, set_=set_, answer=answer, ignore=ignore, baseline=baseline
    )
    _check_rules(judging)
    spare_rules(places, *judging.rules)
    there = {place for place in places if place and place.exists()}
    how = reading(column, step_column, dtype, checkpoint_every, format, None, settings)
    ends = stretch_of(steps)
    from stabtree.cli.shell.bar import Bar

    with Bar() as bar:
        fleet = scanned(
            *paths,
            judging=judging,
            ends=ends,
            jobs=jobs,
            engine=engine,
            address=scheduler,
            timeout=timeout,
            cache=kept,
            tell=bar.tell,
            **how,
        )
    with fleet:
        if there:
            _spare(fleet.records(), there)
        code = 0 if exit_zero else _code(fleet, levels, accept_partial=passed)
        page = next((place for place, name in places.items() if name == HTML), None)
        if reports:
            write_reports(fleet.records(), reports, judging, how, ends)
        _deliver(fleet, places, {"by": by, "worst": worst, "reports": address(reports, page)})
        if fleet.stopped:
            tell("note: the scan was interrupted; type the same again to go on")
            raise KeyboardInterrupt
    if code:
        raise typer.Exit(code)


def _deliver(fleet: Fleet, places: Mapping[Path | None, str], options: Mapping[str, Any]) -> None:
    """Write all that is asked for."""
    for note in fleet.notes:
        tell(f"note: {note}")
    if not len(fleet) and fleet.stopped:
        return
    if not len(fleet):
        hint = "name a folder that runs lie below; `stabtree formats` lists what is read"
        raise StabtreeError("no log lies there", where="scan", hint=hint)

    def pieces(name: str, look: Look) -> Iterator[str]:
        taken = {SCREEN: ("by", "worst"), HTML: ("by", "reports")}.get(name, ())
        return partial(FLEET[name], **{key: options[key] for key in taken})(fleet.records(), look)

    deliver_pieces(pieces, places)


def _spare(records: Iterable[Record], there: Collection[Path]) -> None:
    """Refuse to write over a log that was scanned.

    Raises:
        StabtreeError: where a file to write is one that a run was read from, or that could not be read.
    """
    import json

    for record in records:
        run = json.loads(record.data).get("run") or {}
        for path in (record.path, *(item["path"] for item in run.get("inputs", ()))):
            spare_unread(there, path)


def _code(fleet: Fleet, levels: frozenset[str], *, accept_partial: bool) -> int:
    """The exit code, a fault of our own in it."""
    from stabtree.judging.codes import FOUND, OUR_FAULT
    from stabtree.judging.levels import exit_code

    code = exit_code(fleet.verdicts(accept_partial=accept_partial), levels)
    return OUR_FAULT if fleet.faults and code != FOUND else code


def default_cache() -> Path:
    """Where what was found is kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(home) / "stabtree" / CACHE


def _kept(cache: Path | None, *, no_cache: bool) -> Path | None:
    """The file that results are kept in, if any.

    Raises:
        StabtreeError: where one is named and none is wanted.
    """
    if no_cache and cache is not None:
        raise StabtreeError(
            "keeps nothing", where="--no-cache", hint=f"leave out one of --no-cache and --cache {cache}"
        )
    return None if no_cache else cache or default_cache()


def _check(*, by: str, worst: int | None) -> None:
    """Refuse numbers and words that mean nothing.

    Raises:
        StabtreeError: for the first of them.
    """
    if by not in BY:
        raise StabtreeError(f"{by!r} is nothing to group by", where="--by", hint=f"type one of {', '.join(BY)}")
    if worst is not None and worst < 1:
        raise StabtreeError(f"{worst} is too few", where="--worst", hint="give a number from 1 on")


def _check_rules(judging: Judging) -> None:
    """Refuse what no run could be judged by, before any is read.

    Raises:
        StabtreeError: where a tree can't be read, or something is set, answered or ignored that does not exist.
    """
    from stabtree.common.lazy import np
    from stabtree.run import Run, Series

    nothing = Series("loss", np.zeros(0, dtype=np.int64), np.zeros(0), "loss")
    judging.diagnosed(Run("nothing", {"loss": nothing}))
