"""`stabtree diagnose`: read a run, walk the tree, print what was found."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from stabtree.cli.options import (
    AcceptPartial,
    AnswerOpt,
    Applied,
    BaselineOpt,
    CheckpointEvery,
    Checkpoints,
    ColumnOpt,
    ConfigOpt,
    Dtype,
    ExitZero,
    FailOn,
    Format,
    Ignore,
    Interactive,
    Json,
    Literally,
    Paths,
    Ranks,
    RerunOpt,
    RunName,
    SetOpt,
    StepColumn,
    Steps,
    TreeOpt,
    TreesOpt,
    WhyNotOpt,
    in_force,
    judging_by,
    reading,
)
from stabtree.cli.output.outputs import (
    Full,
    NoPlots,
    OutputOpt,
    Quiet,
    deliver,
    deliver_all,
    located,
    spare,
    spare_rules,
    spare_unread,
    summarize,
    wanted,
)
from stabtree.cli.output.plot import PlotOpt, picture, save
from stabtree.cli.shell.printing import tell
from stabtree.cli.shell.progress import Busy
from stabtree.common.errors import StabtreeError
from stabtree.common.text import masked
from stabtree.render.outputs import CSV, HEADLINE, HTML, JSON, JSONL, MARKDOWN, POSTMORTEM, SCREEN, SERVICES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.judging.outcome import Outcome
    from stabtree.judging.stretch import Ends
    from stabtree.loaders import Loaded
    from stabtree.render.look import Look
    from stabtree.run import Run


def diagnose(
    paths: Paths,
    tree: TreeOpt = None,
    fail_on: FailOn = None,
    exit_zero: ExitZero = False,
    accept_partial: AcceptPartial = False,
    literal: Literally = False,
    set_: SetOpt = None,
    answer: AnswerOpt = None,
    applied: Applied = None,
    ignore: Ignore = None,
    baseline: BaselineOpt = None,
    interactive: Interactive = False,
    output: OutputOpt = None,
    json: Json = False,
    quiet: Quiet = False,
    plot: PlotOpt = None,
    full: Full = False,
    why_not: WhyNotOpt = None,
    no_plots: NoPlots = False,
    steps: Steps = None,
    column: ColumnOpt = None,
    step_column: StepColumn = None,
    dtype: Dtype = None,
    checkpoint_every: CheckpointEvery = None,
    checkpoints: Checkpoints = None,
    format: Format = None,  # noqa: A002 - the option's name
    run_name: RunName = None,
    ranks: Ranks = False,
    rerun: RerunOpt = None,
    trees: TreesOpt = None,
    config: ConfigOpt = None,
) -> None:
    """Tell what went wrong in a run: the path through the tree, the cause, the fix, the checkpoint."""
    from stabtree.cli.shell.asker import asker
    from stabtree.judging.levels import exit_code
    from stabtree.judging.stretch import stretch_of
    from stabtree.render.look import Length, Look

    said: dict[str, Any] = {"tree": tree, "trees": trees, "fail_on": fail_on, "set": set_, "baseline": baseline}
    said |= {"column": column, "step_column": step_column, "checkpoint_every": checkpoint_every}
    settings, passed, levels = in_force(config, accept_partial=accept_partial, **said)
    places = wanted(output, json=json, quiet=quiet)
    drawing = picture(plot, places)
    if why_not and not {SCREEN, JSON, MARKDOWN} & {*places.values()}:
        hint = f"leave it out, or type --output {SCREEN}, {JSON} or {MARKDOWN}"
        raise StabtreeError(f"{', '.join(places.values())} does not tell it", where="--why-not", hint=hint)
    judging = judging_by(
        *(settings, tree, trees),
        literal=literal,
        set_=set_,
        answer=answer,
        ignore=ignore,
        baseline=baseline,
        applied=applied,
        why_not=why_not,
    )
    ends = stretch_of(steps)
    busy = Busy(wanted=not interactive and places.get(None) not in (HEADLINE, JSON, JSONL, CSV))
    how = reading(column, step_column, dtype, checkpoint_every, format, run_name, settings, checkpoints)
    with busy.doing(f"reading {', '.join(map(masked, paths))}"):
        loaded = loaded_runs(paths, {**how, "ranks": ranks}, ends)
        again = reading(column, step_column, dtype, None, format, None, settings)
        other = _rerun(rerun, paths, again, ends) if rerun else None
    _check_alone(
        len(loaded),
        {"--rerun": bool(rerun), "--interactive": interactive, "--why-not": bool(why_not), "--plot": bool(drawing)},
    )
    loaded = [_completed(item, other, hashed=not {JSON, JSONL}.isdisjoint(places.values())) for item in loaded]
    outcomes = []
    spare_rules([*places, drawing], *judging.rules)
    for item in loaded:
        if isinstance(item.run, StabtreeError):
            spare_unread([*places, drawing], item.name)
        else:
            spare([*places, drawing], item.run)
        with busy.doing(f"judging {item.name}"):
            outcomes.append(located(judging.outcome(item, asker if interactive else None), places))
    code = 0 if exit_zero else exit_code(verdicts_of(outcomes, accept_partial=passed), levels)
    length = Length.FULL if full else Length.SCREEN
    look = Look(length=length, plots=not no_plots, exit_code=code, fail_on=levels, accept_partial=passed)
    if len(outcomes) > 1:
        deliver_all(outcomes, places, look)
        _tell_outdated(outcomes)
    else:
        _deliver_one(outcomes[0], places, look, drawing, quiet=quiet)
    summarize(outcomes, places, look)
    if code:
        raise typer.Exit(code)


def loaded_runs(paths: Sequence[str], how: Mapping[str, Any], ends: Ends | None) -> list[Loaded]:
    """The runs that paths hold, cut to the steps that are judged."""
    from stabtree.judging.stretch import cut
    from stabtree.loaders import load_runs

    remote = any("://" in path for path in paths)
    loaded = [*(_remote if remote else load_runs)(*paths, **how)]
    nested = [path for path in paths if _holds_folders(path)]
    if nested and not (how["ranks"] or how["run"] or how["format"]):
        loaded = _with_lost(nested, loaded, how)
    return [cut(item, ends) for item in loaded]


def _holds_folders(path: str) -> bool:
    """Whether a path is a folder with more below it; most folders hold one run and nothing below it."""
    with suppress(OSError, ValueError), os.scandir(path) as entries:  # a file; a NUL in its name
        return any(not entry.is_file() for entry in entries)
    return False


def _with_lost(paths: Sequence[str], loaded: list[Loaded], how: Mapping[str, Any]) -> list[Loaded]:
    """The runs with those of folders that a loader which looks for its own below left unread."""
    from stabtree.fleet.read import with_lost

    options = {key: value for key, value in how.items() if key != "ranks"}
    for path in paths:
        own = [item for item in loaded if item.path == path or Path(path) in Path(item.path).parents]
        found = with_lost(path, own, options)
        if found is not own:
            first = loaded.index(own[0])
            rest = [item for item in loaded if all(item is not one for one in own)]
            loaded = [*rest[:first], *found, *rest[first:]]
    return loaded


def _remote(*paths: str, **how: Any) -> Sequence[Loaded]:
    """The runs at addresses, fetched for as long as they are read, and told by their addresses."""
    from stabtree.fleet.mirror import fetched
    from stabtree.fleet.read import known
    from stabtree.loaders import load_runs

    with fetched(paths) as (places, mirror):
        try:
            loaded = [*map(known, load_runs(*places, **how)), *mirror.refused]
        except StabtreeError as error:
            raise mirror.told(error) from None
        return [mirror.told(item) for item in loaded]


def _completed(loaded: Loaded, other: Run | None, *, hashed: bool) -> Loaded:
    """A run with the one that it is compared with and, for machines, with what tells its files from others."""
    if isinstance(loaded.run, StabtreeError):
        return loaded
    run = replace(loaded.run, rerun=other)
    if hashed:
        from stabtree.loaders.paths.inputs import with_inputs

        run = with_inputs(run)
    return replace(loaded, run=run)


def verdicts_of(outcomes: Sequence[Outcome], *, accept_partial: bool) -> list[str]:
    """The verdicts that the exit code is made of."""
    from stabtree.tree.model import Severity

    return [Severity.OK if accept_partial and outcome.partial else outcome.verdict for outcome in outcomes]


def _deliver_one(
    outcome: Outcome,
    places: Mapping[Path | None, str],
    look: Look,
    drawing: Path | None,
    *,
    quiet: bool,
) -> None:
    """Write all that is asked of one run; of one that can't be read what services are told, and its error.

    Raises:
        StabtreeError: the error of a run that can't be read.
    """
    found = outcome.found
    if isinstance(found, StabtreeError):
        told = {place: name for place, name in places.items() if name in SERVICES}
        deliver_all([outcome], told, look)
        summarize([outcome], told, look)
        raise found
    save(found, drawing)
    deliver(found, places, look)
    silent = not quiet and not {SCREEN, JSON, JSONL, MARKDOWN, HTML, POSTMORTEM} & {*places.values()}
    for text in (*found.said, *found.outdated) if quiet else found.outdated if silent else ():
        tell(f"note: {text}")  # one line of a verdict has no place for it


def _tell_outdated(outcomes: Sequence[Outcome]) -> None:
    """Say of several runs what no longer holds of their accepted findings: their outputs have no place for it."""
    for outcome in outcomes:
        for text in () if isinstance(outcome.found, StabtreeError) else outcome.found.outdated:
            tell(f"note: {outcome.name}: {text}")


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
