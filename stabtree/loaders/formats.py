"""The formats: one module each, and which of them reads a source."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from stabtree.common.errors import FAULTS, StabtreeError, too_little_memory
from stabtree.common.text import clean, near
from stabtree.loaders.source import NAME_METRICS, PRINT_METRICS, Source, Sure

if TYPE_CHECKING:
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

# Who reads what several know: the first of these that is so sure. No format knows another's rank.
RANKS: tuple[tuple[str, Sure], ...] = (
    ("parquet", Sure.SURELY),
    *((name, Sure.SURELY) for name in ("clearml", "comet", "sacred", "swanlab", "trackio", "visualdl")),
    ("spacy", Sure.SURELY),
    ("trainer_state", Sure.SURELY),
    ("manifest", Sure.SURELY),
    ("tfevents", Sure.SURELY),
    ("wandb", Sure.SURELY),
    ("manifest", Sure.LIKELY),  # one line that holds its metrics, or names them
    ("mlflow", Sure.SURELY),
    ("json", Sure.SURELY),
    ("json", Sure.LIKELY),
    ("mlflow", Sure.LIKELY),
    ("jsonl", Sure.SURELY),
    ("csv", Sure.SURELY),
    ("json", Sure.MAYBE),
    ("manifest", Sure.MAYBE),  # some object over several lines
    # Above here a file is plainly a table or JSON.
    ("tfevents", Sure.MAYBE),
    ("wandb", Sure.MAYBE),  # settings or final values, known to be refused
    ("text", Sure.SURELY),
    ("csv", Sure.LIKELY),
    ("text", Sure.LIKELY),
    ("csv", Sure.MAYBE),
    # Above here a file is picked out of a folder, where nobody named it.
    ("jsonl", Sure.HARDLY),  # one line, cut
    ("csv", Sure.HARDLY),  # no header, or nothing below it
    ("text", Sure.MAYBE),
    ("text", Sure.HARDLY),  # an error message and nothing else
)
PLAIN = RANKS.index(("tfevents", Sure.MAYBE))
PICKED = RANKS.index(("jsonl", Sure.HARDLY))
NOBODY = len(RANKS)
FIRST = {name: rank for rank, (name, _) in reversed([*enumerate(RANKS)])}  # the best rank that each can have
SEE_FORMATS = "`stabtree info formats` lists what it reads"
SHOWN = 60  # characters of a first line that nobody knows


class Loader(Struct, frozen=True):
    """One format, whose module has `sniff` (how surely a source is of it) and `read` (its table; several for runs).

    A module without `sniff` reads whatever begins as such a file does.
    """

    name: str  # what `--format` calls it
    module: str  # imported when it is first asked, which what is plainly a table or JSON never needs of a late one
    about: str  # for `stabtree info formats`
    late: bool = False  # whether it is asked after what reads plain tables and JSON
    begins: bytes = b""  # what the bytes of such a file begin with, so that its module is imported for no other file

    def sniff(self, source: Source, names: Names) -> Sure:
        """Return how surely a source is of this format."""
        if self.begins and not re.match(self.begins, source.data):
            return Sure.NO
        sure: Sure = self._call("sniff", source, names)
        return sure

    def read(self, source: Source, names: Names) -> tuple[Table, ...]:
        """Return the tables of a source, with the columns that are wanted."""
        tables = self._call("read", source, names)
        return tables if isinstance(tables, tuple) else (tables,)

    def _call(self, function: str, source: Source, names: Names) -> Any:
        """Call a function of the format's module. Where that fails, this file can't be read, and no other suffers."""
        module = import_module(f"stabtree.loaders.{self.module}")
        if function == "sniff" and not hasattr(module, "sniff"):
            return Sure.SURELY
        try:
            return getattr(module, function)(source, names)
        except StabtreeError:
            raise
        except MemoryError:
            raise too_little_memory(source.path) from None
        except Exception as error:
            import logging  # most runs have no fault

            logging.getLogger(FAULTS).debug("%s of %s failed", function, self.name, exc_info=error)
            if function == "sniff":
                return Sure.NO
            problem = f"can't be read: stabtree's reader of {self.name} failed ({clean(repr(error), 120)})"
            hint = "please report it, with the file if you can"
            raise StabtreeError(problem, where=source.path, hint=hint) from None


_DATABASE = b"SQLite format 3"
_SPACY = rb'\{"epoch":\d+,"step":\d+,"losses":|(?s:.{0,4000}?)(?m:^E +# +LOSS )'
LOADERS: tuple[Loader, ...] = (
    Loader("manifest", "json.manifest", "manifest.json with metrics inside or beside it"),
    Loader("trainer_state", "json.trainer_state", "trainer_state.json"),
    Loader("json", "json.document", "JSON arrays of records and objects of columns"),
    Loader("jsonl", "json.lines", "JSON lines"),
    Loader("csv", "tables.delimited", "CSV, TSV and the like"),
    Loader("parquet", "tables.parquet", "Parquet and Feather", late=True),
    Loader("tfevents", "tensorboard.loader", "TensorBoard event files", late=True),
    Loader("wandb", "trackers.wandb", "Weights & Biases run folders and .wandb files", late=True),
    Loader("mlflow", "trackers.mlflow", "MLflow run folders and SQLite databases", late=True),
    Loader("clearml", "trackers.clearml", "ClearML's offline sessions", begins=rb'PK\x03\x04|\[\{"t'),
    Loader("comet", "trackers.comet", "Comet's offline experiments", begins=rb'PK\x03\x04|\{"payload'),
    Loader("sacred", "trackers.sacred", "Sacred's metrics.json", begins=rb'\s*\{\s*"[^"]{1,300}":\s*\{\s*"steps":'),
    Loader("swanlab", "trackers.swanlab", "SwanLab databases and offline logs", begins=_DATABASE + b"|:SWL"),
    Loader("trackio", "trackers.trackio", "Trackio databases", begins=_DATABASE + rb'|\{\s*"project'),
    Loader("visualdl", "trackers.visualdl", "VisualDL records", begins=rb"[\x10-\x40]\x00{7}\n.\x12\x0dmeta_data_tag"),
    Loader("spacy", "trackers.spacy", "spaCy's log of training", begins=_SPACY),
    Loader("text", "text.loader", "the text that a trainer prints", late=True),
)


def by_name(name: str) -> Loader:
    """Return the loader of a name; where there is none, a StabtreeError is raised."""
    loaders = {loader.name: loader for loader in LOADERS}
    if name.lower() in loaders:
        return loaders[name.lower()]
    problem = f"{clean(name, 40)!r} is not a format{near(name, loaders)}"
    raise StabtreeError(problem, where="--format", hint=SEE_FORMATS)


def surest(source: Source, names: Names) -> tuple[int, Loader]:
    """Return the rank in `RANKS` of the loader that reads a source, `NOBODY` where none does, and that loader."""
    best = NOBODY, LOADERS[0]
    for loader in LOADERS:
        if (loader.late and best[0] < PLAIN) or best[0] < FIRST[loader.name]:
            continue  # however sure it is, another one comes before
        sure = loader.sniff(source, names)
        rank = RANKS.index((loader.name, sure)) if sure else NOBODY
        if rank < best[0]:
            best = rank, loader
    return best


def picked(source: Source, names: Names) -> Loader | None:
    """Return the loader that is sure enough of a source to pick it out of a folder."""
    rank, loader = surest(source, names)
    return loader if rank < PICKED else None


def choose(source: Source, names: Names) -> Loader:
    """Return the loader that reads a source; where none does, a StabtreeError is raised."""
    if source.name.lower().endswith((".yaml", ".yml")):
        problem, hint = "is a configuration, which holds no metrics", "name the metrics file beside it"
        raise StabtreeError(problem, where=source.path, hint=hint)
    rank, loader = surest(source, names)
    if rank < NOBODY:
        return loader
    raise _unknown(source, names)


def _unknown(source: Source, names: Names) -> StabtreeError:
    """Return the error of a source that no loader knows."""
    if source.cut:
        whole = f"the {len(source.data):,} bytes that can be decompressed are in no format that stabtree knows"
        return StabtreeError(f"is cut: {whole}", where=source.path, hint="copy it again from where it was written")
    if source.binary:
        problem, hint = f"is {source.binary}, which stabtree does not read", f"export it as CSV; {SEE_FORMATS}"
        return StabtreeError(problem, where=source.path, hint=hint)
    from stabtree.loaders.text.loader import hint as hint_of  # only a text log is known by the names in it

    first = clean(next((line for line in source.lines() if line.strip()), ""), SHOWN)
    problem = f"is in no format that stabtree knows; it begins with {first!r}"
    hint = hint_of(source, names) or f"{NAME_METRICS}, or print such lines: {PRINT_METRICS}; {SEE_FORMATS}"
    return StabtreeError(problem, where=source.path, hint=hint)
