"""SwanLab: the database of its local mode, whose values are in files beside it, and the log of its offline mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, stays_inside
from stabtree.loaders.binary import BYTES, FIXED64, RecordBlocks, integer, messages, parts, real, text
from stabtree.loaders.folder import entries, settings_file
from stabtree.loaders.json.lines import values
from stabtree.loaders.source import Sure, chunks, open_source
from stabtree.loaders.table import Skips
from stabtree.loaders.tables.collected import Collected
from stabtree.loaders.trackers.database import has_tables, is_database, journal, opened, records

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

MAGIC = b":SWL"
# Numbers of the fields in SwanLab's records: a run and its name, a scalar with its key, step and value.
RUN, NAME, SCALAR, KEY, STEP, VALUE, FLOAT = 10, 4, 13, 1, 2, 5, 1
HINT = "name the runs.swanlab in the folder swanlog, with the folders of the runs beside it"


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is a database or a log of SwanLab."""
    tables = {"tag": "folder", "experiment": "run_id"}
    return Sure.SURELY.when(source.data.startswith(MAGIC) or has_tables(source, tables))


def read(source: Source, names: Names, only: str = "") -> tuple[Table, ...]:
    """Read the runs of a database, or the one whose folder has a name, or the one of an offline log.

    Raises:
        StabtreeError: if it can't be read, or holds no values.
    """
    if not is_database(source):
        return (_offline(source, names),)
    with opened(source) as store:
        listed = [row for row in records(store, "experiment") if only in ("", row.get("run_id"))]
        tags = [tag for tag in records(store, "tag") if not tag.get("system")]
    top = source.file.parent if source.file else None
    tables = []
    for run in listed:
        name, folder = str(run.get("name")), str(run.get("run_id"))
        found, notes = Collected(), list(journal(source, "swanlab"))
        for tag in tags:
            own = f"{folder}/logs/{tag.get('folder')}"
            if tag.get("experiment_id") == run.get("id") and top and stays_inside(own) and "\0" not in own:
                _values(top / own, str(tag.get("name")), found, notes)
        if found.names and top:
            config, unread = settings_file(top / folder / "files" / "config.yaml")
            found.config = {"name": name, **config}
            table = found.table(source.path, "swanlab", names, notes=(*notes, *unread))
            tables.append(replace(table, run=name * (len(listed) > 1)))
    missing = len(listed) - len(tables)
    if tables and missing:
        note = f"Runs of the database whose values are not in the folders beside it: {missing:,}, not read."
        tables[0] = replace(tables[0], notes=(*tables[0].notes, note))
    if not tables:
        problem = "names the runs of SwanLab, whose values are not in the folders beside it"
        raise StabtreeError(problem, where=source.path, hint=HINT)
    return tuple(tables)


def _values(folder: Path, name: str, found: Collected, notes: list[str]) -> None:
    """Read the files of one series: 1000.log, 2000.log, named after the last step in them."""
    files = [file for file in entries(folder)[1] if file.endswith(".log")]
    skips = Skips()
    for file in sorted(files, key=lambda file: (len(file), file)):
        try:
            for row in values(open_source(folder / file).lines(), skips):
                if isinstance(row, dict) and isinstance(row.get("data"), int | float):
                    found.add(name, row.get("index"), row["data"])
        except StabtreeError as error:
            notes.append(f"Not read of {clean(name, 60)}: {clean(file, 40)} {clean(error.problem, 80)}.")
    notes += skips.notes(f"Lines of {clean(name, 60)} that are no JSON")


def _offline(source: Source, names: Names) -> Table:
    notes: list[str] = []
    blocks, found = RecordBlocks(), Collected()
    for data in blocks.records(chunks(source, notes)):
        try:
            for whole in messages(data, None, RUN):
                if name := parts(data, whole).get((NAME, BYTES)):
                    found.config["name"] = text(data, name)
            for whole in messages(data, None, SCALAR):
                own = parts(data, whole)
                for value in messages(data, whole, VALUE) if (KEY, BYTES) in own else ():
                    if number := parts(data, value).get((FLOAT, FIXED64)):
                        found.add(text(data, own[KEY, BYTES]), integer(own, STEP), real(data, number))
        except ValueError:
            blocks.damaged += 1
    return found.table(source.path, "swanlab, offline", names, notes=(*notes, *blocks.notes()))
