"""The known settings among the values of a configuration, wherever they nest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.recognise import plain_word
from stabtree.tools.check.configs.document import literal
from stabtree.tools.check.configs.keys import LOOSE, PLACE, squeezed
from stabtree.tools.check.configs.precision import SCALERS, precision_told
from stabtree.tools.check.configs.sections import ALSO, INNER, LOCAL, section_kind

if TYPE_CHECKING:
    from stabtree.tools.check.configs.document import ConfigFile, Path_

# How a value says that somebody else will decide.
_OPEN = ("auto", "none", "null", "", "???")
_NOWHERE = ("report_to", "log_with", *SCALERS)  # where `none` is an answer
_DEEPER = 10  # how much worse a spelling is one section further in
_PRECISION = 5  # how much worse a bare dtype is than what names itself
_MODEL = 5  # how much worse one is among those of a model, which may be there for something else
ANY = 100  # how much worse one is in a section that no table knows
_CALLED = 50  # how much better one is in the call of a trainer than outside of it
_DEEPEST = 6
_CLASSES = ("target", "class_path")  # what is built, which may be no more than the settings of it
_BETAS = ("betas", "adam_betas", "opt_betas")
_PARTS = re.compile(r"[./]")
_SWITCH = re.compile(r"(?:use|is|enable|do|with|has)_(\w+)|(\w+)_(?:enabled?|on)")
_SAME = {"peft": ("peft", "lora"), "lora": ("peft", "lora")}  # a switch of either is one of both


@dataclass(frozen=True, slots=True)
class Spelled:
    """A value of a configuration that a key of ours is spelled by.

    Attributes:
        key: the canonical key.
        rank: how good its spelling is; the lowest counts.
        path: where it stands in the file.
        value: as it stands there; None where it is not set.
        open: whether it is set elsewhere, so that no default counts.
    """

    key: str
    rank: int
    path: Path_
    value: Any
    open: bool = False

    @property
    def is_guessed(self) -> bool:
        """Whether it stands in a section that no table knows: where two of them differ, neither counts."""
        return self.rank >= ANY


def is_open(value: Any) -> bool:
    """Whether a value is not there: null, `auto`, or what another setting is to fill in (`${...}`)."""
    return value is None or (isinstance(value, str) and (value.strip().lower() in _OPEN or "${" in value))


def spelled_in(file: ConfigFile, framework: str) -> list[Spelled]:
    """All values that a key of ours is spelled by, best spelling first; those that are left open included."""
    found = [*_section(file.values, "top", (), framework)]
    ranked = [(one.rank - _CALLED * (len(one.path) > 1 and one.path[0] in file.first), one) for one in found]
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])]


def switched_off(values: Mapping[str, Any]) -> frozenset[str]:
    """Return what flags of a section switch off: `use_peft: false` the words `peft` and `lora`."""
    found: set[str] = set()
    for key, value in values.items():
        named = _SWITCH.fullmatch(plain_word(key)) if value is False else None
        if named:
            stem = named[1] or named[2]
            found.update(_SAME.get(stem, (stem,)))
    return frozenset(found)


def _section(values: Mapping[str, Any], kind: str, path: Path_, framework: str) -> Iterator[Spelled]:
    if any(values.get(word) is False for word in ("enabled", "enable")):
        if kind == "scaler":
            yield Spelled("loss_scaling", 0, path, "none")
        return
    off = switched_off(values)
    for spelling, value in values.items():
        here = (*path, spelling)
        *sections, word = (plain_word(part) for part in _PARTS.split(str(spelling)))
        inner = _inside(kind, sections)
        if not inner or _is_off(word, off):
            continue
        if isinstance(value, Mapping):
            deeper = _inside(inner, [word])
            if deeper and len(here) <= _DEEPEST:
                yield from _section(value, deeper, here, framework)
        else:
            yield from _leaf(word, inner, here, value, framework)


def _is_off(word: str, off: frozenset[str]) -> bool:
    return any(word == stem or word.startswith(f"{stem}_") for stem in off)


def _inside(kind: str, words: list[str]) -> str:
    """The kind of a section within others; empty where one is of something else."""
    for word in words:
        if word in INNER and kind != "top":
            continue
        found = section_kind(word)
        kind = _in_known(kind, word, found)
        if not kind:
            break
    return kind


def _in_known(kind: str, word: str, found: str) -> str:
    """The kind of a section in another; of one that no table knows only where it may be of the training as a whole."""
    if found != "any" or (kind in ("top", "training", "any") and not word.startswith(("val_", "eval_", "test_"))):
        return found
    return ""


def _leaf(word: str, kind: str, path: Path_, value: Any, framework: str) -> Iterator[Spelled]:
    depth = _DEEPER * (len(path) - 1) + _MODEL * (kind == "model") + ANY * (kind == "any")
    if word in _BETAS and kind in ("top", "training", "optimizer", "any"):
        yield from _betas(value, depth, path)
        return
    if isinstance(value, list) and len(value) == 1:  # one for each phase, or each group of weights
        value = value[0]
    left_open = _is_left_open(word, value)
    found_precision = {} if left_open else precision_told(word, kind, value, framework)
    for key, inner in found_precision.items():
        yield Spelled(key, depth + _PRECISION * (word == "dtype"), path, inner)
    if not found_precision and (found := _key(word, kind, framework)):
        yield Spelled(found[0], found[1] + depth, path, None if left_open else value, left_open and value is not None)


def _is_left_open(word: str, value: Any) -> bool:
    """Whether a value is not there, and its key is none of those that `none` is an answer to."""
    return is_open(value) and not (word in _NOWHERE and value == "none")


def _betas(value: Any, depth: int, path: Path_) -> Iterator[Spelled]:
    """Yield the first two betas of a list, or of a text that spells one."""
    if isinstance(value, str):
        value = literal(value)
    if not isinstance(value, list | tuple):
        return
    for place, beta in enumerate(value[:2]):
        yield Spelled(f"beta{place + 1}", depth, path, beta)


def _key(word: str, kind: str, framework: str) -> tuple[str, int] | None:
    """(canonical key, rank) of a word in a section of some kind."""
    if kind not in ("optimizer", "schedule"):
        own = framework_called(framework).config
        if word in own.keys:
            return (own.keys[word], 0)
        if word in own.ignored:
            return None
    if word in LOCAL[kind]:
        return LOCAL[kind][word], int(word in _CLASSES)
    found = PLACE.get(word)
    if not found and not framework:
        found = LOOSE.get(squeezed(word))
    if found and (found[0] in ALSO[kind] or "*" in ALSO[kind]):
        return found
    return None
