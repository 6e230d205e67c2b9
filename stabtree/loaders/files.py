"""From the paths that a user names to tables: folders, manifests, and the loader for each file."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.errors import StabtreeError
from stabtree.loaders import delimited, jsonl, manifest, textlog
from stabtree.loaders.source import Source, open_source
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
    Loader("jsonl", jsonl.sniff, jsonl.read, "JSON lines"),
    Loader("csv", delimited.sniff, delimited.read, "CSV, TSV and the like"),
    Loader("text", textlog.sniff, textlog.read, "the text that a trainer prints"),
)
# A folder may hold a whole data set; this many files of it are looked at.
MAX_FILES = 500
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
    config = {key: value for table in reversed(tables) for key, value in _settings(table.config, path).items()}
    return replace(found, name=clean(wanted, 80), tables=tables, settings={**found.settings, **config})


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
    if str(path) != "-" and _is_folder(Path(path)):
        tables = _read_folder(Path(path), select, forced)
        if tables:
            return _of_tables(clean(Path(path).absolute().name, 80), tables, clean(path))
        path = pick_file(Path(path))
    source = open_source(path)
    loader = forced or choose(source)
    if loader.name == "manifest":
        return _read_manifest(source, loader, select)
    found = _of_tables(_stem(source), _tables(loader, source, select), source.name)
    beside, notes = _beside(source)
    return replace(found, settings={**beside, **found.settings}, notes=notes)


def _tables(loader: Loader, source: Source, select: Select) -> tuple[Table, ...]:
    tables = loader.read(source, select)
    return tables if isinstance(tables, tuple) else (tables,)


def _read_folder(folder: Path, select: Select, forced: Loader | None) -> tuple[Table, ...]:
    for loader in (forced,) if forced else LOADERS:
        if loader.folder and (tables := loader.folder(folder, select)):
            return tables
    return ()


def _of_tables(name: str, tables: tuple[Table, ...], where: str) -> Found:
    """Several runs keep their configurations apart until one is named."""
    several = len({table.run for table in tables}) > 1
    merged = {} if several else {key: value for table in reversed(tables) for key, value in table.config.items()}
    return Found(name, tables, _settings(merged, where))


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


def _beside(source: Source) -> tuple[dict[str, Setting], tuple[str, ...]]:
    """The configuration from a manifest in the same folder, if that manifest names this file."""
    if source.file is None:
        return {}, ()
    for name in manifest.NAMES[:1]:
        place = source.file.parent / name
        if place != source.file and place.is_file():
            try:
                content = manifest.parse(open_source(place))
                named = any(file.resolve() == source.file.resolve() for file in content.files)
            except (StabtreeError, OSError) as error:
                return {}, (f"{name} beside the file was not used: {clean(error, 160)}.",)
            if named:
                note = f"The configuration is from {name} beside the file."
                return _settings(content.config, name), (note, *content.notes)
    return {}, ()


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


def pick_file(folder: Path) -> Path:
    """The manifest of a run's folder, else its one metrics file.

    Raises:
        StabtreeError: where there is none, or more than one.
    """
    shown = clean(folder)
    try:
        files = sorted(entry for entry in folder.iterdir() if not entry.name.startswith(".") and entry.is_file())
    except OSError as error:
        raise StabtreeError(f"can't be read: {clean(error.strerror)}", where=shown, hint="check its rights") from None
    for name in manifest.NAMES:
        if folder / name in files:
            return folder / name
    candidates = [file for file in files[:MAX_FILES] if _readable(file)]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        names = ", ".join(clean(file.name, 60) for file in candidates[:8])
        more = f" and {len(candidates) - 8} more" if len(candidates) > 8 else ""
        raise StabtreeError(
            f"holds several files that may be metrics: {names}{more}",
            where=shown,
            hint=f"name the one you mean, such as {clean(candidates[0])}",
        )
    there = ", ".join(clean(file.name, 60) for file in files[:8]) or "nothing"
    raise StabtreeError(
        f"holds no file that stabtree can read, only {there}" if files else "holds no files",
        where=shown,
        hint="name the file that the trainer wrote its metrics to",
    )


def _readable(file: Path) -> bool:
    try:
        return max(loader.sniff(open_source(file)) for loader in LOADERS) >= 30
    except StabtreeError:
        return False
