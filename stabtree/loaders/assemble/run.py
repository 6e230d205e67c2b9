"""Tables as a run: the last step of loading."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import LARGEST
from stabtree.common.text import clean
from stabtree.loaders.assemble.columns import to_rows
from stabtree.loaders.assemble.early_end import early_end
from stabtree.loaders.assemble.placeholders import meant
from stabtree.loaders.assemble.ranks import Assembled, assemble
from stabtree.loaders.assemble.step_size import step_size
from stabtree.run import FileUse, Gap, Resume, Run, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.loaders.assemble.columns import MetricRows
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

_LR_OF = re.compile(r"(?:^|/)lr-([A-Z][A-Za-z]*)")


def run_of(
    tables: Sequence[Table], names: Names, called: str, settings: Mapping[str, Setting], notes: Sequence[str] = ()
) -> Run:
    """The run in some tables.

    Args:
        tables: one for each file, or of values in memory.
        names: what their columns mean.
        called: what to call the run if its configuration has no name.
        settings: the configuration, with its sources.
        notes: what was assumed so far.
    """
    # A text log may hold nothing but the error that the run ended in.
    silent = [table for table in tables if not table.rows and table.lines]
    alone = len(tables) - len(silent) == 1
    rows = [to_rows(table, names, alone=alone) for table in tables if table not in silent]
    made = assemble(rows) if rows else Assembled({})
    kinds = [part.loss_kind for part in rows if part.loss_kind]
    by_name = {"loss_kind": Setting(kinds[0], "the loss's name")} if kinds else {}
    settings = {**by_name, **_optimizer(rows), **settings}
    name = settings.pop("name", None)
    series, meanings = meant(made.series, settings)
    size, counted = step_size(series, settings)
    told = [*notes, *(note for table in silent for note in table.notes)]
    told += [note for part in rows for note in part.notes]
    run = Run(
        name=str(name.value) if name else called,
        series=series,
        config=settings,
        gaps=made.gaps,
        ranks={rank: meant(own, settings)[0] for rank, own in (made.ranks or {}).items()},
        resumes=made.resumes,
        lines=tuple(line for table in tables for line in table.lines),
        sources=tuple(part.source for part in rows),
        step_size=size,
        epoch_ends={step: epoch for part in rows for step, epoch in part.epoch_ends.items()},
        saved={step: line for part in rows for step, line in part.saved.items()},
        written={name: one for name, one in made.series.items() if name in series and series[name] is not one},
        notes=tuple(dict.fromkeys((*told, *made.notes, *meanings, *counted, *_lost(rows, made)))),
    )
    return replace(run, notes=(*run.notes, *_beyond(run), *early_end(run)))


def _optimizer(rows: Sequence[MetricRows]) -> dict[str, Setting]:
    """The optimizer by which a monitor of learning rates calls its column, as in `lr-AdamW` and `lr-SGD/pg1`."""
    columns = [column.name for part in rows for column in part.source.columns if column.metric == "lr"]
    found = [(match[1], name) for name in columns if (match := _LR_OF.search(name))]
    return {"optimizer": Setting(found[0][0].lower(), f"column {clean(found[0][1], 40)}")} if found else {}


def _beyond(run: Run) -> Iterator[str]:
    """The notes on values that are too large to be reckoned with as they are."""
    for name, one in run.series.items():
        if not one.labels and len(one) and float(np.nanmax(sizes := np.abs(one.values), initial=0.0)) > LARGEST:
            sizes = np.where(np.isfinite(sizes), sizes, 0.0)
            place = int(sizes.argmax())
            if sizes[place] > LARGEST:
                told = f"{name} holds values beyond {LARGEST:g}, the largest {one.values[place]:.4g} at {run.unit}"
                yield f"{told} {int(one.steps[place]):,}: they are reckoned with as {LARGEST:g}."


def _lost(rows: Sequence[MetricRows], made: Assembled) -> Iterator[str]:
    """The notes on what was not read, was replaced, or is missing."""
    yield from (_unread(part.source) for part in rows if part.source.skipped_count)
    yield from (_went_back(resume) for resume in made.resumes[:5])
    yield from (_silent(gap) for gap in made.gaps[:5])


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
