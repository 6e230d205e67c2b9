"""`--help`: the options of a command in groups, by the `rich_help_panel` that each was declared with.

Typer groups them only when rich writes the help, and importing rich takes longer than all the rest of `--help`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

INPUT, JUDGING, OUTPUT = "Input", "Judging", "Output"
ARGUMENTS, OPTIONS = "Arguments", "Options"


def write_groups(params: Iterable[Any], context: Any, formatter: Any) -> None:
    """Write the arguments, the input, judging and output options, then all others."""
    groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (ARGUMENTS, INPUT, JUDGING, OUTPUT, OPTIONS)}
    for param in params:
        record = param.get_help_record(context)
        if record and param.param_type_name == "argument":
            groups[ARGUMENTS].append((argument_name(param), record[1]))
        elif record:
            groups[getattr(param, "rich_help_panel", None) or OPTIONS].append(record)
    for name, records in groups.items():
        if records:
            with formatter.section(name):
                formatter.write_dl(records)


def argument_name(param: Any) -> str:
    """Return an argument as it is typed, without the type that Typer adds."""
    name = str(param.metavar or param.name).upper()
    return f"{name}..." if param.nargs == -1 else name
