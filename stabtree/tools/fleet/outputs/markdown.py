"""Many runs as a report for a pull request or a job's summary: the causes, then the worst runs, folded where many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.markdown import code, escape, folded, paged, table
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.tools.fleet.outputs.groups import HEALTHY, count_runs, next_command, word
from stabtree.tools.fleet.outputs.table import FEW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.tools.fleet.outputs.groups import RunGroup, Tally
    from stabtree.tools.fleet.record import Record

MAX_RUNS = 100  # a forge takes some 65,000 characters of a comment
MAX_GROUPS = 30


def markdown(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Of few runs a line each, worst first; of many the causes, and the worst runs folded."""
    tally = count_runs(records, MAX_RUNS)
    few = tally.total <= FEW
    rows = tally.listed(FEW, MAX_RUNS)
    parts = [f"### {tally.summary}"]
    if tally.folder:
        parts.append(f"in {escape(tally.folder)}")
    if not few:
        heads = ("verdict", "runs", "what was found", "from step", "the worst", "what to do first")
        parts.append(table(heads, (_group(tally, group) for group in tally.groups[:MAX_GROUPS])))
    if rows:
        runs = table(("verdict", "run", "step", "what was found"), (_row(tally, record) for record in rows))
        if not few:
            runs = folded(f"The worst {len(rows):,} of {tally.calling:,} runs that are not healthy", runs)
        parts += [runs, "The worst in full:", code(next_command(rows[0], "--output markdown"))]
    yield paged(*parts)


def _group(tally: Tally, group: RunGroup) -> list[str]:
    first = ""
    if group.badge != HEALTHY:
        first = group.first or ""
    cells = (word(group.badge), f"{group.count:,}", group.heading, group.steps, tally.examples(group), first)
    return list(map(escape, cells))


def _row(tally: Tally, record: Record) -> list[str]:
    step = ""
    if record.onset_step is not None:
        step = f"{record.onset_step:,}"
    return [word(record.badge), escape(tally.name(record)), step, escape(record.title)]
