"""`stabtree diagnose`: read a run, walk the tree, print what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from stabtree.errors import StabtreeError

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
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
        ),
    ] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 whatever is found.")] = False,
    accept_partial: Annotated[
        bool,
        typer.Option(
            "--accept-partial", help="Exit with 0, not 3, if nothing is wrong in what the log allowed to judge."
        ),
    ] = False,
    literal: Annotated[
        bool,
        typer.Option(
            "--literal", help="Apply the source document's rules literally, without the guards against noise."
        ),
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ID.PARAM=VALUE", help="Override a parameter, as in Q2.1.sigma=4."),
    ] = None,
    answer: Annotated[
        list[str] | None,
        typer.Option("--answer", metavar="ID=VERDICT", help="Answer a question yourself, as in Q1.2=fp16."),
    ] = None,
    applied: Annotated[
        list[str] | None,
        typer.Option("--applied", metavar="ID", help="The fixes of this node were applied and did not help."),
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Ask for what the log can't answer and a person can; ? explains.")
    ] = False,
    output: OutputOpt = None,
    json: Json = False,
    quiet: Quiet = False,
    full: Full = False,
    no_plots: NoPlots = False,
    plot: PlotOpt = None,
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
        typer.Option("--rerun", metavar="PATH", help="Another run of the same training, to compare this one with."),
    ] = None,
    trees: Annotated[
        str | None,
        typer.Option("--trees", metavar="DIR", help="A folder of further trees to walk beside the shipped ones."),
    ] = None,
    config: ConfigOpt = None,
) -> None:
    """Tell what went wrong in a run: the path through the tree, the cause, the fix, the checkpoint."""
    from stabtree.cli.asker import asker
    from stabtree.cli.config import read_settings
    from stabtree.cli.levels import exit_code, levels_of
    from stabtree.cli.overrides import overrides

    said = {"tree": tree, "trees": trees, "fail_on": fail_on, "set": set_}
    said |= {"column": column, "step_column": step_column}
    settings = read_settings(config).without(said)
    levels = levels_of(fail_on or list(settings.fail_on))
    places = wanted(output, json=json, quiet=quiet)
    drawing = picture(plot, places)
    answers = pairs(answer, "--answer", "Q1.2=fp16")
    from stabtree.tree.load import load_tree, load_trees

    if tree and trees:
        raise StabtreeError("--tree and --trees don't go together", where="--trees", hint="leave one of them out")
    tree, trees = tree or settings.tree or None, trees or settings.trees or None
    from stabtree.loaders import load_run, load_runs

    how = reading(column, step_column, dtype, checkpoint_every, format, run_name, settings, checkpoints)
    loaded = load_runs(*paths, ranks=ranks, **how)
    other = load_run(rerun, **reading(column, step_column, dtype, None, format, None, settings)) if rerun else None
    if len(loaded) > 1 and (rerun or interactive or drawing):
        option = "--rerun" if rerun else "--interactive" if interactive else "--plot"
        raise StabtreeError(f"goes with one run, these are {len(loaded)}", where=option, hint="name one of them")
    if rerun and any(Path(path).resolve() == Path(rerun).resolve() for path in paths):
        raise StabtreeError("is the run itself", where=f"--rerun {rerun}", hint="name the log of another run")
    from stabtree.diagnosis.walk import diagnose as walk
    from stabtree.render.look import Length, Look
    from stabtree.render.several import Outcome
    from stabtree.tree.model import Severity

    def judged(run: Run) -> Diagnosis:
        run = replace(run, rerun=other, notes=(*filter(None, [settings.note]), *run.notes))
        spare([*places, drawing], run, tree, trees, settings.source)
        # What is set or answered must exist, whether or not this run needs its tree.
        chosen = load_tree(tree) if tree else load_trees(None if set_ or settings.set or answer else run, trees)
        return walk(
            run,
            chosen,
            literal=literal,
            overrides=overrides(chosen, set_, settings),
            answers=answers,
            applied=applied or (),
            ask=asker(chosen) if interactive else None,
        )

    if len(loaded) == 1 and isinstance(loaded[0].run, StabtreeError):
        raise loaded[0].run
    outcomes = [
        Outcome(item.name, item.run if isinstance(item.run, StabtreeError) else judged(item.run)) for item in loaded
    ]
    only = outcomes[0].found if len(outcomes) == 1 else None
    told = [Severity.OK if accept_partial and outcome.partial else outcome.verdict for outcome in outcomes]
    code = 0 if exit_zero else exit_code(told, levels)
    look = Look(length=Length.FULL if full else Length.SCREEN, plots=not no_plots, exit_code=code)
    if only is None:
        deliver_all(outcomes, places, look)
    elif not isinstance(only, StabtreeError):
        save(only, drawing)
        deliver(only, places, look)
    for text in only.said if quiet and only is not None and not isinstance(only, StabtreeError) else ():
        typer.echo(f"note: {text}", err=True)  # one line of a verdict has no place for it
    if code:
        raise typer.Exit(code)
