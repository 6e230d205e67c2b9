"""The causes of a finding, weighed by what was measured, and what to do: fixes in order, the question that decides."""

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
from stabtree.context.find import Conditions, framework_of, how_usual
from stabtree.context.model import Context
from stabtree.diagnosis.missing import lacking
from stabtree.diagnosis.restart import LEARNED_NOTHING, UNTRAINED
from stabtree.diagnosis.result import SILENT, STRONG, WEAK, CauseState, Decision, Fix, JudgedCause
from stabtree.diagnosis.timeline import first_mover
from stabtree.frameworks.load import knobs, spelling
from stabtree.measures import measure_named
from stabtree.measures.clues import condition
from stabtree.measures.registry import finite
from stabtree.measures.settings import OUTSIDE
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

    from stabtree.diagnosis.restart import Restart
    from stabtree.measures.clues import Clues, Seen
    from stabtree.measures.registry import Measured, Param
    from stabtree.run import Run
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
ORDER = (*STRONG, *WEAK, *SILENT)
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
    here = conditions_of(facts)
    fitting = [cause for cause in leaf.causes if here.fit(cause.holds) is not False and _how_usual(cause, facts) > 0]
    judged = [_judged(cause, clues, params) for cause in fitting]
    weighed = facts.faults.attempt(
        "part",
        f"order of the causes of {leaf.id}",
        lambda: _weighed_by_movers(judged, facts, onset_step),
        lambda _fault: list(filter(_is_kept, judged)),
    )
    reported = list(filter(_is_reported, weighed))
    # Of the causes whose first fix lowers the same setting the strongest is left: they are one cause, not rivals.
    best: dict[str, JudgedCause] = {}
    for item in sorted(reported, key=lambda item: (ORDER.index(item.state), -item.odds)):
        if item.state not in SILENT:
            best.setdefault(_lowered(item.cause), item)
    kept = []
    for item in reported:
        knob = _lowered(item.cause)
        if item.state in SILENT or not knob or best[knob] is item:
            kept.append(item)
    return by_strength(kept)


def _lowered(cause: Cause) -> str:
    """Return the setting that the first fix of a cause lowers; empty where it does something else."""
    first = next(iter(cause.fixes), "")
    if LOWER_RATE in clues_of(first):
        return "lr"
    found = placeholders(first)
    return next((item.knob for item in found if item.operator == "/"), "")


def conditions_of(facts: Measured) -> Conditions:
    """Return what kind of run it is; nothing is known where that could not be found out."""
    found = facts.get("conditions")
    return found if isinstance(found, Conditions) else Conditions({})


def _how_usual(cause: Cause, facts: Measured) -> float:
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
    return tuple(sorted(judged, key=lambda item: (ORDER.index(item.state), item.cause.id in more, -item.odds)))


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
    since = [min((min(seen.steps) for seen in item.evidence if seen.steps), default=None) for item in judged]
    confirmed = [
        step
        for item, step in zip(judged, since, strict=True)
        if item.state is CauseState.CONFIRMED and step is not None
    ]
    first = min(confirmed, default=None)
    for item, step in zip(judged, since, strict=True):
        if first is not None and item.state in STRONG and step is not None and step > first:
            reason = f"what speaks for it, at step {step:,}, comes after another cause, at step {first:,}"
            yield replace(item, state=CauseState.NOT_CONFIRMED, evidence=(), reason=reason)
        else:
            yield item


def _at_most_possible(judged: JudgedCause) -> JudgedCause:
    """Downgrade LIKELY to POSSIBLE; return any other state, CONFIRMED too, as it is."""
    if judged.state is CauseState.LIKELY:
        return replace(judged, state=CauseState.POSSIBLE)
    return judged


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


def _tested(cause: Cause, facts: Measured, params: Params) -> JudgedCause:
    measure = measure_named(cause.test)
    open_ = conditions_of(facts).unknown(cause.holds)
    odds = UNKNOWN_KIND if open_ else 1.0
    lacks = f"not known: {open_}" if open_ else ""
    if measure is None:
        return JudgedCause(cause, CauseState.POSSIBLE, reason=lacks, odds=odds)
    answer = measure.answer(facts, params(cause), "cause", cause.id)
    state = _STATES.get(answer.verdict, CauseState.CONFIRMED)
    if answer.verdict == NO and answer.contrary:
        state = CauseState.RULED_OUT
    if state is CauseState.CONFIRMED and not cause.proof:
        state = CauseState.LIKELY
    if lacks and state in STRONG:
        state = CauseState.POSSIBLE
    missing = lacking(facts.run, answer.missing)
    return JudgedCause(cause, state, answer.evidence, answer.reason or lacks, missing, odds)


