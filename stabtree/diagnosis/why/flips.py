"""Which parameter would have turned a question's answer, and at which value: found by asking again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN, Answer
from stabtree.diagnosis.walk import answering
from stabtree.diagnosis.why.model import Flip
from stabtree.predicates import predicate_named
from stabtree.tree.overrides import declared, overridden
from stabtree.tree.params import fine, fits, known, settable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.diagnosis.walk import Overrides
    from stabtree.facts.registry import Param, Parameter
    from stabtree.tree.model import Question

FACTORS = (1.25, 2.0, 4.0, 16.0, 256.0)
"""So much more, and less, of a parameter is tried: what takes more is no near miss."""
CLOSE = 1.002  # the nearest value that turns an answer is told to this ratio
FEWEST_DIGITS, MOST_DIGITS = 3, 7
MOST_FLIPS = 3


def flips(diagnosis: Diagnosis, question: Question, wanted: tuple[str, ...]) -> tuple[tuple[Flip, Answer], ...]:
    """What would have turned an answer into a wanted one, each with that answer, the smallest change first.

    Parameters that only fine-tune a guard are left as they are.
    """
    ask = answering(diagnosis)
    searches = [_Search(diagnosis, question, wanted, knob, ask) for knob in _able(diagnosis, question)]
    found = [item for search in searches if (item := search.flip())]
    return tuple(sorted(found, key=lambda item: _change(item[0]))[:MOST_FLIPS])


def setting(diagnosis: Diagnosis, key: str, value: Param) -> Overrides:
    """What was set of a diagnosis, with one parameter set anew wherever it was said."""
    id_, _, name = key.rpartition(".")
    home = declared(diagnosis.tree, id_)[name][0]
    kept = {
        node: {
            known_: held
            for known_, held in given.items()
            if known_ != name or not home or declared(diagnosis.tree, node)[known_][0] != home
        }
        for node, given in diagnosis.overrides.items()
    }
    return {**kept, id_: {**kept.get(id_, {}), name: value}}


@dataclass(frozen=True, slots=True)
class Knob:
    """A parameter that a question depends on: how to set it, its declaration, its value."""

    key: str
    parameter: Parameter
    now: Param


def _able(diagnosis: Diagnosis, question: Question) -> list[Knob]:
    tree = diagnosis.tree
    predicate = predicate_named(question.test)
    if predicate is None:
        return []
    own, facts = overridden(tree, diagnosis.overrides, literal=diagnosis.literal)
    values = known(tree, question, literal=diagnosis.literal, facts=facts) | own.get(question.id, {})
    found = []
    for name, (home, parameter) in settable(predicate).items():
        now = values.get(name, parameter.default)
        guards = tree.facts[home].advanced if home in tree.facts else fine(tree, question)
        if name not in guards and now is not None and not isinstance(now, str):
            found.append(Knob(f"{home or question.id}.{name}", parameter, now))
    return found


def _change(flip: Flip) -> float:
    """How large a change is: of numbers the ratio, as a logarithm."""
    now, value = float(flip.now), float(flip.value)
    return abs(math.log(value / now)) if now > 0 and value > 0 else math.inf


@dataclass(slots=True)
class _Search:
    """Looks for the value of one parameter that turns a question's answer."""

    diagnosis: Diagnosis
    question: Question
    wanted: tuple[str, ...]
    knob: Knob
    ask: Callable[[Question, Overrides], Answer]
    answers: dict[Param, Answer] = field(default_factory=dict)

    def flip(self) -> tuple[Flip, Answer] | None:
        """The nearest value, and the answer with it."""
        if isinstance(self.knob.now, bool):
            other = not self.knob.now
            values: list[Param] = [other] if self._turns(other) else []
        else:
            values = [value for up in (True, False) if (value := self._nearest(float(self.knob.now), up)) is not None]
        made = [Flip(self.knob.key, self.knob.now, value) for value in values]
        best = min(made, key=_change, default=None)
        return (best, self.answers[best.value]) if best else None

    def _nearest(self, now: float, up: bool) -> Param | None:
        """The nearest value above, or below, that turns the answer, in as few digits as tell it."""
        far = near = now
        for value in self._tried(now, up):
            if self._turns(self._fit(value, up)):
                far = value
                break
            near = value
        else:
            return None
        while near > 0 and far > 0 and max(near / far, far / near) > CLOSE and abs(far - near) > self._least():
            middle = math.sqrt(near * far)
            if self._turns(self._fit(middle, up)):
                far = middle
            else:
                near = middle
        return self._told(far, up)

    def _tried(self, now: float, up: bool) -> Iterator[float]:
        scale = now or 1.0
        yield from (now * factor if now else scale * factor / FACTORS[-1] for factor in FACTORS if up)
        yield from (now / factor for factor in FACTORS if now and not up)

    def _least(self) -> float:
        return 1.0 if self.knob.parameter.kind is int else 0.0

    def _told(self, value: float, up: bool) -> Param:
        """A value in few digits that turns the answer still, rounded away from what it is now."""
        if self.knob.parameter.kind is int or not value:
            return self._fit(value, up)
        for digits in range(FEWEST_DIGITS, MOST_DIGITS):
            unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
            rounded = float(f"{(math.ceil if up else math.floor)(value / unit) * unit:.{digits}g}")
            if self._turns(rounded):
                return rounded
        return value

    def _fit(self, value: float, up: bool) -> Param:
        return (math.ceil(value) if up else math.floor(value)) if self.knob.parameter.kind is int else value

    def _turns(self, value: Param) -> bool:
        if value == self.knob.now or not fits(value, self.knob.parameter):
            return False
        if value not in self.answers:
            self.answers[value] = self.ask(self.question, setting(self.diagnosis, self.knob.key, value))
        verdict = self.answers[value].verdict
        return verdict in self.wanted and verdict != UNKNOWN
