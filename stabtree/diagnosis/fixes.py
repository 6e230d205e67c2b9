"""The fixes of a finding: this run's numbers, its framework's spelling, and the order in which to try them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from stabtree.common.text import clean
from stabtree.diagnosis.result import STRONG, WEAK, Fix
from stabtree.facts.circumstances import framework_of
from stabtree.facts.registry import finite
from stabtree.tree.fixes import BATCHES, CHECKPOINT, Place, filled, places
from stabtree.tree.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.result import CauseState, JudgedCause
    from stabtree.run import Run
    from stabtree.tree.model import Cause, Leaf

MOST_BATCHES = 4
MOST_NAME = 40
LONG_CAUSE = 110
EARLY_ROWS = 3  # a trouble within so few rows was there from the start
# A verb before any word that begins a clause within a noun: `all labels are masked`, not `labels that are masked`.
_CLAUSE = re.compile(
    r"(?:(?!\b(?:that|which|whose|where|since|so|by|from)\b)[^(,])*?\b(?:is|are|was|were|holds?|has|had|earns?|differ)\b"
)
_CHANGE = re.compile(r"\(([^()]* → [^()]*)\)")


@dataclass
class Filling:
    """What a run says of the places in its fixes.

    Attributes:
        run: the run.
        onset_step: the first step of the trouble, None where it has none.
        last_good_step: the last step before it.
        most_lr: the learning rate that the run's optimizer hardly ever takes; no lower one is advised at or above it.
        has_older: whether a checkpoint is older than the trouble, as far as anybody knows.
    """

    run: Run
    onset_step: int | None
    last_good_step: int | None
    most_lr: float = math.inf
    has_older: bool = True

    @cached_property
    def framework(self) -> str:
        """The framework whose spellings are told."""
        return framework_of(self.run)

    def text(self, fix: str) -> str:
        """A fix with this run's numbers."""
        return filled(fix, self._told)

    def idle(self, fix: str) -> bool:
        """Whether all that a fix sets is set so already, or whether it takes a checkpoint that there is not."""
        return self.done(fix) or (not self.has_older and any(place.knob == CHECKPOINT for place in places(fix)))

    def done(self, fix: str) -> bool:
        """Whether all that a fix sets is set so already."""
        wanted = [place for place in places(fix) if place.how in ("=", "<") and place.value]
        return bool(wanted) and all(self._is_so(place) for place in wanted)

    def _is_so(self, place: Place) -> bool:
        now = self._value(place.knob)
        if not isinstance(now, int | float):
            return now == place.value
        try:
            wanted = float(place.value)
        except ValueError:  # a loss scale of 1024 is not `dynamic`
            return False
        return 0 < now <= wanted if place.how == "<" else now == wanted

    def _told(self, place: Place) -> str:
        if place.knob in (CHECKPOINT, BATCHES):
            return self._batches() if place.knob == BATCHES else ""
        spelled = KNOBS.get(f"{place.knob}={place.value}") if place.how == "=" else None
        if spelled is not None:
            return spelled.get(self.framework, spelled[""])
        spellings, now = KNOBS[place.knob], self._value(place.knob)
        name = self._found(place.knob) or (spellings.get(self.framework, "") if self.framework else "")
        if not isinstance(now, int | float) or (place.how in ("/", "*") and not now):
            return f"{name}: {place.value}" if name and place.how in ("=", "<") else name
        name = name or spellings[""]
        if not place.how:
            return f"{name} {_shown(now)}"
        wanted = _changed(place, now)
        if place.knob == "lr" and place.how == "/" and wanted >= self.most_lr:
            lower = now / 10 ** math.ceil(math.log10(now / self.most_lr) + 1e-9)
            return f"{name} {_shown(now)} → {_shown(lower)}; {_shown(wanted)} is still far too high"
        return f"{name} {_shown(now)} → {_shown(wanted)}"

    def _found(self, knob: str) -> str:
        """The key under which the configuration says it; empty where that is not known."""
        setting = self.run.config.get(knob)
        return setting.spelled if setting else ""

    def _value(self, knob: str) -> object:
        """A knob's value: as configured, else the highest rate that was logged up to the onset.

        A row of the warm-up is no rate to change: where the rate has only climbed up to the onset, it is the highest of
        the first quarter of the log.
        """
        known = self.run.setting(knob)
        if knob != "lr" or known is not None or (series := self.run.get("lr")) is None:
            return known
        steps, values = finite(series)
        end = len(values) if self.onset_step is None else int((steps <= self.onset_step).sum())
        before = values[:end]
        if end < EARLY_ROWS or (before[-1] > before[0] and bool((before[1:] >= before[:-1]).all())):
            before = values[: max(end, EARLY_ROWS, len(values) // 4)]
        peak = float(before.max()) if len(before) else 0.0
        return peak if peak > 0 else None

    def _batches(self) -> str:
        """The batches of the onset, those after the last good step."""
        series = self.run.get("batch_id")
        if series is None or self.onset_step is None:
            return ""
        after = self.last_good_step if self.last_good_step is not None else self.onset_step - 1
        steps, values = finite(series)
        inside = (steps > min(after, self.onset_step - 1)) & (steps <= self.onset_step)
        ids = list(dict.fromkeys(series.labels.get(float(value)) or f"{value:.0f}" for value in values[inside]))
        if not ids or len(ids) > MOST_BATCHES:
            return ""
        told = ", ".join(clean(name, MOST_NAME) for name in ids)
        return f"batch{'es' if len(ids) > 1 else ''} {told}, {'up to ' if len(ids) > 1 else ''}step {self.onset_step:,}"


def _changed(place: Place, now: float) -> float:
    value = float(place.value)
    return {"/": now / value, "*": now * value, "=": value, "<": value}[place.how]


def _shown(value: float) -> str:
    """A setting as one would type it: 0.0015, 3e-5, 2000."""
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value)}" if abs(value) >= 10 else f"{value:.1f}" if isinstance(value, float) else f"{value}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def told_causes(causes: Sequence[JudgedCause], filling: Filling) -> tuple[JudgedCause, ...]:
    """The causes, with this run's numbers in their fixes."""
    return tuple(replace(judged, cause=_told_cause(judged.cause, filling)) for judged in causes)


