"""From the paths that a user names to tables: folders, manifests, and the loader for each file."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.errors import StabtreeError
from stabtree.loaders import beside, delimited, folders, jsonfile, jsonl, manifest, parquet, runs, trainer_state
from stabtree.loaders.folder import pick_file
from stabtree.loaders.source import Source, open_source
from stabtree.loaders.summary import check_source
from stabtree.run import Setting
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stabtree.loaders.table import Select, Table
    from stabtree.run import ConfigScalar


@dataclass(frozen=True, slots=True)
class Loader:
    """One format.

    Attributes:
        name: what `--format` calls it.
        sniff: how surely a source is of this format, 0 (not at all) to 100; the highest wins.
        read: the table of a source, with the columns that are wanted; several for several runs.
        about: for the list of formats.
        folder: the tables of a run's folder as this kind of trainer lays it out; none for another kind of folder.
    """

    name: str
    sniff: Callable[[Source], int]
    read: Callable[[Source, Select], Table | tuple[Table, ...]]
    about: str
    folder: Callable[[Path, Select], tuple[Table, ...]] | None = None


LOADERS: tuple[Loader, ...] = (
    Loader("manifest", manifest.sniff, manifest.read, "manifest.json with metrics inside or beside it"),
    Loader("trainer_state", trainer_state.sniff, trainer_state.read, "trainer_state.json", folder=trainer_state.folder),
    Loader("json", jsonfile.sniff, jsonfile.read, "JSON arrays of records and objects of columns"),
    Loader("jsonl", jsonl.sniff, jsonl.read, "JSON lines", folder=folders.mmengine),
    Loader("csv", delimited.sniff, delimited.read, "CSV, TSV and the like", folder=folders.lightning),
    Loader("parquet", parquet.sniff, parquet.read, "Parquet and Feather"),
)
LISTED = 8
_PACKINGS = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True, slots=True)
class Found:
    """What the paths hold.

    Attributes:
        name: what to call the run if its configuration has no name.
        tables: one for each metrics file.
        settings: the configuration, with its sources.
        notes: what was assumed.
    """

    name: str
    tables: tuple[Table, ...]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_files(paths: Sequence[str | Path], select: Select, format_: str | None, run: str | None = None) -> Found:
    """Read every path; of one that holds several runs, the run that is named.

    Raises:
        StabtreeError: where one can't be read as metrics, or holds several runs and none was named.
    """
    forced = _by_name(format_) if format_ else None
    parts = [_one_run(_read_path(path, select, forced), clean(path), run) for path in paths]
    settings = {key: setting for part in reversed(parts) for key, setting in part.settings.items()}
    return Found(
        name=parts[0].name,
        tables=tuple(table for part in parts for table in part.tables),
        settings=settings,
        notes=tuple(note for part in parts for note in part.notes),
    )


def _one_run(found: Found, path: str, wanted: str | None) -> Found:
    """The tables of one run.

    Raises:
        StabtreeError: where there are several runs and none was named, or the named one is not there.
    """
    names = list(dict.fromkeys(table.run for table in found.tables))
    if wanted is None and len(names) == 1:
        return found
    if wanted not in names:
        shown = ", ".join(clean(name, 60) for name in names[:LISTED])
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        close = difflib.get_close_matches(wanted or "", names, n=1)
        raise StabtreeError(
            f"holds {len(names)} runs: {shown}{more}" if names != [""] else "holds one run, which has no name",
            where=path,
            hint="leave --run out" if names == [""] else f"name one: --run {clean(close[0] if close else names[0])!r}",
        )
    tables = tuple(table for table in found.tables if table.run == wanted)
    settings = {**found.settings, **_merged(tables, path)}
    return replace(found, name=clean(wanted, 80), tables=tables, settings=settings)


def _by_name(name: str) -> Loader:
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


def _read_path(path: str | Path, select: Select, forced: Loader | None) -> Found:
    skipped: tuple[str, ...] = ()
    if str(path) != "-" and _is_folder(Path(path)):
        tables = _read_folder(Path(path), select, forced)
        if tables:
            found = _of_tables(clean(Path(path).absolute().name, 80), tables, clean(path))
            settings, notes = beside.settings_in(Path(path))
            return replace(found, settings={**settings, **found.settings}, notes=notes)
        path, skipped = pick_file(Path(path), _best_score)
    source = open_source(path)
    loader = forced or choose(source)
    if loader.name == "manifest":
        return _read_manifest(source, loader, select)
    found = _of_tables(_stem(source), _tables(loader, source, select), source.name)
    settings, notes = beside.settings_of(source.file) if source.file else ({}, ())
    return replace(found, settings={**settings, **found.settings}, notes=(*skipped, *notes))


def _tables(loader: Loader, source: Source, select: Select) -> tuple[Table, ...]:
    tables = loader.read(source, runs.wanted(select))
    return tuple(part for table in (tables if isinstance(tables, tuple) else (tables,)) for part in runs.split(table))


def _read_folder(folder: Path, select: Select, forced: Loader | None) -> tuple[Table, ...]:
    """The tables of a folder of a kind that some loader knows; none where a manifest says what to read."""
    if any((folder / name).is_file() for name in manifest.NAMES):
        return ()
    for loader in (forced,) if forced else LOADERS:
        if loader.folder and (tables := loader.folder(folder, select)):
            return tables
    return ()


def _of_tables(name: str, tables: tuple[Table, ...], where: str) -> Found:
    """Several runs keep their configurations apart until one is named."""
    several = len({table.run for table in tables}) > 1
    return Found(name, tables, {} if several else _merged(tables, where))


def _merged(tables: Sequence[Table], where: str) -> dict[str, Setting]:
    """The configuration that the tables of one run hold; the first that has a setting counts."""
    return {
        key: setting
        for table in reversed(tables)
        for key, setting in _settings(table.config, table.config_from or where).items()
    }


def _best_score(source: Source) -> int:
    return max(loader.sniff(source) for loader in LOADERS)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # A name that is too long, or a folder that may not be entered: opening it says what is wrong.
        return False


def choose(source: Source) -> Loader:
    """The loader that recognises a source best.

    Raises:
        StabtreeError: where none does.
    """
    check_source(source)
    scores = [(loader.sniff(source), loader) for loader in LOADERS]
    score, loader = max(scores, key=lambda item: item[0])
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


def _settings(config: Mapping[str, ConfigScalar], source: str) -> dict[str, Setting]:
    return {key: Setting(value, source) for key, value in config.items()}


def _read_manifest(source: Source, loader: Loader, select: Select) -> Found:
    content = manifest.parse(source)
    settings = _settings(content.config, source.name)
    if not content.files:
        found = _of_tables(_stem(source), _tables(loader, source, select), source.name)
        return replace(found, settings={**found.settings, **settings})
    tables: list[Table] = []
    for file in content.files:
        inner = open_source(file)
        read = _of_tables(inner.name, _tables(choose_metrics(inner), inner, select), inner.name)
        settings = {**read.settings, **settings}
        tables += read.tables
    return Found(_stem(source), tuple(tables), settings, content.notes)


def choose_metrics(source: Source) -> Loader:
    """The loader of a file that a manifest names, which can't be a manifest that names others.

    Raises:
        StabtreeError: where it is, or no loader knows it.
    """
    loader = choose(source)
    if loader.name == "manifest" and manifest.parse(source).files:
        raise StabtreeError(
            "is a manifest that another manifest names", where=source.path, hint="name the metrics file"
        )
    return loader


def _stem(source: Source) -> str:
    """What to call a run that has no name: its file without endings."""
    if source.file is None:
        return "stdin"
    stem = source.file.name
    while Path(stem).suffix.lower() in _PACKINGS:
        stem = Path(stem).stem
    stem = clean(Path(stem).stem, 80)
    folder = clean(source.file.absolute().parent.name, 80)
    # `metrics` and `manifest` say nothing; the folder they lie in usually names the run.
    return (
        folder if stem.lower() in ("metrics", "manifest", "log", "progress", "history", "results") and folder else stem
    )
