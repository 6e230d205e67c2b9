"""What became of each numbered section: one answer for every output."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import YES
from stabtree.report.verdicts import Tick

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis


def ticks(diagnosis: Diagnosis) -> Iterator[tuple[str, Tick]]:
    """Yield the numbered sections of the main tree, and what became of each."""
    found = sections_found(diagnosis)
    answered = {section.id for section in diagnosis.answered}
    entered = {visit.question.section for visit in chain(diagnosis.path, *diagnosis.further)}
    entered.update(item.section.id for item in diagnosis.sections if item.walked)
    for item in diagnosis.sections:
        id_ = item.section.id
        if not id_.isdigit():
            continue
        if id_ in found:
            yield id_, Tick.FOUND
        elif id_ in answered:
            yield id_, Tick.PASSED
        elif id_ in entered:
            yield id_, Tick.OPEN
        else:
            yield id_, Tick.SKIPPED


def sections_found(diagnosis: Diagnosis) -> set[str]:
    """Return the sections in which something is wrong: those of all that was found, and those that the path crossed."""
    bad = (*diagnosis.reached, *diagnosis.ignored)
    found = {finding.section for finding in bad if finding.leaf.severity.is_alarm}
    if diagnosis.end.severity.is_alarm:
        # The path may cross sections: what leads on to the finding did not pass.
        found |= {visit.question.section for visit in diagnosis.path if visit.answer.verdict == YES}
    return found
