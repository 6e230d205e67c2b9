"""What the lines of a text log say besides its metrics."""

from __future__ import annotations

import re
from time import process_time
from typing import TYPE_CHECKING

from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.predicates.registry import Pattern, predicate

if TYPE_CHECKING:
    from stabtree.run import LogLine, Run

SURVIVED = "survived"
NAMED = 5
QUOTED = 160
# What a pattern that `tree check` lets pass may cost on lines made to slow it down.
LINE = 300
SECONDS = 2.0


@predicate(source="stabtree", labels=(YES, SURVIVED, NO), rule="a line of the log matches {pattern}")
def line_says(run: Run, *, pattern: Pattern = "", ends: bool = True) -> Answer:
    """Does a line of the text log match the pattern?

    The pattern is a regular expression, searched without regard to case in the lines that the loader kept because they
    may tell of errors; `stabtree tree check` refuses one that could take forever on some line. With `ends` a line
    counts as what ended the run only where no row of metrics comes after it: else the run has `survived` it.
    """
    if not run.lines:
        return unknown("the log is no text log, or none of its lines tells of an error")
    look = re.compile(pattern, re.IGNORECASE).search
    found = []
    until = process_time() + SECONDS
    for line in run.lines if pattern else ():
        if look(line.text[:LINE]):
            found.append(line)
        if process_time() > until:
            return unknown(f"its pattern took more than {SECONDS:g} s on the lines of the log")
    if not found:
        text = f"none of the {len(run.lines):,} lines that may tell of an error says so"
        return Answer(NO, (Evidence(text, "", (), 0.0, 1.0),))
    last = [line for line in found if line.at_end] if ends else found
    return Answer(YES if last else SURVIVED, (_quoted(last or found),))


def _quoted(lines: list[LogLine]) -> Evidence:
    numbers = ", ".join(f"{line.line:,}" for line in lines[:NAMED])
    more = f" and {len(lines) - NAMED} more" if len(lines) > NAMED else ""
    told = lines[0].text if len(lines[0].text) <= QUOTED else lines[0].text[: QUOTED - 1] + "…"
    text = f"line{'s' if len(lines) > 1 else ''} {numbers}{more}: {told}"
    return Evidence(text, "", (), float(len(lines)), 1.0)