def _weighed_by_movers(causes: Sequence[JudgedCause], facts: Measured, onset_step: int | None) -> list[JudgedCause]:
    """Promote the causes of the series that moved first; demote those of series that moved after the onset.

    A cause without a test is kept only if it explains the first mover; of those that do, the tested ones alone where a
    test found something.
    """
    others = list(filter(_is_kept, causes))
    if onset_step is None or not any(item.cause.moves for item in causes):
        return others
    movers = facts.sure("movers")
    metric = first_mover(movers, onset_step)
    group = metric.partition("/")[0]
    leading = [item for item in causes if item.cause.moves and item.cause.moves == group]
    leading = [item for item in leading if item.state is not CauseState.RULED_OUT]
    if any(item.cause.test and item.state in STRONG for item in leading):
        leading = [item for item in leading if item.cause.test]
    evidence = tuple(move.before(onset_step) for move in movers.by(onset_step) if move.metric == metric)
    moves = [(move.metric.partition("/")[0], move.step) for move in movers.around(onset_step)]
    late = {moved for moved, _ in moves}.difference(moved for moved, step in moves if step <= onset_step)
    found = [replace(item, odds=item.odds * MOVED_FIRST, evidence=(*evidence, *item.evidence)) for item in leading]
    rest = [item for item in others if item not in leading]
    return found + [replace(item, odds=item.odds * MOVED_LATE) if item.cause.moves in late else item for item in rest]


def _is_kept(judged: JudgedCause) -> bool:
    """Return whether a cause is kept whichever series moved first."""
    return bool(judged.cause.test or judged.cause.expects) or not judged.cause.moves


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
        shown = {name: seen.short if (seen := self.clues.get(name)) else "…" for name in clues_of(plain)}
        return fill(insert(plain, shown.__getitem__), self._describe)

    def is_pointless(self, fix: str) -> bool:
        """Return whether a fix is not for this run, sets what is set already, or needs what is not there or known."""
        changes = placeholders(fix)
        if not self.fits(fix) or (not self.has_older and any(item.knob == CHECKPOINT for item in changes)):
            return True
        wanted = [item for item in changes if item.operator in ("=", "<") and item.value]
        if wanted and all(map(self._is_set, wanted)):
            return True
        if not any(item.knob == "lr" and item.operator == "/" for item in changes):
            return False
        below = self.clues.get("rate_below_usual")  # the rate is lower than all usual ones already
        return below is not None and isinstance(below.value, float) and below.value > 1

    def fits(self, fix: str) -> bool:
        """Return whether a fix is for this run, and the log shows what it inserts."""
        for tag in tags(fix):
            if tag.word in ("for", "not for"):
                met = self.conditions.fit({tag.name: words_of(tag.text)})
            else:
                met = condition(tag.text).met(self.clues.get(tag.name))
            if (met is True) != (tag.word in ("for", "when")):
                return False
        return all(map(self.clues.get, clues_of(fix)))

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
        """Return a knob's name with its value now and the advised one, as far as they are known."""
        if item.knob == CHECKPOINT:
            return ""
        if item.knob == BATCHES:
            return self._batches()
        with_value = f"{item.knob}={item.value}"
        if item.operator == "=" and with_value in knobs():
            return spelling(with_value, self.framework) or knobs()[with_value]
        now, setting = self._value(item.knob), self.run.config.get(item.knob)
        name = (setting.spelled if setting else "") or spelling(item.knob, self.framework)
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


MIN_BRANCHES = 2
LONG_CAUSE = 110
# A verb before any word that begins a clause within a noun: `all labels are masked`, not `labels that are masked`.
_CLAUSE = re.compile(
    r"(?:(?!\b(?:that|which|whose|where|since|so|by|from)\b)[^(,])*?\b(?:is|are|was|were|holds?|has|had|earns?|differ)\b"
)
_CHANGE = re.compile(r"\(([^()]* → [^()]*)\)")


def with_run_values(causes: Sequence[JudgedCause], formatter: FixFormatter) -> tuple[JudgedCause, ...]:
    """Fill this run's numbers into the fixes of causes."""
    found = []
    for judged in causes:
        cause = judged.cause
        fixes, short = _open(cause.fixes, formatter), cause.short_fix
        # It is the short form of the first fix, and of what says the same to another kind of run.
        if cause.fixes and formatter.is_pointless(cause.fixes[0]) and not (fixes and tags(cause.fixes[0])):
            short = ""
        found.append(replace(judged, cause=replace(cause, fixes=fixes, short_fix=short)))
    return tuple(found)


