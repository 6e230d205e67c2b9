"""`stabtree watch`: follow a growing log, report each finding once, and run a command on it."""

from __future__ import annotations

import gc
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct
from msgspec.structs import replace

from stabtree.cli.options import (
    COLUMNS,
    INPUT,
    JUDGED,
    JUDGING,
    OUTPUT,
    JudgeOptions,
    Only,
    OutputOptions,
    ReadOptions,
    effective_settings,
    judging_with_baseline,
    option,
    reading,
)
from stabtree.cli.output import on_the_terminal
from stabtree.cli.terminal import emit, notify, takes_escapes
from stabtree.common.errors import FOUND, StabtreeError
from stabtree.common.text import clean, hidden, masked
from stabtree.loaders.source import ADDRESS
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.cli.options import EffectiveSettings
    from stabtree.judging.verdict import Outcome
    from stabtree.tools.live.watch import Round, Session

MIN_SECONDS, MAX_SECONDS = 0.01, 3600
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd])")
EXEC_SECONDS, EXEC_AT_ONCE = 60.0, 16
"""A command is ended after so long; a folder of failed runs has a finding each at the first look."""
SLICE_SECONDS = 0.1
WatchedPaths = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Logs, run folders or patterns; they need not exist yet.")
]
WatchOutput = Annotated[
    OutputOptions,
    Only(
        json=option(OUTPUT, "--json", "Print one line of JSON for each event."),
        quiet=option(OUTPUT, "-q, --quiet", "Print one line for each finding and each last verdict."),
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


class FollowOptions(Struct, frozen=True):
    """How a log is followed, and when that ends, as typed."""

    every: Annotated[float, option(INPUT, "--every SECONDS", "Time between two looks.")] = 1.0
    until_found: Annotated[
        bool, option(JUDGING, "--until-found", "Exit 1 at the first finding at or above --fail-on.")
    ] = False
    stall: Annotated[
        str | None,
        option(
            JUDGING, "--stall TIME", "Exit 1 if nothing is written for TIME (90s, 30m, 2h) and the run is not complete."
        ),
    ] = None
    exec: Annotated[
        str | None,
        option(
            OUTPUT, "--exec CMD", "Run CMD, without a shell, for each change, which it gets as JSON on standard input."
        ),
    ] = None


def watch(
    paths: WatchedPaths,
    read: Annotated[ReadOptions, Only(*COLUMNS, "checkpoint_every", "checkpoints", "run_name", "ranks")],
    judge: Annotated[JudgeOptions, Only(*JUDGED, "literal", "answer", "applied", "baseline")],
    out: WatchOutput,
    follow: FollowOptions,
) -> None:
    """Follow a growing log, and report each finding once, as soon as it has lasted for some rows.

    What the log no longer shows is withdrawn, what the run recovered from is closed.

    The watch ends by itself when the log says that the run is complete and nothing was written for a minute; else
    Ctrl-C ends it. The exit code is that of `diagnose` for the log as it is then.
    """
    from stabtree.judging.verdict import Outcome, fails
    from stabtree.loaders import check_options, load_runs
    from stabtree.run import Run
    from stabtree.tools.live.events import REPORTED_FROM, Announcer, Watching
    from stabtree.tools.live.watch import End, Follower, Session
    from stabtree.tree.model import Severity

    effective = effective_settings(read, judge)
    judging = judging_with_baseline(effective.settings, judge)
    how = reading(read, effective.settings)
    _check(paths, follow, out, effective)
    check_options(**how)
    judging.diagnosed(Run("nothing yet", {}))  # what it can't be judged by, no run can

    follower = Follower(paths)

    def judged() -> list[Outcome]:
        try:
            found = load_runs(*paths, ranks=read.ranks, contents=follower.contents(), **how)
            return [judging.outcome(item) for item in found]
        except StabtreeError as error:
            return [Outcome(clean(paths[0]), error)]

    gc.enable()  # a watch lasts, unlike other commands
    reporter = Reporter(out, clean(paths[0]), Hook(follow.exec))
    lowest = Severity.NOTE if Severity.NOTE in effective.levels else REPORTED_FROM
    with Stop() as stop:
        session = Session(
            follower,
            Watching(judged, Announcer(reported_from=lowest)),
            every=follow.every,
            stall=None if follow.stall is None else seconds(follow.stall, "--stall"),
            until=lambda news: follow.until_found and fails(news.finding.leaf.severity, effective.levels),
            stopped=lambda: stop.asked,
            sleep=stop.sleep,
        )
        with reporter:
            for round_ in session.rounds():
                reporter.report(round_)
    code = FOUND if session.end in (End.FOUND, End.STALLED) else effective.exit_code(session.outcomes)
    look = RenderOptions(exit_code=code, fail_on=effective.levels, accept_partial=effective.accept_partial)
    reporter.end(session, look)
    if code:
        raise typer.Exit(code)


def _check(paths: Sequence[str], follow: FollowOptions, out: OutputOptions, effective: EffectiveSettings) -> None:
    """Refuse what is wrong before waiting for anything.

    Raises:
        StabtreeError: for the first such thing.
    """
    from stabtree.judging.verdict import NEVER

    remote = masked(clean(next(filter(ADDRESS.match, paths), "")))
    never = follow.until_found and NEVER in effective.levels
    slow = not MIN_SECONDS <= follow.every <= MAX_SECONDS
    for is_wrong, where, problem, hint in (
        (never, "--until-found", "nothing is ever found with --fail-on never", "leave one of them out"),
        (out.json and out.quiet, "--quiet", "can't be printed beside --json", "leave one of them out"),
        ("-" in paths, "-", "standard input is read once, not followed", "write it to a file: TRAIN | tee run.log"),
        (remote, remote, "addresses can't be followed, only files of this machine", "mount it, or watch a copy of it"),
        ("" in paths, "PATH", "an empty path names no log", "name a log"),
        (slow, "--every", f"{follow.every:g} is out of range", f"type {MIN_SECONDS:g} to {MAX_SECONDS:,}"),
    ):
        if is_wrong:
            raise StabtreeError(problem, where=where, hint=hint)


def seconds(text: str, option_: str) -> float:
    """Return a time such as 90s, 30m or 2h in seconds.

    Raises:
        StabtreeError: for anything else.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found or not float(found[1]):
        raise StabtreeError(f"{clean(text, 40)!r} is not a time", where=option_, hint=f"type it as in {option_} 30m")
    return float(found[1]) * SECONDS[found[2]]


class Reporter:
    """Prints findings on standard output, notes and the status line on standard error, and starts the command.

    As a context it waits for the commands that still run at the end, unless Ctrl-C ends the waiting.

    Args:
        out: the output: a screen, a line for each finding, or a line of JSON for each event.
        name: what to call the log while it is not there.
        hook: the command that is run for each change.
    """

    def __init__(self, out: OutputOptions, name: str, hook: Hook) -> None:
        self._out, self._name, self._hook = out, name, hook
        is_screen = not (out.json or out.quiet) and sys.stderr is not None and sys.stderr.isatty()
        self._has_status = is_screen and takes_escapes()
        self._shown = self._waits = False

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._clear()
        if kind is not KeyboardInterrupt:
            self._hook.wait()
        self._notes(self._hook.notes())

    def report(self, round_: Round) -> None:
        """Print what a look brought."""
        from stabtree.tools.live.messages import finding_event, finding_line, finding_text

        if not (round_.there or self._waits or self._has_status):
            self._waits = True
            self._notes([f"waiting for {self._name}: nothing is there yet"])
        self._notes(round_.notes)
        time_, look = _now(), on_the_terminal(DEFAULT_OPTIONS)
        events = [finding_event(news, time_) for news in round_.news]
        for event in events:
            self._hook.start(event)  # first: printing may fail
        for news, event in zip(round_.news, events, strict=True):
            self._clear()
            if self._out.json:
                emit(event)
            elif self._out.quiet:
                emit(finding_line(news, time_, look))
            else:
                emit(finding_text(news, time_, look, named=len(round_.outcomes) > 1))
        self._notes(self._hook.notes())
        if self._has_status:
            self._show(round_)

    def end(self, session: Session, look: RenderOptions) -> None:
        """Print the last verdicts, and why the watch ended.

        Raises:
            StabtreeError: the error of the only log where a person reads it, and it can't be read.
        """
        from stabtree.tools.live.messages import closing, duration, end_event
        from stabtree.tools.live.watch import End

        outcomes, stalled = session.outcomes, session.end is End.STALLED
        why = session.end.format(duration(session.silence))
        if self._out.json:
            emit(end_event(outcomes, why, look.exit_code or 0, _now()))
            return
        if len(outcomes) == 1 and isinstance(outcomes[0].found, StabtreeError) and not stalled:
            raise outcomes[0].found
        if self._out.quiet:
            if stalled:
                notify(f"note: {why}")  # the exit code is that of the stall, not of the verdict
            why = ""
        emit(closing(outcomes, why, on_the_terminal(look)))

    def _notes(self, notes: Iterable[str]) -> None:
        from stabtree.tools.live.messages import note_event

        for text in notes:
            self._clear()
            if self._out.json:
                emit(note_event(text, _now()))
            else:
                notify(f"note: {text}")

    def _show(self, round_: Round) -> None:
        """Write the status line over the last one."""
        from stabtree.tools.live.messages import status_line

        look = on_the_terminal(DEFAULT_OPTIONS)
        # The last column is left free: some terminals go on to the next line as soon as it is written.
        text = status_line(round_, self._name, replace(look, width=max(20, look.width - 1)))
        _to_terminal(f"\r\x1b[2K{text}")
        self._shown = True

    def _clear(self) -> None:
        if self._shown:
            _to_terminal("\r\x1b[2K")
            self._shown = False


def _to_terminal(text: str) -> None:
    with suppress(OSError, ValueError):  # a terminal that takes no more is no reason to fail
        sys.stderr.write(hidden(text))
        sys.stderr.flush()


def _now() -> datetime:
    return datetime.now().astimezone()


class Stop:
    """While it lasts, the first signal to end is only remembered, and the second stops at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # no other may
            numbers: list[int] = [signal.SIGINT, signal.SIGTERM]
            if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup has it
                numbers.append(signal.SIGHUP)
            self._before = {number: signal.signal(number, self._ask) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, _number: int, _frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def sleep(self, seconds_: float) -> None:
        """Wait, but no longer than until the end is asked for; an event could deadlock in a handler."""
        until = time.monotonic() + seconds_
        while not self.asked and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_SECONDS))


class Hook:
    """`--exec`: runs a command for each change, beside the watch; whatever becomes of it is a note.

    No shell is between, and nothing of a log is in the command's words or in its environment.

    Args:
        command: as it was typed; None runs nothing.

    Raises:
        StabtreeError: where there is no such command.
    """

    def __init__(self, command: str | None) -> None:
        self._words = None if command is None else _words(command)
        self._pool = ThreadPoolExecutor(EXEC_AT_ONCE)
        self._runs: list[Future[str]] = []

    def start(self, event: str) -> None:
        """Run the command with a text on its standard input."""
        if self._words is not None:
            self._runs.append(self._pool.submit(_run, self._words, hidden(event)))

    def notes(self) -> list[str]:
        """Return the notes on what failed or took too long since the last call."""
        done = [run for run in self._runs if run.done()]
        self._runs = [run for run in self._runs if run not in done]
        return [note for run in done if not run.cancelled() and (note := run.result())]

    def wait(self) -> None:
        """Wait for what still runs."""
        wait(self._runs)


def _run(words: list[str], event: str) -> str:
    """Run a command, and return a note on what went wrong."""
    try:
        # What it prints must not come between results: it goes where notes go.
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=2, start_new_session=True)  # noqa: S603
    except OSError as error:
        return f"--exec could not be run: {error.strerror or error}"
    try:
        process.communicate(event.encode(), EXEC_SECONDS)
    except subprocess.TimeoutExpired:
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGKILL)  # with all that it started
        process.kill()
        process.wait()
        return f"--exec took longer than {EXEC_SECONDS:g} seconds, and was ended"
    return f"--exec failed with exit code {process.returncode}" if process.returncode else ""


def _words(command: str) -> list[str]:
    hint = "name one that reads JSON from its standard input; pipes need --exec \"sh -c '...'\""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    if sys.platform == "win32":
        lexer.escape = ""  # where a backslash parts folders
    try:
        words = list(lexer)
    except ValueError as error:
        raise StabtreeError(f"can't be read: {error}", where="--exec", hint=hint) from None
    name = next(iter(words), "")
    if shutil.which(name) is None:
        raise StabtreeError(f"there is no command {name!r}", where="--exec", hint=hint)
    return words
