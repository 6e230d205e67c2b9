"""From files to the tables and settings of one run, and from these to the run."""

from __future__ import annotations

import difflib
import math
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import SeveralRunsError, StabtreeError
from stabtree.common.shared import SHARE_HALF
from stabtree.common.text import clean, first_few
from stabtree.frameworks.recognise import of_model
from stabtree.loaders.assemble.run import run_of
from stabtree.loaders.assemble.steps import split
from stabtree.loaders.config import dtype as canonical_dtype
from stabtree.loaders.config import read_config
from stabtree.loaders.folder import EVENTS, MODEL, SERIES, Settings, is_file, settings_file, settings_in, status_in
from stabtree.loaders.formats import by_name, choose
from stabtree.loaders.json import manifest, trainer_state
from stabtree.loaders.paths.find import (
    PACKINGS,
    SERIES_HOMES,
    SWANLAB,
    deduplicated,
    ending,
    is_copy,
    is_log,
    place,
)
from stabtree.loaders.paths.stored import checkpoints_beside, named_checkpoints
from stabtree.loaders.source import NAME_METRICS, open_source
from stabtree.metrics.names import named
from stabtree.run import REDUCED, Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stabtree.loaders.paths.find import FolderTree, Listing
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar, Run


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
    contents: Mapping[str, bytes] = field(default_factory=dict)
    follow_links: bool = False

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
    """What some paths hold."""

    name: str  # what to call the run if its configuration has no name
    tables: tuple[Table, ...]  # one for each metrics file and each run in it
    settings: Mapping[str, Setting] = field(default_factory=dict)  # the configuration, with its sources
    notes: tuple[str, ...] = ()  # what was assumed

    @classmethod
    def of(cls, name: str, tables: Sequence[Table], where: str, names: Names) -> Found:
        """Return what was found in some tables; several runs keep their configurations apart until one is named."""
        found = cls(name, tuple(chain.from_iterable(split(table, names) for table in tables)))
        if len(found.runs) != 1:
            return found
        return replace(found, settings=_merged(found.tables, where))

    def ended(self, home: Path) -> Found:
        """Return it with what other files in the folder of its only run say of how that ended."""
        if len(self.runs) != 1:
            return self
        *others, last = self.tables
        return replace(self, tables=(*others, replace(last, lines=(*last.lines, *status_in(home)))))

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
        if len(runs) == 1 and wanted in (None, "", runs[0]):
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
        found |= _settings(table.config, where)
    return found


def _settings(config: Mapping[str, ConfigScalar], source: str) -> Settings:
    return {key: Setting(value, source) for key, value in config.items()}


def read_run(paths: Sequence[str | Path], options: LoadOptions, cache: dict[str, Found]) -> Run:
    """Read the one run that these paths hold; `cache` has what was read before, by path, and takes what is read now.

    Raises:
        StabtreeError: where a file can't be read, an option is wrong, or there are several runs.
    """
    names, parts = options.names(), list[Found]()
    for path in map(str, deduplicated(paths)):
        parts.append(read_file(path, names, options, cache).only(options.run, clean(path)))
    settings: Settings = {}
    for part in reversed(parts):  # the first path that has a setting counts
        settings |= part.settings
    tables, notes = (part.tables for part in parts), (part.notes for part in parts)
    return run_found(Found(parts[0].name, tuple(chain(*tables)), settings, tuple(chain(*notes))), options, paths)


def run_found(found: Found, options: LoadOptions, paths: Sequence[str | Path]) -> Run:
    """Return the one run in what was found, with the checkpoints beside its files or folders; raises as `read_run`."""
    settings = {**found.settings, **options.overrides()}
    run = run_of(found.tables, options.names(), found.name, settings, found.notes)
    if any(table.format.startswith(WITH_MODEL) for table in found.tables):
        run = _without_foreign_vocabulary(run)
    if options.checkpoints is not None:
        return replace(run, checkpoints=named_checkpoints(Path(options.checkpoints)))
    given = "checkpoints" in run.config or options.checkpoint_every is not None
    if given or "-" in map(str, paths):
        return run
    nearest = [*(source.path for source in run.sources), *map(str, paths)]
    beside = checkpoints_beside(nearest, by_epoch=run.by_epoch, last_step=run.last_step)
    if not beside:
        return run
    where = Setting(tuple(beside), clean(Path(next(iter(beside.values()))).parent))
    return replace(run, checkpoints=beside, config={**run.config, "checkpoints": where})


