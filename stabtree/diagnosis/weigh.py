"""The causes of a finding, weighed against everything that was observed of the run."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN, Evidence
from stabtree.common.figures import rewritten
from stabtree.common.text import clean, counting
from stabtree.context.model import Context, Known
from stabtree.diagnosis.result import CauseState, JudgedCause
from stabtree.measures.observed import Seen
from stabtree.measures.table import MEASURES
from stabtree.tree.tables import CONFIG, CONTEXT, condition, tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.answer import Answer
    from stabtree.measures.registry import Measured
    from stabtree.tree.model import Kind
    from stabtree.tree.tables import Cause

LIKELY, AGAINST_NEXT = 0.6, 3.0
"""How likely a cause and what goes with it must be to be called likely, and how many times more than any rival."""
GONE = 0.25  # a cause that lost so much of what it was before is told no more
SHOWN_BESIDE = 0.9  # of the first: a second cause is told only where it is as good as equal
THOUGHT_OF = 0.05  # a cause that is usual in so many findings of a kind is one that a user thinks of
PROVEN = math.exp(3)


class Observations:
    """What was observed of a run at one finding; each thing is looked for when it is first asked for.

    Args:
        facts: what was measured, at the event of the finding.
        answers: the answers of the walk, by question.
    """

    def __init__(self, facts: Measured, answers: Mapping[str, Answer]) -> None:
        self.facts, self.answers = facts, answers
        self._known: dict[str, Seen | None] = {}

    def get(self, name: str) -> Seen | None:
        """Return an observation by its name: an answer, a part of the context, a setting or a measure."""
        if name not in self._known:
            self._known[name] = self._look(name)
        return self._known[name]

    def _look(self, name: str) -> Seen | None:
        if name in self.answers:
            return _as_seen(self.answers[name])
        if name.startswith(CONTEXT):
            return self._context(name.removeprefix(CONTEXT))
        if name.startswith(CONFIG):
            found = self.facts.run.config.get(name.removeprefix(CONFIG))
            if found is None:
                return None
            value = found.value if isinstance(found.value, int | float | str) else str(found.value)
            return Seen(value, f"{found.spelled or name.removeprefix(CONFIG)} is {clean(value, 40)}")
        if name not in MEASURES:  # a question that was not asked
            return None
        measure = MEASURES[name]
        if measure.verdicts:
            return _as_seen(measure.answer(self.facts, {}, "observation", name))
        found = self.facts.get(name)
        if not isinstance(found, Seen):
            return None
        return replace(found, text=counting(rewritten(found.text), self.facts.unit))

    def _context(self, part: str) -> Seen | None:
        context = self.facts.get("context")
        known = getattr(context, part, None) if isinstance(context, Context) else None
        if part == "precision":  # a fact of its own, so that what is found in another one is not that of the context
            known = self.facts.get("precision")
        if not isinstance(known, Known) or known.value is None:
            return None
        text = f"{part} {known.value}: {known.why}" if known.why else f"{part} {known.value}"
        return Seen(known.value, text, of_task=part in ("task", "optimizer"))

    def met(self, text: str) -> Seen | None:
        """Return what meets a condition; None where nothing is known to."""
        wanted = condition(text)
        seen = self.get(wanted.name)
        return seen if seen is not None and wanted.met(seen.value) else None


def _as_seen(answer: Answer) -> Seen | None:
    """Return what an answer says as an observation; None where it is unknown."""
    if answer.verdict == UNKNOWN or not answer.evidence:
        return None
    first = answer.evidence[0]
    return Seen(answer.verdict, first.text, first.metric, first.steps)


class Weighed(NamedTuple):
    """A cause with how likely it is.

    Attributes:
        cause: the cause.
        prior: how likely it was before anything was known, of those that explain the kind.
        p: how likely it is.
        found: what was observed of it, each with its factor, the strongest first.
        proof: what proves it; None where nothing does.
    """

    cause: Cause
    prior: float
    p: float
    found: tuple[tuple[float, Seen], ...]
    proof: Seen | None = None


def weigh(kind: Kind, observed: Observations) -> tuple[Weighed, ...]:
    """Return the causes that explain a kind of finding, likeliest first.

    What was not logged changes nothing. Of observations that tell the same only the strongest counts.
    """
    rows = [cause for cause in tables().causes.values() if kind in cause.explains]
    before = sum(cause.explains[kind] for cause in rows)
    known = []
    for cause in rows:
        found = tuple(_strongest(cause, observed))
        proof = next((seen for text in cause.proof if (seen := observed.met(text)) is not None), None)
        weight = cause.explains[kind] * math.prod(factor for factor, _ in found) * (PROVEN if proof else 1.0)
        known.append(Weighed(cause, cause.explains[kind] / before, weight, found, proof))
    whole = sum(one.p for one in known)
    return tuple(sorted((one._replace(p=one.p / whole) for one in known), key=attrgetter("p"), reverse=True))


def _strongest(cause: Cause, observed: Observations) -> Iterator[tuple[float, Seen]]:
    """Yield what was observed of a cause with its factor, of each group the strongest, the strongest first."""
    best: dict[str, tuple[float, Seen]] = {}
    for text, factor in cause.evidence.items():
        name = condition(text).name
        group = tables().group_of.get(name, name)
        if abs(math.log(factor)) <= abs(math.log(best[group][0] if group in best else 1.0)):
            continue
        seen = observed.met(text)
        if seen is not None:
            best[group] = (factor, seen)
    yield from sorted(best.values(), key=lambda item: -item[0])


def judged(weighed: Sequence[Weighed]) -> tuple[JudgedCause, ...]:
    """Return the causes to tell: the first, a second one where it is nearly as likely, and at most one that is out.

    The first is confirmed by a proof; it is likely where it and what goes with it leave no rival near.
    """
    if not weighed:
        return ()
    whole: dict[str, float] = {}
    for item in weighed:
        whole[item.cause.wider] = whole.get(item.cause.wider, 0.0) + item.p
    first = max(weighed, key=lambda item: (whole[item.cause.wider], item.p))
    family = tables().family_of[first.cause.wider]
    own = sum(p for name, p in whole.items() if name in family)
    rival = max((p for name, p in whole.items() if name not in family), default=0.0)
    if first.proof is not None:
        told = [_told(first, CauseState.CONFIRMED)]
    elif (
        own >= LIKELY
        and own >= AGAINST_NEXT * rival
        and any(factor > 1 for item in weighed if item.cause.wider in family for factor, _ in item.found)
    ):
        told = [_told(first, CauseState.LIKELY)]
    else:
        told = [_told(first, CauseState.POSSIBLE)]
        others = (item for item in weighed if item.cause.wider != first.cause.wider)
        second = max(others, key=lambda item: whole[item.cause.wider], default=None)
        if second and whole[second.cause.wider] >= SHOWN_BESIDE * whole[first.cause.wider]:
            told.append(_told(second, CauseState.POSSIBLE))
    out = [item for item in weighed if item.p < GONE * item.prior and item.prior >= THOUGHT_OF and item.found]
    out = [item for item in out if item.found[-1][0] < 1 and not item.found[-1][1].of_task]
    if out:
        told.append(_told(max(out, key=lambda item: item.prior), CauseState.RULED_OUT))
    return tuple(told)


def _told(item: Weighed, state: CauseState) -> JudgedCause:
    seen = [seen for factor, seen in item.found if factor > 1]
    if state is CauseState.RULED_OUT:
        seen = [item.found[-1][1]]
    if item.proof is not None:
        seen = [item.proof, *(other for other in seen if other is not item.proof)]
    evidence = (Evidence(one.text, one.metric, one.steps) for one in seen)
    return JudgedCause(item.cause, state, tuple(dict.fromkeys(evidence)), item.p)
