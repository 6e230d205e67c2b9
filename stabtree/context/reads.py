"""Which settings of a run its facts and answers were made of: the others hold where one more setting is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from stabtree.run import Setting

T = TypeVar("T")

Reads = frozenset[str]
"""The keys of settings that were read; `ALL` where they were listed."""

ALL = "*"


def depends(reads: Reads, key: str) -> bool:
    """Return whether something was made of a setting."""
    return key in reads or ALL in reads


class NotedSettings(Mapping[str, "Setting"]):
    """A configuration that notes which of its settings are read.

    Args:
        config: the configuration.
    """

    __slots__ = ("_config", "_open")

    def __init__(self, config: Mapping[str, Setting]) -> None:
        self._config = config
        self._open: list[set[str]] = [set()]

    def noted(self, work: Callable[[], T]) -> tuple[T, Reads]:
        """Return the result of `work`, and the settings that it read."""
        self._open.append(set())
        try:
            found = work()
        finally:
            reads = frozenset(self._open.pop())
            self.note(reads)
        return found, reads

    def note(self, reads: Reads) -> None:
        """Note that settings were read, as where a fact that was made of them is handed on."""
        self._open[-1].update(reads)

    def __getitem__(self, key: str) -> Setting:
        self._open[-1].add(key)
        return self._config[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a setting, or the default where it is not there."""
        self._open[-1].add(key)
        return self._config.get(key, default)

    def __contains__(self, key: object) -> bool:
        self._open[-1].add(str(key))
        return key in self._config

    def __iter__(self) -> Iterator[str]:
        self._open[-1].add(ALL)
        return iter(self._config)

    def __len__(self) -> int:
        self._open[-1].add(ALL)
        return len(self._config)
