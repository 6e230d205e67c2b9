"""The runs that a command's paths hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.cli.options.read import ReadOptions, reading
from stabtree.common import extensions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.judging.settings import Settings
    from stabtree.loaders import Loaded


def loaded_runs(paths: Sequence[str], read: ReadOptions, settings: Settings) -> list[Loaded]:
    """Return the runs that paths hold, cut to the steps that are judged.

    Raises:
        StabtreeError: where an option is malformed, or nothing can be read.
    """
    from stabtree.loaders import load_runs
    from stabtree.loaders.paths.stretch import cut, stretch_of

    ends, how = stretch_of(read.steps), reading(read, settings)
    remote = any("://" in path for path in paths)
    load = extensions.function("fetched_runs") if remote else load_runs
    return [cut(item, ends) for item in load(*paths, ranks=read.ranks, **how)]
