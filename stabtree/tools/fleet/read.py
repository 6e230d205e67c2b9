"""What a scan reads, here or at addresses: the units that paths name, and the runs of a unit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stabtree.loaders.paths.find import Unit, expanded, units_of
from stabtree.loaders.paths.load import Contents, contents
from stabtree.loaders.paths.read import LoadOptions
from stabtree.loaders.paths.stored import with_inputs
from stabtree.run import Run
from stabtree.tools.fleet.remote.addresses import expanded as expanded_address
from stabtree.tools.fleet.remote.addresses import is_address
from stabtree.tools.fleet.remote.mirror import mirrored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders import Loaded


def units(given: Sequence[str]) -> list[Unit]:
    """Return what paths, patterns and addresses name, each once.

    Raises:
        StabtreeError: where an address can't be opened.
    """
    far: list[Unit] = []
    near: list[str] = []
    for path in given:
        if is_address(path):
            far += [_far(*one) for one in expanded_address(path)]
        else:
            near += expanded(path)
    return [*units_of(near), *dict.fromkeys(far)]


def _far(address: str, is_folder: bool) -> Unit:
    folder, _, name = address.rpartition("/")
    if is_folder:
        return Unit(address)
    return Unit(folder, (name,), named=True)


def read_unit(unit: Unit, how: Mapping[str, Any], roots: Sequence[str] = ()) -> Contents:
    """Read a unit.

    Args:
        unit: a folder, or loose logs of one.
        how: options of `load_run`.
        roots: the folders that are scanned, resolved.

    Raises:
        StabtreeError: for an option that is wrong whatever the log.
    """
    options = LoadOptions(**{key: value for key, value in how.items() if key != "ranks"})
    if not is_address(unit.folder):
        return contents(unit, options, roots)
    with mirrored(unit) as (mirror, near):
        found = contents(near, options, unlisted=mirror.unlisted)
        loaded = tuple(mirror.without_mirror(with_file_ids(item)) for item in found.loaded)
        return Contents((*loaded, *mirror.refused), (), mirror.addressed(found.further))


def with_file_ids(item: Loaded) -> Loaded:
    """Return a run with what identifies its files, while they are here."""
    if isinstance(item.run, Run):
        return replace(item, run=with_inputs(item.run))
    return item
