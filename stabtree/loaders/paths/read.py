"""From files to the tables and settings of one run, and from these to the run."""

from __future__ import annotations

import difflib
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import SeveralRunsError, StabtreeError
from stabtree.common.text import clean, first_few
from stabtree.loaders.assemble.run import run_of
from stabtree.loaders.assemble.steps import split
from stabtree.loaders.config import dtype as canonical_dtype
from stabtree.loaders.folder import Settings, is_file, settings_in
from stabtree.loaders.formats import by_name, choose
from stabtree.loaders.json import manifest
from stabtree.loaders.paths.find import PACKINGS, deduplicated
from stabtree.loaders.paths.stored import checkpoints_beside, named_checkpoints
from stabtree.loaders.source import NAME_METRICS, open_source
from stabtree.metrics.names import named
from stabtree.run import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names
    from stabtree.run import Run

LISTED = 8
NAMELESS = ("metrics", "manifest", "log", "progress", "history", "results")  # their folder usually names the run


class LoadOptions(Struct, frozen=True):
    """The options of `load_run` by the same names; the methods refuse those that are wrong whatever the log."""

    dtype: str | None = None
    checkpoint_every: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    step_column: str | None = None
    format: str | None = None
    run: str | None = None
    checkpoints: str | Path | None = None

    def names(self) -> Names:
        """Return what the columns mean, once the format is checked."""
        if self.format is not None:
            by_name(self.format)
        return named(self.columns, self.step_column)

    def overrides(self) -> Settings:
        """Return the settings that override those of a log or a manifest."""
        found = {}
        if self.dtype is not None:
            found["dtype"] = Setting(canonical_dtype(self.dtype), "--dtype")
        if (every := self.checkpoint_every) is not None:
            if isinstance(every, bool) or every < 1:
                problem = f"{every} is not a number of steps"
                raise StabtreeError(problem, where="--checkpoint-every", hint="give a number from 1 on")
            found["checkpoint_every"] = Setting(int(every), "--checkpoint-every")
        if self.checkpoints is not None:
            found["checkpoints"] = Setting(tuple(named_checkpoints(Path(self.checkpoints))), "--checkpoints")
        return found


class Found(Struct, frozen=True):
    """What some paths hold.

    Attributes:
        name: what to call the run if its configuration has no name.
        tables: one for each metrics file and each run in it.
        settings: the configuration, with its sources.
        notes: what was assumed.
    """

    name: str
    tables: tuple[Table, ...]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, tables: Sequence[Table], where: str, names: Names) -> Found:
        """Return what was found in some tables; several runs keep their configurations apart until one is named."""
        found = cls(name, tuple(chain.from_iterable(split(table, names) for table in tables)))
        return replace(found, settings=_merged(found.tables, where)) if len(found.runs) == 1 else found

    @property
    def runs(self) -> list[str]:
        """The names of its runs."""
        return list(dict.fromkeys(table.run for table in self.tables))

    def only(self, wanted: str | None, path: str) -> Found:
        """Return the tables of one run.

        Raises:
            StabtreeError: where there are several runs and none was named, or the named one is not there.
        """
        runs = self.runs
        if wanted is None and len(runs) == 1:
            return self
        if wanted in runs:
            tables = tuple(table for table in self.tables if table.run == wanted)
            settings = {**self.settings, **_merged(tables, path)}
            return replace(self, name=clean(wanted, 80), tables=tables, settings=settings)
        problem, hint = "holds one run, which has no name", "leave --run out"
        if runs != [""]:
            closest = difflib.get_close_matches(wanted or "", runs, n=1) or runs
            problem = f"holds {len(runs)} runs: {first_few(runs, LISTED)}"
            hint = f"name one: --run {clean(closest[0])!r}"
        raise SeveralRunsError(problem, where=path, hint=hint, names=() if wanted else tuple(runs))


def _merged(tables: Sequence[Table], where: str) -> Settings:
    """Return the configuration that the tables of one run hold; the first that has a setting counts."""
    found: Settings = {}
    for table in reversed(tables):
        found |= {key: Setting(value, table.config_from or where) for key, value in table.config.items()}
    return found


def read_run(paths: Sequence[str | Path], options: LoadOptions, cache: dict[str, Found]) -> Run:
    """Read the one run that these paths hold; `cache` has what was read before, by path, and takes what is read now.

    Raises:
        StabtreeError: where a file can't be read, an option is wrong, or there are several runs.
    """
    found = read_files(deduplicated(paths), options.names(), options.format, options.run, cache)
    return run_found(found, options, paths)


