"""The options that several commands share, and how a command prints and fails."""

from __future__ import annotations

import os
import select
import shutil
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from stabtree.errors import StabtreeError
from stabtree.text import to_ascii

if TYPE_CHECKING:
    from stabtree.cli.config import Settings

Paths = Annotated[
    list[str],
    typer.Argument(
        help="Metrics files, manifests, folders of runs, patterns; each is a run of its own; - reads standard input."
    ),
]
ColumnOpt = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="METRIC=NAME", help="Read METRIC from column NAME, as in loss=train/nll."),
]
StepColumn = Annotated[
    str | None, typer.Option("--step-column", metavar="NAME", help="The column that holds the steps.")
]
Dtype = Annotated[
    str | None, typer.Option("--dtype", metavar="TYPE", help="What the run trained in: fp32, fp16, bf16 or fp8.")
]
CheckpointEvery = Annotated[
    int | None, typer.Option("--checkpoint-every", metavar="STEPS", help="Steps between two checkpoints.")
]
Checkpoints = Annotated[
    Path | None, typer.Option("--checkpoints", metavar="DIR", help="Where the run's checkpoints lie.")
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="The file's format, if it is recognised wrongly.")
]
RunName = Annotated[
    str | None, typer.Option("--run", metavar="NAME", help="Which run, if a file or folder holds several.")
]
Ranks = Annotated[
    bool, typer.Option("--ranks", help="The paths are ranks or parts of one run, even if nothing in them shows it.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
TreeOpt = Annotated[
    str | None, typer.Option("--tree", metavar="NAME|FILE", help="A tree that ships with stabtree, or a YAML file.")
]
ConfigOpt = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A file of settings, instead of stabtree.toml or pyproject.toml of the working directory.",
    ),
]


def pairs(items: list[str] | None, option: str, example: str) -> dict[str, str]:
    """Split `KEY=VALUE` options.

    Raises:
        StabtreeError: where the equals sign or the key is missing.
    """
    found: dict[str, str] = {}
    for item in items or []:
        key, equals, value = item.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise StabtreeError(f"{item!r} is not of the form KEY=VALUE", where=option, hint=f"type {option} {example}")
        if key.strip() in found:
            raise StabtreeError(f"{key.strip()!r} is given twice", where=option, hint="leave one of them out")
        found[key.strip()] = value.strip()
    return found


def reading(
    column: list[str] | None,
    step_column: str | None,
    dtype: str | None,
    checkpoint_every: int | None,
    format_: str | None,
    run: str | None,
    settings: Settings,
    checkpoints: Path | None = None,
) -> dict[str, Any]:
    """How a log is read, as the command line says and else the project: the options of `stabtree.loaders.load_run`.

    Raises:
        StabtreeError: where one is not of its form.
    """
    return {
        "dtype": dtype,
        "checkpoint_every": checkpoint_every,
        "columns": {**settings.column, **pairs(column, "--column", "loss=train/nll")},
        "step_column": step_column or settings.step_column or None,
        "format": format_,
        "run": run,
        "checkpoints": checkpoints,
    }


def screen() -> tuple[int, bool]:
    """Width in columns and whether to colour: what the terminal has, else 100 columns without colour."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    color = (terminal and os.environ.get("TERM") != "dumb") or bool(os.environ.get("FORCE_COLOR"))
    width = shutil.get_terminal_size((100, 24)).columns
    return max(40, min(width, 160)), color and not os.environ.get("NO_COLOR")


def emit(text: str) -> None:
    """Print a result to standard output, replacing what its encoding can't carry.

    Raises:
        StabtreeError: where it can't be written to its end.
    """
    if sys.stdout is None:
        raise StabtreeError("standard output is closed", hint="redirect it to a file")
    encoding = sys.stdout.encoding or "utf-8"
    text = text if text.endswith("\n") else f"{text}\n"
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError:
        data = "".join(f"{to_ascii(line)}\n" for line in text.splitlines()).encode(encoding, "replace")
    try:
        sys.stdout.flush()
        stored = getattr(sys.stdout, "buffer", None)
        if stored is None:  # a stream of text alone, such as io.StringIO
            sys.stdout.write(data.decode(encoding))
        else:
            _write_whole(getattr(stored, "raw", stored), data)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StabtreeError(f"the output can't be written: {reason}", hint="redirect it elsewhere") from None


def _write_whole(stream: IO[bytes], data: bytes) -> None:
    """Write to the last byte: a file without a buffer takes what fits at once, one that does not block maybe none."""
    rest = memoryview(data)
    while rest:
        count: int | None = stream.write(rest)
        if count is None:
            select.select([], [stream], [])
        else:
            rest = rest[count:]
