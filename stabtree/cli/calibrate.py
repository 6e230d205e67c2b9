"""`stabtree calibrate`: thresholds of a team's own, from its healthy runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options import (
    ColumnOpt,
    ConfigOpt,
    Dtype,
    Format,
    Ignore,
    Json,
    Literally,
    Paths,
    SetOpt,
    StepColumn,
    TreeOpt,
    TreesOpt,
    reading,
)
from stabtree.cli.output.outputs import emit_all, spare, spare_unread, wanted
from stabtree.cli.shell.help import INPUT, JUDGING, OUTPUT
from stabtree.cli.shell.progress import Busy
from stabtree.common.errors import StabtreeError
from stabtree.render.outputs import CALIBRATIONS, SCREEN

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stabtree.tree.model import Severity

LEVELS = ("warning", "note")

Trust = Annotated[
    bool, typer.Option("--trust", help="The runs are healthy, also those that look broken.", rich_help_panel=JUDGING)
]
LevelOpt = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="What counts as an alarm: warning (default) or note.",
        rich_help_panel=JUDGING,
        show_default=False,
    ),
]
FaultsOpt = Annotated[
    str | None,
    typer.Option(
        "--faults",
        metavar="DIR",
        help="A folder of failed runs of yours: which of them would be missed is told as well.",
        rich_help_panel=INPUT,
    ),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="NAME[=FILE]",
        help=f"Print {', '.join(CALIBRATIONS)} (default: screen), or write it to FILE; may be given several times.",
        rich_help_panel=OUTPUT,
    ),
]


def calibrate(
    paths: Paths,
    faults: FaultsOpt = None,
    trust: Trust = False,
    level: LevelOpt = "warning",
    tree: TreeOpt = None,
    trees: TreesOpt = None,
    literal: Literally = False,
    set_: SetOpt = None,
    ignore: Ignore = None,
    output: Outputs = None,
    json: Json = False,
    column: ColumnOpt = None,
    step_column: StepColumn = None,
    dtype: Dtype = None,
    format: Format = None,  # noqa: A002 - the option's name
    config: ConfigOpt = None,
) -> None:
    """Find the least change of thresholds with which none of your healthy runs alarms.

    Prints what to set, how many false alarms to expect then, and which labelled faults would be missed. Exit code 3
    where none of the runs can stand for a healthy one.
    """
    from stabtree.judging.calibrate.calibrating import calibrate as calibrated
    from stabtree.judging.calibrate.faults import faults_of, load_faults
    from stabtree.judging.calibrate.walks import Walks
    from stabtree.judging.codes import NOT_JUDGED
    from stabtree.judging.judge import Judging
    from stabtree.judging.settings import read_settings
    from stabtree.loaders import load_runs

    said = {"tree": tree, "trees": trees, "set": set_, "column": column, "step_column": step_column}
    settings = read_settings(config).without(said)
    severity = _severity(level)
    places = wanted(output, json=json, quiet=False, known=CALIBRATIONS)
    judging = Judging(settings, tree, trees, literal, set=tuple(set_ or ()), ignore=tuple(ignore or ()))
    _spare(places, judging.rules)
    busy = Busy(wanted=places.get(None) == SCREEN)
    how = reading(column, step_column, dtype, None, format, None, settings)
    with busy.doing(f"reading {', '.join(paths)}"):
        given = load_runs(*paths, **how)
        labelled = load_faults(faults, how)
    for item in (*given, *labelled):
        if isinstance(item.run, StabtreeError):
            spare_unread(places, item.name)
        else:
            spare(places, item.run, *judging.rules)
    with busy.doing(f"calibrating on {len(given):,} runs"):
        walks = Walks(judging)
        found = calibrated(given, walks, faults_of(labelled, walks), level=severity, trust=trust)
    emit_all(lambda name, look: CALIBRATIONS[name](found, look), places)
    if not found.runs:
        raise typer.Exit(NOT_JUDGED)


def _severity(level: str) -> Severity:
    from stabtree.tree.model import Severity

    if level not in LEVELS:
        raise StabtreeError(f"{level!r} is not a level here", where="--level", hint=f"type {' or '.join(LEVELS)}")
    return Severity(level)


def _spare(places: Iterable[Path | None], rules: tuple[str | None, ...]) -> None:
    """Refuse to write over settings and trees: what stands in them is more than what is calibrated.

    Raises:
        StabtreeError: for a file of them that exists.
    """
    from pathlib import Path

    from stabtree.judging.settings import FILE, SHARED

    used = {Path(rule).resolve() for rule in rules if rule}
    for place in places:
        if place and place.exists() and (place in used or place.name in (FILE, SHARED)):
            hint = "name a new file, and paste what you want of it"
            raise StabtreeError("holds settings or trees already", where=f"--output {place}", hint=hint)
