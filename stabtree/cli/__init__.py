"""The command line. Only this package prints, reads the environment or exits."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import traceback
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import typer

from stabtree.cli.program import HELP, Program, commands, convert_without_pydantic, routed
from stabtree.cli.terminal import emit, notify, screen
from stabtree.common.errors import FAULTS, OUR_FAULT, UNUSABLE, StabtreeError, too_little_memory
from stabtree.common.text import clean, hide, masked, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMPLETE = "_STABTREE_COMPLETE"
"""The variable in which a shell asks Typer what fits in place of the last word."""

app = typer.Typer(
    name="stabtree",
    cls=Program,
    help="Find out what went wrong in a training run, from its logs.",
    options_metavar="[-h | --help] [-V | --version]",
    subcommand_metavar="COMMAND | PATH ...",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": list(HELP)},
    epilog="`stabtree --install-completion` sets up completion, `stabtree help COMMAND` shows a command's options.",
)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", "-V", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        from stabtree._version import __version__

        emit(f"stabtree {__version__}")
        raise typer.Exit


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, without exiting or changing anything of the process.

    A user's mistake ends in two lines on standard error and code 2, with `--json` also in an object on standard output;
    a bug of ours in two lines and code 4, with `--debug` in its traceback. A bug in one question fails that question
    alone, and `--debug` prints its traceback.

    Args:
        argv: what is typed after the program's name; `sys.argv[1:]` when not given.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    hide([*words, *(value for value in os.environ.values() if "://" in value)])  # that of a proxy may hold a password
    if any(":" in word for word in words):  # an address, whose service is given the keys of the environment
        hide(f"?{name}={value}" for name, value in os.environ.items() if name.endswith(("KEY", "TOKEN", "PASSWORD")))
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        words, command = routed(words, commands()), _program()
        # Not `app()`, nor the command's own `main`: both exit, and change `sys.excepthook` or `sys.stdout`.
        with _tracebacks() if debug else nullcontext(), command.make_context("stabtree", words) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:  # `--install-completion`
        return int(stop.code or 0)
    except (Exception, KeyboardInterrupt) as error:
        return _code_of(error, words, debug=debug)
    return 0


@contextmanager
def _tracebacks() -> Iterator[None]:
    """Print the traceback of each question that fails to standard error."""
    import logging

    def shown(record: logging.LogRecord) -> bool:
        notify(logging.Formatter().format(record))
        return False

    logger = logging.getLogger(FAULTS)
    level = logger.level
    logger.addFilter(shown)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeFilter(shown)
        logger.setLevel(level)


def _wants_json(words: Sequence[str]) -> bool:
    """Return whether a command is to write JSON on standard output."""
    return bool({"--json", "--output=json"} & {*words} or {("--output", "json"), ("-o", "json")} & {*pairwise(words)})


def _code_of(error: BaseException, words: Sequence[str], *, debug: bool) -> int:
    """Return the exit code for what stopped a command, after its two lines on standard error."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    if isinstance(error, BrokenPipeError):  # the reader has gone (`| head`)
        return 141
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # Typer does not know of a full disk
        error = StabtreeError(f"the output can't be written: {error.strerror}", hint="redirect it elsewhere")
    if isinstance(error, MemoryError):
        error = too_little_memory(next(filter(os.path.exists, reversed(words)), ""))
    if isinstance(error, StabtreeError):
        notify(_message(error))
        if _wants_json(words):
            from stabtree.report.json import error as as_data
            from stabtree.report.json import written

            with suppress(StabtreeError, BrokenPipeError):  # standard error and the exit code have to do then
                emit(written(as_data(error), indent=None))
        return UNUSABLE
    if isinstance(error, typer.TyperException):
        notify(_usage_message(error))
        return UNUSABLE
    # A bug of ours must not read like a finding.
    problem = f"stabtree itself failed: {type(error).__name__}: {error}"
    hint = "report it with what --debug prints, and with the log if you can share it"
    notify(_message(StabtreeError(problem, hint=hint)))
    if debug:
        notify("".join(traceback.format_exception(error)))
    return OUR_FAULT


@cache
def _program() -> Program:
    program = typer.main.get_command(app)
    assert isinstance(program, Program)  # noqa: S101 - for the type checker: the app says so above
    convert_without_pydantic(program.params)
    return program


def _usage_message(error: typer.TyperException) -> str:
    """Return what is wrong with the words typed, in two lines; a group without a command shows its whole help."""
    text = error.format_message()
    if text.startswith("Usage: "):
        return f"{text}\n"
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "stabtree"
    problem = text[:1].lower() + text[1:].partition(" (Possible options")[0].removesuffix(".")
    problem = problem.replace(". Did you", "; did you")
    for close in list(getattr(error, "possibilities", None) or ())[:1]:
        problem = f"{problem}; did you mean {close}?"
    return _message(StabtreeError(problem, hint=f"type `{command} --help`"))


def _message(error: StabtreeError) -> str:
    """Return an error in its lines; what a file or an option put into it is made safe to print."""
    head = "".join(f"{part}: " for part in ("error", _safe(error.where, 200)) if part)
    lines: list[str] = []
    for index, line in enumerate(error.problem.split("\n")):  # a tree's mistakes are a line each
        lines.append(head + _safe(line))
        head = "  "
        if index in error.places:
            encoding = str(getattr(sys.stderr, "encoding", "utf"))
            lines += quoted(error.places[index], screen()[0], ascii="utf" not in encoding.lower())
    if error.hint:
        lines.append(f" next: {_safe(error.hint)}")
    return "".join(f"{line}\n" for line in lines)


def _safe(text: str, limit: int = 500) -> str:
    return clean(masked(text[: 8 * limit]), limit)


def entry() -> None:
    """Run `main` as the console script, without the cost of a long-lived process.

    Collecting garbage during imports, and taking pandas apart at the end, cost a quarter of a short command; the
    threads of a BLAS, which our few short vectors don't need, nearly as much as the rest of numpy.
    """
    gc.disable()
    if COMPLETE in os.environ:
        _program()(prog_name="stabtree")  # answers the shell, and exits
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:  # so that a scan ends its workers
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            code = code or 2
    os._exit(code)
