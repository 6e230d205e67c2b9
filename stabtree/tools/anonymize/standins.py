"""Stand-ins for names: the same name always gets the same one, which reveals nothing of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection

# No vowel and no letter of units, number formats and names of metrics: no reader takes `xbc` for a word.
_LETTERS = "bcdghjkqvwz"
_FIRST = "x"
# A log has a few thousand names; this many still fit into memory easily.
MAX_NAMES = 2_000_000


@dataclass(slots=True)
class StandIns:
    """The stand-ins given so far, in the order in which the names were found.

    Attributes:
        given: how many of each kind.
        left: how many names share one stand-in because there are too many.
    """

    given: Counter[str] = field(default_factory=Counter)
    left: int = 0
    _by_name: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, str] = field(default_factory=dict)

    def word(self, name: str, kind: str, avoid: Collection[str] = ()) -> str:
        """Return the stand-in of a name: only letters, in the case of the name.

        Args:
            name: as it was written; names that differ only in case share a stand-in.
            kind: what to count it as, if it is new.
            avoid: words that must not be used.
        """
        key = name.lower()
        found = self._by_name.get(key)
        if found is None:
            if len(self._by_name) >= MAX_NAMES:
                self.left += 1
                return _FIRST + _LETTERS
            found = _spelled(len(self._by_name))
            if found in avoid:  # made different by a letter that no other ends with
                found += _FIRST
            self._by_name[key] = found
            self.given[kind] += 1
        if len(name) > 1 and name.isupper():
            return found.upper()
        if name[:1].isupper():
            return found.capitalize()
        return found

    def address(self, name: str) -> str:
        """Return the stand-in of an IPv4 address: one of a private network."""
        found = self._numbers.get(name)
        if found is None:
            number = len(self._numbers) % (1 << 24)
            found = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
            if len(self._numbers) < MAX_NAMES:
                self._numbers[name] = found
                self.given["IP addresses"] += 1
        return found


def _spelled(number: int) -> str:
    """Return the stand-in of a number: at least two letters after the first, unique to the number."""
    letters = ""
    size = len(_LETTERS)
    number += size  # from two letters on
    while True:
        letters = _LETTERS[number % size] + letters
        number = number // size - 1
        if number < 0:
            return _FIRST + letters
