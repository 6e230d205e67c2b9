"""What the lines of a log report besides its metrics: errors, and how the program ended."""

from __future__ import annotations

import math
import re
from time import process_time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.endings import (
    EXCEPTION,
    EXIT_STATUS,
    FINISHED,
    INTERRUPTED,
    NAN_STOP,
    UNCLEAR,
    ending_of,
    endings_of,
)
from stabtree.common.stats import interval
from stabtree.common.text import clean
from stabtree.measures.registry import Pattern, measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.run import LogLine, Run, Series

SURVIVED = "survived"
TRACKED = "(W&B)"  # after the exit code that this tracker recorded
RECORDED = "recorded"
SAVED = "saved"
CHECKPOINT_LOG = "trainer_state"  # the format of a log that is written into each checkpoint
NAMED = 5  # no limit
QUOTED = 160  # no limit
RAISED = re.compile(r"(?<![\w.])(?:\w+\.){0,5}\w{0,60}(?:Error|Exception)\b\s*(?::.*|$)")
EXIT_CODE = re.compile(r"(?i:code|status|error)\W{1,3}(-?\d{1,3})\b")
# The head of a traceback does not show what was raised.
HEAD = "Traceback (most recent call last)"
# Between the tracebacks of a chain: what is raised last is what ended the run.
CHAINED = re.compile(r"During handling of the above exception|The above exception was the direct cause", re.IGNORECASE)
# What a pattern that `tree check` lets pass may cost on lines made to slow it down.
LINE = 300  # no limit
SECONDS = 2.0  # no limit
ROWS = 2  # no limit: of a log up to its planned end: the row at that end itself need not be logged


@measure(source="stabtree", labels=(YES, SURVIVED, NO), rule="a line of the log matches {pattern}")
def line_says(run: Run, *, pattern: Pattern = "", ends: bool = True) -> Answer:
    """Does a line of the text log match the pattern?

    The pattern is a regular expression, searched without regard to case in the lines that the loader kept because they
    may report errors; `stabtree tree check` refuses one that could take forever on some line. With `ends` a line
    counts as what ended the run only where no row of metrics comes after it: else the run has `survived` it. What a
    run prints after it was stopped by hand is ignored.
    """
    if not run.lines:
        return _no_lines()
    search = re.compile(pattern, re.IGNORECASE).search
    found = []
    until = process_time() + SECONDS
    for line in _before_stop(run.lines) if pattern else ():
        if search(line.text[:LINE]):
            found.append(line)
        if process_time() > until:
            return unknown(f"its pattern took more than {SECONDS:g} s on the lines of the log")
    if not found:
        return _nothing(run)
    last = [line for line in found if line.at_end] if ends else found
    return Answer(YES if last else SURVIVED, (_quoted(last or found),))


@measure(source="stabtree", labels=(YES, SURVIVED, NO), rule="a line at the end of the log reports {ending}")
def ended_by(run: Run, *, ending: str = EXCEPTION) -> Answer:
    """Does a line of the log report that the program ended in this way?

    The endings are those of stabtree's own table: `killed`, `time-limit`, `exception` and so on. A line has one, the
    most specific, and ended the run only where no row of metrics comes after it: else the run has `survived` it. What a
    run prints after it was stopped by hand, the traceback of that included, is ignored.
    """
    if not run.lines:
        return _no_lines()
    found = [line for line, named in _endings(run).items() if named == ending]
    if not found:
        return _nothing(run)
    last = [line for line in found if line.at_end]
    matched = last or found
    quoted = _quoted(matched, raised := _raised(run.lines, matched))
    if ending == NAN_STOP and not quoted.brief:  # its own words are the reason
        quoted = replace(quoted, brief=clean(raised.text, QUOTED))
    return Answer(YES if last else SURVIVED, (quoted,))


@measure(
    source="stabtree",
    labels=(YES, SURVIVED, RECORDED, NO),
    rule="the log ends with the word or code of a failure and no other ending; recorded: only a tracker has the code",
)
def failed_without_reason(run: Run) -> Answer:
    """Does the log report that the program failed, and not how?

    A code does not count beside another ending, whose consequence it is, and the run has `survived` what comes before
    a row of metrics or after the last of the planned steps. It is `recorded` where a tracker alone has the code of a
    run that is not known to have stopped short: such a code may be of what came after training. That the run failed,
    in so many words, is a failure whoever says so. Unknown where the last lines say that something failed, and neither
    whether that ended the run nor that it finished.
    """
    if not run.lines:
        return _no_lines()
    ended = _endings(run)
    ends = {line: named for line, named in ended.items() if line.at_end and named}
    named_last = next(reversed(ends.values()), "")
    explained = named_last == FINISHED or not {*ends.values()} <= {EXIT_STATUS, UNCLEAR, FINISHED}
    found = [line for line, named in ended.items() if named == EXIT_STATUS and not (explained and line.at_end)]
    if not found and UNCLEAR in ends.values() and not (explained or _done(run)):
        line = next(line for line, named in reversed(ends.items()) if named == UNCLEAR)
        return unknown(f"how did the run end? {_quoted([line]).text}")
    if not found:
        return _nothing(run)
    last = [line for line in found if line.at_end and not _done(run)]
    evidence = _quoted(last or found)
    if not last:
        return Answer(SURVIVED, (evidence,))
    code = EXIT_CODE.search(last[0].text[:LINE])
    brief = f"exit code {code[1]} after {run.reached}" if code else ""
    evidence = replace(evidence, text=f"{evidence.text}, after {run.reached}", brief=brief)
    tracked = all(line.text.endswith(TRACKED) for line in last)
    printed = code is None or math.isfinite(run.planned_step) or not tracked
    return Answer(YES if printed else RECORDED, (evidence,))