def ranked_fixes(
    leaf: Leaf,
    causes: Sequence[JudgedCause],
    evidence: Sequence[Evidence],
    formatter: FixFormatter,
    others: Iterable[Fix] = (),
) -> tuple[Fix, ...]:
    """Return the fixes in the order in which to try them.

    First come those of causes that the log shows, then the leaf's, then those of causes that may be, each once; a fix
    that only repeats the changes of earlier ones comes last. A fix without a point is left out unless the leaf has no
    other.

    Args:
        leaf: the leaf.
        causes: its causes, strongest first, as `with_run_values` returns them.
        evidence: what led to the leaf.
        formatter: fills in the values of the run.
        others: fixes of other leaves that describe the same event; they come after these.
    """
    found: dict[str, Fix] = {}
    own = leaf_fixes(leaf, evidence, formatter)
    for fix in (*_of_causes(causes, STRONG), *own, *_of_causes(causes, WEAK), *others):
        found.setdefault(fix.text, fix)
    first: list[Fix] = []
    repeats: list[Fix] = []
    advised: set[str] = set()
    for fix in found.values():
        changes = set(_CHANGE.findall(fix.text))
        if changes and changes <= advised:
            repeats.append(fix)
        else:
            first.append(fix)
        advised |= changes
    return (*first, *repeats)


def leaf_fixes(leaf: Leaf, evidence: Sequence[Evidence], formatter: FixFormatter) -> list[Fix]:
    """Return a leaf's own fixes; the first piece of evidence is the reason for each."""
    texts = _open(leaf.fixes, formatter) or tuple(map(formatter.format, filter(formatter.fits, leaf.fixes)))
    return [Fix(text, evidence[0].text if evidence else "") for text in texts]


def _open(fixes: Sequence[str], formatter: FixFormatter) -> tuple[str, ...]:
    """Return the fixes that are still to do, filled in."""
    return tuple(formatter.format(fix) for fix in fixes if not formatter.is_pointless(fix))


def _of_causes(causes: Sequence[JudgedCause], states: tuple[CauseState, ...]) -> Iterator[Fix]:
    for judged in causes:
        if judged.state not in states:
            continue
        reason = judged.evidence[0].text if judged.evidence else judged.reason
        for fix in judged.cause.fixes:
            if judged.state in STRONG:
                yield Fix(fix, reason, cause=judged.cause.id)
            else:
                # A capital may begin a name, unless small letters follow.
                lower = fix[0].lower() + fix[1:] if re.match(r"[A-Z][a-z]+ ", fix) else fix
                text = f"If {_condition(judged.cause.text)}: {lower}"
                yield Fix(text, conditional=True, cause=judged.cause.id)


def _condition(text: str) -> str:
    """Return a cause as it reads after 'if': a clause as it is, a noun as the cause; with no colon of its own."""
    condition, _, rest = text.partition(": ")
    if rest and "(" not in text and len(text) <= LONG_CAUSE:
        condition = f"{condition} ({rest})"
    if _CLAUSE.match(condition):
        return condition
    return f"the cause is {condition}"


def decision(leaf: Leaf, causes: Sequence[JudgedCause], formatter: FixFormatter) -> Decision | None:
    """Return what to find out first; None where a cause is confirmed, or nothing is there to ask.

    A yes to the question of a cause leads to its first fix, a no to that of the next cause. Where no cause has one, the
    leaf may have.

    Args:
        leaf: the leaf.
        causes: its causes, strongest first, as `with_run_values` returns them.
        formatter: fills in the values of the run.
    """
    if any(item.state is CauseState.CONFIRMED for item in causes):
        return None
    rivals: dict[str, JudgedCause] = {}
    for item in causes:
        if item.state in (*STRONG, *WEAK) and item.cause.fixes:
            rivals.setdefault(item.cause.fixes[0], item)
    if len(rivals) >= MIN_BRANCHES:
        first, second = [*rivals.values()][:2]
        ask = first.cause.ask or second.cause.ask
        yes, no = (first, second) if first.cause.ask else (second, first)
        if ask:
            outcomes = ("yes", yes.cause.fixes[0]), ("no", no.cause.fixes[0])
            return Decision(formatter.format(ask), outcomes, (yes.cause.id, no.cause.id))
    if leaf.decide is None or formatter.is_pointless(leaf.decide.ask):
        return None
    open_ = {word: text for word, text in leaf.decide.branches.items() if not formatter.is_pointless(text)}
    branches = tuple((word, formatter.format(text)) for word, text in open_.items())
    if len(branches) < MIN_BRANCHES:
        return None
    return Decision(formatter.format(leaf.decide.ask), branches)
