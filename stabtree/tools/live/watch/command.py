"""`stabtree watch`: follow a growing log, and report each finding once."""

from __future__ import annotations

import gc
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.load import loaded_runs
from stabtree.cli.options.judge import FAILING, TREES, JudgeOptions, effective_settings, judging_with_baseline
from stabtree.cli.options.output import OutputOptions
from stabtree.cli.options.read import COLUMNS, LoadKeywords, ReadOptions, reading
from stabtree.cli.options.values import outputs
from stabtree.cli.output.places import parsed
from stabtree.cli.program.expand import Only, option
from stabtree.cli.program.help import OUTPUT
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words, masked
from stabtree.judging.codes import FOUND
from stabtree.report.options import RenderOptions
from stabtree.report.outputs import HEADLINE, JSONL, SCREEN, WATCH, names
from stabtree.tools.live.watch.options import FollowOptions  # noqa: TC001 - Typer reads it
from stabtree.tools.live.watch.signals import Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stabtree.cli.options.judge import EffectiveSettings
    from stabtree.judging.outcome import Outcome
    from stabtree.judging.settings import Settings
    from stabtree.run import Run
    from stabtree.tools.live.row_zero import RowZero
    from stabtree.tools.live.session import Session
    from stabtree.tools.live.watch.actions.together import Actions

MIN_SECONDS, MAX_SECONDS = 0.01, 3600
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd])")
WatchedPaths = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Logs, run folders or patterns; they need not exist yet.")
]


WatchOutput = Annotated[
    OutputOptions,
    Only(
        output=option(
            OUTPUT,
            "--output NAME",
            f"Print {SCREEN} (default), {HEADLINE} or {JSONL}, one line for each event.",
            outputs(WATCH),
        ),
        json=option(OUTPUT, "--json", f"Print one line of JSON for each event: short for --output {JSONL}."),
        quiet=option(
            OUTPUT,
            "-q, --quiet",
            f"Print one line for each finding and each last verdict: short for --output {HEADLINE}.",
        ),
    ),
]

EPILOG = """\b
Examples:
  stabtree watch run.jsonl                     until Ctrl-C
  stabtree watch run.jsonl --until-found --stall 30m && next-job
  stabtree watch runs/7 --exec ./alarm --json  one line of JSON for each event

\b
The exit codes are those of diagnose and check, for the log as it is at the
end; 1 also for what --until-found waits for, and for a stall.
"""


def watch(
    paths: WatchedPaths,
    read: Annotated[ReadOptions, Only(*COLUMNS, "checkpoint_every", "checkpoints", "run_name", "ranks")],
    judge: Annotated[JudgeOptions, Only(*TREES, *FAILING, "literal", "answer", "applied", "baseline")],
    out: WatchOutput,
    follow: FollowOptions,
) -> None:
    """Follow a growing log, and report each finding once, as soon as it has lasted for some rows.

    What the log no longer shows is withdrawn, what the run recovered from is closed.

    The watch ends by itself when the log says that the run is complete and nothing was written for a minute; else
    Ctrl-C ends it. The exit code is that of `diagnose` for the log as it is then.
    """
    from stabtree.tools.live.row_zero import RowZero
    from stabtree.tools.live.watch.reporter import WatchReporter

    effective = effective_settings(read, judge)
    judging = judging_with_baseline(effective.settings, judge)
    how = reading(read, effective.settings)
    _check(paths, follow, effective, how)
    judges = RowZero(judging)
    judges.logs.diagnosed(_nothing_yet())
    gc.enable()  # a watch lasts, unlike other commands
    reporter = WatchReporter(_form(out), clean(paths[0]), _actions(paths, follow, judges))
    with Stop() as stop:
        session = _session(
            follow, effective, stop, how, partial(_judged, paths, read, effective.settings, judges), paths
        )
        with reporter:
            for round_ in session.rounds():
                reporter.report(round_)
    outcomes = session.outcomes
    code = _exit_code(session, effective)
    look = RenderOptions(exit_code=code, fail_on=effective.levels, accept_partial=effective.accept_partial)
    reporter.end(session, outcomes, look)
    if code:
        raise typer.Exit(code)


def _actions(paths: Sequence[str], follow: FollowOptions, judges: RowZero) -> Actions:
    """Return what is done with each change besides printing it.

    Raises:
        StabtreeError: for a command, an address, a file or a port that can't be used.
    """
    from stabtree.cli.output.write import write
    from stabtree.cli.shell.printing import notify
    from stabtree.tools.live.watch.actions.serve import PageServer
    from stabtree.tools.live.watch.actions.together import Actions

    show: list[Callable[[str], object]] = []
    if follow.page is not None:
        show.append(partial(write, _page_file(follow.page, paths, judges), option="--page"))
    server = None if follow.serve is None else PageServer(follow.serve)
    if server is not None:
        notify(f"note: the page is at {server.address}")
    name = clean(paths[0])
    return Actions(
        command=follow.exec, address=follow.webhook, keep=follow.keep_checkpoint, name=name, show=show, server=server
    )


