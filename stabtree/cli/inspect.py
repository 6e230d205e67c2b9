"""`stabtree inspect`, how a run's files are read; `stabtree info`: formats, settings, the schema of the JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from stabtree.cli.options import COLUMNS, Only, OutputOptions, Paths, ReadOptions, effective_settings, expanded, reading
from stabtree.cli.program import PlainCommand
from stabtree.cli.terminal import Busy, emit, screen

info_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


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
    from stabtree.report.json import written
    from stabtree.run import Run

    settings = effective_settings(read).settings.for_reading()
    with Busy(wanted=not out.json).doing(f"reading {', '.join(paths)}"):
        found = find_runs(*paths, ranks=read.ranks, **reading(read, settings))
    width, color = screen()
    runs = [item.run for item in found.loaded if isinstance(item.run, Run)]
    if len(runs) > 1 and len(paths) == 1:
        several = {"schema": SCHEMA, "runs": list(map(inspect_dict, runs)), **files_dict(found)}
        emit(written(several) if out.json else files_text(found, width=width, color=color))
        return
    run = only_run(found.loaded, paths[0] if len(paths) == 1 else "")
    run = replace(run, notes=(*filter(None, [settings.note]), *run.notes))
    if out.json:
        emit(written({**inspect_dict(run), **files_dict(found)}))
        return
    emit(inspect_text(run, width=width, color=color) + files_text(found, width=width, color=color))


def config(read: Annotated[ReadOptions, Only("settings")], out: Annotated[OutputOptions, Only("json")]) -> None:
    """Show the effective settings: each key and where it is from, changed thresholds, trees.

    A changed threshold is shown beside the shipped one, and each tree with a hash of its content. The first mistake in
    the file is reported with its place.
    """
    from stabtree.diagnosis.result import check_ignored
    from stabtree.judging.judge import accepted_by, of_tree, overrides
    from stabtree.judging.settings import read_settings
    from stabtree.report.inspect import config_text, effective_settings
    from stabtree.report.json import written
    from stabtree.tree.load import load_preflight, load_tree, load_trees
    from stabtree.tree.shipped import DEFAULT, PREFLIGHT, shipped

    settings = read_settings(read.settings)
    whole = load_tree(settings.tree) if settings.tree else load_trees(None, settings.trees or None)
    for walked in (whole, load_preflight(settings.trees or None)):
        applied = of_tree(settings, walked)
        overrides(walked, (), applied)
        for key, leaves in (("ignore", applied.ignore), ("accept", [item.leaf for item in applied.accept])):
            with applied.blamed(key):
                check_ignored(walked, leaves)
    files = sorted(Path(settings.trees).iterdir()) if settings.trees else []
    own = [str(path) for path in files if path.suffix in (".yaml", ".yml")]
    # `check` walks the last whatever is walked over logs.
    names = [*([settings.tree] if settings.tree else [*DEFAULT, *own]), PREFLIGHT]
    trees = [("" if name in shipped() else name, load_tree(name)) for name in names]
    effective = effective_settings(settings, trees, accepted_by(None, settings))
    width, color = screen()
    emit(written(effective) if out.json else config_text(effective, width=width, color=color))


def formats() -> None:
    """List the log formats that stabtree reads, by the names that --format takes."""
    from stabtree.loaders import LOADERS

    column = max(len(loader.name) for loader in LOADERS) + 2
    emit("\n".join(f"{loader.name:<{column}}{loader.about}" for loader in LOADERS))


def schema() -> None:
    """Print the JSON Schema of `diagnose --json` (one run, several runs, errors) and of the lines of `watch --json`."""
    from stabtree.report.contract import schema as contract

    emit(json.dumps(contract(), indent=1))


for _command, _help in (
    (formats, "List the log formats that stabtree reads."),
    (config, "Show the effective settings."),
    (schema, "Print the JSON Schema of --json."),
):
    info_app.command(cls=PlainCommand, short_help=_help)(expanded(_command))
