"""The command line. Only this package prints, reads the environment or exits."""

from __future__ import annotations

import gc
import os
import sys

import typer

from stabtree.cli.command import TextCommand, TextGroup
from stabtree.cli.diagnose import diagnose
from stabtree.cli.explain import explain
from stabtree.cli.inspect import inspect
from stabtree.cli.tree import tree_app
from stabtree.errors import StabtreeError
from stabtree.text import clean

app = typer.Typer(
    name="stabtree",
    cls=TextGroup,
    help="Tells what went wrong in a training run, from the logs it left behind.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(cls=TextCommand)(diagnose)
app.command(cls=TextCommand)(explain)
app.command(cls=TextCommand)(inspect)
app.add_typer(tree_app, name="tree")


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop.", is_eager=True),
) -> None:
    if version:
        from stabtree import __version__

        sys.stdout.write(f"stabtree {__version__}\n")
        raise typer.Exit


def main() -> None:
    """Run the command line: a user's mistake ends in two lines and exit code 2, a bug of ours in a traceback."""
    try:
        app()
    except StabtreeError as error:
        place = f"{clean(error.where)}: " if error.where else ""
        # A tree's mistakes are a line each; whatever a file or an option put into one is made safe to print.
        problem = "\n".join(
            f"{'  ' if n else ''}{clean(line, 500)}" for n, line in enumerate(error.problem.split("\n"))
        )
        _complain(f"error: {place}{problem}\n" + (f" next: {clean(error.hint, 500)}\n" if error.hint else ""))
        sys.exit(2)
    except BrokenPipeError:
        # The reader has gone (`| head`): keep the interpreter from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _complain(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)


def entry() -> None:
    """The console script: `main` as a process of its own, without the cost of being long-lived.

    Collecting garbage while importing, and taking pandas apart at the end, cost a quarter of a short command.
    """
    gc.disable()
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    else:
        code = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            code = code or 2
    os._exit(code)