def _endings(run: Run) -> dict[LogLine, str]:
    """Return the ending that each line reports, up to where the run was stopped by hand.

    What Python ignores, an error in a destructor while it shuts down, ended nothing.
    """
    found: dict[LogLine, str] = {}
    ignored = False
    for line in _before_stop(run.lines):
        if ignored:  # its traceback, and the error that ends that
            ignored = line.source or HEAD in line.text
            continue
        ignored = "Exception ignored in" in line.text
        found[line] = "" if ignored else ending_of(line.text, last=line.at_end)
    return found


@measure(
    source="stabtree",
    labels=(YES, SAVED, NO),
    rule="the last row is before {share:.0%} of the planned steps; saved: the log was saved with a checkpoint",
)
def stops_short(run: Run, loss: Series, *, share: float) -> Answer:
    """Does the log stop long before the planned steps are done, and no line of it says why?

    Not asked where the loss is lost at the end, which may be why, and of a stretch of a longer log. The last planned
    steps are often not logged, and a log is written every so many steps. `saved`: the log was written into a
    checkpoint, and can't say how the run went on.
    """
    if run.goes_on:
        return inapplicable("the log goes on after this stretch")
    lost = any(gap.metric == "loss" and gap.at_end for gap in run.gaps)
    if lost or not math.isfinite(loss.values[-1]):
        return inapplicable("the loss is lost or not finite at the end: that may be why the run ended")
    last, planned, where = run.last_step or 0, run.planned_step, run.reached
    evidence = Evidence(f"the log stops at {where}", "loss", (last,), last / max(planned, 1.0), share, brief=where)
    if last >= share * planned or last + ROWS * interval(loss.steps) >= planned:
        return Answer(NO, (evidence,))
    said = [line for line, named in _endings(run).items() if named == FINISHED or (named and line.at_end)]
    if said:
        return Answer(NO, (evidence, _quoted(said[:1])))
    snapshot = bool(run.sources) and all(source.format.startswith(CHECKPOINT_LOG) for source in run.sources)
    return Answer(SAVED if snapshot else YES, (evidence,))


def _no_lines() -> Answer:
    return unknown("the log is not a text log, or none of its lines reports an error")


def _nothing(run: Run) -> Answer:
    text = f"none of the {len(run.lines):,} lines that may report an error matches"
    return Answer(NO, (Evidence(text, "", (), 0.0, 1.0),))


def _before_stop(lines: tuple[LogLine, ...]) -> Sequence[LogLine]:
    """Return the lines up to where the run was stopped by hand at its end, without the tracebacks of that stop."""
    stop = next((at for at, line in enumerate(lines) if line.at_end and ending_of(line.text) == INTERRUPTED), None)
    if stop is None:
        return lines
    return [line for line in lines[: stop + 1] if not (line.at_end and HEAD in line.text)]


def _done(run: Run) -> bool:
    """Return whether the run made the last of its planned steps."""
    loss = run.get("loss")
    return loss is not None and len(loss) > 0 and int(loss.steps[-1]) >= run.planned_step


def _raised(lines: tuple[LogLine, ...], matched: list[LogLine]) -> LogLine:
    """Return the line to quote: the first match, or what the first chain of tracebacks raised last."""
    if not any(HEAD in line.text for line in matched):
        return matched[0]
    raised, chained = matched[0], True
    for line in lines[lines.index(matched[0]) :]:
        if CHAINED.search(line.text):
            chained = True
        elif HEAD in line.text:
            if not chained and HEAD not in raised.text:
                break  # another process, or another failure, which may be a consequence
        elif not line.source and EXCEPTION in endings_of(line.text) and (chained or HEAD in raised.text):
            raised, chained = line, False
    return raised


def _quoted(lines: list[LogLine], quoted: LogLine | None = None) -> Evidence:
    """Return the lines as evidence: their numbers, and the text of one of them, the first if no other is given."""
    quoted = quoted or lines[0]
    quote = quoted.text if len(quoted.text) <= QUOTED else quoted.text[: QUOTED - 1] + "…"
    numbers = ", ".join(f"{line.line:,}" for line in lines[:NAMED])
    more = f" and {len(lines) - NAMED} more" if len(lines) > NAMED else ""
    text = f"line{'s' if len(lines) > 1 else ''} {numbers}{more}: {quote}"
    if not quoted.line:  # a status that was recorded, not printed
        text = quote
    elif quoted is not lines[0]:
        text = f"line {quoted.line:,}: {quote} (it begins at line {lines[0].line:,})"
    raised = RAISED.search(quoted.text[:LINE])
    return Evidence(text, "", (), float(len(lines)), 1.0, brief=clean(raised[0], QUOTED) if raised else "")
