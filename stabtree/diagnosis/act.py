"""What to do about a finding: actions by their expected help, in this run's own settings, and what to log."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.passes import never_falls, rows_upto
from stabtree.common.text import clean, in_words
from stabtree.context.find import context_of, framework_of
from stabtree.diagnosis.missing import how_to_log, lacking
from stabtree.diagnosis.result import Advice
from stabtree.frameworks.load import knobs, spelling
from stabtree.measures.observed import EARLY_ROWS
from stabtree.measures.progress import Rate
from stabtree.measures.registry import finite
from stabtree.measures.traces import rate_by, usual_rates
from stabtree.metrics.table import by_name
from stabtree.tree.fixes import BATCHES, Placeholder, fill, placeholders
from stabtree.tree.model import Take
from stabtree.tree.tables import COSTS, LOG_NEXT, RESTART, Remedy, expected, tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.result import Incident
    from stabtree.diagnosis.weigh import Observations, Weighed
    from stabtree.measures.registry import Measured
    from stabtree.run import Run

    Ranked = list[tuple[float, Remedy]]  # actions with the help that is expected of each, the most helpful first

MAX_ACTIONS = 3
WORTH = 0.25  # an action after the first is told only where so much help is expected of it
HARM = 0.6  # how much a likely harm counts against a likely help
MAX_LOGGED = 2
WORTH_LOGGING = 0.05  # of a cause's share
MAX_ANSWERS = 2
BEST, BEFORE, FRESH = "restore-best-checkpoint", "restart-from-before", "start-fresh"
KEEP = "keep-best"
MAX_BATCHES = 4
MAX_NAME = 40


def actions(item: Incident, weighed: Sequence[Weighed], observed: Observations) -> tuple[Advice, ...]:
    """Return what to do about a finding, the most helpful first, at most `MAX_ACTIONS`.

    The advice of the finding's own document comes first. A restart is told wherever the finding has one and it does no
    harm.
    """
    writer = Wording(observed.facts, item)
    wanted = set() if item.restart is None else {_restart_of(item)}
    allowed = _ranked(item, weighed, observed)
    ranked = [
        (score, action)
        for score, action in allowed
        if action.id in wanted or (action.says != RESTART and action.id not in (FRESH, *([KEEP] if wanted else [])))
    ]
    told: list[Advice] = []
    if item.leaf.fix:
        kind = next((action.wider for _, action in ranked), "fix-code") if weighed else "fix-code"
        told.append(Advice(item.leaf.id, kind, writer.write(item.leaf.fix), "minutes"))
    for score, action in ranked if weighed else ():
        # A test with many answers says enough.
        most = MAX_ACTIONS - (len(told) > 0 and len(told[0].branches) > MAX_ANSWERS) - (item.restart is not None)
        if told and (len(told) >= max(most, 1) or score < WORTH):
            break
        named = {text for other in told for _, text in other.branches}
        if writer.is_pointless(action.says) or any(_same(action, other) for other in told):
            continue
        if writer.write(action.says) in named:
            continue
        told.append(_advice(action, weighed, allowed, writer))
    restart = next(((score, action) for score, action in ranked if action.id in wanted), None)
    if restart and restart[0] > -WORTH and all(other.id not in wanted for other in told):
        told[MAX_ACTIONS - 1 :] = [_advice(restart[1], weighed, allowed, writer)]
    return tuple(told)


def _restart_of(item: Incident) -> str:
    """Return the action that an incident's restart is."""
    restart = item.restart
    if restart is None or restart.nothing or not restart.has_older:
        return FRESH
    return BEST if restart.take is Take.BEST else BEFORE


def _same(action: Remedy, other: Advice) -> bool:
    """Return whether an action is of the same kind as one that is told, or changes the same setting."""
    known = tables().actions.get(other.id)
    if action.wider == other.kind or known is None:
        return action.wider == other.kind
    changed = {part.knob for part in placeholders(known.says) if part.operator}
    return any(part.knob in changed for part in placeholders(action.says) if part.operator)


