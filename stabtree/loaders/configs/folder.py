"""Which files of a folder are the configuration of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words, masked, stays_inside
from stabtree.loaders.configs.document import HINT, MAX_BYTES, read_document
from stabtree.loaders.configs.framework import HOSTED, framework_in
from stabtree.loaders.configs.settle import Settings, is_model, settings_of
from stabtree.loaders.folder import entries, is_file, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SUFFIXES = (".json", ".yaml", ".yml", ".toml")  # those that a configuration is looked for under
# Where a trainer writes the one that it was started with, best first; a folder of its own counts as the folder.
_INNER = (".hydra", "files")
_NAMED = (
    *("training_args.json", "manifest.json", "config.yaml", "config.yml", "hparams.yaml", "hparams.yml", "args.json"),
    *("args.yaml", "hparams.json", "params.json", "config.json", "config.toml", "config.py"),
)
# Files that hold no settings of a training, whatever their keys are called.
_OTHERS = ("hydra.yaml", "overrides.yaml", "tokenizer_config.json", "generation_config.json", "package.json")
_STATE = "trainer_state.json"  # holds its log, too, and may be as large
_MOST = 200
_FEW = 3  # fewer known settings than these are no configuration, unless its name says so


@dataclass(frozen=True, slots=True)
class Configured:
    """What a configuration file says.

    Attributes:
        path: the file.
        settings: its settings.
        notes: what was wrong in it.
        values: all that it holds.
    """

    path: Path
    settings: Settings
    notes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file's own name, safe to print."""
        return masked(clean(self.path.name))

    @property
    def framework(self) -> str:
        """The trainer that it is for; empty where nothing tells."""
        return framework_in(self.values)


def configured(path: Path) -> Configured:
    """Read one file.

    Raises:
        StabtreeError: where it can't be read.
    """
    file = read_document(path)
    settings, notes = settings_of(file)
    return Configured(path, settings, (*file.notes, *notes), file.values)


def beside(one: Configured) -> tuple[list[Configured], tuple[str, ...]]:
    """The DeepSpeed configuration that another one names, read where it lies beside it or below; and notes."""
    name = one.values.get("deepspeed") or one.values.get("deepspeed_config_file")
    if not isinstance(name, str) or not name.endswith((".json", ".yaml", ".yml")):
        return [], ()
    folder = one.path.parent
    shown = masked(clean(name, 80))
    for place in (folder / name, folder / Path(name).name):
        if stays_inside(str(place.relative_to(folder)) if place.is_relative_to(folder) else "") and is_file(place):
            try:
                return [configured(place)], ()
            except StabtreeError as error:
                return [], (f"{one.name} names {shown}, which {error.problem}: not used.",)
    return [], (f"{one.name} names {shown}, which does not lie beside it: name both files to have both checked.",)


def in_folder(folder: Path) -> tuple[list[Configured], tuple[str, ...]]:
    """The files of the configuration in a folder, the one that counts most last; and notes.

    Raises:
        StabtreeError: where there is none.
    """
    found, notes = _read(folder)
    if not found:
        where = masked(clean(folder))
        raise StabtreeError("no configuration lies in this folder", where=where, hint=HINT)
    mains = [one for one in found if not _adds(one)] or found
    main = max(mains, key=_worth)
    added = [one for one in found if one is not main and _adds(one) and _belongs(one, main, found)]
    rest = [one.name for one in found if one is not main and one not in added]
    if rest:
        told = in_words(rest[:_FEW]) + (f" and {len(rest) - _FEW} more" if len(rest) > _FEW else "")
        notes = (*notes, f"{main.name} is the configuration that was read; beside it lie {told}.")
    return [*added, main], notes


def _read(folder: Path) -> tuple[list[Configured], tuple[str, ...]]:
    """The files of a folder that hold settings, and notes about those that can't be read."""
    found: list[Configured] = []
    notes = []
    for path in _candidates(folder):
        try:
            one = configured(path)
        except StabtreeError as error:
            if path.name in _NAMED:
                notes.append(f"{clean(path.name)} was not used: it {clean(error.problem, 120)}.")
            continue
        known = len(one.settings.keys() - {"framework", "name"})
        if known >= (1 if path.name in _NAMED or one.framework else _FEW):
            found.append(one)
    return found, tuple(notes)


def _candidates(folder: Path) -> Iterator[Path]:
    seen = 0
    for place in (folder, *(folder / inner for inner in _INNER)):
        for name in sorted(entries(place)[1]):
            path = place / name
            wanted = path.suffix.lower() in SUFFIXES or name in _NAMED
            if wanted and name not in _OTHERS and (name == _STATE or 0 < size_of(path) <= MAX_BYTES):
                seen += 1
                if seen > _MOST:
                    return
                yield path


def _adds(one: Configured) -> bool:
    """Whether a file says how another one's training is launched or how far it came, and is no training by itself."""
    values = one.values
    named = "log_history" in values or "peft_type" in values or is_model(values)
    return named or one.framework in ("deepspeed", "accelerate")


def _belongs(one: Configured, main: Configured, found: list[Configured]) -> bool:
    """Whether a file that adds something is of the main one's run."""
    if one.framework != "deepspeed":
        return True
    name = main.values.get("deepspeed")
    if isinstance(name, str):
        return Path(name).name == one.path.name
    alone = sum(other.framework == "deepspeed" for other in found) == 1
    return alone and name is None and (main.framework in HOSTED or not main.framework)


def _worth(one: Configured) -> tuple[int, int]:
    place = _NAMED.index(one.path.name) if one.path.name in _NAMED else len(_NAMED)
    return len(one.settings), -place
