"""From files to tables: manifests, the loader for each file, and the settings beside it."""

from __future__ import annotations

import difflib
from dataclasses import field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import SeveralRunsError, StabtreeError
from stabtree.common.text import clean, first_few
from stabtree.loaders.assemble.several_runs import split
from stabtree.loaders.folder import Settings, is_file, settings_in
from stabtree.loaders.formats import Loader, by_name, choose
from stabtree.loaders.json import manifest
from stabtree.loaders.paths.kinds import PACKINGS
from stabtree.loaders.source import NAME_METRICS, Source, open_source
from stabtree.run import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar


LISTED = 8


@dataclass(frozen=True, slots=True)
class Found:
    """What some paths hold.

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
    paths: Sequence[str | Path], names: Names, format_: str | None, run: str | None, cache: dict[str, Found]
) -> Found:
    """Read every path of one run; of a path that holds several runs, the one that is named.

    Args:
        paths: files.
        names: what the columns mean.
        format_: the name of a loader, where the user gave one.
        run: the run that is named.
        cache: what was read before, by path; what is read now is added.

    Raises:
        StabtreeError: where one can't be read as metrics, or holds several runs and none was named.
    """
    forced = by_name(format_) if format_ else None
    parts = [select_run(_read_once(str(path), names, forced, cache), clean(path), run) for path in paths]
    settings: dict[str, Setting] = {}
    for part in reversed(parts):  # the first path that has a setting counts
        settings.update(part.settings)
    return Found(
        name=parts[0].name,
        tables=tuple(chain.from_iterable(part.tables for part in parts)),
        settings=settings,
        notes=tuple(chain.from_iterable(part.notes for part in parts)),
    )


def _read_once(path: str, names: Names, forced: Loader | None, cache: dict[str, Found]) -> Found:
    """Read a path unless it was read before."""
    if path not in cache:
        cache[path] = _read_file(path, names, forced)
    return cache[path]


def select_run(found: Found, path: str, wanted: str | None) -> Found:
    """Return the tables of one run.

    Raises:
        StabtreeError: where there are several runs and none was named, or the named one is not there.
    """
    runs = list(dict.fromkeys(table.run for table in found.tables))
    if wanted is None and len(runs) == 1:
        return found
    if wanted not in runs:
        raise _no_such_run(runs, path, wanted)
    tables = tuple(table for table in found.tables if table.run == wanted)
    settings = {**found.settings, **_merged(tables, path)}
    return replace(found, name=clean(wanted, 80), tables=tables, settings=settings)


def _no_such_run(runs: list[str], path: str, wanted: str | None) -> StabtreeError:
    names = () if wanted else tuple(runs)
    if runs == [""]:
        return SeveralRunsError("holds one run, which has no name", where=path, hint="leave --run out", names=names)
    closest = difflib.get_close_matches(wanted or "", runs, n=1) or runs
    return SeveralRunsError(
        f"holds {len(runs)} runs: {first_few(runs, LISTED)}",
        where=path,
        hint=f"name one: --run {clean(closest[0])!r}",
        names=names,
    )


def _read_file(path: str | Path, names: Names, forced: Loader | None) -> Found:
    if not path:  # what a shell makes of a variable that is not set: not the working directory
        raise StabtreeError("an empty path names no log", hint=NAME_METRICS)
    source = open_source(path)
    loader = forced or choose(source, names)
    if loader.name == "manifest":
        return _read_manifest(source, loader, names)
    found = of_tables(_stem(source), _tables(loader, source, names), source.name)
    if source.file is None:
        return found
    settings, notes = settings_of(source.file)
    return replace(found, settings={**settings, **found.settings}, notes=notes)


def read_tables(file: Path, names: Names) -> tuple[Table, ...]:
    """Return the tables of a file, of whatever format that is.

    Raises:
        StabtreeError: where it can't be read as metrics.
    """
    source = open_source(file)
    return _read_any(choose(source, names), source, names)


def _tables(loader: Loader, source: Source, names: Names) -> tuple[Table, ...]:
    return by_run(_read_any(loader, source, names), names)


def by_run(tables: tuple[Table, ...], names: Names) -> tuple[Table, ...]:
    """Return a table for each run in some tables."""
    return tuple(chain.from_iterable(split(table, names) for table in tables))


def _read_any(loader: Loader, source: Source, names: Names) -> tuple[Table, ...]:
    tables = loader.read(source, names)
    if isinstance(tables, tuple):
        return tables
    return (tables,)


def of_tables(name: str, tables: tuple[Table, ...], where: str) -> Found:
    """Return what was found in some tables; several runs keep their configurations apart until one is named."""
    if len({table.run for table in tables}) > 1:
        return Found(name, tables)
    return Found(name, tables, _merged(tables, where))


def _merged(tables: Sequence[Table], where: str) -> dict[str, Setting]:
    """Return the configuration that the tables of one run hold; the first that has a setting counts."""
    found: dict[str, Setting] = {}
    for table in reversed(tables):
        found.update(_settings(table.config, table.config_from or where))
    return found


def _settings(config: Mapping[str, ConfigScalar], source: str) -> dict[str, Setting]:
    return {key: Setting(value, source) for key, value in config.items()}


def _read_manifest(source: Source, loader: Loader, names: Names) -> Found:
    content = manifest.parse(source)
    settings = _settings(content.config, source.name)
    if not content.files:
        found = of_tables(_stem(source), _tables(loader, source, names), source.name)
        return replace(found, settings={**found.settings, **settings})
    tables: list[Table] = []
    for file in content.files:
        inner = open_source(file)
        read = of_tables(inner.name, _tables(choose_metrics(inner, names), inner, names), inner.name)
        settings = {**read.settings, **settings}
        tables += read.tables
    return Found(_stem(source), tuple(tables), settings, content.notes)


def choose_metrics(source: Source, names: Names) -> Loader:
    """Return the loader of a file that a manifest names.

    Raises:
        StabtreeError: where it is a manifest that names others, or no loader knows it.
    """
    loader = choose(source, names)
    if loader.name == "manifest" and manifest.parse(source).files:
        raise StabtreeError(
            "is a manifest that another manifest names", where=source.path, hint="name the metrics file"
        )
    return loader


def _stem(source: Source) -> str:
    """Return what to call a run that has no name: its file without endings."""
    if source.file is None:
        return "stdin"
    stem = source.file.name
    while Path(stem).suffix.lower() in PACKINGS:
        stem = Path(stem).stem
    stem = clean(Path(stem).stem, 80)
    folder = clean(source.file.absolute().parent.name, 80)
    # `metrics` and `manifest` say nothing; their folder usually names the run.
    if stem.lower() in ("metrics", "manifest", "log", "progress", "history", "results") and folder:
        return folder
    return stem


def settings_of(file: Path) -> tuple[Settings, tuple[str, ...]]:
    """Return the configuration from files in the same folder as a metrics file, and notes about them."""
    named, notes = _from_manifest(file)
    found, more = settings_in(file.parent)
    return {**found, **named}, (*notes, *more)


def _from_manifest(file: Path) -> tuple[Settings, tuple[str, ...]]:
    """Return the configuration from a manifest in the same folder that names this file, or that names no metrics."""
    name = manifest.NAMES[0]
    path = file.parent / name
    if path == file or not is_file(path):
        return {}, ()
    try:
        content = manifest.parse(open_source(path))
        named = any(other.resolve() == file.resolve() for other in content.files)
    except (StabtreeError, OSError) as error:
        return {}, (f"{name} beside the file was not used: {clean(error, 160)}.",)
    if not named and (content.files or manifest.holds_metrics(content)):
        return {}, ()
    note = f"The configuration is from {name} beside the file."
    return {key: Setting(value, name) for key, value in content.config.items()}, (note, *content.notes)
