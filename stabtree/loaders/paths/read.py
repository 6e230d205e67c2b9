"""From the paths that a user names to tables: folders, manifests, and the loader for each file."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.errors import SeveralRunsError, StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.assemble.several_runs import split
from stabtree.loaders.folder import entries, made_up, settings_in
from stabtree.loaders.formats import LOADERS, Loader, by_name, choose
from stabtree.loaders.json import manifest
from stabtree.loaders.packed.unpack import unreadable
from stabtree.loaders.paths import trainer_output
from stabtree.loaders.paths.metrics_file import OTHERS, is_hollow, loader_of, pick_file
from stabtree.loaders.paths.printed_beside import ending_of
from stabtree.loaders.paths.settings_beside import settings_of
from stabtree.loaders.source import NAME_METRICS, Source, open_source
from stabtree.loaders.table import Asked
from stabtree.run import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar


LISTED = 8
# Of so many files one tells what kind of folder it is.
MAX_FILES = 100
MAX_WHOLE = 20
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


def read_files(
    paths: Sequence[str | Path], names: Names, format_: str | None, run: str | None, kept: dict[str, Found]
) -> Found:
    """Read every path; of one that holds several runs, the run that is named.

    Args:
        paths: of one run.
        names: what the columns mean.
        format_: the name of a loader, where the user said so.
        run: the run that is named.
        kept: what was read before, by path; what is read now is added.

    Raises:
        StabtreeError: where one can't be read as metrics, or holds several runs and none was named.
    """
    forced = by_name(format_) if format_ else None
    parts = [one_run(_read_once(str(path), names, forced, run, kept), clean(path), run) for path in paths]
    settings = {key: setting for part in reversed(parts) for key, setting in part.settings.items()}
    return Found(
        name=parts[0].name,
        tables=tuple(table for part in parts for table in part.tables),
        settings=settings,
        notes=tuple(note for part in parts for note in part.notes),
    )


def _read_once(path: str, names: Names, forced: Loader | None, run: str | None, kept: dict[str, Found]) -> Found:
    """All that a path holds, as it was read before; of a folder the run that is named, which may be read alone."""
    alone = run is not None and _is_folder(Path(path))
    if alone or path not in kept:
        found = _read_path(path, names, forced, run)
        if alone:
            return found
        kept[path] = found
    return kept[path]


def one_run(found: Found, path: str, wanted: str | None) -> Found:
    """The tables of one run.

    Raises:
        StabtreeError: where there are several runs and none was named, or the named one is not there.
    """
    runs = list(dict.fromkeys(table.run for table in found.tables))
    if wanted is None and len(runs) == 1:
        return found
    if wanted not in runs:
        shown = ", ".join(clean(name, 60) for name in runs[:LISTED])
        more = f" and {len(runs) - LISTED} more" if len(runs) > LISTED else ""
        close = difflib.get_close_matches(wanted or "", runs, n=1)
        raise SeveralRunsError(
            f"holds {len(runs)} runs: {shown}{more}" if runs != [""] else "holds one run, which has no name",
            where=path,
            hint="leave --run out" if runs == [""] else f"name one: --run {clean(close[0] if close else runs[0])!r}",
            names=() if wanted else tuple(runs),
        )
    tables = tuple(table for table in found.tables if table.run == wanted)
    settings = {**found.settings, **_merged(tables, path)}
    return replace(found, name=clean(wanted, 80), tables=tables, settings=settings)


def _read_path(path: str | Path, names: Names, forced: Loader | None, run: str | None) -> Found:
    skipped: tuple[str, ...] = ()
    folder: Path | None = None
    if str(path) == "":  # what a shell makes of a variable that is not set: not the working directory
        raise StabtreeError("an empty path names no log", hint=NAME_METRICS)
    if str(path) != "-" and _is_folder(Path(path)):
        if made_up(Path(path)):
            raise StabtreeError("is made up by the kernel, and holds no logs", where=clean(path), hint=NAME_METRICS)
        tables = _read_folder(Path(path), names, forced, run)
        if tables:
            tables = _with_ending(Path(path), tables, names)
            found = _of_tables(clean(Path(path).absolute().name, 80), tables, clean(path))
            settings, notes = settings_in(Path(path))
            return replace(found, settings={**settings, **found.settings}, notes=notes)
        folder = Path(path)
        path, skipped = pick_file(folder, names)
    source = open_source(path)
    loader = forced or choose(source, names)
    if loader.name == "manifest":
        return _read_manifest(source, loader, names)
    tables = _tables(loader, source, names)
    tables = _with_ending(folder, tables, names) if folder else tables
    found = _of_tables(_stem(source), tables, source.name)
    settings, notes = settings_of(source.file) if source.file else ({}, ())
    return replace(found, settings={**settings, **found.settings}, notes=(*skipped, *notes))


def _tables(loader: Loader, source: Source, names: Names) -> tuple[Table, ...]:
    return tuple(part for table in _read_any(loader, source, names) for part in split(table, names))


def _read_any(loader: Loader, source: Source, names: Names) -> tuple[Table, ...]:
    tables = loader.read(source, names)
    return tables if isinstance(tables, tuple) else (tables,)


def _read_folder(folder: Path, names: Names, forced: Loader | None, run: str | None) -> tuple[Table, ...]:
    """The tables of a folder of a kind that some loader knows; none where a manifest or plain metrics lie in it.

    Raises:
        StabtreeError: where it may not be looked at.
    """
    try:
        if not forced and any((folder / name).is_file() for name in manifest.NAMES):
            return ()
    except OSError as error:
        raise unreadable(error, clean(folder)) from None

    def read(file: Path) -> tuple[Table, ...]:
        source = open_source(file)
        return _read_any(choose(source, names), source, names)

    plain: bool | None = None
    for loader in (forced,) if forced else LOADERS:
        if loader.folder is None:
            continue
        if loader.deep and not forced:
            plain = _is_plain(folder, names) if plain is None else plain
            if plain:
                return ()
        asked = Asked(names, run, read)
        if tables := loader.folder(folder, asked):
            if loader.name == "trainer_state":
                tables = trainer_output.whole(folder, tables[0], asked)
            return tuple(part for table in tables for part in split(table, names))
    return ()


def _with_ending(folder: Path, tables: tuple[Table, ...], names: Names) -> tuple[Table, ...]:
    """The tables of a folder's one run, with what the printed log beside them ends in."""
    one = len({table.run for table in tables}) == 1
    ending = ending_of(folder, names, tables[0].run) if one else ()
    return (*tables, *(table for table in ending if table.path not in {read.path for read in tables}))


