"""Many runs for machines and pipes: a line of JSON each, one object, or a line of words each."""

from __future__ import annotations

import json
import re
from textwrap import indent
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean, inert, to_ascii
from stabtree.judging.outcome import ORDER, UNREAD
from stabtree.report.contract import SCHEMA
from stabtree.report.json import inert as inert_json
from stabtree.report.json import written
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.verdicts import BADGES
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.tools.fleet.record import Record

LONGEST_LINE = 400
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def jsonl(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield a line a run: the object of `diagnose --json` with its path as `source`, or why it can't be read."""
    for record in records:
        yield f"{inert_json(_NOT_ASCII.sub(_escaped, record.data.decode()))}\n"


def _escaped(found: re.Match[str]) -> str:
    """Return characters as JSON escapes: no encoding of a terminal or pipe can garble them."""
    return json.dumps(found[0])[1:-1]


def to_json(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """`{"schema": 1, "runs": [...], "verdict": worst}`, each run as in `jsonl`."""
    worst, last = str(Severity.OK), ""
    yield f'{{\n  "schema": {SCHEMA},\n  "runs": [\n'
    for record in records:
        worst = min(worst, record.verdict, key=ORDER.index)
        if last:
            yield f"{last},\n"
        last = indent(written(json.loads(record.data)).rstrip("\n"), "    ")
    if worst == UNREAD:
        worst = UNKNOWN
    yield f'{last}\n  ],\n  "verdict": "{worst}"\n}}\n'


def headlines(records: Iterable[Record], look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield a line a run, each with its path."""
    for record in records:
        line = clean(f"{BADGES[record.badge].word}  {record.name}: {headline(record)}{_leaf(record)}", LONGEST_LINE)
        if look.ascii:
            line = to_ascii(line)
        yield inert(f"{line}\n")


def headline(record: Record) -> str:
    """Return what was found and from which step on."""
    if record.badge == Severity.OK or record.onset_step is None:
        return record.title
    return f"{record.unit.capitalize()} {record.onset_step:,}: {record.title}"


def _leaf(record: Record) -> str:
    if record.leaf:
        return f" [{record.leaf}]"
    return ""
