"""From typed words to the call of a command: what they mean, the table of commands, and how options are converted.

A command's module is imported when it is run, so that none makes the others start slower. What its help ends with is
its module's `EPILOG`.
"""

from __future__ import annotations

import inspect
import os
import sys
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from stabtree.cli.terminal import emit
from stabtree.common import extensions
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, docstring, near

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

CORE, TOOLS = "Commands", "Tools"
"""The groups of the help of the program."""
OTHERS = "Options"
GROUPS = ("Arguments", "Input", "Judging", "Output", OTHERS, "Expert")
"""The groups of the help of a command; an option names its own as `rich_help_panel`."""

COMMANDS = {
    "diagnose": ("stabtree.cli.diagnose:diagnose", "Find what went wrong in a run; `stabtree PATH` is enough."),
    "scan": ("stabtree.cli.diagnose:diagnose", "Diagnose all runs below folders: another name of `diagnose`."),
    "explain": ("stabtree.cli.explain:explain", "Explain a question, a finding or a metric."),
    "inspect": ("stabtree.cli.inspect:inspect", "Show how a run's files are read."),
    "tree": ("stabtree.cli.tree:tree_app", "List, show, check and test decision trees."),
    "demo": ("stabtree.cli.diagnose:demo", "Diagnose a failed run that comes with stabtree."),
    "info": ("stabtree.cli.inspect:info_app", "Show formats, settings, and the JSON schema."),
}
"""The core's commands, by name: the address of the function, and its line in the list of commands."""

USUAL = "diagnose"
HELP = ("-h", "--help")
ROOT_OPTIONS = (*HELP, "-V", "--version", "--install-completion", "--show-completion")
STDIN = "-"
PATTERN = "*?["
KINDS: dict[type, str] = {str: "text", int: "a whole number", float: "a number", Path: "a path"}
"""What an option's text may become, and what to call it where it can't."""


class CommandEntry(NamedTuple):
    """A command as the tables list it."""

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
    return core | {name: CommandEntry(address, line, TOOLS) for name, (address, line) in added.items()}


def routed(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return the words with the command they mean in front.

    A command wins over a file of its name. Words that begin with a path, or with an option that is not the
    program's own, are for `diagnose`; `help tree` is `tree --help`.

    Args:
        words: what is typed after the program's name.
        commands: the names of the commands.

    Raises:
        StabtreeError: where the first word is neither a command nor a path.
    """
    if not words or words[0] in commands or words[0] in ROOT_OPTIONS:
        return list(words)
    first = words[0]
    if first == "help":
        if not words[1:] or words[1] in commands:
            return [*words[1:], "--help"]
        return routed(words[1:], commands)
    # A path or an address, or what exists.
    looks_like_path = first == STDIN or any(char in first for char in ("/", ":", os.sep, ".", *PATTERN))
    if looks_like_path or first.startswith("-") or os.path.lexists(first):
        return [USUAL, *words]
    close = near(first, commands)
    hint = "`stabtree help` lists the commands; `stabtree PATH` diagnoses a log"
    if close:
        hint = f"type `stabtree {close.split(chr(39))[1]}`, or `stabtree help` for all commands"
    raise StabtreeError(f"no such command {clean(first, 60)!r}{close}", hint=hint)


class PlainCommand(TyperCommand):
    """A command whose help lists its options in groups, and is printed as any other result.

    Typer groups options only where rich writes the help, and importing rich takes longer than all the rest of `--help`.
    """

    def get_help_option(self, ctx: Any) -> Any:
        """Return what prints the help."""
        return _emitting(super().get_help_option(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options in their groups."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and param.param_type_name == "argument":
                groups[GROUPS[0]].append((argument_name(param), record[1]))
            elif record:
                groups[getattr(param, "rich_help_panel", None) or OTHERS].append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class PlainGroup(TyperGroup):
    """A group of commands, whose help is printed as any other result."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return what prints the help."""
        return _emitting(super().get_help_option(ctx))


class Program(PlainGroup):
    """The program as a group of commands that are made at their first use."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, if there is one."""
        if cmd_name in commands() and cmd_name not in self.commands:
            self.commands[cmd_name] = _made(cmd_name, commands()[cmd_name])
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's own signature
        """List the names of the commands."""
        return [*commands()]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the commands in their groups; the line of the usage names the options."""
        for group in (CORE, TOOLS):
            rows = [(name, entry.help) for name, entry in commands().items() if entry.group == group]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def argument_name(param: Any) -> str:
    """Return an argument as it is typed, without the type that Typer adds."""
    name = str(param.metavar or param.name).upper()
    return f"{name}..." if param.nargs == -1 else name


def _emitting(option: Any) -> Any:
    if option is not None and option.callback is not _show_help:
        option.callback = _show_help
        convert_without_pydantic([option])
    return option


def _show_help(context: typer.Context, _option: Any, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        emit(context.get_help())
        context.exit()


def _made(name: str, entry: CommandEntry) -> Any:
    from stabtree.cli.options import expanded

    target = entry.load()
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(target, typer.Typer):
        app.add_typer(target, name=name, help=entry.help, cls=PlainGroup)
    else:
        app.command(name, cls=PlainCommand, short_help=entry.help, epilog=entry.epilog)(expanded(target))
    command = typer.main.get_group(app).commands[name]
    for each in getattr(command, "commands", {name: command}).values():
        each.help = each.help or docstring(inspect.unwrap(each.callback))
        convert_without_pydantic(each.params)
    return command


def convert_without_pydantic(params: Iterable[Any]) -> None:
    """Let parameters convert what is typed themselves.

    Typer converts through pydantic, whose import alone takes as long as all that `explain` does. Text, numbers, paths
    and choices need no such help; any other type, and what is missing, goes the usual way.
    """
    for param in params:
        param.process_value = partial(_converted, param, param.process_value)


def _converted(param: Any, usual: Callable[..., Any], context: typer.Context, value: Any) -> Any:
    """Return the value of a parameter as the type that its function declares.

    Raises:
        StabtreeError: where it can't be that.
    """
    kind: Any = param.type_descriptor.annotation
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
    if value in (None, (), []) and not param.required:
        return value
    is_plain = isinstance(kind, type) and issubclass(kind, (*KINDS, StrEnum)) and kind is not bool
    if not value or param.callback or not is_plain:
        return usual(context, value)
    wanted = KINDS.get(kind) or f"one of {', '.join(map(str, param.type_descriptor.choices))}"
    if not isinstance(value, tuple | list):
        return _fitted(value, kind, wanted, param)
    return [_fitted(item, kind, wanted, param) for item in value]


def _fitted(value: Any, kind: type, wanted: str, param: Any) -> Any:
    if isinstance(value, kind):  # a default
        return value
    try:
        return kind(value)
    except ValueError:
        flags = [name for name in param.opts if name.startswith("-")]
        name = max(flags, key=len, default=argument_name(param).removesuffix("..."))
        problem, hint = f"{value!r} is not {wanted}", f"type {name} with {wanted}"
        raise StabtreeError(problem, where=name, hint=hint) from None