def _is_plain(folder: Path, names: Names) -> bool:
    """Whether metrics files lie in a folder of which none is of a kind whose runs are looked for below."""
    files = [folder / name for name in entries(folder)[1] if not name.startswith(".") and name not in OTHERS]
    solid = [file for file in files[:MAX_FILES] if not is_hollow(file)]
    found = [_loader_of(file, names, whole=place < MAX_WHOLE) for place, file in enumerate(solid)]
    loaders = [loader for loader in found if loader]
    return bool(loaders) and not any(loader.deep for loader in loaders)


def _loader_of(file: Path, names: Names, *, whole: bool) -> Loader | None:
    try:
        return loader_of(file, names, whole=whole)[0]
    except StabtreeError:
        return None


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


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # A name that is too long, or a folder that may not be entered: opening it says what is wrong.
        return False


def _settings(config: Mapping[str, ConfigScalar], source: str) -> dict[str, Setting]:
    return {key: Setting(value, source) for key, value in config.items()}


def _read_manifest(source: Source, loader: Loader, names: Names) -> Found:
    content = manifest.parse(source)
    settings = _settings(content.config, source.name)
    if not content.files:
        found = _of_tables(_stem(source), _tables(loader, source, names), source.name)
        return replace(found, settings={**found.settings, **settings})
    tables: list[Table] = []
    for file in content.files:
        inner = open_source(file)
        read = _of_tables(inner.name, _tables(choose_metrics(inner, names), inner, names), inner.name)
        settings = {**read.settings, **settings}
        tables += read.tables
    return Found(_stem(source), tuple(tables), settings, content.notes)


def choose_metrics(source: Source, names: Names) -> Loader:
    """The loader of a file that a manifest names, which can't be a manifest that names others.

    Raises:
        StabtreeError: where it is, or no loader knows it.
    """
    loader = choose(source, names)
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
