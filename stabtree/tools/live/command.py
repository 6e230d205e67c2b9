"""`stabtree watch`: follow a growing log, report each finding once, and run a command on it."""

from __future__ import annotations

import codecs
import gc
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from stabtree.cli.options import (
    COLUMNS,
    INPUT,
    JUDGING,
    OUTPUT,
    TREES,
    JudgeOptions,
    Only,
    OutputOptions,
    ReadOptions,
    effective_settings,
    judging_with_baseline,
    loaded_runs,
    option,
    reading,
)
from stabtree.cli.output import on_the_terminal, parsed
from stabtree.cli.terminal import emit, notify, takes_escapes
from stabtree.common.errors import FOUND, StabtreeError
from stabtree.common.text import clean, in_words, masked
from stabtree.report.outputs import DEFAULT_OPTIONS, HEADLINE, JSONL, SCREEN, WATCH, RenderOptions, names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.cli.options import EffectiveSettings
    from stabtree.judging.verdict import Outcome
    from stabtree.tools.live.watch import Round, Session, Status

MIN_SECONDS, MAX_SECONDS = 0.01, 3600
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd])")
EXEC_SECONDS, EXEC_AT_ONCE = 60.0, 16
"""A command is ended after so long; a folder of failed runs has a finding each at the first look."""
SLICE_SECONDS = 0.1
WHY = {
    "stopped": "stopped",
    "found": "found what --until-found waits for",
    "stalled": "stalled: nothing was written for {}, and the log does not say that the run is complete",
    "complete": "the run is complete, and nothing was written for {}",
}
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
    judge: Annotated[JudgeOptions, Only(*TREES, "fail_on", "literal", "answer", "applied", "baseline")],
    out: WatchOutput,
    follow: FollowOptions,
) -> None:
    """Follow a growing log, and report each finding once, as soon as it has lasted for some rows.

    What the log no longer shows is withdrawn, what the run recovered from is closed.

    The watch ends by itself when the log says that the run is complete and nothing was written for a minute; else
    Ctrl-C ends it. The exit code is that of `diagnose` for the log as it is then.
    """
    from stabtree.judging.verdict import Outcome, fails
    from stabtree.run import Run
    from stabtree.tools.live.events import REPORTED_FROM, Announcer
    from stabtree.tools.live.session import LogJudge, Signs, Watching
    from stabtree.tools.live.watch import End, Follower, Session
    from stabtree.tree.model import Severity

    effective = effective_settings(read, judge)
    judges = LogJudge(judging_with_baseline(effective.settings, judge))
    _check(paths, follow, effective, reading(read, effective.settings))
    judges.logs.diagnosed(Run("nothing yet", {}))  # what it can't be judged by, no run can

    def judged() -> list[Outcome]:
        try:
            return [judges.outcome(item) for item in loaded_runs(paths, read, effective.settings)]
        except StabtreeError as error:
            return [Outcome(clean(paths[0]), error)]

    gc.enable()  # a watch lasts, unlike other commands
    reporter = Reporter(_form(out), clean(paths[0]), Hook(follow.exec))
    lowest = Severity.NOTE if Severity.NOTE in effective.levels else REPORTED_FROM
    with Stop() as stop:
        session = Session(
            Follower(paths, Signs()),
            Watching(judged, Announcer(reported_from=lowest)),
            every=follow.every,
            stall=None if follow.stall is None else seconds(follow.stall, "--stall"),
            until=lambda news: follow.until_found and fails(news.finding.leaf.severity, effective.levels),
            stopped=lambda: stop.asked,
            sleep=stop.sleep,
        )
        with reporter.open():
            for round_ in session.rounds():
                reporter.report(round_)
    code = FOUND if session.end in (End.FOUND, End.STALLED) else effective.exit_code(session.outcomes)
    look = RenderOptions(exit_code=code, fail_on=effective.levels, accept_partial=effective.accept_partial)
    reporter.end(session, look)
    if code:
        raise typer.Exit(code)


def _check(paths: Sequence[str], follow: FollowOptions, effective: EffectiveSettings, how: dict[str, Any]) -> None:
    """Refuse what is wrong before waiting for anything.

    Raises:
        StabtreeError: for the first such thing.
    """
    from stabtree.judging.verdict import NEVER
    from stabtree.loaders import check_options

    if follow.until_found and NEVER in effective.levels:
        hint = "leave one of them out"
        raise StabtreeError("nothing is ever found with --fail-on never", where="--until-found", hint=hint)
    if "-" in paths:
        hint = "write it to a file: TRAIN | tee run.log, and watch that"
        raise StabtreeError("standard input is read once, not followed", where="-", hint=hint)
    if remote := next((path for path in paths if "://" in path), None):
        hint, where = "mount it, or copy the log as it grows, and name the copy", masked(clean(remote))
        raise StabtreeError("addresses can't be followed, only files of this machine", where=where, hint=hint)
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
    items = [*out.output, *([JSONL] if out.json else ()), *([HEADLINE] if out.quiet else ())]
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


