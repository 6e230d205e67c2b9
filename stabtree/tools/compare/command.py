"""`stabtree compare`: where a run departs from healthy runs."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stabtree.cli.options import (
    COLUMNS,
    INPUT,
    Only,
    OutputOptions,
    ReadOptions,
    effective_settings,
    full_option,
    option,
    output_option,
    reading,
)
from stabtree.cli.output import deliver, protect_run, wanted
from stabtree.cli.terminal import Busy
from stabtree.common.errors import StabtreeError
from stabtree.report.outputs import COMPARISON, HEADLINE, JSON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.run import Run

PART, UNKNOWN = 1, 3
ComparedPaths = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Logs or patterns: healthy runs first, the bad run last.")
]
BadOpt = Annotated[str | None, option(INPUT, "--bad PATH", "The bad run; all others are healthy.")]


ByOpt = Annotated[str, option(INPUT, "--by AXIS", "Match rows by step, tokens or time.")]

CompareOutput = Annotated[
    OutputOptions,
    Only(
        "json",
        "quiet",
        "no_plots",
        output=output_option(COMPARISON),
        full=full_option("Print all series and settings that differ."),
    ),
]

EPILOG = """\b
Examples:
  stabtree compare good.csv bad.csv        the last one is the bad one
  stabtree compare 'good/*' --bad bad.csv  healthy runs make an envelope
  stabtree compare a.csv b.csv --by time   rows matched by the clock

\b
Exit codes:
  0  the runs do not differ beyond noise
  1  they do
  2  a mistake in what was typed, or a log that can't be read
  3  nothing in common, or too few rows to compare
  4  stabtree itself failed; --debug shows where
"""


def compare(
    paths: ComparedPaths,
    read: Annotated[ReadOptions, Only(*COLUMNS)],
    out: CompareOutput,
    bad: BadOpt = None,
    by: ByOpt = "step",
) -> None:
    """Show where a run departs from healthy ones beyond noise, which series was first, and what else differs."""
    from stabtree.judging.judge import Judging
    from stabtree.report.outputs import RenderOptions
    from stabtree.tools.compare.compare import axis_of, compared
    from stabtree.tools.compare.result import Parted

    axis = axis_of(by)
    settings = effective_settings(read).settings
    targets = wanted(out, COMPARISON)
    how = reading(read, settings)
    busy = Busy(wanted=targets.get(None) not in (HEADLINE, JSON))
    with busy.doing(f"reading {', '.join(paths)}"):
        names, runs = _read(paths, bad, how)
    judging = Judging(settings)
    for run in runs:
        protect_run(targets, run, *judging.rules)

    def by_tokens(index: int, counter: str) -> Run:
        again = {**how, "step_column": read.step_column or counter}
        return _alone(_runs(names[index], again), names[index])[1]

    with busy.doing("comparing"):
        found = compared(runs, names, axis, by_tokens, judging.diagnosed)
    code = {Parted.YES: PART, Parted.NO: 0, Parted.UNKNOWN: UNKNOWN}[found.parted]
    deliver(COMPARISON, found, targets, RenderOptions(full=out.full, plots=not out.no_plots, exit_code=code))
    if code:
        raise typer.Exit(code)


def _read(paths: Sequence[str], bad: str | None, how: dict[str, Any]) -> tuple[list[str], list[Run]]:
    """Return the names of the runs and the runs, the bad one last.

    Raises:
        StabtreeError: where one can't be read, or there is nothing to compare.
    """
    good, worse = (paths, bad) if bad else (paths[:-1], paths[-1])
    named = [*chain.from_iterable(_runs(path, how) for path in good), _alone(_runs(worse, how), worse)]
    names = [name for name, _ in named]
    _check_apart(names)
    return names, [run for _, run in named]


def _runs(path: str, how: dict[str, Any]) -> list[tuple[str, Run]]:
    """Return the runs of one path, each with its name.

    Paths are read one by one: two runs of one seed look like two ranks of one run.

    Raises:
        StabtreeError: where one can't be read.
    """
    from stabtree.loaders import load_run, load_runs
    from stabtree.loaders.paths.find import expanded

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
    """Return the only run of a path.

    Raises:
        StabtreeError: where there are several.
    """
    if len(found) != 1:
        raise StabtreeError(f"these are {len(found)} runs", where=path, hint="name one bad run, the last path or --bad")
    return found[0]


def _check_apart(names: Sequence[str]) -> None:
    """Refuse too few runs, and a bad run that is one of the healthy ones."""
    if len(names) < 2:
        raise StabtreeError("nothing to compare with", where=names[0], hint="type: stabtree compare GOOD BAD")
    *good, bad = [Path(name).resolve() for name in names]
    if bad in good:
        raise StabtreeError("is also one of the healthy runs", where=names[-1], hint="name another log as the bad run")
