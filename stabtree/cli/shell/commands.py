"""The program's commands: where each is at home, and what the help says of it.

A command's module is imported when it is run or completed, so that none makes the others start slower.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import typer

from stabtree.cli.shell.command import TypedCommand, TypedGroup
from stabtree.cli.shell.help import (
    ANONYMIZE_EPILOG,
    CHECK_EPILOG,
    COMPARE_EPILOG,
    DIAGNOSE_EPILOG,
    SCAN_EPILOG,
    WATCH_EPILOG,
)
from stabtree.cli.shell.routes import ASK


class Home(NamedTuple):
    """Where a command's function lies below `stabtree.cli`, and its line in the list of commands."""

    place: str
    help: str = ""
    epilog: str | None = None


COMMANDS = {
    "diagnose": Home("diagnose:diagnose", "Tell what went wrong in a run.", DIAGNOSE_EPILOG),
    "scan": Home("scan:scan", "Diagnose all runs below folders.", SCAN_EPILOG),
    "watch": Home("watch:watch", "Follow a growing log.", WATCH_EPILOG),
    "check": Home("check:check", "Check a configuration before its run.", CHECK_EPILOG),
    "demo": Home("shell.demo:demo", "Diagnose a failed run that comes with stabtree."),
    "compare": Home("compare:compare", "Tell where a run parts from good ones.", COMPARE_EPILOG),
    "calibrate": Home("calibrate:calibrate", "Set thresholds by your own healthy runs."),
    "explain": Home("explain:explain", "Explain a question, a finding or a metric."),
    "inspect": Home("inspect:inspect", "Show how a run's files are read."),
    "anonymize": Home("anonymize:anonymize", "Take names out of a log, to send it.", ANONYMIZE_EPILOG),
    "baseline": Home("baseline:baseline", "Accept what is found now, so that only new findings count."),
    "config": Home("config:config", "Show what is in force here, and where it is from."),
    "formats": Home("inspect:formats", "List the formats that are read."),
    "schema": Home("schema:schema", "Print the JSON Schema of --json."),
    "completion": Home("shell.completion:completion", "Print the completion for bash, zsh or fish."),
    ASK: Home("shell.completion:complete"),
    "tree": Home("tree:tree_app", "List, show, draw, check and test decision trees."),
}
"""By name, in the order of the help; one that the help says nothing of is hidden."""


class Program(TypedGroup):
    """The program as a group of commands that are made at their first use."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, if there is one."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _made(cmd_name, COMMANDS[cmd_name])
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's own signature
        """The names of the commands that are not hidden."""
        return [name for name, home in COMMANDS.items() if home.help]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])


def _made(name: str, home: Home) -> Any:
    module, _, attribute = home.place.partition(":")
    target = getattr(import_module(f"stabtree.cli.{module}"), attribute)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(target, typer.Typer):
        app.add_typer(target, name=name, help=home.help)
    else:
        command = app.command(name, cls=TypedCommand, short_help=home.help, epilog=home.epilog, hidden=not home.help)
        command(target)
    return typer.main.get_group(app).commands[name]
