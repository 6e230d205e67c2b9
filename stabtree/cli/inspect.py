"""`stabtree inspect`: how a run's files are read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from msgspec.structs import replace

from stabtree.cli.options.judge import effective_settings
from stabtree.cli.options.output import OutputOptions  # noqa: TC001 - Typer reads it
from stabtree.cli.options.read import COLUMNS, Paths, ReadOptions, reading
from stabtree.cli.program.expand import Only
from stabtree.cli.shell.printing import emit, screen
from stabtree.cli.shell.progress import Busy

if TYPE_CHECKING:
    from collections.abc import Mapping


def inspect(
    paths: Paths,
    read: Annotated[ReadOptions, Only(*COLUMNS, "checkpoint_every", "run_name", "ranks")],
    out: Annotated[OutputOptions, Only("json")],
) -> None:
    """Show how a run's files are read: columns, steps, gaps, and what a full diagnosis would still need."""
    from stabtree.loaders import find_runs
    from stabtree.loaders.paths.load import only_run
    from stabtree.report.contract import SCHEMA
    from stabtree.report.inspect import files_dict, files_text, inspect_dict, inspect_text
    from stabtree.run import Run

    settings = effective_settings(read).settings.for_reading()
    with Busy(wanted=not out.json).doing(f"reading {', '.join(paths)}"):
        found = find_runs(*paths, ranks=read.ranks, **reading(read, settings))
    width, color = screen()
    runs = [item.run for item in found.loaded if isinstance(item.run, Run)]
    if len(runs) > 1 and len(paths) == 1:
        several = {"schema": SCHEMA, "runs": list(map(inspect_dict, runs)), **files_dict(found)}
        emit(_json(several) if out.json else files_text(found, width=width, color=color))
        return
    run = only_run(found.loaded, paths[0] if len(paths) == 1 else "")
    run = replace(run, notes=(*filter(None, [settings.note]), *run.notes))
    if out.json:
        emit(_json({**inspect_dict(run), **files_dict(found)}))
        return
    emit(inspect_text(run, width=width, color=color) + files_text(found, width=width, color=color))


def _json(content: Mapping[str, object]) -> str:
    """Return indented JSON with a final newline."""
    return json.dumps(content, indent=2, allow_nan=False) + "\n"