def _page_file(page: str, paths: Sequence[str], judges: RowZero) -> Path:
    """Return the file of the page.

    Raises:
        StabtreeError: where it is none that can be replaced.
    """
    from stabtree.cli.output.places import protect_log, protect_rules

    where = f"--page {clean(page)}"
    try:
        file = Path(page).resolve()
    except (OSError, RuntimeError, ValueError):  # as of links in a loop
        raise StabtreeError("it can't be written to", where=where, hint="name another file") from None
    for path in paths:
        protect_log([file], path, "--page")
    protect_rules([file], *judges.logs.rules, option="--page")
    if file.suffix.lower() not in (".html", ".htm"):  # no log of a folder that is watched is called so
        raise StabtreeError("the name of a page must end in .html", where=where, hint="type --page report.html")
    if not file.parent.is_dir():
        raise StabtreeError("its folder does not exist", where=where, hint="make it first")
    if file.exists() and not file.is_file():  # a pipe would block the watch until somebody reads it
        raise StabtreeError("it is not a file", where=where, hint="name a file, new or old")
    return file


def _session(
    follow: FollowOptions,
    effective: EffectiveSettings,
    stop: Stop,
    how: LoadKeywords,
    judged: Callable[[], list[Outcome]],
    paths: Sequence[str],
) -> Session:
    """Return the watch over the logs of paths, which `judged` judges anew."""
    from stabtree.judging.levels import fails
    from stabtree.tools.live.news import TOLD_FROM, Announcer
    from stabtree.tools.live.session import Session
    from stabtree.tools.live.watch.follow import Follower
    from stabtree.tools.live.watch.watching import Watching
    from stabtree.tree.model import Severity

    lowest = Severity.NOTE if Severity.NOTE in effective.levels else TOLD_FROM
    return Session(
        Follower(paths, columns=how["columns"], step_column=how["step_column"], format=how["format"]),
        Watching(judged, announcer=Announcer(told_from=lowest)),
        every=follow.every,
        stall=None if follow.stall is None else seconds(follow.stall, "--stall"),
        until=lambda news: follow.until_found and fails(news.finding.leaf.severity, effective.levels),
        stopped=lambda: stop.asked,
        sleep=stop.sleep,
    )


def _exit_code(session: Session, effective: EffectiveSettings) -> int:
    """Return the exit code of a watch that has ended."""
    from stabtree.tools.live.session import End

    if effective.exit_zero:
        return 0
    if session.end in (End.FOUND, End.STALLED):
        return FOUND
    return effective.exit_code(effective.verdicts(session.outcomes))


def _judged(paths: Sequence[str], read: ReadOptions, settings: Settings, judges: RowZero) -> list[Outcome]:
    """Return what `diagnose` would find now."""
    from stabtree.judging.outcome import Outcome

    try:
        loaded = loaded_runs(paths, read, settings)
    except StabtreeError as error:
        return [Outcome(clean(paths[0]), error)]
    return [judges.outcome(item) for item in loaded]


def _nothing_yet() -> Run:
    """Return a run without a row: what it can't be judged by, no run can."""
    from stabtree.run import Run

    return Run("nothing yet", {})


def _check(paths: Sequence[str], follow: FollowOptions, effective: EffectiveSettings, how: LoadKeywords) -> None:
    """Refuse what is wrong before waiting for anything.

    Raises:
        StabtreeError: for the first such thing.
    """
    from stabtree.judging.levels import NEVER
    from stabtree.loaders import check_options

    if follow.until_found and NEVER in effective.levels:
        hint = "leave one of them out"
        raise StabtreeError("nothing is ever found with --fail-on never", where="--until-found", hint=hint)
    if "-" in paths:
        hint = "write it to a file: TRAIN | tee run.log, and watch that"
        raise StabtreeError("standard input is read once, not followed", where="-", hint=hint)
    remote = next((path for path in paths if "://" in path), None)
    if remote:
        hint = "mount it, or copy the log as it grows, and name the copy"
        raise StabtreeError(
            "addresses can't be followed, only files of this machine", where=masked(clean(remote)), hint=hint
        )
    if "" in paths:
        raise StabtreeError("an empty path names no log", hint="name a log")
    if not MIN_SECONDS <= follow.every <= MAX_SECONDS:
        hint = f"type {MIN_SECONDS:g} to {MAX_SECONDS:,}"
        raise StabtreeError(f"{follow.every:g} is out of range", where="--every", hint=hint)
    check_options(**how)


def _form(out: OutputOptions) -> str:
    """Return the name of the output.

    Raises:
        StabtreeError: for an output of another command, two at once, or a file.
    """
    items = [*out.output]
    if out.json:
        items.append(JSONL)
    if out.quiet:
        items.append(HEADLINE)
    asked: dict[str, None] = {}
    for item in items:
        name, file = parsed(item, names(WATCH))
        if file:
            hint = f"redirect it: stabtree watch ... --output {name} > FILE"
            raise StabtreeError("events are printed as they occur", where=f"--output {name}={file}", hint=hint)
        asked[name] = None
    if len(asked) > 1:
        problem = f"{in_words([*asked])} can't both be printed"
        raise StabtreeError(problem, where="--output", hint="leave one of them out")
    return next(iter(asked), SCREEN)


def seconds(text: str, option_: str) -> float:
    """Return a time such as 90s, 30m or 2h in seconds.

    Raises:
        StabtreeError: for anything else.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found or not float(found[1]):
        raise StabtreeError(f"{clean(text, 40)!r} is not a time", where=option_, hint=f"type it as in {option_} 30m")
    return float(found[1]) * SECONDS[found[2]]