def _ranked(item: Incident, weighed: Sequence[Weighed], observed: Observations) -> Ranked:
    """Return the actions that nothing forbids with the help that is expected of each, less its cost and its harm.

    Where the first cause is proven, a test is worth no more than what it cures.
    """
    p = {one.cause.id: one.p for one in weighed}
    is_proven = bool(weighed) and weighed[0].proof is not None
    nodes = {part.leaf.of for part in item.parts}
    own = {action.wider for action in tables().actions.values() if nodes.intersection(action.of)}
    ranked = []
    for action in tables().actions.values():
        if (action.of and not nodes.intersection(action.of)) or (not action.of and action.wider in own):
            continue
        if any(observed.met(text) for text in action.never):
            continue
        helps = expected(p, action.helps)
        if not (action.ask and is_proven):
            helps += action.always.get(item.leaf.kind, 0.0)
        ranked.append((helps - HARM * expected(p, action.harms) - COSTS[action.costs], action))
    return sorted(ranked, key=lambda pair: -pair[0])


def _advice(action: Remedy, weighed: Sequence[Weighed], allowed: Ranked, writer: Wording) -> Advice:
    cause = max(weighed, key=lambda one: one.p * action.helps.get(one.cause.id, 0.0), default=None)
    why = ""
    if cause is not None and action.helps.get(cause.cause.id):
        why = next((seen.text for factor, seen in cause.found if factor > 1), "")
    text = ""
    if action.says != RESTART:
        names = log_next(weighed, writer.run) or ("more",)
        text = writer.write(action.says.replace(LOG_NEXT, in_words(names)))
    branches = tuple(_branches(action, weighed, allowed, writer))
    if branches:
        text = f"{text.rstrip('.')}. {action.ask}"
    return Advice(action.id, action.wider, text, action.costs, why, branches)


def _branches(
    action: Remedy, weighed: Sequence[Weighed], allowed: Ranked, writer: Wording
) -> Iterable[tuple[str, str]]:
    """Yield the answers of a test, each with what to do then: what helps most against the causes that are left."""
    told: set[str] = set()
    least = WORTH_LOGGING * any(one.proof for one in weighed)  # beside a proof, hardly a cause is left
    for answer, left in action.splits.items():
        p = {one.cause.id: one.p for one in weighed if one.cause.id in left}
        helps = [(expected(p, other.helps), other) for _, other in allowed]
        for much, other in sorted(helps, key=lambda pair: -pair[0]):
            fits = much > least and other.id != action.id and not other.ask and other.id not in told
            if fits and other.says != RESTART and not writer.is_pointless(other.says):
                told.add(other.id)
                yield answer, writer.write(other.says)
                break


def log_next(weighed: Sequence[Weighed], run: Run) -> tuple[str, ...]:
    """Return the series that were not logged and would tell the causes apart best, at most two."""
    score: dict[str, float] = {}
    for one in (one for one in weighed if one.p >= WORTH_LOGGING):
        for place, name in enumerate(one.cause.log):
            score[name] = score.get(name, 0.0) + one.p / (1 + place)
    known = by_name()
    open_ = [name for name in score if name not in known or lacking(run, (name,))]
    return tuple(sorted(open_, key=lambda name: -score[name])[:MAX_LOGGED])


def how(name: str) -> str:
    """Return how to log a series that `log_next` names."""
    return how_to_log(name) if name in by_name() else name


