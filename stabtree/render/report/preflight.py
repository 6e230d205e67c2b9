"""A configuration's diagnosis in words: each finding with its value, cost, fix and source, and what was not judged."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean, in_words
from stabtree.render.report.words import badge, briefed, counted, headline, passed_over
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Finding

LINE = re.compile(r":(\d+)(?:,|$)")  # of a place: `config.yaml:12, optimizer.lr`


class Item(NamedTuple):
    """One finding.

    Attributes:
        severity: how bad it is.
        leaf: its id.
        title: what it is.
        now: the value that decided, where it stands, and what it was held against.
        cost: what it costs to leave it.
        fixes: what to do, first things first.
        source: the documents that say so.
    """

    severity: Severity
    leaf: str
    title: str
    now: str
    cost: str
    fixes: tuple[str, ...]
    source: str


class Unjudged(NamedTuple):
    """A rule that could not be judged: its question, and why."""

    id: str
    ask: str
    reason: str


def items(diagnosis: Diagnosis) -> list[Item]:
    """What was found, worst first."""
    return [_item(finding) for finding in diagnosis.findings]


def _item(finding: Finding) -> Item:
    leaf = finding.leaf
    now = finding.evidence[-1].text if finding.evidence else ""  # the walk's last question decided
    return Item(leaf.severity, leaf.id, briefed(finding), now, leaf.why, finding.fixes, leaf.source)


def place_of(diagnosis: Diagnosis, finding: Finding) -> tuple[str, int | None]:
    """The file and the line of the first setting that decided; no line where the file does not tell lines."""
    now = finding.evidence[-1].text if finding.evidence else ""
    said = [(now.find(f"({item.source})"), item.source) for item in diagnosis.run.config.values()]
    for source in (source for at, source in sorted(said) if at >= 0):
        paths = [use.path for use in diagnosis.run.sources if source.startswith(PurePath(use.path).name)]
        line = LINE.search(source)
        if paths:
            return paths[-1], int(line[1]) if line else None
    return "", None


def read_from(diagnosis: Diagnosis, name: str) -> list[str]:
    """A line that says which files were read, where they are not what was named."""
    files = [source.path for source in diagnosis.run.sources]
    if ", ".join(files) == clean(name):
        return []
    folder = f"{clean(name).rstrip('/')}/"
    return [f"Read: {in_words([file.removeprefix(folder) for file in files])}."]


def unjudged(diagnosis: Diagnosis) -> list[Unjudged]:
    """The rules that apply and could not be judged."""
    questions = diagnosis.tree.questions
    return [Unjudged(miss.id, questions[miss.id].ask, miss.reason) for miss in diagnosis.missing]


def coverage(diagnosis: Diagnosis, width: int = 200) -> str:
    """How many rules were judged, and which settings are not said, those that most rules ask for first.

    Args:
        diagnosis: the diagnosis.
        width: characters that there is room for.
    """
    visits = {visit.question.id: visit for visit in chain(diagnosis.path, *diagnosis.further)}
    judged = sum(visit.answer.verdict != UNKNOWN for visit in visits.values())
    told = f"{counted(judged, 'rule')} judged"
    if not diagnosis.missing:
        return told
    lacking = Counter(key for miss in diagnosis.missing for key in miss.metrics)
    keys = [key for key, _ in lacking.most_common()]
    told = f"{told}, {len(diagnosis.missing)} not"
    texts = [f"{told}: {_named(keys, most)} not said" for most in range(len(keys), 0, -1)]
    return next((text for text in texts if len(text) <= width), told)


def _named(keys: list[str], most: int) -> str:
    rest = len(keys) - most
    return f"{', '.join(keys[:most])} and {rest} more" if rest else in_words(keys)


def summed(diagnosis: Diagnosis) -> str:
    """What was found, where it is one thing; else how much of each severity."""
    found = Counter(str(finding.leaf.severity) for finding in diagnosis.findings)
    if found.total() < 2 or diagnosis.ignored:
        return headline(diagnosis)
    return ", ".join(
        counted(count, word) if word != Severity.CRITICAL else f"{count} {word}" for word, count in found.items()
    )


def closing(diagnosis: Diagnosis, exit_code: int | None) -> str:
    """The last line: the verdict, what was found, the exit code."""
    word = LOOKS[badge(diagnosis)].word.lower()
    found = diagnosis.findings
    more = f" and {len(found) - 1} more" if found[1:] else ""
    parts = [f"{word}: {found[0].leaf.id}{more}" if found else word]
    parts += [passed_over(diagnosis)] if diagnosis.ignored else []
    return " · ".join([*parts, *([f"exit {exit_code}"] if exit_code is not None else [])])
