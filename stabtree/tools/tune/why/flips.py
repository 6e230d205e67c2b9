"""Which parameter would have turned a question's answer, and at which value: found by asking again."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN, Answer
from stabtree.common.dataclass import dataclass
from stabtree.diagnosis.walk import answering
from stabtree.predicates import predicate_named
from stabtree.tools.tune.why.model import Flip
from stabtree.tree.overrides import apply_overrides, declared
from stabtree.tree.params import fine, fits, known, settable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.diagnosis.walker import Overrides
    from stabtree.facts.registry import Param, Parameter
    from stabtree.tree.model import Question

FACTORS = (1.25, 2.0, 4.0, 16.0, 256.0)
"""So much more, and less, of a parameter is tried: what takes more is no near miss."""
CLOSE = 1.002  # the nearest value that turns an answer is found to this ratio
FEWEST_DIGITS, MAX_DIGITS = 3, 7
MAX_FLIPS = 3


def flips(diagnosis: Diagnosis, question: Question, wanted: tuple[str, ...]) -> tuple[tuple[Flip, Answer], ...]:
    """Return what would have turned an answer into a wanted one, each with that answer, the smallest change first.

    Parameters that only fine-tune a guard are left as they are.
    """
    ask = answering(diagnosis)
    searches = [_Search(diagnosis, question, wanted, knob, ask) for knob in _knobs(diagnosis, question)]
    found = [item for search in searches if (item := search.flip())]
    return tuple(sorted(found, key=lambda item: _change(item[0]))[:MAX_FLIPS])


def setting(diagnosis: Diagnosis, key: str, value: Param) -> Overrides:
    """Return what was set of a diagnosis, with one parameter set anew wherever it was said."""
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


def _knobs(diagnosis: Diagnosis, question: Question) -> list[Knob]:
    tree = diagnosis.tree
    predicate = predicate_named(question.test)
    if predicate is None:
        return []
    own, facts = apply_overrides(tree, diagnosis.overrides, literal=diagnosis.literal)
    values = known(tree, question, literal=diagnosis.literal, facts=facts) | own.get(question.id, {})
    found = []
    for name, (home, parameter) in settable(predicate).items():
        now = values.get(name, parameter.default)
        guards: Collection[str]
        if home in tree.facts:
            guards = tree.facts[home].advanced
        else:
            guards = fine(tree, question)
        if name not in guards and now is not None and not isinstance(now, str):
            found.append(Knob(f"{home or question.id}.{name}", parameter, now))
    return found


def _whole(value: float, up: bool) -> int:
    if up:
        return math.ceil(value)
    return math.floor(value)


def _change(flip: Flip) -> float:
    """Return how large a change is: of numbers the ratio, as a logarithm."""
    now, value = float(flip.now), float(flip.value)
    if now > 0 and value > 0:
        return abs(math.log(value / now))
    return math.inf


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
        """Return the nearest value, and the answer with it."""
        values: list[Param] = []
        if isinstance(self.knob.now, bool):
            if self._turns(not self.knob.now):
                values.append(not self.knob.now)
        else:
            now = float(self.knob.now)
            nearest = (self._nearest(now, up=True), self._nearest(now, up=False))
            values += [value for value in nearest if value is not None]
        made = [Flip(self.knob.key, self.knob.now, value) for value in values]
        best = min(made, key=_change, default=None)
        if best:
            return (best, self.answers[best.value])
        return None

    def _nearest(self, now: float, *, up: bool) -> Param | None:
        """Return the nearest value above, or below, that turns the answer, in few digits."""
        far = near = now
        for value in self._candidates(now, up):
            if self._turns(self._fit(value, up)):
                far = value
                break
            near = value
        else:
            return None
        while near > 0 and far > 0 and max(near / far, far / near) > CLOSE and abs(far - near) > self._min_step():
            middle = math.sqrt(near * far)
            if self._turns(self._fit(middle, up)):
                far = middle
            else:
                near = middle
        return self._rounded(far, up)

    def _candidates(self, now: float, up: bool) -> Iterator[float]:
        for factor in FACTORS:
            if up:
                yield (now or 1.0 / FACTORS[-1]) * factor
            elif now:
                yield now / factor

    def _min_step(self) -> float:
        if self.knob.parameter.kind is int:
            return 1.0
        return 0.0

    def _rounded(self, value: float, up: bool) -> Param:
        """Return a value in few digits that turns the answer still, rounded away from what it is now."""
        if self.knob.parameter.kind is int or not value:
            return self._fit(value, up)
        for digits in range(FEWEST_DIGITS, MAX_DIGITS):
            unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
            rounded = float(f"{_whole(value / unit, up) * unit:.{digits}g}")
            if self._turns(rounded):
                return rounded
        return value

    def _fit(self, value: float, up: bool) -> Param:
        if self.knob.parameter.kind is int:
            return _whole(value, up)
        return value

    def _turns(self, value: Param) -> bool:
        if value == self.knob.now or not fits(value, self.knob.parameter):
            return False
        if value not in self.answers:
            self.answers[value] = self.ask(self.question, setting(self.diagnosis, self.knob.key, value))
        verdict = self.answers[value].verdict
        return verdict in self.wanted and verdict != UNKNOWN
