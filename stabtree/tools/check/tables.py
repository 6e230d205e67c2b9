"""The tables of `check`, from `words.yaml`: its settings, how files spell them, and in which sections that counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from stabtree.common.yaml12 import Words, read, typed
from stabtree.loaders import config
from stabtree.loaders.config import dtype_of, flag_of, number_of, positive_of, text_of
from stabtree.run import ConfigScalar

Reader = Callable[[Any], ConfigScalar]
_NAME = re.compile(r"[\w.-]+")


def word_of(value: Any) -> str:
    """Return a text in lower case, without the modules of a Python class or the class of an enum.

    Raises:
        ValueError: for anything but a text.

    >>> word_of("torch.optim.AdamW"), word_of("IntervalStrategy.STEPS")
    ('adamw', 'steps')
    """
    return text_of(value).strip(".").rsplit(".", 1)[-1].lower()


def strategy_of(value: Any) -> str:
    """Return when a trainer evaluates, saves or logs: `no`, `steps`, `epoch`, `best`.

    Raises:
        ValueError: for anything but a text.
    """
    if value is False:
        return "no"
    word = word_of(value)
    return {"never": "no", "none": "no", "epochs": "epoch", "step": "steps"}.get(word, word)


def names_of(value: Any) -> str:
    """Return a list of names, which may be written as a text, as one text; `none` if it is empty.

    Raises:
        ValueError: if it holds something else.
    """
    names = _NAME.findall(value) if isinstance(value, str) else value
    if not isinstance(names, list):
        raise ValueError("a list of names")
    return ", ".join(dict.fromkeys(map(word_of, names))) or "none"


def switch_of(value: Any) -> bool:
    """Return true or false, also for YAML 1.1's `yes`, `no`, `on` and `off`.

    Raises:
        ValueError: for anything else.
    """
    word = str(value).lower()
    return word in ("yes", "on") or (word not in ("no", "off") and flag_of(word))


_OURS = (text_of, word_of, names_of, strategy_of, switch_of, number_of, positive_of, dtype_of)
_READERS: Mapping[str, Reader] = {reader.__name__.removesuffix("_of"): reader for reader in _OURS}
_WORDS = read(Path(__file__).with_name("words.yaml"))


def _settings() -> Iterator[tuple[str, tuple[Reader, tuple[str, ...]]]]:
    for key, line in _WORDS["settings"].items():
        how, *words = line.split()
        reader, spelled = config.KEYS.get(key, (None, ""))
        if how.endswith("+"):
            words = [*spelled.split(), *words]
        if how != "=+" or reader is None:
            reader = _READERS[how.rstrip("+")]
        yield key, (reader, tuple(words))


SETTINGS = dict(_settings())
"""Canonical key -> what reads its value (a ValueError says what it must be), and other spellings, best first."""

# `epsilon` says nothing outside of its section: it is Adam's, a policy's clipping and a layer's.
SPELLINGS = {
    word: (key, rank)
    for key, (_, others) in SETTINGS.items()
    for rank, word in enumerate((key, *others))
    if word != "epsilon"
}
"""Spelling -> its canonical key, and its rank: 0 is the best."""
_MIN_LOOSE = 7  # characters: shorter words are other people's as well


def squeezed(word: str) -> str:
    """Return a word without what people write either way: `max_epoch` and `maxEpochs` are the same.

    >>> squeezed("max_epoch") == squeezed("maxepochs")
    True
    """
    return word.replace("_", "").removesuffix("s")


LOOSE: dict[str, tuple[str, int]] = {}
"""The same by squeezed spelling, for files of no trainer that is known."""
for _word, (_key, _rank) in SPELLINGS.items():
    if len(_word) >= _MIN_LOOSE:
        LOOSE.setdefault(squeezed(_word), (_key, _rank + len(SPELLINGS)))


class SectionKind(Struct, frozen=True):
    """What counts in the sections of one kind.

    Attributes:
        named: how such sections are called.
        shared: the settings whose usual spellings count there too; `*` for all.
        own: what means something else there than at the top -> canonical key.
    """

    named: Words = Words()
    shared: Words = Words()
    own: Mapping[str, str] = {}


KINDS = typed(_WORDS["kinds"], dict[str, SectionKind], "words.yaml")
"""Kinds of sections; `any` is one that no table names, `top` the file itself."""
SCALERS = KINDS["scaler"].named
"""Words for the loss scaler itself, which is on or off."""
_KIND_BY_NAME = {name: kind for kind, found in KINDS.items() for name in found.named}
INNER = ("params", "init_args", "kwargs", "args", "config")
"""Sections within one that hold more of the same: `optimizer: {type: Adam, params: {lr: ...}}`."""

_ELSEWHERE = frozenset(_WORDS["elsewhere"].split())
_SUFFIX = re.compile(r"(?:_?config|_cfg|_?arguments|_?args|_params|_settings|_parameters|_kwargs)$")
_STAGES = ("sft", "grpo", "dpo", "ppo", "kto", "orpo", "cpo", "rloo", "reward")


def stage_of(word: str) -> str:
    """Return the stage of a training that a section is about; empty if it is about the training as a whole.

    >>> stage_of("dpo"), stage_of("SFTConfig".lower()), stage_of("training")
    ('dpo', 'sft', '')
    """
    stem = _SUFFIX.sub("", word)
    return stem if stem in _STAGES else ""


def section_kind(word: str) -> str:
    """Return the kind of a section by its name; empty if it is about something else than the training.

    >>> section_kind("optim"), section_kind("hp"), section_kind("discriminator"), section_kind("LoraConfig".lower())
    ('optimizer', 'any', '', 'adapter')
    """
    if word in _KIND_BY_NAME:
        return _KIND_BY_NAME[word]
    stem = _SUFFIX.sub("", word)
    if word not in _ELSEWHERE and stem in (*_STAGES, "seq2seqtraining", "training", "train"):
        return "training"
    return "" if {word, stem} & _ELSEWHERE else _KIND_BY_NAME.get(stem, "any")
