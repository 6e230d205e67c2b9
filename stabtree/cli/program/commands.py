"""The program's commands: the core's, and those that tools add.

A command's module is imported when it is run or completed, so that none makes the others start slower. What its help
ends with is its module's `EPILOG`.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from stabtree.cli.program.expand import expanded
from stabtree.cli.program.routes import ASK
from stabtree.cli.program.typed import TypedCommand, TypedGroup
from stabtree.common import extensions

if TYPE_CHECKING:
    from collections.abc import Mapping

CORE, TOOLS = "Commands", "Tools"
"""The groups of the help."""

COMMANDS = {
    "diagnose": ("stabtree.cli.diagnose:diagnose", "Find what went wrong in a run; `stabtree PATH` is enough."),
    "explain": ("stabtree.cli.explain:explain", "Explain a question, a finding or a metric."),
    "inspect": ("stabtree.cli.inspect:inspect", "Show how a run's files are read."),
    "tree": ("stabtree.cli.tree:tree_app", "List, show, draw, check and test decision trees."),
    "demo": ("stabtree.cli.demo:demo", "Diagnose a failed run that comes with stabtree."),
    "info": ("stabtree.cli.info:info_app", "Show formats, settings, the JSON schema, shell completion."),
}
"""The core's commands, by name: the address of the function, and its line in the list of commands."""

HIDDEN = {
    "formats": "stabtree.cli.info:formats",
    "config": "stabtree.cli.config:config",
    "schema": "stabtree.cli.info:schema",
    "completion": "stabtree.cli.program.completion:completion",
    ASK: "stabtree.cli.program.completion:complete",
}
"""Commands that no help lists: old names of those of `stabtree info`, and what a shell asks."""


class CommandEntry(NamedTuple):
    """A command as the tables list it; one without a help is hidden."""

    address: str
    help: str
    group: str = CORE

    def load(self) -> Any:
        """Import its function, or the group of its commands."""
        return extensions.load(self.address)

    @property
    def epilog(self) -> str | None:
        """What its help ends with."""
        target = self.load()
        return None if isinstance(target, typer.Typer) else getattr(sys.modules[target.__module__], "EPILOG", None)


@cache
def commands() -> Mapping[str, CommandEntry]:
    """Return all commands, in the order of the help."""
    core = {name: CommandEntry(*entry) for name, entry in COMMANDS.items()}
    added = extensions.table("COMMANDS")
    tools = {name: CommandEntry(address, line, TOOLS) for name, (address, line) in added.items()}
    return {**core, **tools, **{name: CommandEntry(address, "") for name, address in HIDDEN.items()}}


class Program(TypedGroup):
    """The program as a group of commands that are made at their first use."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, if there is one."""
        if cmd_name in commands() and cmd_name not in self.commands:
            self.commands[cmd_name] = _made(cmd_name, commands()[cmd_name])
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's own signature
        """List the names of the commands that are not hidden."""
        return [name for name, entry in commands().items() if entry.help]

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the commands that begin so; Typer would import them all to ask whether they are hidden."""
        from typer._click.shell_completion import CompletionItem

        names = [*self.list_commands(ctx), "help"]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in their groups; the line of the usage names the options."""
        listed = {name: commands()[name] for name in self.list_commands(ctx)}
        for group in (CORE, TOOLS):
            rows = [(name, entry.help) for name, entry in listed.items() if entry.group == group]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def _made(name: str, entry: CommandEntry) -> Any:
    target = entry.load()
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(target, typer.Typer):
        app.add_typer(target, name=name, help=entry.help)
    else:
        command = app.command(name, cls=TypedCommand, short_help=entry.help, epilog=entry.epilog, hidden=not entry.help)
        command(expanded(target))
    return typer.main.get_group(app).commands[name]
