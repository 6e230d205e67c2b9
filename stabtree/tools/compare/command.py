"""`stabtree compare`: from where on a run is worse than healthy runs."""

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

Output = Only(
    "json",
    "quiet",
    "no_plots",
    output=output_option(COMPARISON),
    full=full_option("Print all series and settings that differ."),
)
Paths = typer.Argument(metavar="PATH", help="Logs or patterns: healthy runs first, the bad run last.")

EPILOG = """\b
Examples:
  stabtree compare good.csv bad.csv        the last one is the bad one
  stabtree compare 'good/*' --bad bad.csv  healthy runs make an envelope

\b
Exit codes:
  0  the bad run ends no worse beyond noise
  1  it ends worse
  2  a mistake in what was typed, or a log that can't be read
  3  nothing in common, or too few rows to compare
  4  stabtree itself failed; --debug shows where
"""


def compare(
    paths: Annotated[list[str], Paths],
    read: Annotated[ReadOptions, Only(*COLUMNS)],
    out: Annotated[OutputOptions, Output],
    bad: Annotated[str | None, option(INPUT, "--bad PATH", "The bad run; all others are healthy.")] = None,
    by: Annotated[str, option(INPUT, "--by AXIS", "Match rows by step or tokens.")] = "step",
) -> None:
    """Show from where on a run is worse than healthy ones, by how much, and what else differs."""
    from stabtree.judging.judge import Judging
    from stabtree.report.outputs import RenderOptions
    from stabtree.tools.compare.compare import Verdict, check_axis, compared

    check_axis(by)
    settings = effective_settings(read).settings
    targets = wanted(out, COMPARISON)
    how = reading(read, settings)
    busy = Busy(wanted=targets.get(None) not in (HEADLINE, JSON))
    good, worse = (paths, bad) if bad else (paths[:-1], paths[-1])
    with busy.doing(f"reading {', '.join(paths)}"):
        named = [*chain.from_iterable(_runs(path, how) for path in good), _only_run(worse, how)]
    names, runs = [name for name, _ in named], [run for _, run in named]
    _check(names)
    judging = Judging(settings)
    for run in runs:
        protect_run(targets, run, *judging.rules)

    with busy.doing("comparing"):
        matched = _by_tokens(names, runs, how) if by == "tokens" else runs
        comparison = compared(runs, matched, names, by, judging.diagnosed)
    code = {Verdict.WORSE: 1, Verdict.NO_WORSE: 0, Verdict.UNKNOWN: 3}[comparison.verdict]
    deliver(COMPARISON, comparison, targets, RenderOptions(full=out.full, plots=not out.no_plots, exit_code=code))
    if code:
        raise typer.Exit(code)


def _check(names: Sequence[str]) -> None:
    """Check that there are good runs, and that the bad one is none of them.

    Raises:
        StabtreeError: if not.
    """
    if len(names) < 2:
        raise StabtreeError("nothing to compare with", where=names[0], hint="type: stabtree compare GOOD BAD")
    if Path(names[-1]).resolve() in [Path(name).resolve() for name in names[:-1]]:
        raise StabtreeError("is also one of the healthy runs", where=names[-1], hint="name another log as the bad run")


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
    runs = []
    for item in load_runs(path, **how):
        if isinstance(item.run, StabtreeError):
            raise item.run
        runs.append((item.name, item.run))
    return runs


def _by_tokens(names: Sequence[str], runs: Sequence[Run], how: dict[str, Any]) -> list[Run]:
    """Read runs again, with the tokens in place of their steps."""
    from stabtree.tools.compare.compare import token_column

    columns = [how.get("step_column") or token_column(run) for run in runs]
    return [_only_run(name, {**how, "step_column": columns[at]})[1] for at, name in enumerate(names)]


def _only_run(path: str, how: dict[str, Any]) -> tuple[str, Run]:
    """Return the only run of a path, with its name.

    Raises:
        StabtreeError: where there are several.
    """
    runs = _runs(path, how)
    if len(runs) != 1:
        raise StabtreeError(f"these are {len(runs)} runs", where=path, hint="name one bad run, the last path or --bad")
    return runs[0]
