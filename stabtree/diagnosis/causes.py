"""The causes of a finding, weighed by what was measured, and the fixes that follow."""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.answer import LIKELY, NO, POSSIBLE, UNKNOWN, Evidence
from stabtree.common.passes import never_falls, rows_upto
from stabtree.common.text import clean
from stabtree.context.conditions import Conditions
from stabtree.context.find import framework_of, how_usual
from stabtree.context.model import Context
from stabtree.diagnosis.missing import lacking
from stabtree.diagnosis.restart import LEARNED_NOTHING, UNTRAINED
from stabtree.diagnosis.result import SILENT, STRONG, WEAK, CauseState, JudgedCause
from stabtree.diagnosis.timeline import first_mover
from stabtree.facts.registry import finite
from stabtree.frameworks.load import knobs, spelling
from stabtree.predicates import predicate_named
from stabtree.predicates.clues.registry import condition
from stabtree.predicates.settings import OUTSIDE
from stabtree.tree.fixes import (
    BATCHES,
    CHECKPOINT,
    Placeholder,
    clues_of,
    fill,
    insert,
    placeholders,
    tags,
    untagged,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stabtree.common.faults import Fault
    from stabtree.diagnosis.restart import Restart
    from stabtree.facts.movers import Movers
    from stabtree.facts.registry import Facts, Param
    from stabtree.predicates.clues.registry import Clues, Seen
    from stabtree.run import Run
    from stabtree.tree.fixes import Tag
    from stabtree.tree.model import Cause, Leaf

    Params = Callable[[Cause], Mapping[str, Param]]


_STATES = {
    UNKNOWN: CauseState.NOT_CHECKABLE,
    NO: CauseState.NOT_CONFIRMED,
    LIKELY: CauseState.LIKELY,
    POSSIBLE: CauseState.POSSIBLE,
    OUTSIDE: CauseState.POSSIBLE,
}
MIN_ODDS = 3.0  # against the next cause, to be called likely
TESTED = {CauseState.LIKELY: 4.0, CauseState.NOT_CONFIRMED: 0.25}
"""How many times likelier a cause is by the answer of its test."""
MOVED_FIRST, MOVED_LATE = 4.0, 0.5
LOWER_RATE = "lower_rate"  # the clue that works out a lower learning rate
UNKNOWN_KIND = 0.5  # where it is not known whether the run is of a kind that can have the cause


def judged_causes(leaf: Leaf, clues: Clues, params: Params, onset_step: int | None = None) -> tuple[JudgedCause, ...]:
    """Judge the causes that a leaf names and that this run may have; return them strongest first.

    Args:
        leaf: the leaf.
        clues: what the log shows at the moment of the incident.
        params: returns the parameters of a cause's test.
        onset_step: the first step of the trouble.
    """
    facts = clues.facts
    here = _conditions(facts)
    fitting = [cause for cause in leaf.causes if here.fit(cause.holds) is not False and _how_usual(cause, facts) > 0]
    judged = [_judged(cause, clues, params) for cause in fitting]

    def ordered() -> list[JudgedCause]:
        return _weighed_by_movers(judged, facts, onset_step)

    def unordered(_fault: Fault | None) -> list[JudgedCause]:
        return list(filter(_is_kept, judged))

    weighed = facts.faults.attempt("part", f"order of the causes of {leaf.id}", ordered, unordered)
    return by_strength(_one_for_each_change(list(filter(_is_reported, weighed))))


def _one_for_each_change(judged: Sequence[JudgedCause]) -> Iterator[JudgedCause]:
    """Yield the strongest of the causes whose first fix lowers the same setting: they are one cause, not rivals."""
    best: dict[str, JudgedCause] = {}
    for item in judged:
        knob = _lowered(item.cause)
        if knob and item.state not in SILENT and (knob not in best or _strength(item) > _strength(best[knob])):
            best[knob] = item
    for item in judged:
        knob = _lowered(item.cause)
        if item.state in SILENT or best.get(knob, item) is item:
            yield item


def _lowered(cause: Cause) -> str:
    """Return the setting that the first fix of a cause lowers; empty where it does something else."""
    first = next(iter(cause.fixes), "")
    if LOWER_RATE in clues_of(first):
        return "lr"
    found = placeholders(first)
    return next((item.knob for item in found if item.operator == "/"), "")


def _strength(judged: JudgedCause) -> tuple[int, float]:
    """Return what two causes are compared by: the state, then the odds."""
    return -list(CauseState).index(judged.state), judged.odds


def _conditions(facts: Facts) -> Conditions:
    """Return what kind of run it is; nothing is known where that could not be found out."""
    found = facts.get("conditions")
    return found if isinstance(found, Conditions) else Conditions({})


def _how_usual(cause: Cause, facts: Facts) -> float:
    """Return the weight of a cause before the log is looked at."""
    context = facts.get("context") if cause.usual else None
    if not isinstance(context, Context):
        return 1.0
    return how_usual(cause.usual, context, resumed=bool(facts.run.resumes))


def by_strength(causes: Iterable[JudgedCause], others: Iterable[JudgedCause] = ()) -> tuple[JudgedCause, ...]:
    """Sort causes, strongest first. Next to a confirmed cause, which explains the same evidence, none is likely.

    Args:
        causes: the causes of a leaf.
        others: the causes of other leaves that describe the same event. They are possible at most, and come after the
            leaf's own causes of the same state.
    """
    own = list(causes)
    known = {item.cause.id for item in own}
    more = {item.cause.id: _at_most_possible(item) for item in others if item.cause.id not in known}
    judged = _likely_by_odds([*_without_consequences([*own, *more.values()])], set(more))
    return tuple(sorted(judged, key=lambda item: _rank(item, from_other=item.cause.id in more)))


def _rank(judged: JudgedCause, *, from_other: bool) -> tuple[int, int, bool, float]:
    """Return the sort key: the state, then those of other leaves last, then the odds."""
    return _band(judged), list(CauseState).index(judged.state), from_other, -judged.odds


def _likely_by_odds(judged: Sequence[JudgedCause], others: set[str]) -> list[JudgedCause]:
    """Call likely what the log speaks for and what is likelier than the next cause by `MIN_ODDS`, and nothing else."""
    confirmed = any(item.state is CauseState.CONFIRMED for item in judged)
    found: list[JudgedCause] = []
    for item in judged:
        if item.state not in (CauseState.LIKELY, *WEAK):
            found.append(item)
            continue
        rivals = [other.odds for other in judged if other is not item and other.state not in SILENT]
        leads = item.odds >= MIN_ODDS * max(rivals, default=item.odds / MIN_ODDS)
        supported = bool(item.evidence) and item.odds >= MIN_ODDS
        if leads and supported and not confirmed and item.cause.id not in others and not item.reason:
            found.append(replace(item, state=CauseState.LIKELY))
        else:
            found.append(_at_most_possible(item))
    return found


def weights_are_sound(causes: Sequence[JudgedCause], restart: Restart | None = None) -> bool:
    """Return whether the weights are sound, or only an evaluation that may be at fault says that they are not.

    They are where the first cause is one that leaves them sound, and something in the log speaks for it.
    """
    if bool(causes) and causes[0].state in STRONG and causes[0].cause.sound:
        return True
    by_evaluation = restart is not None and restart.nothing in (UNTRAINED, LEARNED_NOTHING)
    return by_evaluation and any(item.cause.sound and item.state not in SILENT for item in causes)


def _without_consequences(judged: Sequence[JudgedCause]) -> Iterator[JudgedCause]:
    """Downgrade each cause whose evidence begins only after that of a confirmed one, and so follows from it."""
    confirmed = [_first_step(item) for item in judged if item.state is CauseState.CONFIRMED]
    first = min((step for step in confirmed if step is not None), default=None)
    for item in judged:
        since = _first_step(item)
        if first is not None and item.state in STRONG and since is not None and since > first:
            reason = f"what speaks for it, at step {since:,}, comes after another cause, at step {first:,}"
            yield replace(item, state=CauseState.NOT_CONFIRMED, evidence=(), reason=reason)
        else:
            yield item


def _first_step(judged: JudgedCause) -> int | None:
    """Return the first step of a cause's evidence; None without a step."""
    steps = [min(item.steps) for item in judged.evidence if item.steps]
    return min(steps, default=None)


def _at_most_possible(judged: JudgedCause) -> JudgedCause:
    """Downgrade LIKELY to POSSIBLE; return any other state, CONFIRMED too, as it is."""
    if judged.state is CauseState.LIKELY:
        return replace(judged, state=CauseState.POSSIBLE)
    return judged


def _band(judged: JudgedCause) -> int:
    return next(index for index, band in enumerate((STRONG, WEAK, SILENT)) if judged.state in band)


def _judged(cause: Cause, clues: Clues, params: Params) -> JudgedCause:
    """Return a cause with its state by its test, and its odds by all that the log shows."""
    tested = _tested(cause, clues.facts, params)
    for name, text in cause.refuted_by.items():
        against = clues.get(name)
        if against is not None and condition(text).met(against):
            return replace(tested, state=CauseState.RULED_OUT, evidence=(_evidence(against),), reason="")
    odds = tested.odds * _how_usual(cause, clues.facts) * TESTED.get(tested.state, 1.0)
    found = list(tested.evidence)
    for item in cause.expects:
        seen = clues.get(item.clue)
        met = condition(item.when).met(seen)
        if seen is None or met is None:
            continue
        odds *= item.weight if met else 1 / item.weight
        if met:
            found.append(_evidence(seen))
    state = tested.state
    if state is CauseState.NOT_CHECKABLE and len(found) > len(tested.evidence):
        state = CauseState.POSSIBLE
    return replace(tested, state=state, evidence=tuple(found), odds=odds)


def _evidence(seen: Seen) -> Evidence:
    return Evidence(seen.text, seen.metric, seen.steps, seen.value if isinstance(seen.value, float) else None)


def _tested(cause: Cause, facts: Facts, params: Params) -> JudgedCause:
    predicate = predicate_named(cause.test)
    open_ = _conditions(facts).unknown(cause.holds)
    lacks = f"not known: {open_}" if open_ else ""
    if predicate is None:
        return JudgedCause(cause, CauseState.POSSIBLE, reason=lacks, odds=_odds_of_kind(open_))
    answer = predicate.answer(facts, params(cause), "cause", cause.id)
    state = _STATES.get(answer.verdict, CauseState.CONFIRMED)
    if answer.verdict == NO and answer.contrary:
        state = CauseState.RULED_OUT
    if state is CauseState.CONFIRMED and not cause.proof:
        state = CauseState.LIKELY
    if lacks and state in STRONG:
        state = CauseState.POSSIBLE
    missing = lacking(facts.run, answer.missing)
    return JudgedCause(cause, state, answer.evidence, answer.reason or lacks, missing, _odds_of_kind(open_))


def _odds_of_kind(unknown: str) -> float:
    return UNKNOWN_KIND if unknown else 1.0


def _weighed_by_movers(causes: Sequence[JudgedCause], facts: Facts, onset_step: int | None) -> list[JudgedCause]:
    """Promote the causes of the series that moved first; demote those of series that moved after the onset.

    A cause without a test is kept only if it explains the first mover.
    """
    others = list(filter(_is_kept, causes))
    if onset_step is None or not any(item.cause.moves for item in causes):
        return others
    movers = facts.sure("movers")
    metric = first_mover(movers, onset_step)
    leading = _explaining(causes, _group(metric))
    evidence = tuple(move.before(onset_step) for move in movers.by(onset_step) if move.metric == metric)
    late = _late_groups(movers, onset_step)
    promoted = [replace(_weigh(item, MOVED_FIRST), evidence=(*evidence, *item.evidence)) for item in leading]
    rest = [item for item in others if item not in leading]
    return promoted + [_weigh(item, MOVED_LATE) if item.cause.moves in late else item for item in rest]


def _weigh(judged: JudgedCause, factor: float) -> JudgedCause:
    return replace(judged, odds=judged.odds * factor)


def _is_kept(judged: JudgedCause) -> bool:
    """Return whether a cause is kept whichever series moved first."""
    return bool(judged.cause.test or judged.cause.expects) or not judged.cause.moves


def _explaining(causes: Sequence[JudgedCause], group: str) -> list[JudgedCause]:
    """Return the causes that move a group of series; only the tested ones where a test found something."""
    found = [item for item in causes if item.cause.moves and item.cause.moves == group]
    found = [item for item in found if item.state is not CauseState.RULED_OUT]
    if any(item.cause.test and item.state in STRONG for item in found):
        return [item for item in found if item.cause.test]
    return found


def _late_groups(movers: Movers, onset_step: int) -> set[str]:
    """Return the groups of series that moved, but none of them by the onset."""
    moves = movers.around(onset_step)
    early = {_group(move.metric) for move in moves if move.step <= onset_step}
    return {_group(move.metric) for move in moves} - early


def _group(metric: str) -> str:
    return metric.partition("/")[0]


def _is_reported(judged: JudgedCause) -> bool:
    """Return whether to report a cause: a quiet one only if something speaks for it."""
    if not judged.cause.quiet:
        return True
    seen = bool(judged.cause.test or judged.evidence)
    return seen and judged.state not in (*SILENT, CauseState.NOT_CHECKABLE)


MAX_BATCHES = 4
MAX_NAME = 40
EARLY_ROWS = 3  # trouble within so few rows was there from the start
_HALVE = re.compile(r"(?:Halve|Lower) the ((?:peak )?learning rate)(?: tenfold| \d+ times)?")
_BY_HOW_MUCH = re.compile(r"(with|at) (?:a tenth|half) of the learning rate")


class FixFormatter(Struct, dict=True):
    """Fills the placeholders of fixes with the values of a run.

    Attributes:
        clues: what the log shows at the moment of the incident.
        conditions: what kind of run it is.
        max_lr: a learning rate too high for the optimizer; no rate at or above it is advised.
        has_older: whether a checkpoint is older than the trouble, as far as is known.
    """

    clues: Clues
    conditions: Conditions
    max_lr: float = math.inf
    has_older: bool = True

    @property
    def run(self) -> Run:
        """The run."""
        return self.clues.facts.run

    @cached_property
    def framework(self) -> str:
        """The framework whose spellings are used."""
        return framework_of(self.run).value or ""

    def format(self, fix: str) -> str:
        """Return a fix with this run's numbers."""
        plain = untagged(fix)
        if any(self._is_still_too_high(item) for item in placeholders(fix)):
            plain = _BY_HOW_MUCH.sub(r"\1 a lower learning rate", _HALVE.sub(r"Lower the \1", plain))
        return fill(insert(plain, self._worked_out), self._describe)

    def _worked_out(self, name: str) -> str:
        seen = self.clues.get(name)
        return seen.short if seen else "…"

    def is_pointless(self, fix: str) -> bool:
        """Return whether a fix is not for this run, sets what is set already, or needs what is not there or known."""
        lost = not self.has_older and CHECKPOINT in {item.knob for item in placeholders(fix)}
        return lost or not self.fits(fix) or self.is_done(fix) or self._lowers_a_low_rate(fix)

    def _lowers_a_low_rate(self, fix: str) -> bool:
        """Return whether a fix lowers a learning rate that is below all usual ones already."""
        below = self.clues.get("rate_below_usual")
        lowered = any(item.knob == "lr" and item.operator == "/" for item in placeholders(fix))
        return lowered and below is not None and isinstance(below.value, float) and below.value > 1

    def fits(self, fix: str) -> bool:
        """Return whether a fix is for this run, and the log shows what it inserts."""
        return all(map(self._applies, tags(fix))) and all(map(self.clues.get, clues_of(fix)))

    def _applies(self, tag: Tag) -> bool:
        if tag.word in ("for", "not for"):
            met = self.conditions.fit({tag.name: words_of(tag.text)})
        else:
            met = condition(tag.text).met(self.clues.get(tag.name))
        return met is True if tag.word in ("for", "when") else met is not True

    def is_done(self, fix: str) -> bool:
        """Return whether a fix sets something, and all of it is set already."""
        wanted = [item for item in placeholders(fix) if item.operator in ("=", "<") and item.value]
        return bool(wanted) and all(map(self._is_set, wanted))

    def _is_set(self, item: Placeholder) -> bool:
        now = self._value(item.knob)
        if not isinstance(now, int | float):
            return now == item.value
        try:
            wanted = float(item.value)
        except ValueError:  # a loss scale of 1024 is not `dynamic`
            return False
        if item.operator == "<":
            return 0 < now <= wanted
        return now == wanted

    def _describe(self, item: Placeholder) -> str:
        if item.knob == CHECKPOINT:
            return ""
        if item.knob == BATCHES:
            return self._batches()
        with_value = f"{item.knob}={item.value}"
        if item.operator == "=" and with_value in knobs():
            return spelling(with_value, self.framework) or knobs()[with_value]
        return self._describe_change(item)

    def _describe_change(self, item: Placeholder) -> str:
        """Return a knob's name with its value now and the advised one, as far as they are known."""
        now = self._value(item.knob)
        name = self._spelled(item.knob)
        if not isinstance(now, int | float) or (item.operator in ("/", "*") and not now):
            if name and item.operator in ("=", "<"):
                return f"{name}: {item.value}"
            return name
        name = name or knobs()[item.knob]
        if not item.operator:
            return f"{name} {_shown(now)}"
        wanted = _changed(item, now)
        if self._is_still_too_high(item):
            wanted = now / 10 ** math.ceil(math.log10(now / self.max_lr) + 1e-9)
        return f"{name} {_shown(now)} → {_shown(wanted)}"

    def _is_still_too_high(self, item: Placeholder) -> bool:
        """Return whether a lowered rate is one that the run could not have learned at either."""
        now = self._value(item.knob) if item.knob == "lr" and item.operator == "/" else None
        return isinstance(now, int | float) and _changed(item, now) >= self.max_lr

    def _spelled(self, knob: str) -> str:
        """Return the key that the configuration uses for a knob, else the framework's; empty if neither is known."""
        setting = self.run.config.get(knob)
        if setting and setting.spelled:
            return setting.spelled
        return spelling(knob, self.framework)

    def _value(self, knob: str) -> object:
        """Return a knob's value: as configured, else the highest rate that was logged up to the onset.

        A row of the warm-up is no rate to change: where the rate has only climbed up to the onset, take the highest of
        the first quarter of the log.
        """
        known, series = self.run.setting(knob), self.run.get("lr")
        if knob != "lr" or known is not None or series is None:
            return known
        steps, values = finite(series)
        onset = self.clues.moment.onset_step
        end = len(values) if onset is None else rows_upto(steps, onset)
        before = values[:end]
        if end < EARLY_ROWS or (before[-1] > before[0] and never_falls(before)):
            before = values[: max(end, EARLY_ROWS, len(values) // 4)]
        highest = float(before.max(initial=0.0))
        return highest if highest > 0 else None

    def _batches(self) -> str:
        """Return the batches of the onset, those after the last good step; empty if unknown or too many."""
        series = self.run.get("batch_id")
        if series is None or self.clues.moment.onset_step is None:
            return ""
        last_before = self.clues.moment.onset_step - 1
        if self.clues.moment.last_good_step is not None:
            last_before = min(self.clues.moment.last_good_step, last_before)
        steps, values = finite(series)
        inside = values[rows_upto(steps, last_before) : rows_upto(steps, self.clues.moment.onset_step)]
        ids = list(dict.fromkeys(series.labels.get(float(value)) or f"{value:.0f}" for value in inside))
        if not ids or len(ids) > MAX_BATCHES:
            return ""
        names = ", ".join(clean(name, MAX_NAME) for name in ids)
        if len(ids) == 1:
            return f"batch {names}, step {self.clues.moment.onset_step:,}"
        return f"batches {names}, up to step {self.clues.moment.onset_step:,}"


def _changed(item: Placeholder, now: float) -> float:
    value = float(item.value)
    return {"/": now / value, "*": now * value, "=": value, "<": value}[item.operator]


def _shown(value: float) -> str:
    """Format a setting as one would type it: 0.0015, 3e-5, 2000."""
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{value:.1f}" if isinstance(value, float) and abs(value) < 10 else f"{int(value)}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")