def _told_cause(cause: Cause, filling: Filling) -> Cause:
    first_is_idle = bool(cause.fixes) and filling.idle(cause.fixes[0])
    return replace(cause, fixes=_open(cause.fixes, filling), mend="" if first_is_idle else cause.mend)


def advised(
    leaf: Leaf,
    causes: Sequence[JudgedCause],
    evidence: Sequence[Evidence],
    filling: Filling,
    *,
    also: Sequence[tuple[Leaf, Sequence[Evidence], Filling]] = (),
) -> tuple[Fix, ...]:
    """All fixes in the order in which to try them: those of causes that the log shows, the leaf's, then what may be.

    A fix that changes nothing but what an earlier one changes in the same way comes last. What is set so already, or
    takes an older checkpoint where there is none, is left out, unless the leaf has no other fix.

    Args:
        leaf: the leaf.
        causes: its causes, strongest first, as `told_causes` gives them.
        evidence: what led to the leaf.
        filling: what the run says.
        also: other leaves that tell of the same event, each with the same of its own; their fixes come after these.
    """
    others = (fix for told in also for fix in _of_leaf(*told))
    found: dict[str, Fix] = {}
    own = (*_of_causes(causes, STRONG), *_of_leaf(leaf, evidence, filling), *_of_causes(causes, WEAK))
    for fix in (*own, *others):
        found.setdefault(fix.text, fix)
    told: set[str] = set()
    repeats = []
    for fix in found.values():
        changes = set(_CHANGE.findall(fix.text))
        repeats.append(bool(changes) and changes <= told)
        told |= changes
    order = sorted(zip(repeats, found.values(), strict=True), key=lambda item: item[0])
    return tuple(fix for _, fix in order)


def _open(fixes: Sequence[str], filling: Filling) -> tuple[str, ...]:
    return tuple(filling.text(fix) for fix in fixes if not filling.idle(fix))


def _of_leaf(leaf: Leaf, evidence: Sequence[Evidence], filling: Filling) -> Iterator[Fix]:
    reason = evidence[0].text if evidence else ""
    fixes = _open(leaf.fixes, filling) or tuple(map(filling.text, leaf.fixes))
    return (Fix(text, reason) for text in fixes)


def _of_causes(causes: Sequence[JudgedCause], states: tuple[CauseState, ...]) -> Iterator[Fix]:
    for judged in causes:
        if judged.state not in states:
            continue
        reason = judged.evidence[0].text if judged.evidence else judged.reason
        for fix in judged.cause.fixes:
            text = fix if judged.state in STRONG else f"If {_supposed(judged.cause.text)}: {_continued(fix)}"
            yield Fix(text, reason if judged.state in STRONG else "")


def _continued(fix: str) -> str:
    """A fix as it goes on after a colon: a first word that is a plain one, not a name, in lower case."""
    return fix[0].lower() + fix[1:] if re.match(r"[A-Z][a-z]+ ", fix) else fix


def _supposed(text: str) -> str:
    """A cause as what comes after 'if': a clause as it is, a noun as the cause; one colon is enough for a sentence."""
    head, _, rest = text.partition(": ")
    told = f"{head} ({rest})" if rest and "(" not in text and len(text) <= LONG_CAUSE else head
    return told if _CLAUSE.match(told) else f"the cause is {told}"
