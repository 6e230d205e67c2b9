"""A question and its leaf in one, as a file may write them; `compose` splits them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass

# `kinds` reads the hints: their classes must be there.
from stabtree.tree.document import Cause, Decide  # noqa: TC001
from stabtree.tree.model import Severity, Take

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.facts.registry import Param


@dataclass(frozen=True, slots=True)
class Check:
    """A question with the leaf that it ends at, which `compose.expand_checks` expands.

    Attributes:
        id: the question's id.
        leaf: the leaf's id, for any verdict but no and unknown.
        ask: the question.
        short: the question in at most `SHORT` characters.
        title: the diagnosis.
        headline: as in a leaf.
        severity: how bad it is.
        means: what it means.
        when: as in a section; without it the check applies to every run.
        section: the section that it belongs to, if it is asked on the way there; else it has its own.
        then: where the walk goes on for no and unknown; by default to the ok leaf of its tree.
        severities: verdict -> severity, for verdicts that are to end at a milder leaf (`<leaf>-<verdict>`).
        needed: whether a run that the check applies to counts as judged only with its answer.
    """

    id: str
    leaf: str
    ask: str
    title: str
    severity: Severity
    means: str
    fixes: tuple[str, ...]
    source: str
    short: str = ""
    headline: str = ""
    when: tuple[str, ...] = ()
    why: str = ""
    rule: str = ""
    test: str = ""
    params: Mapping[str, Param] = field(default_factory=dict)
    advanced: Mapping[str, Param] = field(default_factory=dict)
    like: str = ""
    person: str = ""
    causes: tuple[Cause, ...] = ()
    decide: Decide | None = None
    restart: bool = False
    take: Take = Take.BEFORE
    events: tuple[str, ...] = ()
    lasting: bool = False
    unjudged: bool = False
    see: tuple[str, ...] = ()
    section: str = ""
    then: str = ""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    needed: bool = False