def _without_foreign_vocabulary(run: Run) -> Run:
    """Return the run without the vocabulary of a model that was trained before: its loss begins far below a guess."""
    size, loss = run.setting("vocab_size"), run.get("loss")
    if isinstance(size, int) and loss and len(loss) and 0 < loss.values[0] <= UNTRAINED * math.log(size):
        return replace(run, config={key: value for key, value in run.config.items() if key != "vocab_size"})
    return run


def read_file(path: str, names: Names, options: LoadOptions, cache: dict[str, Found]) -> Found:
    """Return what a file holds, or a folder that is read as one; it is read once.

    Raises:
        StabtreeError: where it can't be read as metrics.
    """
    if path not in cache:
        cache[path] = _read_file(path, names, options)
    return cache[path]


def _read_file(path: str, names: Names, options: LoadOptions) -> Found:
    if not path:  # what a shell makes of a variable that is not set: not the working directory
        raise StabtreeError("an empty path names no log", hint=NAME_METRICS)
    source = open_source(path, options.contents.get(str(Path(path).absolute())))
    loader = by_name(options.format) if options.format else choose(source, names)
    if loader.name == "manifest":
        return _read_manifest(source, names)
    found = Found.of(_name_of(source), loader.read(source, names), source.name, names)
    if source.file is None:
        return found
    settings, notes = _beside(source.file)
    found = found.ended(source.file.parent)
    return replace(found, settings={**settings, **found.settings}, notes=notes)


def _read_manifest(source: Source, names: Names) -> Found:
    """Read the metrics that a manifest holds or names; its settings count before theirs."""
    content = manifest.parse(source)
    settings = _settings(content.config, source.name)
    tables: list[Table] = []
    for inner in map(open_source, content.files) if content.files else (source,):
        loader = choose(inner, names)
        if content.files and loader.name == "manifest" and manifest.parse(inner).files:
            problem = "is a manifest that another manifest names"
            raise StabtreeError(problem, where=inner.path, hint="name the metrics file")
        found = Found.of(inner.name, loader.read(inner, names), inner.name, names)
        settings = {**found.settings, **settings}
        tables += found.tables
    return Found(_name_of(source), tuple(tables), settings, content.notes)


def _name_of(source: Source) -> str:
    """Return what to call the run in a file: as the file, or as its folder where its name says nothing."""
    if source.file is None:
        return "stdin"
    name = source.file.name
    while Path(name).suffix.lower() in PACKINGS:
        name = Path(name).stem
    name, folder = (clean(text, 80) for text in (Path(name).stem, source.file.absolute().parent.name))
    if name.lower() in NAMELESS and folder:
        return folder
    return name


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
    return {**found, **_settings(content.config, name)}, (
        f"The configuration is from {name} beside the file.",
        *content.notes,
        *notes,
    )


# A loss that begins below this share of ln(vocabulary), but not at 0, is that of a model which was trained before.
UNTRAINED = SHARE_HALF
WITH_MODEL = ("trainer_state", "tfevents")  # formats beside or in which the model's own configuration stands


class Claim(Struct, frozen=True):
    """A log that is more than one file."""

    path: str  # the folder of its run, or the one file that names all others
    found: Found | StabtreeError  # what it holds, or what is wrong with it
    files: frozenset[str] = frozenset()  # the files that it was read from
    folders: frozenset[str] = frozenset()  # folders of which everything but what is plainly another log belongs to it


