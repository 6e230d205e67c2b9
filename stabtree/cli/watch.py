"""`stabtree watch`: follow a growing log, and tell each finding once."""

from __future__ import annotations

import gc
import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stabtree.cli.diagnose import loaded_runs, verdicts_of
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
    Literally,
    Ranks,
    RunName,
    SetOpt,
    StepColumn,
    TreeOpt,
    TreesOpt,
    in_force,
    judging_by,
    reading,
)
from stabtree.cli.output.outputs import wanted
from stabtree.cli.shell.help import INPUT, JUDGING, OUTPUT
from stabtree.cli.shell.signals import Stop
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words, masked
from stabtree.judging.codes import FOUND
from stabtree.render.look import Look
from stabtree.render.outputs import HEADLINE, JSONL, SCREEN, WATCHES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.judging.judge import Judging
    from stabtree.judging.outcome import Outcome

LEAST_SECONDS, MOST_SECONDS = 0.01, 3600
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd])")
WatchedPaths = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="Logs, folders of runs, patterns; they need not be there yet."),
]
UntilFound = Annotated[
    bool,
    typer.Option(
        "--until-found", help="End with 1 at the first finding at or above --fail-on.", rich_help_panel=JUDGING
    ),
]
StallOpt = Annotated[
    str | None,
    typer.Option(
        "--stall",
        metavar="TIME",
        help="End with 1 where nothing is written for so long, as in 90s, 30m or 2h, and the run is not complete.",
        rich_help_panel=JUDGING,
    ),
]
ExecOpt = Annotated[
    str | None,
    typer.Option(
        "--exec",
        metavar="CMD",
        help="Run CMD, without a shell, for each finding: it gets it as JSON on standard input.",
        rich_help_panel=OUTPUT,
    ),
]
EveryOpt = Annotated[
    float,
    typer.Option("--every", metavar="SECONDS", help="Look at the files so often.", rich_help_panel=INPUT),
]
WatchOutputOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="NAME",
        help=f"Print {', '.join(WATCHES)} (default: {SCREEN}); {JSONL} is a line an event.",
        rich_help_panel=OUTPUT,
    ),
]
WatchJson = Annotated[
    bool,
    typer.Option("--json", help=f"Print a line of JSON for each event: --output {JSONL}.", rich_help_panel=OUTPUT),
]
WatchQuiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help=f"Print a line for each finding and each last verdict: --output {HEADLINE}.",
        rich_help_panel=OUTPUT,
    ),
]


def watch(
    paths: WatchedPaths,
    until_found: UntilFound = False,
    stall: StallOpt = None,
    exec_: ExecOpt = None,
    every: EveryOpt = 1.0,
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
    output: WatchOutputOpt = None,
    json: WatchJson = False,
    quiet: WatchQuiet = False,
    column: ColumnOpt = None,
    step_column: StepColumn = None,
    dtype: Dtype = None,
    checkpoint_every: CheckpointEvery = None,
    checkpoints: Checkpoints = None,
    format: Format = None,  # noqa: A002 - the option's name
    run_name: RunName = None,
    ranks: Ranks = False,
    trees: TreesOpt = None,
    config: ConfigOpt = None,
) -> None:
    """Follow a growing log and tell each finding once, as soon as it has held for some rows.

    It ends by itself when the log says that the run is complete and nothing was written for a minute; else Ctrl-C ends
    it. The exit code is that of `diagnose` for the log as it is then.
    """
    from stabtree.cli.output.teller import Teller
    from stabtree.cli.shell.hook import Hook
    from stabtree.judging.levels import NEVER, exit_code, fails
    from stabtree.live.follow import Follower
    from stabtree.live.news import TOLD_FROM, Announcer
    from stabtree.live.session import End, Session
    from stabtree.live.watching import Watching
    from stabtree.tree.model import Severity

    said: dict[str, Any] = {"tree": tree, "trees": trees, "fail_on": fail_on, "set": set_, "baseline": baseline}
    said |= {"column": column, "step_column": step_column, "checkpoint_every": checkpoint_every}
    settings, passed, levels = in_force(config, accept_partial=accept_partial, **said)
    judging = judging_by(
        *(settings, tree, trees),
        literal=literal,
        set_=set_,
        answer=answer,
        ignore=ignore,
        baseline=baseline,
        applied=applied,
    )
    how = reading(column, step_column, dtype, checkpoint_every, format, run_name, settings, checkpoints)
    if until_found and NEVER in levels:
        hint = "leave one of them out"
        raise StabtreeError("--fail-on never lets nothing be found", where="--until-found", hint=hint)
    _check(paths, every, judging, how)
    gc.enable()  # a watch lasts, unlike other commands
    follower = Follower(paths, columns=how["columns"], step_column=how["step_column"], format=format)
    announcer = Announcer(told_from=Severity.NOTE if Severity.NOTE in levels else TOLD_FROM)
    patience = None if stall is None else seconds(stall, "--stall")
    teller = Teller(_form(output, json=json, quiet=quiet), clean(paths[0]), Hook(exec_))
    with Stop() as stop:
        session = Session(
            follower,
            Watching(partial(_judged, paths, {**how, "ranks": ranks}, judging), announcer=announcer),
            every=every,
            stall=patience,
            until=lambda news: until_found and fails(news.finding.leaf.severity, levels),
            stopped=lambda: stop.asked,
            sleep=stop.sleep,
        )
        with teller:
            for round_ in session.rounds():
                teller.tell(round_)
    outcomes = session.outcomes
    code = exit_code(verdicts_of(outcomes, accept_partial=passed), levels)
    if session.end in (End.FOUND, End.STALLED):
        code = FOUND
    code = 0 if exit_zero else code
    teller.end(session, outcomes, Look(exit_code=code, fail_on=levels, accept_partial=passed))
    if code:
        raise typer.Exit(code)


