"""`stabtree info`: formats that are read, settings, the schema of the JSON, completion for a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stabtree.cli.config import config
from stabtree.cli.program.completion import completion
from stabtree.cli.program.expand import expanded
from stabtree.cli.program.typed import TypedCommand, TypedGroup
from stabtree.cli.shell.printing import emit

if TYPE_CHECKING:
    from collections.abc import Callable

info_app = typer.Typer(cls=TypedGroup, no_args_is_help=True, rich_markup_mode=None)


def formats() -> None:
    """List the log formats that stabtree reads, by the names that --format takes."""
    from stabtree.loaders import LOADERS

    column = max(len(loader.name) for loader in LOADERS) + 2
    emit("\n".join(f"{loader.name:<{column}}{loader.about}" for loader in LOADERS))


def schema() -> None:
    """Print the JSON Schema of `diagnose --json` (one run, several runs, errors) and of the lines of `watch --json`."""
    import json

    from stabtree.report.contract import schema as contract

    emit(json.dumps(contract(), indent=1))


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "formats": (formats, "List the log formats that stabtree reads."),
    "config": (config, "Show the effective settings."),
    "schema": (schema, "Print the JSON Schema of --json."),
    "completion": (completion, "Print the completion for bash, zsh or fish."),
}
for _name, (_command, _help) in COMMANDS.items():
    info_app.command(_name, cls=TypedCommand, short_help=_help)(expanded(_command))
