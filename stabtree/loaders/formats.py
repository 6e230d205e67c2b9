"""The formats: one module each, and which of them knows a source."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stabtree.errors import StabtreeError
from stabtree.loaders.assemble.final_values import check_source
from stabtree.loaders.json import document as jsonfile
from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.json import manifest, trainer_state
from stabtree.loaders.paths import trainers as folders
from stabtree.loaders.source import Source, open_source
from stabtree.loaders.tables import delimited
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stabtree.loaders.table import Select, Table

PLAINLY = 60  # a score that no loader after the tables exceeds for a table or for JSON
LAST_OF_TABLES = "parquet"
SURE = 30  # a score from which on a file is taken for metrics when nobody named it


@dataclass(frozen=True, slots=True)
class Loader:
    """One format.

    Attributes:
        name: what `--format` calls it.
        sniff: how surely a source is of this format, 0 (not at all) to 100; the highest wins.
        read: the table of a source, with the columns that are wanted; several for several runs.
        about: for the list of formats.
        folder: the tables of a run's folder as this kind of trainer lays it out, of the run that is named if there are
            several; none for another kind of folder.
        deep: whether `folder` searches the folders below, so that metrics which lie in the folder itself come first.
    """

    name: str
    sniff: Callable[[Source], int]
    read: Callable[[Source, Select], Table | tuple[Table, ...]]
    about: str
    folder: Callable[[Path, Select, str | None], tuple[Table, ...]] | None = None
    deep: bool = False


def _in(module: str, function: str) -> Callable[..., Any]:
    """A function of a loader that is imported when it is first called: most files are tables."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(f"stabtree.loaders.{module}"), function)(*arguments)

    return call


def _of(module: str) -> tuple[Callable[[Source], int], Callable[[Source, Select], Any]]:
    return _in(module, "sniff"), _in(module, "read")


LOADERS: tuple[Loader, ...] = (
    Loader("manifest", manifest.sniff, manifest.read, "manifest.json with metrics inside or beside it"),
    Loader("trainer_state", trainer_state.sniff, trainer_state.read, "trainer_state.json", trainer_state.folder),
    Loader("json", jsonfile.sniff, jsonfile.read, "JSON arrays of records and objects of columns"),
    Loader("jsonl", jsonl.sniff, jsonl.read, "JSON lines", folders.mmengine),
    Loader("csv", delimited.sniff, delimited.read, "CSV, TSV and the like", folders.lightning),
    Loader("parquet", *_of("tables.parquet"), "Parquet and Feather"),
    Loader(
        "tfevents",
        *_of("tensorboard.loader"),
        "TensorBoard event files",
        _in("tensorboard.loader", "folder"),
        deep=True,
    ),
    Loader(
        "wandb",
        *_of("wandb.loader"),
        "Weights & Biases run folders and .wandb files",
        _in("wandb.loader", "folder"),
        deep=True,
    ),
    Loader(
        "mlflow",
        *_of("mlflow.loader"),
        "MLflow run folders and SQLite databases",
        _in("mlflow.loader", "folder"),
        deep=True,
    ),
    Loader("text", *_of("text.loader"), "the text that a trainer prints"),
)


def by_name(name: str) -> Loader:
    """The loader of a name.

    Raises:
        StabtreeError: where there is none.
    """
    for loader in LOADERS:
        if loader.name == name.lower():
            return loader
    names = [loader.name for loader in LOADERS]
    close = difflib.get_close_matches(name, names, n=1)
    raise StabtreeError(
        f"{clean(name, 40)!r} is no format",
        where="--format",
        hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(names)}",
    )


def surest(source: Source) -> tuple[int, Loader]:
    """The loader that recognises a source best, and its score; what is plainly a table or JSON goes no further."""
    best = (0, LOADERS[0])
    for loader in LOADERS:
        if loader.name == LAST_OF_TABLES and best[0] >= PLAINLY:
            break
        best = max(best, (loader.sniff(source), loader), key=lambda item: item[0])
    return best


def loader_of(file: Path) -> Loader | None:
    """The loader that is sure enough of a file to pick it out of a folder."""
    try:
        score, loader = surest(open_source(file))
    except StabtreeError:
        return None
    return loader if score >= SURE else None


def choose(source: Source) -> Loader:
    """The loader that recognises a source best.

    Raises:
        StabtreeError: where none does, or where it holds only final values.
    """
    check_source(source)
    score, loader = surest(source)
    if score:
        return loader
    known = ", ".join(loader.about for loader in LOADERS)
    if source.binary:
        raise StabtreeError(f"is {source.binary}; stabtree reads {known}", where=source.path, hint="export it as CSV")
    raise StabtreeError(
        f"is in no format that stabtree knows; it reads {known}",
        where=source.path,
        hint="if it is one of these, say which: --format NAME",
    )
