"""Tables as a run: the last step of loading."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.passes import extremes
from stabtree.common.stats import LARGEST
from stabtree.common.text import clean
from stabtree.loaders.assemble.columns import to_rows
from stabtree.loaders.assemble.placeholders import interpret
from stabtree.loaders.assemble.ranks import Assembled, assemble
from stabtree.loaders.assemble.step_size import step_size
from stabtree.metrics.final_values import NO_COURSE, is_single, nonfinite_losses
from stabtree.metrics.ranking import Ranking
from stabtree.run import Run, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stabtree.loaders.assemble.columns import MetricRows
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names
    from stabtree.run import Resume, Series

_LR_OF = re.compile(r"(?:^|/)lr-([A-Z][A-Za-z]*)")


def run_of(
    tables: Sequence[Table], names: Names, called: str, settings: Mapping[str, Setting], notes: Sequence[str] = ()
) -> Run:
    """Return the run in some tables.

    Args:
        tables: one for each file, or of values in memory.
        names: what their columns mean.
        called: what to call the run if its configuration has no name.
        settings: the configuration, with its sources.
        notes: what was assumed so far.
    """
    tables = [_without_course(table, names) for table in tables]
    rows, silent = _read(tables, names)
    made = assemble(rows) if rows else Assembled({})
    settings = {**_loss_kind(rows), **_optimizer(rows), **settings}
    name = settings.pop("name", None)
    series, meanings = interpret(made.series, settings)
    size, counted = step_size(series, settings)
    read = chain(*(table.notes for table in silent), *(part.notes for part in rows))
    run = Run(
        name=str(name.value) if name else called,
        series=series,
        others=_named_apart(made.others, series),
        config=settings,
        gaps=made.gaps,
        ranks=_ranks(made, settings),
        resumes=made.resumes,
        lines=tuple(chain.from_iterable(table.lines for table in tables)),
        sources=tuple(part.source for part in rows),
        step_size=size,
        epoch_ends=_merged(part.epoch_ends for part in rows),
        saved=_merged(part.saved for part in rows),
        loss_ranking=next((part.choice.ranking for part in rows if part.choice.ranking.candidates), Ranking()),
        written=_replaced(made.series, series),
        notes=tuple(dict.fromkeys((*notes, *read, *made.notes, *meanings, *counted, *_lost(rows, made)))),
    )
    return replace(run, notes=(*run.notes, *_too_large(run)))


def _read(tables: Sequence[Table], names: Names) -> tuple[list[MetricRows], list[Table]]:
    """Return the rows of the tables; and those tables, of text logs, that hold the error that a run ended in alone."""
    silent = [table for table in tables if not table.rows and table.lines]
    alone = len(tables) - len(silent) == 1
    return [to_rows(table, names, alone=alone) for table in tables if table not in silent], silent


def _without_course(table: Table, names: Names) -> Table:
    """Return a table of final values as lines, if one of its losses is not finite: that is worth a verdict."""
    if not is_single(table.columns, table.rows, names):
        return table
    values = {name: float(column.values[0]) for name, column in table.columns.items() if column and column.count}
    lines = nonfinite_losses(values)
    if not lines:
        return table
    return replace(table, rows=0, columns={}, lines=(*table.lines, *lines), notes=(*table.notes, NO_COURSE))


def _named_apart(others: Mapping[str, Series], series: Mapping[str, Series]) -> dict[str, Series]:
    """Return the series of no metric under names that no metric has: a second `loss` is `loss (column)`."""
    named = {f"{name} (column)" if name in series else name: one for name, one in others.items()}
    return {name: one if one.metric == name else replace(one, metric=name) for name, one in named.items()}


def _ranks(made: Assembled, settings: Mapping[str, Setting]) -> dict[str, Mapping[str, Series]]:
    """Return the series of each rank, without placeholders."""
    return {rank: interpret(own, settings)[0] for rank, own in (made.ranks or {}).items()}


def _replaced(written: Mapping[str, Series], series: Mapping[str, Series]) -> dict[str, Series]:
    """Return the series as they were written of which placeholders were interpreted."""
    return {name: one for name, one in written.items() if series.get(name, one) is not one}


def _merged(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    return dict(chain.from_iterable(part.items() for part in parts))


def _loss_kind(rows: Sequence[MetricRows]) -> dict[str, Setting]:
    """Return how the loss moves by nature, if its name says so."""
    kind = next((part.choice.kind for part in rows if part.choice.kind), "")
    return {"loss_kind": Setting(kind, "the loss's name")} if kind else {}


def _optimizer(rows: Sequence[MetricRows]) -> dict[str, Setting]:
    """Return the optimizer after which a monitor of learning rates names its column: `lr-AdamW`, `lr-SGD/pg1`."""
    for column in chain.from_iterable(part.source.columns for part in rows):
        match = _LR_OF.search(column.name)
        if column.metric == "lr" and match:
            return {"optimizer": Setting(match[1].lower(), f"column {clean(column.name, 40)}")}
    return {}


def _too_large(run: Run) -> Iterator[str]:
    """Yield the notes on values that are too large to calculate with."""
    for name, one in run.series.items():
        found = extremes(one)
        if not one.labels and max(-found.lowest, found.highest) > LARGEST:
            index = int(np.where(np.isfinite(one.values), np.abs(one.values), 0.0).argmax())
            text = f"{name} holds values beyond {LARGEST:g}, the largest {one.values[index]:.4g} at {run.unit}"
            yield f"{text} {int(one.steps[index]):,}: they are reckoned with as {LARGEST:g}."


def replaced_rows(resume: Resume) -> str:
    """Return how many rows a resume replaced, and how many of them held values that are not finite, in words."""
    rows = _counted(resume.replaced_rows, "row")
    if not resume.broken_rows:
        return rows
    return f"{rows}, {resume.broken_rows:,} of them not finite"


def _lost(rows: Sequence[MetricRows], made: Assembled) -> Iterator[str]:
    """Yield the notes on what was not read, was replaced, or is missing."""
    for source in (part.source for part in rows if part.source.skipped_count):
        first, lines = source.skipped[0], _counted(source.skipped_count, "line")
        yield f"Not read of {source.path}: {lines}, the first is line {first.line:,}, which {first.reason}."
    for resume in made.resumes[:5]:
        start = f"after step {resume.from_step:,}"
        yield f"A resume: {start} the log goes back to {resume.to_step:,} and replaces {replaced_rows(resume)}."
    for gap in made.gaps[:5]:
        steps = f"{_counted(gap.rows, 'row')} of steps {gap.first_step:,} to {gap.last_step:,}"
        yield f"{gap.metric} is missing in {steps} while the log goes on."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"
