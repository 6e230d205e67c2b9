"""A diagnosis in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.text import clean, inert, to_ascii
from stabtree.report.model import words
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.verdicts import BADGES

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis

LONGEST_LINE = 400


def headline(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the verdict in one line, with the path of the log."""
    sources = diagnosis.run.sources
    name = sources[0].path if sources else diagnosis.run.name
    if len(sources) > 1:
        name += f" and {len(sources) - 1:,} more"
    return one_line(diagnosis, name, options)


def one_line(diagnosis: Diagnosis, name: str, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the verdict of a run in one line, under the name by which the user knows it."""
    finding, more = words.main_finding(diagnosis), ""
    if finding:
        more = f" [{finding.leaf.id}]"
    elif diagnosis.misread:
        more = "; see stabtree inspect"
    word = BADGES[words.badge(diagnosis)].word
    line = clean(f"{word}  {name}: {words.headline(diagnosis)}{more}", LONGEST_LINE)
    return inert(to_ascii(line) if options.ascii else line)
