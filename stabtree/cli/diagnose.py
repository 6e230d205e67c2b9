"""`stabtree diagnose`: read a run, walk the tree, print what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stabtree.cli.options import (
    CheckpointEvery,
    Checkpoints,
    ColumnOpt,
    ConfigOpt,
    Dtype,
    Format,
    Json,
    Paths,
    Ranks,
    RunName,
    StepColumn,
    TreeOpt,
    pairs,
    reading,
)
from stabtree.cli.outputs import Full, NoPlots, OutputOpt, Quiet, deliver, deliver_all, spare, wanted
from stabtree.cli.plot import PlotOpt, picture, save
from stabtree.cli.shell.help import INPUT, JUDGING
from stabtree.cli.shell.progress import Busy
from stabtree.errors import StabtreeError
from stabtree.render.outputs import HEADLINE, JSON

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.cli.stretch import Ends
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.render.look import Look
    from stabtree.run import Run


def diagnose(
    paths: Paths,
    tree: TreeOpt = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="LEVEL",
            help="Exit with 1 from this severity on: note, warning (default), critical or never; with unknown also "
            "for a run that could not be judged, which is 3 otherwise.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit with 0 whatever is found.", rich_help_panel=JUDGING)
    ] = False,
    accept_partial: Annotated[
        bool,
        typer.Option(
            "--accept-partial",
            help="Exit with 0, not 3, if nothing is wrong in what the log allowed to judge.",
            rich_help_panel=JUDGING,
        ),
    ] = False,
    literal: Annotated[
        bool,
        typer.Option(
            "--literal",
            help="Judge by the bare thresholds, without the guards against noise.",
            rich_help_panel=JUDGING,
        ),
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="ID.PARAM=VALUE",
            help="Override a parameter, as in Q2.1.sigma=4.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            metavar="ID=VERDICT",
            help="Answer a question yourself, as in Q1.2=fp16.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    applied: Annotated[
        list[str] | None,
        typer.Option(
            "--applied",
            metavar="ID",
            help="The fixes of this node were applied and did not help.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="LEAF",
            help="Let this finding count for nothing, as in spike-minor; may be given several times.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    interactive: Annotated[
        bool,
        typer.Option(
            "--interactive",
            help="Ask for what the log can't answer and a person can; ? explains.",
            rich_help_panel=JUDGING,
        ),
    ] = False,
    output: OutputOpt = None,
    json: Json = False,
    quiet: Quiet = False,
    plot: PlotOpt = None,
    full: Full = False,
    no_plots: NoPlots = False,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps",
            metavar="A:B",
            help="Judge steps A to B of the log only; either may be left out, as in 500:.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    column: ColumnOpt = None,
    step_column: StepColumn = None,
    dtype: Dtype = None,
    checkpoint_every: CheckpointEvery = None,
    checkpoints: Checkpoints = None,
    format: Format = None,  # noqa: A002 - the option's name
    run_name: RunName = None,
    ranks: Ranks = False,
    rerun: Annotated[
        str | None,
        typer.Option(
            "--rerun",
            metavar="PATH",
            help="Another run of the same training, to compare this one with.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    trees: Annotated[
        str | None,
        typer.Option(
            "--trees",
            metavar="DIR",
            help="A folder of further trees to walk beside the shipped ones.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    config: ConfigOpt = None,
) -> None:
    """Tell what went wrong in a run: the path through the tree, the cause, the fix, the checkpoint."""
    from stabtree.cli.asker import asker
    from stabtree.cli.config import read_settings
    from stabtree.cli.levels import exit_code, levels_of
    from stabtree.cli.overrides import overrides
    from stabtree.cli.stretch import cut, stretch_of

    said = {"tree": tree, "trees": trees, "fail_on": fail_on, "set": set_}
    settings = read_settings(config).without({**said, "column": column, "step_column": step_column})
    levels = levels_of(fail_on or list(settings.fail_on))
    places = wanted(output, json=json, quiet=quiet)
    drawing = picture(plot, places)
    answers, ends = pairs(answer, "--answer", "Q1.2=fp16"), stretch_of(steps)
    ignored = [*(ignore or ()), *settings.ignore]
    from stabtree.tree.load import load_tree, load_trees

    if tree and trees:
        raise StabtreeError("--tree and --trees don't go together", where="--trees", hint="leave one of them out")
    tree, trees = tree or settings.tree or None, trees or settings.trees or None
    from stabtree.loaders import load_runs

    busy = Busy(wanted=not interactive and places.get(None) not in (HEADLINE, JSON))
    how = reading(column, step_column, dtype, checkpoint_every, format, run_name, settings, checkpoints)
    with busy.doing(f"reading {', '.join(paths)}"):
        loaded = [cut(item, ends) for item in load_runs(*paths, ranks=ranks, **how)]
        again = reading(column, step_column, dtype, None, format, None, settings)
        other = _rerun(rerun, paths, again, ends) if rerun else None
    _check_alone(len(loaded), {"--rerun": bool(rerun), "--interactive": interactive, "--plot": bool(drawing)})
    from stabtree.diagnosis.ignored import check_ignored
    from stabtree.diagnosis.walk import diagnose as walk
    from stabtree.render.look import Length, Look
    from stabtree.render.several import Outcome
    from stabtree.tree.model import Severity

    def judged(run: Run) -> Diagnosis:
        run = replace(run, rerun=other, notes=(*filter(None, [settings.note]), *run.notes))
        spare([*places, drawing], run, tree, trees, settings.source)
        run = _hashed(run) if JSON in places.values() else run
        # What is set, answered or ignored must exist, whether or not this run needs its tree.
        named = set_ or settings.set or answer or ignored
        chosen = load_tree(tree) if tree else load_trees(None if named else run, trees)
        with settings.blamed("ignore"):
            check_ignored(chosen, settings.ignore)
        with busy.doing(f"judging {run.name}"):
            return walk(
                run,
                chosen,
                literal=literal,
                overrides=overrides(chosen, set_, settings),
                answers=answers,
                applied=applied or (),
                ignore=ignored,
                ask=asker(chosen) if interactive else None,
            )

    if len(loaded) == 1 and isinstance(loaded[0].run, StabtreeError):
        raise loaded[0].run
    outcomes = [
        Outcome(item.name, item.run if isinstance(item.run, StabtreeError) else judged(item.run)) for item in loaded
    ]
    told = [Severity.OK if accept_partial and outcome.partial else outcome.verdict for outcome in outcomes]
    code = 0 if exit_zero else exit_code(told, levels)
    look = Look(length=Length.FULL if full else Length.SCREEN, plots=not no_plots, exit_code=code)
    if len(outcomes) > 1:
        deliver_all(outcomes, places, look)
    for outcome in outcomes if len(outcomes) == 1 else ():
        _deliver_one(outcome.found, places, look, drawing, quiet=quiet)
    if code:
        raise typer.Exit(code)


def _deliver_one(
    found: Diagnosis | StabtreeError,
    places: Mapping[Path | None, str],
    look: Look,
    drawing: Path | None,
    *,
    quiet: bool,
) -> None:
    """Write all that is asked of one run."""
    if isinstance(found, StabtreeError):
        return
    save(found, drawing)
    deliver(found, places, look)
    for text in found.said if quiet else ():
        typer.echo(f"note: {text}", err=True)  # one line of a verdict has no place for it


def _hashed(run: Run) -> Run:
    """The run with what tells its files from others."""
    from stabtree.loaders.paths.inputs import with_inputs

    return with_inputs(run)


def _check_alone(count: int, options: dict[str, bool]) -> None:
    """Refuse what goes with one run alone where there are several."""
    for option in (name for name, given in options.items() if given and count > 1):
        raise StabtreeError(f"goes with one run, these are {count}", where=option, hint="name one of them")


def _rerun(path: str, paths: list[str], how: dict[str, Any], ends: Ends | None) -> Run:
    """The run to compare with, cut to the same steps."""
    from stabtree.loaders import load_run
    from stabtree.loaders.assemble.stretch import stretch

    if any(Path(other).resolve() == Path(path).resolve() for other in paths):
        raise StabtreeError("is the run itself", where=f"--rerun {path}", hint="name the log of another run")
    run = load_run(path, **how)
    return stretch(run, *ends) if ends else run
