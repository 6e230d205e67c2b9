"""The reference of the command line: a page for each command, made of what its own `--help` is made of."""

from __future__ import annotations

import inspect
import re
from enum import StrEnum
from pathlib import Path
from textwrap import dedent
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer

from docs.site.markup import ACTIVE, code
from docs.site.pages import DOCS
from stabtree.cli import app
from stabtree.cli.program import GROUPS, Program, argument_name, commands

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = "commands"
AS_CODE = re.compile(r"`([^`]+)`|(?<![\w-])(--[a-z][\w-]*)")
NOTED = re.compile(r"\.? *\[(required|default: [^\]]+)\]")
CODE = re.compile(r"^  (\d+)  (.+)$", re.MULTILINE)
HOLDS = {int: "A whole number", float: "A number", Path: "A path"}


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    program = root()
    names = program.list_commands(program.make_context("stabtree", [], resilient_parsing=True))
    made = {f"{FOLDER}/{name}.md": _page(name) for name in names}
    return {f"{FOLDER}/index.md": _index(names), **made}


def root() -> Program:
    """The program, as the shell starts it."""
    program = typer.main.get_command(app)
    if not isinstance(program, Program):
        raise TypeError(program)
    return program


def command_of(*words: str) -> tuple[Any, Any]:
    """A command and a context in which it can be asked for its usage."""
    command, context = root(), typer.Context(root(), info_name="stabtree")
    for word in words:
        command = command.get_command(context, word)
        context = typer.Context(command, info_name=word, parent=context)
    return command, context


def exit_codes(epilog: str | None) -> dict[str, str]:
    """What each exit code means, as a command's help says it; empty where it says nothing of them."""
    return dict(CODE.findall(dedent(epilog or "").replace("\b", "")))


def prose(plain: str) -> str:
    """Text of a help as Markdown: what stands in ticks, and an option, is code; nothing else is markup."""
    told, end, line = "", 0, " ".join(plain.split())
    for found in AS_CODE.finditer(line):
        told += ACTIVE.sub(r"\\\1", line[end : found.start()]) + code(found[1] or found[2])
        end = found.end()
    return told + ACTIVE.sub(r"\\\1", line[end:])


def _index(names: list[str]) -> str:
    lines = "\n".join(f"| [{code(f'stabtree {name}')}]({name}.md) | {prose(commands()[name].help)} |" for name in names)
    about = prose(str(root().epilog))
    listed = "\n".join(names)
    return f"""# Commands

{about} `--debug` with any of them shows where stabtree itself failed, `stabtree --version` prints the
version. What the exit codes mean: [Exit codes](../reference/exit-codes.md).

| command | what it does |
|---|---|
{lines}

```{{toctree}}
:hidden:
{listed}
```
"""


def _page(name: str) -> str:
    command, context = command_of(name)
    told = [f"# {code(f'stabtree {name}')}", *_described(command, context, name, 2)]
    inner = command.list_commands(context) if hasattr(command, "list_commands") else []
    for each in inner:
        part, within = command_of(name, each)
        told += [f"## {code(f'stabtree {name} {each}')}", *_described(part, within, f"{name}-{each}", 3)]
    guide = DOCS / "how-to" / f"{name}.md"
    if guide.exists():
        title = guide.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        told.append(f"More: [{title}](../how-to/{name}.md)")
    return "\n\n".join(told) + "\n"


def _described(command: Any, context: Any, name: str, depth: int) -> list[str]:
    """Usage, what it does, options in the groups of its help, examples, exit codes."""
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    paragraphs = [prose(part) for part in str(command.help or "").split("\n\n") if part.strip()]
    told = [*paragraphs[:1], f"```text\n{usage}\n```", *paragraphs[1:], *_epilog(command.epilog)]
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    hints = _hints(command.callback) if command.callback else {}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        argument = param.param_type_name == "argument"
        if record and (argument or param.opts[-1] != "--help"):
            group = GROUPS[0] if argument else getattr(param, "rich_help_panel", None) or GROUPS[-1]
            groups[group].append(_option(param, record, hints.get(param.name), name))
    for group, options in groups.items():
        if options:
            told += [f"{'#' * depth} {group}", ":::{div} options", *options, ":::"]
    return told


def _hints(callback: Callable[..., Any]) -> dict[str, Any]:
    """The type of each option, without how it is declared."""
    found = {}
    for parameter in inspect.signature(callback, eval_str=True).parameters.values():
        declared = get_origin(parameter.annotation) is Annotated
        found[parameter.name] = get_args(parameter.annotation)[0] if declared else parameter.annotation
    return found


def _option(param: Any, record: tuple[str, str], hint: Any, command: str) -> str:
    """An option as a term with its description, under an address of its own."""
    spelled, about = record
    if param.param_type_name == "argument":
        spelled = argument_name(param)
    about = NOTED.sub(lambda note: f". {note[1].capitalize()}", about).replace("..", ".")
    told = " ".join(f"{word.removesuffix('.')}." for word in (about, *_holds(hint, about)) if word)
    anchor = f"{command}-{max(param.opts, key=len).lstrip('-').replace('_', '-')}".lower()
    return f"[{code(spelled)}]{{#{anchor}}}\n: {prose(told)}"


def _holds(hint: Any, about: str) -> list[str]:
    """What an option's text must be, where that is more than a text, and whether it may be given more than once."""
    members = [member for member in get_args(hint) if member is not NoneType]
    one = members[0] if len(members) == 1 else hint
    many = hint is not None and "list[" in str(hint) and "several" not in about and "..." not in about
    words = isinstance(one, type) and issubclass(one, StrEnum)
    held = f"One of {', '.join(one)}" if words else HOLDS.get(one, "") if isinstance(one, type) else ""
    return [*filter(None, [held, "May be given several times" if many else ""])]


def _epilog(epilog: str | None) -> list[str]:
    """Examples as a block, exit codes as a table, any other paragraph as it is."""
    told = []
    for part in dedent(epilog or "").replace("\b\n", "").strip("\n").split("\n\n"):
        title, _, rest = part.partition("\n")
        if title == "Examples:":
            told.append(f"Examples:\n\n```text\n{dedent(rest)}\n```")
        elif codes := exit_codes(part):
            rows = "\n".join(f"| {number} | {prose(meaning)} |" for number, meaning in codes.items())
            told.append(f"| exit code | meaning |\n|---|---|\n{rows}")
        elif part.strip():
            told.append(prose(part))
    return told
