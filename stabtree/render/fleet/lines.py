"""Many runs for machines and pipes: a line of JSON each, one object, or a line of words each."""

from __future__ import annotations

import json
import re
from textwrap import indent
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean, inert, to_ascii
from stabtree.judging.outcome import ORDER, UNREAD
from stabtree.render.data.machine import SCHEMA, written
from stabtree.render.data.machine import inert as inert_json
from stabtree.render.look import LOOK, Look
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.judging.record import Record

LONGEST_LINE = 400
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def jsonl(records: Iterable[Record], _look: Look = LOOK) -> Iterator[str]:
    """A line a run: the object of `diagnose --json` with its path as `source`, or why it can't be read."""
    for record in records:
        yield f"{inert_json(_NOT_ASCII.sub(_escaped, record.data.decode()))}\n"


def _escaped(found: re.Match[str]) -> str:
    """Characters as JSON escapes: no encoding of a terminal or pipe can garble them."""
    return json.dumps(found[0])[1:-1]


def to_json(records: Iterable[Record], _look: Look = LOOK) -> Iterator[str]:
    """`{"schema": 1, "runs": [...], "verdict": worst}`, each run as in `jsonl`."""
    worst, last = str(Severity.OK), ""
    yield f'{{\n  "schema": {SCHEMA},\n  "runs": [\n'
    for record in records:
        worst = min(worst, record.verdict, key=ORDER.index)
        if last:
            yield f"{last},\n"
        last = indent(written(json.loads(record.data)).rstrip("\n"), "    ")
    yield f'{last}\n  ],\n  "verdict": "{UNKNOWN if worst == UNREAD else worst}"\n}}\n'


def headlines(records: Iterable[Record], look: Look = LOOK) -> Iterator[str]:
    """A line a run, each with its path."""
    for record in records:
        told = clean(f"{LOOKS[record.badge].word}  {record.name}: {headline(record)}{_leaf(record)}", LONGEST_LINE)
        yield inert(f"{to_ascii(told) if look.ascii else told}\n")


def headline(record: Record) -> str:
    """What was found and from which step on."""
    if record.badge == Severity.OK or record.onset_step is None:
        return record.title
    return f"{record.unit.capitalize()} {record.onset_step:,}: {record.title}"


def _leaf(record: Record) -> str:
    return f" [{record.leaf}]" if record.leaf else ""