def _judged(paths: Sequence[str], how: Mapping[str, Any], judging: Judging) -> list[Outcome]:
    """What `diagnose` would find now."""
    from stabtree.judging.outcome import Outcome

    try:
        loaded = loaded_runs(paths, how, None)
    except StabtreeError as error:
        return [Outcome(clean(paths[0]), error)]
    return [judging.outcome(item) for item in loaded]


def _check(paths: Sequence[str], every: float, judging: Judging, how: Mapping[str, Any]) -> None:
    """Refuse what is wrong before anything is waited for.

    Raises:
        StabtreeError: for the first such thing.
    """
    from stabtree.loaders import check_options
    from stabtree.run import Run

    if "-" in paths:
        hint = "write it to a file: TRAIN | tee run.log, and watch that"
        raise StabtreeError("standard input is read once, not followed", where="-", hint=hint)
    if remote := next((path for path in paths if "://" in path), None):
        hint = "mount it, or copy the log as it grows, and name the copy"
        raise StabtreeError("files of this machine are followed, not addresses", where=masked(clean(remote)), hint=hint)
    if empty := [path for path in paths if not path]:
        raise StabtreeError("an empty path names no log", where=empty[0], hint="name a log")
    if not LEAST_SECONDS <= every <= MOST_SECONDS:
        hint = f"type {LEAST_SECONDS:g} to {MOST_SECONDS:,}"
        raise StabtreeError(f"{every:g} is no time between two looks", where="--every", hint=hint)
    check_options(**how)
    judging.diagnosed(Run("nothing yet", {}))


def _form(output: list[str] | None, *, json: bool, quiet: bool) -> str:
    """How it is printed.

    Raises:
        StabtreeError: for an output of another command, two at once, or a file.
    """
    asked = [*(output or []), *([JSONL] if json else []), *([HEADLINE] if quiet else [])]
    each = [*chain.from_iterable(wanted([item], json=False, quiet=False, known=WATCHES).items() for item in asked)]
    if to_file := next((item for item in each if item[0]), None):
        file, name = to_file
        hint = f"redirect it: stabtree watch ... --output {name} > FILE"
        raise StabtreeError("what is told comes as it is found", where=f"--output {name}={file}", hint=hint)
    names = [*dict.fromkeys(name for _, name in each)] or [SCREEN]
    if len(names) > 1:
        raise StabtreeError(f"{in_words(names)} can't both be printed", where="--output", hint="leave one of them out")
    return names[0]


def seconds(text: str, option: str) -> float:
    """A time such as 90s, 30m or 2h in seconds.

    Raises:
        StabtreeError: for anything else.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found or not float(found[1]):
        raise StabtreeError(f"{clean(text, 40)!r} is no time", where=option, hint=f"type it as in {option} 30m")
    return float(found[1]) * SECONDS[found[2]]
