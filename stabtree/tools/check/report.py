"""A configuration's diagnosis in words: each finding with its value, cost, fix and source, and what was not judged."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.text import clean, in_words
from stabtree.frameworks.load import framework
from stabtree.report.text import counted
from stabtree.report.verdicts import BADGES
from stabtree.report.words import badge, finding_title, headline, ignored_counts
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Incident

LINE = re.compile(r":(\d+)(?:,|$)")  # in a source such as `config.yaml:12, optimizer.lr`


class Item(NamedTuple):
    """One finding.

    Attributes:
        severity: how bad it is.
        leaf: its id.
        title: what it is.
        now: the value that decided, where it is set, and what it was compared with.
        cost: what it costs to leave it.
        fixes: what to do, in order.
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
    """Return the findings, worst first."""
    return [_item(finding) for finding in diagnosis.findings]


def _item(finding: Incident) -> Item:
    leaf = finding.leaf
    return Item(
        leaf.severity, leaf.id, finding_title(finding), _decisive(finding), leaf.why, finding.fixes, leaf.source
    )


def _decisive(finding: Incident) -> str:
    """Return the text of the evidence that decided: that of the walk's last question."""
    if finding.evidence:
        return finding.evidence[-1].text
    return ""


def location_of(diagnosis: Diagnosis, finding: Incident) -> tuple[str, int | None]:
    """Return the file and the line of the first setting that decided; no line if the format has none."""
    text = _decisive(finding)
    quoted = sorted((text.find(f"({item.source})"), item.source) for item in diagnosis.run.config.values())
    for at, source in quoted:
        paths = [use.path for use in diagnosis.run.sources if source.startswith(PurePath(use.path).name)]
        if at >= 0 and paths:
            line = LINE.search(source)
            return paths[-1], int(line[1]) if line else None
    return "", None


def read_from(diagnosis: Diagnosis, name: str) -> list[str]:
    """Return a line for the trainer, if it is known, and one for the files, if they are not what was named."""
    lines = []
    trainer = diagnosis.run.setting("framework")
    if trainer:
        lines.append(f"Trainer: {framework(str(trainer)).name}.")
    files = [source.path for source in diagnosis.run.sources]
    if ", ".join(files) != clean(name):
        folder = f"{clean(name).rstrip('/')}/"
        lines.append(f"Read: {in_words([file.removeprefix(folder) for file in files])}.")
    return lines


def unjudged(diagnosis: Diagnosis) -> list[Unjudged]:
    """Return the rules that apply and could not be judged."""
    questions = diagnosis.tree.questions
    return [Unjudged(miss.id, questions[miss.id].ask, miss.reason) for miss in diagnosis.missing]


def coverage(diagnosis: Diagnosis, width: int = 200) -> str:
    """Return how many rules were judged and which settings are missing, those that most rules ask for first.

    Args:
        diagnosis: the diagnosis.
        width: how many characters fit.
    """
    text = f"{counted(diagnosis.judged, 'rule')} judged"
    if not diagnosis.missing:
        return text
    text = f"{text}, {len(diagnosis.missing)} not"
    missing = Counter(chain.from_iterable(miss.metrics for miss in diagnosis.missing))
    keys = [key for key, _ in missing.most_common()]
    for shown in range(len(keys), 0, -1):
        named = f"{text}: {_list(keys, shown)} not said"
        if len(named) <= width:
            return named
    return text


def _list(keys: list[str], shown: int) -> str:
    rest = len(keys) - shown
    if rest:
        return f"{', '.join(keys[:shown])} and {rest} more"
    return in_words(keys)


def summary(diagnosis: Diagnosis) -> str:
    """Return the headline of a single finding; of several the number of each severity."""
    found = Counter(str(finding.leaf.severity) for finding in diagnosis.findings)
    if found.total() < 2 or diagnosis.ignored:
        return headline(diagnosis)
    texts = {word: counted(count, word) for word, count in found.items()}
    if Severity.CRITICAL in found:  # no noun, so without a plural
        texts[Severity.CRITICAL] = f"{found[Severity.CRITICAL]} {Severity.CRITICAL}"
    return ", ".join(texts.values())


def closing(diagnosis: Diagnosis, exit_code: int | None) -> str:
    """Return the last line: the verdict, the findings, the exit code."""
    first = BADGES[badge(diagnosis)].word.lower()
    found = diagnosis.findings
    if found:
        first = f"{first}: {found[0].leaf.id}"
    if len(found) > 1:
        first = f"{first} and {len(found) - 1} more"
    parts = [first]
    if diagnosis.ignored:
        parts.append(ignored_counts(diagnosis))
    if exit_code is not None:
        parts.append(f"exit {exit_code}")
    return " · ".join(parts)
