"""The fixes of a finding: with this run's numbers, in its framework's spelling, in the order in which to try them."""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.passes import never_falls, rows_upto
from stabtree.common.text import clean
from stabtree.context.trainer import framework_of
from stabtree.facts.registry import finite
from stabtree.frameworks.load import knobs, spelling
from stabtree.predicates.clues.conditions import condition
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
    from stabtree.context.conditions import Conditions
    from stabtree.predicates.clues.registry import Clues
    from stabtree.run import Run
    from stabtree.tree.fixes import Tag

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
