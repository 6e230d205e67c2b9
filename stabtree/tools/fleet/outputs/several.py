"""The outputs of several runs: as of a scan; worst first for people, in their own order for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.judging.outcome import ORDER, Outcome
from stabtree.report.outputs import CSV, HEADLINE, HTML, JSON, JSONL, MARKDOWN, RECORDS, output
from stabtree.tools.fleet.outputs.records import records
from stabtree.tools.fleet.outputs.table import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.options import RenderOptions
    from stabtree.tools.fleet.record import Record

    Pieces = Callable[[Iterable[Record], RenderOptions], Iterator[str]]


def screen(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return the table for a terminal, all of it."""
    return _worst_first(outcomes, look, whole)


def markdown(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return the table in Markdown."""
    return _worst_first(outcomes, look, output(RECORDS, MARKDOWN))


def html(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return the page of all runs."""
    return _worst_first(outcomes, look, output(RECORDS, HTML))


def headline(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return a line a run."""
    return _in_order(outcomes, look, HEADLINE)


def json(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return the JSON of all runs."""
    return _in_order(outcomes, look, JSON, complete=True)


def jsonl(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return a line of JSON a run."""
    return _in_order(outcomes, look, JSONL, complete=True)


def csv(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return a row a run, below a header."""
    return _in_order(outcomes, look, CSV)


def one_jsonl(diagnosis: Diagnosis, look: RenderOptions) -> str:
    """Return the line of JSON of one run."""
    return jsonl([_outcome(diagnosis)], look)


def one_csv(diagnosis: Diagnosis, look: RenderOptions) -> str:
    """Return the row of one run, below a header."""
    return csv([_outcome(diagnosis)], look)


def _outcome(diagnosis: Diagnosis) -> Outcome:
    name = next((source.path for source in diagnosis.run.sources), diagnosis.run.name)
    return Outcome(name, diagnosis)


def _worst_first(outcomes: Sequence[Outcome], look: RenderOptions, pieces: Pieces) -> str:
    ranked = sorted(records(outcomes), key=lambda record: ORDER.index(record.badge))
    return "".join(pieces(ranked, look))


def _in_order(outcomes: Sequence[Outcome], look: RenderOptions, name: str, *, complete: bool = False) -> str:
    return "".join(output(RECORDS, name)(records(outcomes, whole=complete), look))
