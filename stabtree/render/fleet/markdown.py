"""Many runs as a report for a pull request or a job's summary: the causes, then the worst runs, folded where many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.fleet.groups import HEALTHY, next_command, ordered, tally, word
from stabtree.render.fleet.table import FEW
from stabtree.render.look import LOOK, Look
from stabtree.render.markdown.text import code, escape, folded, paged, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.judging.record import Record
    from stabtree.render.fleet.groups import RunGroup, Tally

MOST_RUNS = 100  # a forge takes some 65,000 characters of a comment
MOST_GROUPS = 30


def markdown(records: Iterable[Record], _look: Look = LOOK) -> Iterator[str]:
    """Of few runs a line each, worst first; of many the causes, and the worst runs folded."""
    told = tally(records, MOST_RUNS)
    few = told.total <= FEW
    rows = ordered(told.kept if few else [record for record in told.kept if record.badge != HEALTHY])
    runs = table(("verdict", "run", "step", "what was found"), (_row(told, record) for record in rows)) if rows else ""
    head = f"The worst {len(rows):,} of {told.calling:,} runs that are not healthy"
    causes = table(
        ("verdict", "runs", "what was found", "from step", "the worst", "what to do first"),
        (_group(told, group) for group in told.groups[:MOST_GROUPS]),
    )
    yield paged(
        f"### {told.told}",
        f"in {escape(told.folder)}" if told.folder else "",
        "" if few else causes,
        runs if few else folded(head, runs) if runs else "",
        "The worst in full:" if rows else "",
        code(next_command(rows[0], "--output markdown")) if rows else "",
    )


def _group(told: Tally, group: RunGroup) -> list[str]:
    cells = (word(group.badge), f"{group.count:,}", group.told, group.steps)
    first = group.first if group.badge != HEALTHY else ""
    return [*map(escape, cells), escape(told.examples(group)), escape(first or "")]


def _row(told: Tally, record: Record) -> list[str]:
    step = "" if record.onset_step is None else f"{record.onset_step:,}"
    return [word(record.badge), escape(told.name(record)), step, escape(record.title)]
