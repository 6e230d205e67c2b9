"""What a scan reads first: the paths that were typed, here or at an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.loaders.paths.find import Unit
from stabtree.loaders.paths.several import expanded, units_of
from stabtree.tools.fleet.remote.addresses import expanded as expanded_address
from stabtree.tools.fleet.remote.addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Sequence


def units(given: Sequence[str]) -> list[Unit]:
    """Return what paths, patterns and addresses name, each once.

    Raises:
        StabtreeError: where an address can't be opened.
    """
    far: list[Unit] = []
    near: list[str] = []
    for path in given:
        if is_address(path):
            far += [_remote(*one) for one in expanded_address(path)]
        else:
            near += expanded(path)
    return [*units_of(near), *dict.fromkeys(far)]


def _remote(address: str, is_folder: bool) -> Unit:
    folder, _, name = address.rpartition("/")
    if is_folder:
        return Unit(address)
    return Unit(folder, (name,), named=True)
