"""`stabtree compare`: where a run parts from runs that are well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stabtree.cli.options import ColumnOpt, ConfigOpt, Dtype, Format, Json, StepColumn, reading
from stabtree.cli.output.outputs import NoPlots, Quiet, deliver_comparison, spare, wanted
from stabtree.cli.shell.help import INPUT, OUTPUT
from stabtree.cli.shell.progress import Busy
from stabtree.common.errors import StabtreeError
from stabtree.render.outputs import COMPARISONS, HEADLINE, JSON, SCREEN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.run import Run

PART, UNTOLD = 1, 3
ComparedPaths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Logs of runs that are well, patterns too, and last that of the run that is not.",
    ),
]
BadOpt = Annotated[
    str | None,
    typer.Option("--bad", metavar="PATH", help="The bad run; all others are good ones.", rich_help_panel=INPUT),
]
ByOpt = Annotated[
    str,
    typer.Option("--by", metavar="AXIS", help="What rows are matched by: step, tokens or time.", rich_help_panel=INPUT),
]
WholeOpt = Annotated[
    bool, typer.Option("--full", help="Print all series and settings that differ.", rich_help_panel=OUTPUT)
]
ComparisonOutputOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="NAME[=FILE]",
        help=f"Print {', '.join(COMPARISONS)} (default: {SCREEN}), or write it to FILE; may be given several times.",
        rich_help_panel=OUTPUT,
    ),
]


def compare(
    paths: ComparedPaths,
    bad: BadOpt = None,
    by: ByOpt = "step",
    output: ComparisonOutputOpt = None,
    json: Json = False,
    quiet: Quiet = False,
    full: WholeOpt = False,
    no_plots: NoPlots = False,
    column: ColumnOpt = None,
    step_column: StepColumn = None,
    dtype: Dtype = None,
    format: Format = None,  # noqa: A002 - the option's name
    config: ConfigOpt = None,
) -> None:
    """Tell where a run parts from good ones beyond noise, which series was first, and what else differs."""
    from stabtree.comparing.compare import axis_of, compared
    from stabtree.comparing.result import Parted
    from stabtree.judging.judge import Judging
    from stabtree.judging.settings import read_settings
    from stabtree.render.look import Length, Look

    axis = axis_of(by)
    settings = read_settings(config).without({"column": column, "step_column": step_column})
    places = wanted(output, json=json, quiet=quiet, known=COMPARISONS)
    how = reading(column, step_column, dtype, None, format, None, settings)
    busy = Busy(wanted=places.get(None) not in (HEADLINE, JSON))
    with busy.doing(f"reading {', '.join(paths)}"):
        good, worse = (paths, bad) if bad else (paths[:-1], paths[-1])
        named = [item for path in good for item in _runs(path, how)]
        named.append(_alone(_runs(worse, how), worse))
    names, runs = [name for name, _ in named], [run for _, run in named]
    _check_apart(names)
    judging = Judging(settings)
    for run in runs:
        spare(places, run, *judging.rules)

    def by_tokens(place: int, counter: str) -> Run:
        return _alone(_runs(names[place], {**how, "step_column": step_column or counter}), names[place])[1]

    with busy.doing("comparing"):
        found = compared(runs, names, axis, by_tokens, judging.diagnosed)
    code = {Parted.YES: PART, Parted.NO: 0, Parted.UNKNOWN: UNTOLD}[found.parted]
    look = Look(length=Length.FULL if full else Length.SCREEN, plots=not no_plots, exit_code=code)
    deliver_comparison(found, places, look)
    if code:
        raise typer.Exit(code)


def _runs(path: str, how: Mapping[str, Any]) -> list[tuple[str, Run]]:
    """The runs of one path, each with its name.

    Paths are read one by one: two runs of one seed look like two ranks of one run.

    Raises:
        StabtreeError: where one can't be read.
    """
    from stabtree.loaders import load_run, load_runs
    from stabtree.loaders.paths.several import expanded

    files = expanded(path)
    if len(files) > 1:
        return [(file, load_run(file, **how)) for file in files]
    found = []
    for item in load_runs(path, **how):
        if isinstance(item.run, StabtreeError):
            raise item.run
        found.append((item.name, item.run))
    return found


def _alone(found: Sequence[tuple[str, Run]], path: str) -> tuple[str, Run]:
    if len(found) != 1:
        raise StabtreeError(f"these are {len(found)} runs", where=path, hint="name one bad run, the last path or --bad")
    return found[0]


def _check_apart(names: Sequence[str]) -> None:
    """Refuse too few runs, and a bad run that is one of the good ones."""
    if len(names) < 2:
        raise StabtreeError("nothing to compare with", where=names[0], hint="type: stabtree compare GOOD BAD")
    places = [Path(name).resolve() for name in names]
    if places[-1] in places[:-1]:
        raise StabtreeError("is a good run too", where=names[-1], hint="name the log of another run")
