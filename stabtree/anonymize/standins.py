"""Stand-ins: the same name gets the same one, and none tells what it stands for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# No vowel and no letter that units, number formats and names of metrics are made of: `xbc` is no word of any reader.
_LETTERS = "bcdghjkqvwz"
_FIRST = "x"
# So many names fit into memory many times; a log has a few thousand.
MAX_NAMES = 2_000_000


@dataclass(slots=True)
class StandIns:
    """The stand-ins that were given so far, in the order in which the names were met.

    Attributes:
        given: how many of each kind.
        left: names beyond those that can be told apart, which share one stand-in.
    """

    given: Counter[str] = field(default_factory=Counter)
    left: int = 0
    _by_name: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, str] = field(default_factory=dict)

    def word(self, name: str, kind: str, avoid: Collection[str] = ()) -> str:
        """The stand-in of a name: letters alone, in the case of the name.

        Args:
            name: as it was written; names that differ in their case alone are one.
            kind: what to count it as, where it is new.
            avoid: words that must not become one.
        """
        key = name.lower()
        found = self._by_name.get(key)
        if found is None:
            if len(self._by_name) >= MAX_NAMES:
                self.left += 1
                return _FIRST + _LETTERS
            found = _spelled(len(self._by_name))
            if found in avoid:  # kept apart by a letter that no other has
                found += _FIRST
            self._by_name[key] = found
            self.given[kind] += 1
        if len(name) > 1 and name.isupper():
            return found.upper()
        return found.capitalize() if name[:1].isupper() else found

    def address(self, name: str) -> str:
        """The stand-in of an IPv4 address: one of a private network."""
        found = self._numbers.get(name)
        if found is None:
            number = len(self._numbers) % (1 << 24)
            found = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
            if len(self._numbers) < MAX_NAMES:
                self._numbers[name] = found
                self.given["IP addresses"] += 1
        return found


def _spelled(number: int) -> str:
    """The letters of a number: two at least, so that each has its own."""
    letters = ""
    size = len(_LETTERS)
    number += size  # from two letters on
    while True:
        letters = _LETTERS[number % size] + letters
        number = number // size - 1
        if number < 0:
            return _FIRST + letters
