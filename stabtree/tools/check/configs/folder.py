"""Which files of a folder are the configuration of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words, masked, stays_inside
from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.load import frameworks
from stabtree.frameworks.recognise import plain_word
from stabtree.loaders.folder import entries, is_file, size_of
from stabtree.tools.check.configs.document import HINT, MAX_BYTES, read_document
from stabtree.tools.check.configs.settle import is_model, read_settings, trainer_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tools.check.configs.complete import Settings

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
        open: settings that are made elsewhere; None where what is not said is not known, of what a log holds.
    """

    path: Path
    settings: Settings
    notes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    open: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """The file's own name, safe to print."""
        return masked(clean(self.path.name))

    @property
    def framework(self) -> str:
        """The trainer that it is for; empty where nothing shows it."""
        return trainer_of(self.values)


def configured(path: Path) -> Configured:
    """Read one file.

    Raises:
        StabtreeError: where it can't be read.
    """
    file = read_document(path)
    found = read_settings(file)
    left_open = None if _is_partial(file.values) else frozenset(found.open)
    return Configured(path, found.settings, (*file.notes, *found.notes), file.values, left_open)


def _is_partial(values: Mapping[str, Any]) -> bool:
    """Whether the trainer's defaults may not hold: of a state, a partial file, a script with a loop of its own."""
    own_loop = framework_called(trainer_of(values)).config.own_loop
    parts = (values, *(inner for inner in values.values() if isinstance(inner, Mapping)))
    words = {plain_word(key) for part in parts for key in part}
    return bool(words & {"log_history", "defaults", "base", *own_loop})


def beside(one: Configured) -> tuple[list[Configured], tuple[str, ...]]:
    """Return the configuration (DeepSpeed's) that another one names, where it is beside it or below; and notes."""
    keys = chain.from_iterable(other.config.named_by for other in frameworks().values())
    name = next(filter(None, map(one.values.get, keys)), None)
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
    main = _main_of(found)
    added = [one for one in found if one is not main and _adds(one) and _belongs(one, main, found)]
    rest = [one.name for one in found if one is not main and one not in added]
    if rest:
        notes = (*notes, f"{main.name} is the configuration that was read; beside it lie {_first_of(rest)}.")
    return [*added, main], notes


def _main_of(found: list[Configured]) -> Configured:
    """Return the file that counts most: one that is a training by itself, where there is any."""
    mains = [one for one in found if not _adds(one)]
    return max(mains or found, key=_worth)


def _first_of(names: list[str]) -> str:
    """List the first of some names, and say how many more there are."""
    text = in_words(names[:_FEW])
    if len(names) > _FEW:
        text += f" and {len(names) - _FEW} more"
    return text


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
    return named or framework_called(one.framework).config.adds


def _belongs(one: Configured, main: Configured, found: list[Configured]) -> bool:
    """Whether a file that adds something is of the main one's run."""
    keys = framework_called(one.framework).config.named_by
    if not keys:
        return True
    name = main.values.get(keys[0])
    if isinstance(name, str):
        return Path(name).name == one.path.name
    alone = sum(other.framework == one.framework for other in found) == 1
    takes = framework_called(main.framework).defaults.takes_beside == one.framework
    return alone and name is None and (takes or not main.framework)


def _worth(one: Configured) -> tuple[int, int]:
    place = _NAMED.index(one.path.name) if one.path.name in _NAMED else len(_NAMED)
    return len(one.settings), -place