class Reporter:
    """Prints findings on standard output, notes and the status line on standard error, and starts the command.

    Args:
        form: the output: a screen, a line for each finding, or a line of JSON for each event.
        name: what to call the log while it is not there.
        hook: the command that is run for each change.
    """

    def __init__(self, form: str, name: str, hook: Hook) -> None:
        self._form, self._name, self._hook = form, name, hook
        self._has_status = form == SCREEN and takes_escapes() and sys.stderr is not None and sys.stderr.isatty()
        self._shown = self._waits = False

    @contextmanager
    def open(self) -> Iterator[None]:
        """Wait for the commands that still run at the end, unless Ctrl-C ends the waiting."""
        try:
            yield
        except KeyboardInterrupt:
            self._hook.kill()
            raise
        finally:
            self._clear()
            try:
                self._notes(self._hook.wait())
            finally:  # a second Ctrl-C while waiting
                self._hook.kill()

    def report(self, round_: Round) -> None:
        """Print what a look brought."""
        from stabtree.tools.live.messages import finding_event, finding_line, finding_text

        if not (round_.status.there or self._waits or self._has_status):
            self._waits = True
            self._notes([f"waiting for {self._name}: nothing is there yet"])
        self._notes(round_.notes)
        time_, look = _now(), on_the_terminal(DEFAULT_OPTIONS)
        events = [(news, finding_event(news, time_)) for news in round_.news]
        notes = [note for _, event in events for note in self._hook.start(event)]  # first: printing may fail
        for news, event in events:
            self._clear()
            if self._form == JSONL:
                emit(event)
            elif self._form == HEADLINE:
                emit(finding_line(news, time_, look))
            else:
                emit(finding_text(news, time_, look, named=len(round_.status.outcomes) > 1))
        self._notes([*notes, *self._hook.ended()])
        if self._has_status:
            self._show(round_.status)

    def end(self, session: Session, look: RenderOptions) -> None:
        """Print the last verdicts, and why the watch ended.

        Raises:
            StabtreeError: the error of the only log where a person reads it, and it can't be read.
        """
        from stabtree.tools.live.messages import closing, duration, end_event

        outcomes = session.outcomes
        why = WHY[session.end].format(duration(session.silence))
        if self._form == JSONL:
            emit(end_event(outcomes, why, look.exit_code or 0, _now()))
            return
        stalled = session.end == "stalled"
        if len(outcomes) == 1 and isinstance(outcomes[0].found, StabtreeError) and not stalled:
            raise outcomes[0].found
        if self._form == HEADLINE:
            if stalled:
                notify(f"note: {why}")  # the exit code is that of the stall, not of the verdict
            why = ""
        emit(closing(outcomes, why, on_the_terminal(look)))

    def _notes(self, notes: Iterable[str]) -> None:
        from stabtree.tools.live.messages import note_event

        for text in notes:
            self._clear()
            if self._form == JSONL:
                emit(note_event(text, _now()))
            else:
                notify(f"note: {text}")

    def _show(self, status: Status) -> None:
        """Write the status line over the last one."""
        from stabtree.tools.live.messages import status_line

        width = shutil.get_terminal_size().columns
        with suppress(OSError, ValueError):
            width = os.get_terminal_size(sys.stderr.fileno()).columns or width
        ascii_ = not codecs.lookup(sys.stderr.encoding or "utf-8").name.startswith("utf")
        # The last column is left free: some terminals go on to the next line as soon as it is written.
        text = status_line(status, self._name, RenderOptions(width=max(20, width - 1), ascii=ascii_))
        _to_terminal(f"\r\x1b[2K{text}")
        self._shown = True

    def _clear(self) -> None:
        if self._shown:
            _to_terminal("\r\x1b[2K")
            self._shown = False


def _to_terminal(text: str) -> None:
    with suppress(OSError, ValueError):  # a terminal that takes no more is no reason to fail
        sys.stderr.write(text)
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
    """`--exec`: starts a command for each change and goes on; whatever becomes of it is a note.

    No shell is between, and nothing of a log is in the command's words or in its environment.

    Args:
        command: as it was typed; None runs nothing.

    Raises:
        StabtreeError: where there is no such command.
    """

    def __init__(self, command: str | None) -> None:
        self._words = None if command is None else _words(command)
        self._running: list[tuple[subprocess.Popen[bytes], float]] = []
        self._waiting: list[str] = []

    def start(self, event: str) -> list[str]:
        """Run the command with a text on its standard input; return the notes on what failed."""
        if self._words is None:
            return []
        self._waiting.append(event)
        return self.ended()

    def ended(self) -> list[str]:
        """Return the notes on what failed or took too long, and run what has waited for that."""
        notes = []
        for item in list(self._running):
            process, began = item
            code = process.poll()
            if code is None and time.monotonic() - began < EXEC_SECONDS:
                continue
            self._running.remove(item)
            if code is None:
                _kill(process)
                notes.append(f"--exec took longer than {EXEC_SECONDS:g} seconds, and was ended")
            elif code:
                notes.append(f"--exec failed with exit code {code}")
        while self._waiting and len(self._running) < EXEC_AT_ONCE:
            notes += self._run(self._waiting.pop(0))
        return notes

    def _run(self, event: str) -> Iterator[str]:
        try:
            # A pipe would have to be written to for as long as nobody reads it; a disk that is full may be the news.
            with _file() as given:
                given.write(event.encode())
                given.seek(0)
                # What it prints must not come between results: it goes where notes go.
                process = subprocess.Popen(self._words or [], stdin=given, stdout=2, start_new_session=True)  # noqa: S603
            self._running.append((process, time.monotonic()))
        except OSError as error:
            yield f"--exec could not be run: {error.strerror or error}"

    def wait(self) -> Iterator[str]:
        """Wait for what still runs; yield the notes on what failed."""
        while self._running or self._waiting:
            yield from self.ended()
            time.sleep(0.02)

    def kill(self) -> None:
        """End all that still runs, and run nothing more."""
        self._waiting.clear()
        while self._running:
            _kill(self._running.pop()[0])


def _file() -> IO[bytes]:
    """Return a file without a name, in memory where there are such."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("news"), "w+b")
    return tempfile.TemporaryFile()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it started."""
    with suppress(OSError):
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


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