class Wording(Struct, dict=True):
    """Fills the placeholders of actions with the values of a run.

    Attributes:
        facts: what was measured.
        item: the incident.
    """

    facts: Measured
    item: Incident

    @property
    def run(self) -> Run:
        """The run."""
        return self.facts.run

    @cached_property
    def framework(self) -> str:
        """The framework whose spellings are used."""
        return framework_of(self.run).value or ""

    def write(self, text: str) -> str:
        """Return a text with this run's numbers, and a full stop."""
        filled = fill(text, self._describe)
        return filled if filled.rstrip(")\"'").endswith((".", "?", "!", ":")) else f"{filled}."

    def is_pointless(self, text: str) -> bool:
        """Return whether all that an action sets is set already."""
        wanted = [part for part in placeholders(text) if part.operator in ("=", "<") and part.value]
        return bool(wanted) and all(map(self._is_set, wanted))

    def _is_set(self, part: Placeholder) -> bool:
        now = self._value(part.knob)
        if not isinstance(now, int | float):
            return now == part.value
        try:
            wanted = float(part.value)
        except ValueError:  # a loss scale of 1024 is not `dynamic`
            return False
        return 0 < now <= wanted if part.operator == "<" else now == wanted

    def _describe(self, part: Placeholder) -> str:
        """Return a knob's name with its value now and the advised one, as far as they are known."""
        if part.knob == BATCHES:
            return self._batches()
        with_value = f"{part.knob}={part.value}"
        if part.operator == "=" and with_value in knobs():
            return spelling(with_value, self.framework) or knobs()[with_value]
        now, setting = self._value(part.knob), self.run.config.get(part.knob)
        name = (setting.spelled if setting else "") or spelling(part.knob, self.framework)
        if not isinstance(now, int | float) or (part.operator in ("/", "*") and not now):
            return f"{name}: {part.value}" if name and part.operator in ("=", "<") else name
        name = name or knobs().get(part.knob, part.knob)
        if not part.operator:
            return f"{name} {_shown(now)}"
        return f"{name} {_shown(now)} → {_shown(self._wanted(part, now))}"

    def _wanted(self, part: Placeholder, now: float) -> float:
        """Return the advised value: of a rate no farther than what is usual, and below what no optimizer takes."""
        value = float(part.value)
        wanted = {"/": now / value, "*": now * value, "=": value, "<": value}[part.operator]
        usual = usual_rates(self.run, context_of(self.run)) if part.knob == "lr" else None
        if usual is None:
            return wanted
        if part.operator == "*":
            return max(wanted, min(usual.low, 10 * now))
        rate = self.facts.get("rate")
        bar = rate.bar if isinstance(rate, Rate) else math.inf
        wanted = min(wanted, usual.high) if now > usual.high else wanted
        return wanted if wanted < bar else now / 10 ** math.ceil(math.log10(now / bar) + 1e-9)

    def _value(self, knob: str) -> object:
        """Return a knob's value: as configured, else the highest rate that was logged up to the onset.

        A rate that rose beyond the configured one is what it was trained with. A row of the warm-up is no rate to
        change: where the rate has only climbed up to the onset, take the highest of the first quarter of the log.
        """
        known, series = self.run.setting(knob), self.run.get("lr")
        if knob != "lr" or known is not None or series is None:
            return (knob == "lr" and rate_by(self.run, self.item.onset_step)) or known
        steps, values = finite(series)
        onset = self.item.onset_step
        end = len(values) if onset is None else rows_upto(steps, onset)
        before = values[:end]
        if end < EARLY_ROWS or (before[-1] > before[0] and never_falls(before)):
            before = values[: max(end, EARLY_ROWS, len(values) // 4)]
        return float(before.max(initial=0.0)) or None

    def _batches(self) -> str:
        """Return the batches of the onset, those after the last good step; empty if unknown or too many."""
        series, onset = self.run.get("batch_id"), self.item.onset_step
        if series is None or onset is None:
            return ""
        good = self.item.last_good_step
        before = onset - 1 if good is None else min(good, onset - 1)
        steps, values = finite(series)
        inside = values[rows_upto(steps, before) : rows_upto(steps, onset)]
        ids = list(dict.fromkeys(series.labels.get(float(value)) or f"{value:.0f}" for value in inside))
        if not ids or len(ids) > MAX_BATCHES:
            return ""
        names = ", ".join(clean(name, MAX_NAME) for name in ids)
        return f"batch {names}, step {onset:,}" if len(ids) == 1 else f"batches {names}, up to step {onset:,}"


def _shown(value: float) -> str:
    """Format a setting as one would type it: 0.0015, 3e-5, 2000."""
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{value:.1f}" if isinstance(value, float) and abs(value) < 10 else f"{int(value)}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")
