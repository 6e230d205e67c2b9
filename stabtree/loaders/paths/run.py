"""One run, from its paths or from values in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.text import clean
from stabtree.loaders.assemble.run import run_of
from stabtree.loaders.assemble.several_runs import split
from stabtree.loaders.json.values import kept_in, values_table
from stabtree.loaders.paths.checkpoints import checkpoints_beside, named_checkpoints
from stabtree.loaders.paths.read import Found, read_files, select_run
from stabtree.loaders.paths.several import deduplicated
from stabtree.run import Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.loaders.paths.options import LoadOptions
    from stabtree.run import Run


def read_run(paths: Sequence[str | Path], options: LoadOptions, cache: dict[str, Found]) -> Run:
    """Read the one run that these paths hold.

    Args:
        paths: its files or folders.
        options: how to read them.
        cache: what was read before, by path; what is read now is added.

    Raises:
        StabtreeError: where a file can't be read, an option is wrong, or there are several runs.
    """
    found = read_files(deduplicated(paths), options.names(), options.format, options.run, cache)
    return run_found(found, options, paths)


def run_found(found: Found, options: LoadOptions, paths: Sequence[str | Path]) -> Run:
    """Return the one run in what was found, with the checkpoints beside its files or folders; raises as `read_run`."""
    settings = {**found.settings, **options.overrides()}
    run = run_of(found.tables, options.names(), found.name, settings, found.notes)
    if options.checkpoints is not None:
        return _with_named_checkpoints(run, options.checkpoints)
    return _with_checkpoints_beside(run, paths)


def values_run(values: Any, options: LoadOptions) -> Run:
    """Return the run in a DataFrame, a mapping of column to values, or a list of records; raises as `read_run`."""
    names, overrides = options.names(), options.overrides()
    table = values_table(values, names)
    kept = kept_in(values)
    settings = {**kept.config, **{key: Setting(value, table.path) for key, value in table.config.items()}}
    found = select_run(Found(table.path, split(table, names), settings), table.path, options.run)
    run = kept.added_to(run_of(found.tables, names, found.name, {**found.settings, **overrides}))
    if options.checkpoints is not None:
        return _with_named_checkpoints(run, options.checkpoints)
    return run


def _with_named_checkpoints(run: Run, folder: str | Path) -> Run:
    return replace(run, checkpoints=named_checkpoints(Path(folder)))


def _with_checkpoints_beside(run: Run, paths: Sequence[str | Path]) -> Run:
    """Add the checkpoints found beside the log, unless the user or a manifest says where checkpoints are."""
    every = run.config.get("checkpoint_every")
    given = "checkpoints" in run.config or (every and every.source == "--checkpoint-every")
    if given or any(str(path) == "-" for path in paths):
        return run
    nearest = [*(source.path for source in run.sources), *map(str, paths)]
    beside = checkpoints_beside(nearest, by_epoch=run.by_epoch, last_step=run.last_step)
    if not beside:
        return run
    where = Setting(tuple(beside), clean(Path(next(iter(beside.values()))).parent))
    return replace(run, checkpoints=beside, config={**run.config, "checkpoints": where})