def run_found(found: Found, options: LoadOptions, paths: Sequence[str | Path]) -> Run:
    """Return the one run in what was found, with the checkpoints beside its files or folders; raises as `read_run`."""
    settings = {**found.settings, **options.overrides()}
    run = run_of(found.tables, options.names(), found.name, settings, found.notes)
    if options.checkpoints is not None:
        return replace(run, checkpoints=named_checkpoints(Path(options.checkpoints)))
    every = run.config.get("checkpoint_every")
    given = "checkpoints" in run.config or (every and every.source == "--checkpoint-every")
    if given or any(str(path) == "-" for path in paths):
        return run
    nearest = [*(source.path for source in run.sources), *map(str, paths)]
    beside = checkpoints_beside(nearest, by_epoch=run.by_epoch, last_step=run.last_step)
    if not beside:
        return run
    where = Setting(tuple(beside), clean(Path(next(iter(beside.values()))).parent))
    return replace(run, checkpoints=beside, config={**run.config, "checkpoints": where})


def read_files(
    paths: Sequence[str | Path], names: Names, format_: str | None, run: str | None, cache: dict[str, Found]
) -> Found:
    """Read every path of one run; of a path that holds several runs, the one that is named.

    Raises:
        StabtreeError: where one can't be read as metrics, or holds several runs and none was named.
    """
    parts = []
    for path in map(str, paths):
        if path not in cache:
            cache[path] = _read_file(path, names, format_)
        parts.append(cache[path].only(run, clean(path)))
    settings: Settings = {}
    for part in reversed(parts):  # the first path that has a setting counts
        settings.update(part.settings)
    tables, notes = (part.tables for part in parts), (part.notes for part in parts)
    return Found(parts[0].name, tuple(chain(*tables)), settings, tuple(chain(*notes)))


def _read_file(path: str, names: Names, format_: str | None) -> Found:
    if not path:  # what a shell makes of a variable that is not set: not the working directory
        raise StabtreeError("an empty path names no log", hint=NAME_METRICS)
    source = open_source(path)
    loader = by_name(format_) if format_ else choose(source, names)
    content = manifest.parse(source) if loader.name == "manifest" else None
    name = "stdin"
    if source.file:
        name = source.file.name
        while Path(name).suffix.lower() in PACKINGS:
            name = Path(name).stem
        name = clean(Path(name).stem, 80)
        folder = clean(source.file.absolute().parent.name, 80)
        name = folder if name.lower() in NAMELESS and folder else name
    if content is None or not content.files:
        found = Found.of(name, loader.read(source, names), source.name, names)
        if content is not None:
            own = {key: Setting(value, source.name) for key, value in content.config.items()}
            return replace(found, settings={**found.settings, **own})
        settings, notes = _beside(source.file) if source.file else ({}, ())
        return replace(found, settings={**settings, **found.settings}, notes=notes)
    settings = {key: Setting(value, source.name) for key, value in content.config.items()}
    tables: list[Table] = []
    for inner in map(open_source, content.files):
        loader = choose(inner, names)
        if loader.name == "manifest" and manifest.parse(inner).files:
            problem = "is a manifest that another manifest names"
            raise StabtreeError(problem, where=inner.path, hint="name the metrics file")
        read = Found.of(inner.name, loader.read(inner, names), inner.name, names)
        settings = {**read.settings, **settings}
        tables += read.tables
    return Found(name, tuple(tables), settings, content.notes)


def _beside(file: Path) -> tuple[Settings, tuple[str, ...]]:
    """Return the configuration from files in the same folder as a metrics file, and notes about them.

    That of a manifest counts if it names this file, or no metrics at all.
    """
    found, notes = settings_in(file.parent)
    name = manifest.NAMES[0]
    path = file.parent / name
    if path == file or not is_file(path):
        return found, notes
    try:
        content = manifest.parse(open_source(path))
        named_here = any(other.resolve() == file.resolve() for other in content.files)
    except (StabtreeError, OSError) as error:
        return found, (f"{name} beside the file was not used: {clean(error, 160)}.", *notes)
    if not named_here and (content.files or manifest.holds_metrics(content)):
        return found, notes
    own = {key: Setting(value, name) for key, value in content.config.items()}
    return {**found, **own}, (f"The configuration is from {name} beside the file.", *content.notes, *notes)
