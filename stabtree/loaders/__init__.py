"""Reads what a trainer logged: any supported file, several ranks, or the folder of a run.

A format is one module with `sniff` and `read`, one line in `formats.LOADERS` and its places in `formats.RANKS`.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from stabtree.errors import StabtreeError
from stabtree.loaders.assemble.columns import to_rows
from stabtree.loaders.assemble.placeholders import meant
from stabtree.loaders.assemble.ranks import Assembled, assemble
from stabtree.loaders.config import dtype as canonical_dtype
from stabtree.loaders.formats import LOADERS, Loader
from stabtree.loaders.paths.checkpoints import checkpoint_steps
from stabtree.loaders.paths.read import read_files
from stabtree.metrics.names import named
from stabtree.run import FileUse, Gap, Resume, Run, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LOADERS", "Loader", "load_run"]


def load_run(
    *paths: str | Path,
    dtype: str | None = None,
    checkpoint_every: int | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    step_column: str | None = None,
    format: str | None = None,  # noqa: A002
    run: str | None = None,
    checkpoints: str | Path | None = None,
) -> Run:
    """Read a run from the files that its trainer wrote.

    Args:
        paths: a metrics file, a manifest, or the folder of a run; `-` reads standard input. Several files are
            the ranks of one run, or its parts if each holds its own stretch of steps.
        dtype: the precision of the run (`fp32`, `fp16`, `bf16`, `fp8`), whatever a manifest says.
        checkpoint_every: steps between two checkpoints, whatever a manifest says.
        columns: metric -> column, for columns whose names are not known: `{"loss": "train/nll"}`.
        step_column: the column that holds the steps.
        format: the name of a loader, where sniffing the content errs.
        run: which run, where a file or folder holds several.
        checkpoints: the folder of the run's checkpoints; their steps are read from their names.

    Returns:
        The run. All that was skipped, assumed or changed is in its `notes` and `sources`.

    Raises:
        StabtreeError: where a file can't be read as metrics, or an argument is wrong.
    """
    if not paths:
        raise StabtreeError("no file to read", hint="name a metrics file, a manifest or the folder of a run")
    overrides = _overrides(dtype, checkpoint_every, checkpoints)
    names = named(columns, step_column)
    found = read_files(paths, names, format, run)
    # A text log may hold nothing but the error that the run ended in.
    silent = [table for table in found.tables if not table.rows and table.lines]
    rows = [to_rows(table, names) for table in found.tables if table not in silent]
    made = assemble(rows) if rows else Assembled({})
    settings = {**found.settings, **overrides}
    name = settings.pop("name", None)
    series, meanings = meant(made.series, settings)
    return Run(
        name=str(name.value) if name else found.name,
        series=series,
        config=settings,
        gaps=made.gaps,
        ranks={rank: meant(own, settings)[0] for rank, own in (made.ranks or {}).items()},
        resumes=made.resumes,
        lines=tuple(line for table in found.tables for line in table.lines),
        sources=tuple(part.source for part in rows),
        notes=tuple(
            dict.fromkeys(
                (
                    *found.notes,
                    *(note for table in silent for note in table.notes),
                    *(note for part in rows for note in part.notes),
                    *made.notes,
                    *meanings,
                    *(_unread(part.source) for part in rows if part.source.skipped_count),
                    *(_went_back(resume) for resume in made.resumes[:5]),
                    *(_silent(gap) for gap in made.gaps[:5]),
                )
            )
        ),
    )


def _unread(source: FileUse) -> str:
    first = source.skipped[0]
    lines = f"{source.skipped_count:,} line{'s' if source.skipped_count != 1 else ''}"
    return f"Not read of {source.path}: {lines}, the first is line {first.line:,}, which {first.reason}."


def _went_back(resume: Resume) -> str:
    rows = f"{resume.replaced_rows:,} row{'s' if resume.replaced_rows != 1 else ''}"
    return f"A resume: after step {resume.from_step:,} the log goes back to {resume.to_step:,} and replaces {rows}."


def _silent(gap: Gap) -> str:
    rows = f"{gap.rows:,} row{'s' if gap.rows != 1 else ''}"
    return f"{gap.metric} is missing in {rows} of steps {gap.first_step:,} to {gap.last_step:,} while the log goes on."


def _overrides(dtype: str | None, checkpoint_every: int | None, checkpoints: str | Path | None) -> dict[str, Setting]:
    overrides = {}
    if dtype is not None:
        overrides["dtype"] = Setting(canonical_dtype(dtype), "--dtype")
    if checkpoint_every is not None:
        if isinstance(checkpoint_every, bool) or checkpoint_every < 1:
            raise StabtreeError(
                f"{checkpoint_every} is no number of steps",
                where="--checkpoint-every",
                hint="give a number from 1 on",
            )
        overrides["checkpoint_every"] = Setting(int(checkpoint_every), "--checkpoint-every")
    if checkpoints is not None:
        overrides["checkpoints"] = Setting(checkpoint_steps(Path(checkpoints)), "--checkpoints")
    return overrides
