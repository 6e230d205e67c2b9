"""The runs of a unit, here or at an address, with what identifies their files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stabtree.loaders.paths.contents import Contents, contents
from stabtree.loaders.paths.inputs import with_inputs
from stabtree.loaders.paths.options import LoadOptions
from stabtree.run import Run
from stabtree.tools.fleet.remote.addresses import is_address
from stabtree.tools.fleet.remote.mirror import mirrored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders import Loaded
    from stabtree.loaders.paths.find import Unit


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
