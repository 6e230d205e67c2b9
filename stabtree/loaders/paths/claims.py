"""What a logger or a trainer keeps in folders of its own, and which files of a tree that is."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.folder import settings_in
from stabtree.loaders.json import manifest, trainer_state
from stabtree.loaders.paths import trainer_output
from stabtree.loaders.paths.find import place
from stabtree.loaders.paths.kinds import EVENTS, is_copy, is_log
from stabtree.loaders.paths.read import Found, by_run, of_tables, read_files, read_tables
from stabtree.loaders.source import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stabtree.loaders.paths.find import FolderTree, Listing
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names


@dataclass(frozen=True, slots=True)
class Claim:
    """A log that is more than one file.

    Attributes:
        path: the folder of its run, or the one file that names all others.
        found: what it holds, or what is wrong with it.
        files: the files that it was read from.
        folders: folders of which everything but what is plainly another log belongs to it.
    """

    path: str
    found: Found | StabtreeError
    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()


@dataclass(slots=True)
class Claims:
    """Finds the logs of loggers and trainers in a tree, and remembers which of its files are theirs.

    Attributes:
        tree: the tree.
        names: what columns mean.
        format: the name of the only loader that is asked; None for all.
    """

    tree: FolderTree
    names: Names
    format: str | None = None
    _files: set[str] = field(default_factory=set)
    _folders: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[Claim]:
        """Yield what is claimed, folder by folder; last the event files, which runs share a tree of."""
        kinds: tuple[tuple[str, Callable[[str, Listing], Claim | None]], ...] = (
            ("manifest", self._manifest),
            ("trainer_state", self._trainer),
            ("wandb", self._wandb),
            ("mlflow", self._mlflow),
        )
        wanted = [claim for name, claim in kinds if self.format in (None, name)]
        for folder, listing in self.tree.listings.items():
            for claim in wanted:
                found = claim(folder, listing)
                if found:
                    yield self._taken(found)
        if self.format in (None, "tfevents"):
            for found in self._events():
                yield self._taken(found)

    def holds(self, folder: str, name: str) -> bool:
        """Return whether a file is part of what was claimed."""
        return place(folder, name) in self._files or (not is_log(name) and self._is_within(folder))

    def _taken(self, claim: Claim) -> Claim:
        self._files |= claim.files
        self._folders |= claim.folders
        return claim

    def _is_within(self, folder: str) -> bool:
        if not self._folders:
            return False
        return any(str(one) in self._folders for one in (Path(folder), *Path(folder).parents))

    def _manifest(self, folder: str, listing: Listing) -> Claim | None:
        """Claim a manifest and the files that it names; one that names none, and holds none, is mere settings."""
        name = next((one for one in manifest.NAMES if one in listing.files), None)
        if name is None:
            return None
        path = place(folder, name)
        files: tuple[Path, ...] = ()
        try:
            if name == manifest.NAMES[0]:
                content = manifest.parse(open_source(path))
                files = content.files
                if not files and not manifest.holds_metrics(content):
                    return None
            found: Found | StabtreeError = read_files([path], self.names, None, None, {})
        except StabtreeError as error:
            found = error
        return Claim(path, found, frozenset((path, *map(str, files))))

    def _trainer(self, folder: str, listing: Listing) -> Claim | None:
        """Claim the states of the Hugging Face trainer, and the events of the same run."""
        copies = any(is_copy(name) for name in listing.folders)
        if not copies and (trainer_state.NAME not in listing.files or self.holds(folder, trainer_state.NAME)):
            return None
        home = Path(folder)
        newest = trainer_state.newest_in(home, self.names)
        if newest is None:
            return self._broken_states(home)
        table, states = newest
        tables = by_run(trainer_output.whole(home, table, self.names), self.names)
        found = self._found(home, tables)
        runs = Path(folder, trainer_output.EVENTS)
        events = (
            place(inner, name)
            for inner, name in self.tree.files()
            if EVENTS in name and runs in (Path(inner), *Path(inner).parents)
        )
        return Claim(folder, found, frozenset((*map(str, states), *events)))

    def _broken_states(self, home: Path) -> Claim | None:
        """Claim states of which none can be read: each is a copy of the last one, which is reported."""
        states = [str(file) for _, file in trainer_state.checkpoints(home) if file.is_file()]
        if not states:
            return None
        try:
            found: Found | StabtreeError = read_files([states[0]], self.names, None, None, {})
        except StabtreeError as error:
            found = error
        return Claim(states[0], found, frozenset(states))

    def _wandb(self, folder: str, listing: Listing) -> Claim | None:
        """Claim the files of W&B that hold the history of one run."""
        from stabtree.loaders.wandb import loader

        home = Path(folder)
        if folder == self.tree.top and home.name == "files" and loader.is_run(home.parent):
            home = home.parent
        elif not (any(name.endswith(".wandb") for name in listing.files) or "files" in listing.folders):
            return None
        if not loader.is_run(home):
            return None
        logs = {place(folder, name) for name in listing.files if name.endswith(".wandb")}
        try:
            tables = loader.run_in(home, lambda file: read_tables(file, self.names))
        except StabtreeError as error:
            return Claim(folder, error, frozenset(logs))
        read = {table.path for table in tables}
        if read & logs:  # of several, those before it in the order of their names could not be read
            logs = {path for path in logs if path <= max(read & logs)}
        return Claim(folder, self._found(home, by_run(tables, self.names)), frozenset(read | logs))

    def _mlflow(self, folder: str, listing: Listing) -> Claim | None:
        """Claim the files of a run of MLflow: one for each metric."""
        if "meta.yaml" not in listing.files or "metrics" not in listing.folders:
            return None
        from stabtree.loaders.mlflow import loader

        home = Path(folder)
        if not loader.is_run(home):
            return None
        try:
            found: Found | StabtreeError = self._found(home, by_run((loader.run_in(home, self.names),), self.names))
        except StabtreeError as error:
            found = error
        own = frozenset(place(folder, name) for name in ("metrics", "params", "tags"))
        return Claim(folder, found, frozenset(), own)

    def _events(self) -> Iterator[Claim]:
        """Claim event files: those of one folder, with its `train` and `val`, are one run."""
        marked = [(folder, name) for folder, name in self.tree.files() if EVENTS in name]
        if not marked:
            return
        from stabtree.loaders.tensorboard import loader

        top, parts = Path(self.tree.top), dict[tuple[str, ...], list[str]]()
        for folder, name in marked:
            if not self.holds(folder, name) and loader.is_events(Path(folder, name)):
                parts.setdefault(Path(folder).relative_to(top).parts, []).append(name)
        files = frozenset(place(str(top.joinpath(*part)), name) for part, names in parts.items() for name in names)
        for home, table in loader.runs_below(top, parts, self.names):
            if isinstance(table, StabtreeError):
                yield Claim(str(home), table, files)
            else:
                yield Claim(str(home), self._found(home, by_run((table,), self.names)), files)

    def _found(self, home: Path, tables: tuple[Table, ...]) -> Found:
        """Return the tables of a folder with the settings beside them."""
        settings, notes = settings_in(home)
        found = of_tables(clean(home.absolute().name, 80), tables, clean(home))
        return Found(found.name, found.tables, {**settings, **found.settings}, (*notes, *found.notes))
