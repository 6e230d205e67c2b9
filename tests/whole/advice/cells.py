"""The table of `cells.yaml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALARMS = ("warning", "critical")


@dataclass(frozen=True, slots=True)
class Cell:
    """What the first screen of a made run must say and must not say.

    Attributes:
        kind: the kind of run.
        failure: what goes wrong in it.
        verdict: the verdicts that are right.
        leaf: the leaves that may lead; empty where nothing is to be found.
        first: the words of which the first action has one; None where any will do.
        banned: what is not on the screen.
        no_restart: whether to restart would be wrong.
    """

    kind: str
    failure: str
    verdict: tuple[str, ...]
    leaf: tuple[str, ...]
    first: re.Pattern[str] | None
    banned: tuple[re.Pattern[str], ...]
    no_restart: bool

    def __str__(self) -> str:
        return f"{self.kind}/{self.failure}"


@cache
def cells() -> tuple[Cell, ...]:
    """All cells."""
    table = yaml.safe_load(Path(__file__).with_name("cells.yaml").read_text(encoding="utf-8"))
    return tuple(
        _cell(kind, failure, {**table["failures"][failure], **own}, known["not"])
        for kind, known in table["kinds"].items()
        for failure, own in known["cells"].items()
    )


def _cell(kind: str, failure: str, expected: Mapping[str, Any], banned: list[Any]) -> Cell:
    words = (*_flat(banned), *expected.get("not", ()))
    return Cell(
        kind=kind,
        failure=failure,
        verdict=tuple(expected.get("verdict", ALARMS)),
        leaf=tuple(expected.get("leaf", ())),
        first=_pattern(expected["first"]) if "first" in expected else None,
        banned=tuple(map(_pattern, words)),
        no_restart=expected.get("restart") == "none",
    )


def _flat(words: list[Any]) -> Iterator[str]:
    """Yield the words, those of a list of the table among them."""
    for word in words:
        if isinstance(word, list):
            yield from word
        else:
            yield str(word)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)