class Claims(Struct):
    """Finds the logs of loggers and trainers in a tree, and remembers which of its files are theirs."""

    tree: FolderTree
    names: Names  # what columns mean
    format: str | None = None  # the name of the only loader that is asked; None for all
    _files: set[str] = field(default_factory=set)
    _folders: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[Claim]:
        """Yield what is claimed, folder by folder; last the event files, which runs share a tree of."""
        kinds = {
            "manifest": self._manifest,
            "trainer_state": self._trainer,
            "wandb": self._wandb,
            "mlflow": self._mlflow,
            "swanlab": self._swanlab,
        }
        asked = [claim for name, claim in kinds.items() if self.format in (None, name)]
        claims = (filter(None, (claim(*item) for claim in asked)) for item in self.tree.listings.items())
        for claim in chain(chain.from_iterable(claims), self._series(), self._events()):
            self._files |= claim.files
            self._folders |= claim.folders
            yield claim

    def holds(self, folder: str, name: str) -> bool:
        """Return whether a file is part of what was claimed."""
        if place(folder, name) in self._files:
            return True
        inside = bool(self._folders) and not is_log(name)
        return inside and not self._folders.isdisjoint(map(str, (Path(folder), *Path(folder).parents)))

    def _found(self, home: Path, read: Callable[[], tuple[Table, ...]]) -> Found | StabtreeError:
        """Return the tables of a folder with the settings beside them, or what is wrong with it."""
        try:
            tables = read()
            settings, notes = settings_in(home)
            found = Found.of(clean(home.absolute().name, 80), tables, clean(home), self.names).ended(home)
        except StabtreeError as error:
            return error
        return replace(found, settings={**settings, **found.settings}, notes=notes)

    def _file(self, path: str, files: Sequence[str]) -> Claim:
        """Claim files, of which one names all others or stands for them."""
        try:
            return Claim(path, read_file(path, self.names, LoadOptions(), {}), frozenset(files))
        except StabtreeError as error:
            return Claim(path, error, frozenset(files))

    def _manifest(self, folder: str, listing: Listing) -> Claim | None:
        """Claim a manifest and the files that it names; one that names none, and holds none, is mere settings."""
        name = next((one for one in manifest.NAMES if one in listing.files), None)
        if name is None:
            return None
        path, files = place(folder, name), []
        if name == manifest.NAMES[0]:
            with suppress(StabtreeError):  # reported where it is read
                content = manifest.parse(open_source(path))
                files = [*map(str, content.files)]
                if not files and not manifest.holds_metrics(content):
                    return None
        return self._file(path, [path, *files])

    def _trainer(self, folder: str, listing: Listing) -> Claim | None:
        """Claim the states of a Hugging Face trainer: the newest of them, of which the others are copies."""
        copies = any(map(is_copy, listing.folders))
        if not copies and (trainer_state.NAME not in listing.files or self.holds(folder, trainer_state.NAME)):
            return None
        home = Path(folder)
        newest = trainer_state.newest_in(home, self.names)
        if newest is not None:
            table, files = newest
            table = replace(table, config=_trainer_config(home, table))
            return Claim(folder, self._found(home, lambda: (table,)), frozenset(map(str, files)))
        states = [str(file) for _, file in trainer_state.checkpoints(home) if is_file(file)]
        # None can be read: each is a copy of the last one, which is reported.
        return self._file(states[0], states) if states else None

    def _wandb(self, folder: str, listing: Listing) -> Claim | None:
        """Claim the files of W&B that hold the history of one run."""
        logs = {place(folder, name) for name in listing.files if name.endswith(".wandb")}
        home = Path(folder)
        inside = folder == self.tree.top and home.name == "files"
        if not (inside or logs or "files" in listing.folders):
            return None
        from stabtree.loaders.trackers import wandb as loader

        if inside and loader.is_run(home.parent):
            home = home.parent
        if not loader.is_run(home):
            return None
        found = self._found(home, lambda: loader.run_in(home, self._tables))
        if isinstance(found, StabtreeError):
            return Claim(folder, found, frozenset(logs))
        read = {table.path for table in found.tables}
        last = max(read & logs, default=max(logs, default=""))  # those before it could not be read
        printed = {str(Path(path).with_name(loader.OUTPUT_FILE)) for path in read if path.endswith(loader.HISTORY_FILE)}
        return Claim(folder, found, frozenset(read | printed | {path for path in logs if path <= last}))

    def _tables(self, file: Path) -> tuple[Table, ...]:
        source = open_source(file)
        return choose(source, self.names).read(source, self.names)

    def _mlflow(self, folder: str, listing: Listing) -> Claim | None:
        """Claim the files of a run of MLflow: one for each metric."""
        if "meta.yaml" not in listing.files or "metrics" not in listing.folders:
            return None
        from stabtree.loaders.trackers import mlflow as loader

        home = Path(folder)
        if not loader.is_run(home):
            return None
        own = frozenset(place(folder, name) for name in ("metrics", "params", "tags"))
        return Claim(folder, self._found(home, lambda: (loader.run_in(home, self.names),)), frozenset(), own)

    def _swanlab(self, folder: str, listing: Listing) -> Claim | None:
        """Claim what SwanLab wrote: a database with the values of its runs, one of these runs, or an offline log."""
        home, only = Path(folder), ""
        files = [home / name for name in listing.files if name.endswith(Path(SWANLAB).suffix)]
        if folder == self.tree.top and "logs" in listing.folders and is_file(home.parent / SWANLAB):
            files, only = [home.parent / SWANLAB], home.name
        if len(files) != 1:
            return None
        from stabtree.loaders.trackers import swanlab

        # A database is of all runs in the folders beside it; any other file is of one, as all in its folder.
        source, settings, begins = files[0], home / "files", ""
        if source.name == SWANLAB and not only:
            settings, begins = home, "run-"
        found = self._found(settings, lambda: swanlab.read(open_source(source), self.names, only))
        own = {str(source)}
        for inner, names in self.tree.listings.items():
            below = Path(inner).is_relative_to(home) and str(Path(inner).relative_to(home))
            if below and below != "." and below.startswith(begins):
                own.update(place(inner, name) for name in names.files)
        return Claim(folder if only else str(source), found, frozenset(own))

    def _series(self) -> Iterator[Claim]:
        """Claim the files of runs that have one for each series: several, or one where a logger would put it."""
        files = {folder: listing.files for folder, listing in self.tree.listings.items()}
        homes = [folder for folder, names in files.items() for name in names if ending(name) in SERIES]
        likely = len(homes) > 1 or any(SERIES_HOMES.intersection(Path(home).parts) for home in homes)
        if self.format not in (None, "csv") or not likely:
            return
        from stabtree.loaders.trackers import folders

        for run in folders.runs(self.tree.top, files, self.names):
            own = frozenset((*(str(file.path) for file in run.files), *run.others))
            if not own & self._files:
                found = self._found(run.path, partial(run.read, self.names))
                yield Claim(str(run.path), found, own, frozenset((str(run.path),)))

    def _events(self) -> Iterator[Claim]:
        """Claim event files: those of one folder, with its `train` and `val`, are one run."""
        listings = self.tree.listings.items()
        marked = [(folder, name) for folder, listing in listings for name in listing.files if EVENTS in name]
        if not marked or self.format not in (None, EVENTS):
            return
        from stabtree.loaders.tensorboard import loader

        top, parts = Path(self.tree.top), dict[tuple[str, ...], list[str]]()
        files = set()
        for folder, name in marked:
            if not self.holds(folder, name) and loader.is_events(Path(folder, name)):
                parts.setdefault(Path(folder).relative_to(top).parts, []).append(name)
                files.add(place(folder, name))
        for home, table in loader.runs_below(top, parts, self.names):
            found = table if isinstance(table, StabtreeError) else self._found(home, partial(tuple, [table]))
            yield Claim(str(home), found, frozenset(files))


def _trainer_config(folder: Path, table: Table) -> dict[str, ConfigScalar]:
    """Return the settings of the trainer and of the model whose newest state this is."""
    homes = [folder / trainer_state.NAME, *(file for _, file in trainer_state.checkpoints(folder))]
    models = (settings_file(home.with_name(MODEL))[0] for home in homes)
    config, _ = read_config(of_model(next(filter(None, models), {})))
    if config.get("dtype") not in REDUCED:
        config.pop("dtype", None)  # mixed precision has weights in fp32 too
    return {**config, **table.config}
