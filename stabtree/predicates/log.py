"""What a log says besides its metrics: lines that tell of errors, and seams where it went back."""

from __future__ import annotations

import re
from time import process_time
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import LIKELY, NO, YES, Answer, Evidence, unknown
from stabtree.predicates.registry import Pattern, predicate

if TYPE_CHECKING:
    from stabtree.facts.seam import Seam
    from stabtree.run import LogLine, Run, Series

SURVIVED = "survived"
NAMED = 5
QUOTED = 160
# What a pattern that `tree check` lets pass may cost on lines made to slow it down.
LINE = 300
SECONDS = 2.0


# Ctrl-C, and the head of a traceback, which says nothing of what was raised.
BY_HAND = re.compile(r"^(?:\S+\s){0,5}?KeyboardInterrupt\b")
HEAD = "Traceback (most recent call last)"


@predicate(source="stabtree", labels=(YES, SURVIVED, NO), rule="a line of the log matches {pattern}")
def line_says(run: Run, *, pattern: Pattern = "", ends: bool = True, unless_done: bool = False) -> Answer:
    """Does a line of the text log match the pattern?

    The pattern is a regular expression, searched without regard to case in the lines that the loader kept because they
    may tell of errors; `stabtree tree check` refuses one that could take forever on some line. With `ends` a line
    counts as what ended the run only where no row of metrics comes after it: else the run has `survived` it; with
    `unless_done`, also what came after the last of the planned steps, in an evaluation or while saving. What a run
    prints after it was stopped by hand, the traceback of that included, counts for nothing.
    """
    if not run.lines:
        return unknown("the log is no text log, or none of its lines tells of an error")
    look = re.compile(pattern, re.IGNORECASE).search
    found = []
    until = process_time() + SECONDS
    for line in _before_stop(run.lines) if pattern else ():
        if look(line.text[:LINE]):
            found.append(line)
        if process_time() > until:
            return unknown(f"its pattern took more than {SECONDS:g} s on the lines of the log")
    if not found:
        text = f"none of the {len(run.lines):,} lines that may tell of an error says so"
        return Answer(NO, (Evidence(text, "", (), 0.0, 1.0),))
    last = [line for line in found if line.at_end and not (unless_done and _done(run))] if ends else found
    return Answer(YES if last else SURVIVED, (_quoted(last or found),))


def _before_stop(lines: tuple[LogLine, ...]) -> tuple[LogLine, ...]:
    """The lines up to where someone stopped the run by hand at its end, without the tracebacks of that."""
    stop = next((at for at, line in enumerate(lines) if line.at_end and BY_HAND.search(line.text)), None)
    if stop is None:
        return lines
    return tuple(line for line in lines[: stop + 1] if not (line.at_end and HEAD in line.text))


def _done(run: Run) -> bool:
    """Whether the run made the last of its planned steps."""
    loss = run.get("loss")
    return loss is not None and len(loss) > 0 and int(loss.steps[-1]) >= run.planned_step


def _quoted(lines: list[LogLine]) -> Evidence:
    numbers = ", ".join(f"{line.line:,}" for line in lines[:NAMED])
    more = f" and {len(lines) - NAMED} more" if len(lines) > NAMED else ""
    told = lines[0].text if len(lines[0].text) <= QUOTED else lines[0].text[: QUOTED - 1] + "…"
    text = f"line{'s' if len(lines) > 1 else ''} {numbers}{more}: {told}"
    return Evidence(text, "", (), float(len(lines)), 1.0)


@predicate(source="what users ask for: loss continuity after a resume", labels=("jump", "gain", "no"))
def resume_seam(seam: Seam, lr: Series | None = None, loss_scale: Series | None = None, *, lr_factor: float) -> Answer:
    """Does the loss change where the run was resumed?

    `jump`: it is higher than the rows before let expect: an optimizer state, a schedule or weights that were not
    restored. `gain`: it is lower, as when data that were seen already come again. A rate that changes by more than
    `lr_factor` at the seam, or a scale that starts anew, is told with it.
    """
    told = [seam.told]
    for series, name, factor in ((lr, "lr", lr_factor), (loss_scale, "loss_scale", 1.0)):
        told += _moved(series, name, seam.step, factor)
    verdict = "jump" if seam.change > 0 else "gain"
    return Answer(verdict, tuple(told), onset_step=seam.step, last_good_step=seam.good_step)


@predicate(source="prime-diloco#97, apex#480, torchtitan#1213", labels=(LIKELY, NO))
def jump_at_resume(seam: Seam) -> Answer:
    """Does the loss jump with the first steps after a resume?"""
    return Answer(LIKELY if seam.change > 0 else NO, (seam.told,))


def _moved(series: Series | None, name: str, step: int, factor: float) -> list[Evidence]:
    """The change of a series from the row before a step to the row at it, where it is more than a factor."""
    if series is None:
        return []
    at = int(np.searchsorted(series.steps, step))
    if not 0 < at < len(series):
        return []
    old, new = float(series.values[at - 1]), float(series.values[at])
    if not (old > 0 and new > 0) or max(old / new, new / old) <= factor:
        return []
    return [Evidence(f"{name} goes from {old:.3g} to {new:.3g} there", name, (step,), new / old, factor)]
