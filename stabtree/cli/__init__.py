"""The command line. Only this package prints, reads the environment or exits."""

from __future__ import annotations

import errno
import gc
import os
import sys
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import typer

from stabtree.cli.baseline import baseline
from stabtree.cli.calibrate import calibrate
from stabtree.cli.compare import compare
from stabtree.cli.config import config
from stabtree.cli.diagnose import diagnose
from stabtree.cli.explain import explain
from stabtree.cli.inspect import formats, inspect
from stabtree.cli.scan import scan
from stabtree.cli.schema import schema
from stabtree.cli.shell.command import TypedCommand, TypedGroup
from stabtree.cli.shell.completion import ASK, complete, completion
from stabtree.cli.shell.demo import demo
from stabtree.cli.shell.help import COMPARE_EPILOG, DIAGNOSE_EPILOG, ROOT_EPILOG, SCAN_EPILOG, WATCH_EPILOG
from stabtree.cli.shell.printing import emit, tell
from stabtree.cli.shell.routes import HELP, routed
from stabtree.cli.tree import tree_app
from stabtree.cli.watch import watch
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.codes import OUR_FAULT, UNUSABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    name="stabtree",
    cls=TypedGroup,
    help="Finds out what went wrong in a training run, from its logs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": list(HELP)},
    epilog=ROOT_EPILOG,
)
app.command(cls=TypedCommand, short_help="Tell what went wrong in a run.", epilog=DIAGNOSE_EPILOG)(diagnose)
app.command(cls=TypedCommand, short_help="Diagnose all runs below folders.", epilog=SCAN_EPILOG)(scan)
app.command(cls=TypedCommand, short_help="Follow a growing log.", epilog=WATCH_EPILOG)(watch)
app.command(cls=TypedCommand, short_help="Diagnose a failed run that comes with stabtree.")(demo)
app.command(cls=TypedCommand, short_help="Tell where a run parts from good ones.", epilog=COMPARE_EPILOG)(compare)
app.command(cls=TypedCommand, short_help="Set thresholds by your own healthy runs.")(calibrate)
app.command(cls=TypedCommand, short_help="Explain a question, a finding or a metric.")(explain)
app.command(cls=TypedCommand, short_help="Show how a run's files are read.")(inspect)
app.command(cls=TypedCommand, short_help="Accept what is found now, so that only new findings count.")(baseline)
app.command(cls=TypedCommand, short_help="Show what is in force here, and where it is from.")(config)
app.command(cls=TypedCommand, short_help="List the formats that are read.")(formats)
app.command(cls=TypedCommand, short_help="Print the JSON Schema of --json.")(schema)
app.command(cls=TypedCommand, short_help="Print the completion for bash, zsh or fish.")(completion)
app.command(ASK, cls=TypedCommand, hidden=True)(complete)
app.add_typer(tree_app, name="tree")


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", "-V", help="Print the version and stop.", is_eager=True),
) -> None:
    if version:
        from stabtree import __version__

        emit(f"stabtree {__version__}")
        raise typer.Exit


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; it neither exits nor changes anything of the process.

    A user's mistake ends in two lines on standard error and code 2, with `--json` in an object on standard output
    besides; a bug of ours in two lines and code 4, with `--debug` in its traceback.

    Args:
        argv: what stands after the program's name; `sys.argv[1:]` when not given.
    """
    command = _command()
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        words = routed(words, command.commands)
        # Not `app()`, nor the command's own `main`: both exit, and change `sys.excepthook` or `sys.stdout`.
        with command.make_context("stabtree", words) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except (Exception, KeyboardInterrupt) as error:
        code = _code_of(error, words)
        if code == OUR_FAULT and debug:
            raise
        return code
    return 0


def _code_of(error: BaseException, words: Sequence[str]) -> int:
    """The exit code of what stopped a command, and its two lines on standard error."""
    if isinstance(error, KeyboardInterrupt | BrokenPipeError):  # or the reader has gone (`| head`)
        return 130 if isinstance(error, KeyboardInterrupt) else 141
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # typer does not know of a full disk
        error = StabtreeError(f"the output can't be written: {error.strerror}", hint="redirect it elsewhere")
    if isinstance(error, StabtreeError):
        tell(_told(error))
        return _as_json(error) if _wants_json(words) else UNUSABLE
    if isinstance(error, typer.TyperException):
        tell(_usage(error))
        return UNUSABLE
    # A bug of ours must not read as something that was found.
    problem = f"stabtree itself failed: {type(error).__name__}: {error}"
    tell(_told(StabtreeError(problem, hint="report it with what --debug prints, and the log if you may")))
    return OUR_FAULT


def _wants_json(words: Sequence[str]) -> bool:
    """Whether JSON was asked for on standard output."""
    outputs = [*words, *(f"--output={word}" for before, word in pairwise(words) if before == "--output")]
    return "--json" in words or "--output=json" in outputs


def _as_json(error: StabtreeError) -> int:
    """Say it to a machine as well."""
    from stabtree.render.data.machine import error as told
    from stabtree.render.data.machine import written

    with suppress(StabtreeError, BrokenPipeError):  # its lines on standard error, and the exit code, are left
        emit(written(told(error), indent=None))
    return UNUSABLE


@cache
def _command() -> TypedGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, TypedGroup)  # noqa: S101 - for the type checker: the app says so above
    return command


def _usage(error: typer.TyperException) -> str:
    """What is wrong with the words typed, in two lines; a group alone raises its whole help, which is told as it is."""
    text = error.format_message()
    if text.startswith("Usage: "):
        return f"{text}\n"
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "stabtree"
    close = list(getattr(error, "possibilities", None) or ())
    problem = text[:1].lower() + text[1:].partition(" (Possible options")[0].removesuffix(".")
    problem = f"{problem}; did you mean {close[0]}?" if close else problem.replace(". Did you", "; did you")
    return _told(StabtreeError(problem, hint=f"type `{command} --help`"))


def _told(error: StabtreeError) -> str:
    place = f"{clean(error.where)}: " if error.where else ""
    # A tree's mistakes are a line each; whatever a file or an option put into one is made safe to print.
    problem = "\n".join(f"{'  ' if n else ''}{clean(line, 500)}" for n, line in enumerate(error.problem.split("\n")))
    return f"error: {place}{problem}\n" + (f" next: {clean(error.hint, 500)}\n" if error.hint else "")


def entry() -> None:
    """The console script: `main` as a process of its own, without the cost of being long-lived.

    Collecting garbage while importing, and taking pandas apart at the end, cost a quarter of a short command.
    """
    gc.disable()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            code = code or 2
    os._exit(code)
