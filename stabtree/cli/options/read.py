"""The options that say how a log is read."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer
from msgspec import Struct

from stabtree.cli.options import values
from stabtree.cli.program.expand import option
from stabtree.cli.program.help import INPUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.judging.settings import Settings

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Metrics files, manifests, run folders or patterns, each a run of its own; - reads standard input.",
    ),
]
COLUMNS = ("column", "step_column", "dtype", "format", "config")
"""The options that all commands which read logs have."""


class ReadOptions(Struct, frozen=True):
    """How a log is read, as typed."""

    steps: Annotated[
        str | None, option(INPUT, "--steps A:B", "Judge only steps A to B; either may be left out, as in 500:.")
    ] = None
    column: Annotated[
        tuple[str, ...], option(INPUT, "--column METRIC=NAME", "Read METRIC from column NAME, as in loss=train/nll.")
    ] = ()
    step_column: Annotated[str | None, option(INPUT, "--step-column NAME", "The column that holds the steps.")] = None
    dtype: Annotated[
        str | None, option(INPUT, "--dtype TYPE", "Training precision: fp32, fp16, bf16 or fp8.", values.precisions)
    ] = None
    checkpoint_every: Annotated[int | None, option(INPUT, "--checkpoint-every STEPS", "Steps between checkpoints.")] = (
        None
    )
    checkpoints: Annotated[Path | None, option(INPUT, "--checkpoints DIR", "The folder of the run's checkpoints.")] = (
        None
    )
    format: Annotated[
        str | None,
        option(
            INPUT,
            "--format NAME",
            "The log's format, if it is detected wrongly: csv, jsonl, text, tfevents, ...",
            values.formats,
        ),
    ] = None
    run_name: Annotated[str | None, option(INPUT, "--run NAME", "Which run, if a file or folder holds several.")] = None
    ranks: Annotated[bool, option(INPUT, "--ranks", "Read the paths as ranks or parts of one run.")] = False
    rerun: Annotated[
        str | None, option(INPUT, "--rerun PATH", "Another run of the same training, to compare this one with.")
    ] = None
    config: Annotated[
        str | None,
        option(
            INPUT,
            "--config FILE",
            "Settings to use instead of stabtree.toml or pyproject.toml in the working directory.",
        ),
    ] = None


class LoadKeywords(TypedDict):
    """How a log is read, as `stabtree.loaders.load_run` takes it."""

    columns: Mapping[str, str]
    step_column: str | None
    checkpoint_every: int | None
    dtype: str | None
    format: str | None
    run: str | None
    checkpoints: Path | None


def reading(read: ReadOptions, settings: Settings) -> LoadKeywords:
    """Return how a log is read: as typed, else as the project's settings say.

    Raises:
        StabtreeError: where `--column` is malformed.
    """
    from stabtree.judging.overrides import pairs

    columns = pairs([*read.column], "--column", "loss=train/nll")
    given = settings.reading(columns, read.step_column, read.checkpoint_every)
    return LoadKeywords(
        columns=given["columns"],
        step_column=given["step_column"],
        checkpoint_every=given["checkpoint_every"],
        dtype=read.dtype,
        format=read.format,
        run=read.run_name,
        checkpoints=read.checkpoints,
    )
