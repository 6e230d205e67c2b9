"""Keys that no table knows and that are nearly one that is: `learning_rte`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.recognise import plain_word
from stabtree.tools.check.configs.keys import KEYS, PLACE, squeezed
from stabtree.tools.check.configs.precision import MODES, SCALERS
from stabtree.tools.check.configs.sections import LOCAL, section_kind

if TYPE_CHECKING:
    from stabtree.tools.check.configs.document import ConfigFile, Path_

_CLOSE = 0.85  # no limit: of difflib, where 1 is the same word
_SHORT = 7  # shorter words resemble too many others
_SPELLINGS = tuple(word for word, (key, _) in PLACE.items() if KEYS[key][1])  # without keys that no file spells
_BY_LENGTH = {length: [word for word in _SPELLINGS if len(word) == length] for length in map(len, _SPELLINGS)}
_MOST = 5000  # keys; no configuration of a person has as many
_KINDS = ("top", "training", "optimizer", "schedule")
# All that known spellings are made of: `model_type` is no slip for `model_dtype`.
_PARTS = frozenset(part for word in (*PLACE, *MODES, *SCALERS) for part in word.split("_"))


def misspelled(file: ConfigFile, framework: str, known: Collection[str]) -> tuple[Path_, str] | None:
    """Return the first key that is nearly a known one, and that one; None where there is none.

    Args:
        file: the file.
        framework: the trainer that it is for.
        known: the canonical keys that the file says, which need no other spelling.
    """
    own = framework_called(framework).config
    for path, kind in islice(_leaves(file.values, "top", ()), _MOST):
        if file.own_names and path[0] not in file.first:
            continue
        word = plain_word(path[-1])
        if (
            len(word) < _SHORT
            or _PARTS.issuperset(word.split("_"))
            or word in (*PLACE, *LOCAL[kind], *MODES, *SCALERS, *own.keys, *own.ignored)
        ):
            continue
        near = _nearest(word)
        if near and PLACE[near][0] not in known:
            return path, near
    return None


def _nearest(word: str) -> str:
    """Return the known spelling that a word is nearly; empty where none is, or it is written so by some."""
    lengths = range(len(word) - 1, len(word) + 2)
    known = chain.from_iterable(_BY_LENGTH.get(length, ()) for length in lengths)
    typos = [near for near in known if squeezed(near) != squeezed(word) and _is_typo(word, near)]
    return next(iter(get_close_matches(word, typos, 1, _CLOSE)), "")


def _is_typo(word: str, near: str) -> bool:
    """Whether a word is another one but for a letter or two: added, left out, exchanged, in the wrong order.

    >>> _is_typo("learning_rte", "learning_rate"), _is_typo("eval_step", "save_steps")
    (True, False)
    """
    start = _alike(word, near)
    if not start:
        return False
    left, right = word[start:], near[start:]
    end = _alike(left[::-1], right[::-1])
    left, right = left[: len(left) - end], right[: len(right) - end]
    return max(len(left), len(right)) <= 1 or (len(left) == 2 and left == right[::-1])


def _alike(word: str, other: str) -> int:
    """Return how many letters two words begin alike with."""
    pairs = enumerate(zip(word, other, strict=False))
    return next((at for at, (one, two) in pairs if one != two), min(len(word), len(other)))


def _leaves(values: Mapping[str, Any], kind: str, path: Path_) -> Iterator[tuple[Path_, str]]:
    for key, value in values.items():
        if not isinstance(value, Mapping):
            yield (*path, key), kind
        elif len(path) < len(_KINDS) and (deeper := section_kind(plain_word(key))) in _KINDS:
            yield from _leaves(value, deeper, (*path, key))
