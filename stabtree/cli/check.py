"""`stabtree check`: judge a configuration before its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options import (
    ConfigOpt,
    ExitZero,
    FailOn,
    Ignore,
    Json,
    SetOpt,
    TreeOpt,
    TreesOpt,
    in_force,
)
from stabtree.cli.output.outputs import Quiet, emit_all, spare, spare_rules, spare_unread, summarize, wanted
from stabtree.cli.shell.help import INPUT, OUTPUT
from stabtree.common.errors import StabtreeError
from stabtree.common.text import masked
from stabtree.render.outputs import JSON, JSONL, checks

if TYPE_CHECKING:
    from stabtree.judging.judge import Judging
    from stabtree.judging.outcome import Outcome

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
    from stabtree.judging.levels import exit_code
    from stabtree.loaders.paths.several import expanded, once
    from stabtree.render.look import Length, Look

    settings, _, levels = in_force(config, tree=tree, trees=trees, fail_on=fail_on, set=set_)
    places = wanted(output, json=json, quiet=quiet, known=checks())
    judging = Judging(settings, tree, trees, set=tuple(set_ or ()), ignore=tuple(ignore or ()))
    spare_rules(places, *judging.rules)
    if not all(paths):  # as of a variable of the shell that is not set; the working directory is not meant
        raise StabtreeError("an empty path names no configuration", hint="name a file, or . for this folder")
    files = [str(path) for path in once([path for given in paths for path in expanded(given)])]
    for file in files:
        spare_unread(places, file)
    groups = [files] if merge else [[file] for file in files]
    hashed = not {JSON, JSONL}.isdisjoint(places.values())
    outcomes = [_judged(group, judging, hashed=hashed) for group in groups]
    for outcome in outcomes:
        if not isinstance(outcome.found, StabtreeError):
            spare(places, outcome.found.run)
    if len(outcomes) == 1 and isinstance(outcomes[0].found, StabtreeError):
        raise outcomes[0].found
    code = 0 if exit_zero else exit_code([outcome.verdict for outcome in outcomes], levels)
    look = Look(length=Length.FULL if full else Length.SCREEN, exit_code=code, fail_on=levels)
    emit_all(lambda name, look: checks()[name](outcomes, look), places, look)
    summarize(outcomes, places, look)
    if code:
        raise typer.Exit(code)


def _judged(files: list[str], judging: Judging, *, hashed: bool) -> Outcome:
    """What became of a configuration, by what was typed; for machines with what tells its files from others."""
    from stabtree.judging.outcome import Outcome
    from stabtree.judging.preflight import checked
    from stabtree.loaders.configs.load import load_config
    from stabtree.loaders.paths.inputs import with_inputs

    name = ", ".join(map(masked, files))
    try:
        run = load_config(*files)
    except StabtreeError as error:
        return Outcome(name, error)
    return Outcome(name, checked(with_inputs(run) if hashed else run, judging))
