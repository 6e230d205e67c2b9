"""The runs at addresses, for a command that reads a few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders import Loaded, load_runs
from stabtree.tools.fleet.read import with_file_ids
from stabtree.tools.fleet.remote.mirror import fetched

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.tools.fleet.remote.mirror import Mirror


def fetched_runs(*paths: str, **how: Any) -> Sequence[Loaded]:
    """Return the runs at addresses: they are fetched while they are read, and named by their addresses.

    Raises:
        StabtreeError: where one can't be fetched, or an option of `load_runs` is wrong.
    """
    with fetched(paths) as (places, mirror):
        try:
            loaded = [*map(with_file_ids, load_runs(*places, **how)), *mirror.refused, *_unlisted(mirror)]
        except StabtreeError as error:
            raise mirror.without_mirror(error) from None
        return [mirror.without_mirror(item) for item in loaded]


def _unlisted(mirror: Mirror) -> Iterator[Loaded]:
    """Yield an error for each folder that lies too deep, or holds too much, to be fetched at once."""
    for folder in sorted(mirror.unlisted):
        problem = StabtreeError("was not looked into", where=clean(folder), hint="scan it, or name it")
        yield Loaded(folder, problem, folder)
