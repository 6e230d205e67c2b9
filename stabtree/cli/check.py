"""`stabtree check`: judge a configuration before its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stabtree.cli.options import (  # noqa: TC001 - typer reads them
    ConfigOpt,
    ExitZero,
    FailOn,
    Ignore,
    Json,
    SetOpt,
    TreeOpt,
    TreesOpt,
)
from stabtree.cli.output.outputs import Quiet, emit_all, spare, spare_rules, spare_unread, summarize, wanted
from stabtree.cli.shell.help import INPUT, OUTPUT
from stabtree.common.errors import StabtreeError
from stabtree.common.text import masked
from stabtree.render.outputs import JSON, JSONL, checks

if TYPE_CHECKING:
    from stabtree.judging.judge import Judging
    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run

Configs = Annotated[
    list[str],
    typer.Argument(
        metavar="CONFIG",
        help="Configurations: YAML, JSON, TOML, assignments of Python, or a folder; each is of a run of its own.",
    ),
]
Merge = Annotated[
    bool,
    typer.Option(
        "--merge",
        help="The files are one configuration; what a later one says goes before.",
        rich_help_panel=INPUT,
    ),
]
CheckOutput = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="NAME[=FILE]",
        help=f"Print {', '.join(checks())} (default: screen), or write it to FILE; may be given several times.",
        rich_help_panel=OUTPUT,
    ),
]

Whole = Annotated[
    bool,
    typer.Option(
        "--full", help="Print all of it: every fix, each rule that could not be judged.", rich_help_panel=OUTPUT
    ),
]


def check(
    paths: Configs,
    merge: Merge = False,
    tree: TreeOpt = None,
    fail_on: FailOn = None,
    exit_zero: ExitZero = False,
    set_: SetOpt = None,
    ignore: Ignore = None,
    output: CheckOutput = None,
    json: Json = False,
    quiet: Quiet = False,
    full: Whole = False,
    trees: TreesOpt = None,
    config: ConfigOpt = None,
) -> None:
    """Tell what is wrong with a run before it begins, as far as its configuration decides that.

    Nothing is taken for a default: a rule about a setting that is not said is not judged.
    """
    from stabtree.judging.judge import Judging
    from stabtree.judging.levels import exit_code, levels_of
    from stabtree.judging.settings import read_settings
    from stabtree.render.look import Length, Look

    project = read_settings(config)
    said: dict[str, Any] = {"tree": tree, "trees": trees, "fail_on": fail_on, "set": set_}
    settings = project.without(said)
    levels = levels_of(fail_on or list(settings.fail_on))
    places = wanted(output, json=json, quiet=quiet, known=checks())
    judging = Judging(settings, tree, trees, set=tuple(set_ or ()), ignore=tuple(ignore or ()))
    spare_rules(places, *judging.rules)
    outcomes = _judged(paths, judging, merge=merge, hashed=not {JSON, JSONL}.isdisjoint(places.values()))
    for outcome in outcomes:
        if isinstance(outcome.found, StabtreeError):
            spare_unread(places, outcome.name)
        else:
            spare(places, outcome.found.run)
    if len(outcomes) == 1 and isinstance(outcomes[0].found, StabtreeError):
        raise outcomes[0].found
    code = 0 if exit_zero else exit_code([outcome.verdict for outcome in outcomes], levels)
    look = Look(length=Length.FULL if full else Length.SCREEN, exit_code=code, fail_on=levels)
    emit_all(lambda name, look: checks()[name](outcomes, look), places, look)
    summarize(outcomes, places, look)
    if code:
        raise typer.Exit(code)


def _judged(paths: list[str], judging: Judging, *, merge: bool, hashed: bool) -> list[Outcome]:
    """What became of each configuration; for machines with what tells its files from others."""
    from stabtree.judging.outcome import Outcome
    from stabtree.judging.preflight import checked
    from stabtree.loaders.paths.inputs import with_inputs
    from stabtree.loaders.paths.several import expanded, once

    files = [str(path) for path in once([path for given in paths for path in expanded(given)])]
    outcomes = []
    for group in [files] if merge else [[file] for file in files]:
        run = _read(group)
        if hashed and not isinstance(run, StabtreeError):
            run = with_inputs(run)
        name = group[0] if isinstance(run, StabtreeError) else ", ".join(map(masked, group))
        outcomes.append(Outcome(name, run if isinstance(run, StabtreeError) else checked(run, judging)))
    return outcomes


def _read(files: list[str]) -> Run | StabtreeError:
    from stabtree.loaders.configs.load import load_config

    try:
        return load_config(*files)
    except StabtreeError as error:
        return error
