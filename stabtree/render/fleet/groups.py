"""Many runs in one pass: how many of each verdict, the causes with their worst runs, and the worst of all."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words
from stabtree.judging.outcome import ORDER, UNREAD
from stabtree.render.report.words import counted
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stabtree.judging.record import Record

HEALTHY = Severity.OK
MOST_EXAMPLES = 3  # runs that a group names
MOST_CAUSES = 3
LONGEST_NAME = 1000
_OWN_NUMBERS = re.compile(r" \([^()]* → [^()]*\)")  # of one run: (lr 0.003 → 0.0015)


@dataclass(slots=True)
class RunGroup:
    """Runs that share a cause, a folder or a verdict.

    Attributes:
        badge: the worst verdict among them.
        key: what they share: the id of a leaf, a folder, nothing.
        title: what was found in the first of them, which is the worst.
        count: how many they are.
        badges: how many of them have each verdict.
        leaves: how many of them came to each finding.
        alike: whether the same was found in all of them.
        first: what to do about them first, where that is the same for all.
        low: the first step of the earliest finding.
        high: that of the latest.
        examples: the worst of them.
    """

    badge: str
    key: str
    title: str
    count: int = 0
    badges: Counter[str] = field(default_factory=Counter)
    leaves: Counter[str] = field(default_factory=Counter)
    alike: bool = True
    first: str | None = None
    low: int | None = None
    high: int | None = None
    examples: list[Record] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Count a run in."""
        first = _OWN_NUMBERS.sub("", record.first)
        self.first = first if self.first in (None, first) else ""
        self.alike = self.alike and record.title == self.title
        self.badge = min(self.badge, record.badge, key=ORDER.index)
        self.count += 1
        self.badges[record.badge] += 1
        if record.badge == HEALTHY:
            return
        if record.leaf:
            self.leaves[record.leaf] += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(_light(record))
        if (step := record.onset_step) is not None:
            self.low = step if self.low is None else min(self.low, step)
            self.high = step if self.high is None else max(self.high, step)

    @property
    def steps(self) -> str:
        """The range of the first steps; empty where there are none."""
        if self.low is None or self.high is None:
            return ""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}-{self.high:,}"

    @property
    def told(self) -> str:
        """What was found in them, in words."""
        if self.badge == HEALTHY:
            return "Healthy"
        return self.title if self.alike else f"{self.title}, and the like"

    @property
    def causes(self) -> str:
        """The commonest findings, and how many other ones there are."""
        told = [f"{count:,} {leaf}" for leaf, count in self.leaves.most_common(MOST_CAUSES)]
        rest = len(self.leaves) - len(told)
        return in_words([*told, *([counted(rest, "other cause")] if rest else [])]) if told else ""


def _by_leaf(record: Record) -> str:
    return "" if record.badge == HEALTHY else record.leaf


def _by_folder(record: Record) -> str:
    return record.path.rstrip("/").rpartition("/")[0] or "."


BY: dict[str, Callable[[Record], str]] = {"leaf": _by_leaf, "folder": _by_folder, "verdict": lambda _: ""}
"""What runs can be grouped by."""


def check_by(by: str) -> None:
    """Refuse what runs can't be grouped by.

    Raises:
        StabtreeError: for any other word.
    """
    if by not in BY:
        raise StabtreeError(f"{clean(by, 40)!r} is nothing to group by", where="--by", hint=f"type {', '.join(BY)}")


@dataclass(slots=True)
class Tally:
    """What was counted of many runs; it grows with the causes and the folders, never with the runs.

    Attributes:
        keep: how many of the runs that call for something are kept whole.
        by: what they are grouped by.
        badges: how many runs have each verdict, as it is told.
        noted: how many of those that are told as healthy have notes, for which `--fail-on note` fails.
        kept: the worst runs; healthy ones only while all fit.
        folder: the folder in which all paths lie, empty where there is none.
        notes: what was noted of every run that was judged.
    """

    keep: int
    by: str = "leaf"
    badges: Counter[str] = field(default_factory=Counter)
    noted: int = 0
    kept: list[Record] = field(default_factory=list)
    notes: tuple[str, ...] | None = None
    _groups: dict[tuple[str, str], RunGroup] = field(default_factory=dict)
    _above: list[str] | None = None

    def add(self, record: Record) -> None:
        """Count a run in."""
        self.badges[record.badge] += 1
        self.noted += record.badge == HEALTHY != record.verdict
        self._narrow(record)
        key = BY[self.by](record)
        apart = "" if self.by == "folder" else record.badge  # a folder is one group whatever its runs came to
        group = self._groups.setdefault((apart, key), RunGroup(record.badge, key, record.title))
        group.add(record)
        if len(self.kept) < self.keep:
            self.kept.append(_light(record))

    def _narrow(self, record: Record) -> None:
        above = record.path.rstrip("/").split("/")[:-1]
        if self._above is None:
            self._above = above
        shared = next((at for at, (a, b) in enumerate(zip(self._above, above, strict=False)) if a != b), None)
        self._above = self._above[: min(len(self._above), len(above)) if shared is None else shared]
        if record.badge != UNREAD:
            self.notes = record.notes if self.notes is None else tuple(n for n in self.notes if n in record.notes)

    @property
    def total(self) -> int:
        """How many runs there are."""
        return self.badges.total()

    @property
    def calling(self) -> int:
        """How many of them are not healthy."""
        return self.total - self.badges[HEALTHY]

    @property
    def folder(self) -> str:
        """The folder in which all paths lie, to be told once; empty where there is none."""
        return "/".join([*self._above, ""]) if self._above and any(self._above) else ""

    @property
    def worst(self) -> str:
        """The worst verdict; `ok` where there is no run."""
        return min(self.badges, key=ORDER.index, default=str(HEALTHY))

    @property
    def groups(self) -> list[RunGroup]:
        """The groups, worst first, the largest first."""

        def rank(group: RunGroup) -> tuple[int, int, int]:
            return ORDER.index(group.badge), -group.badges[group.badge], -group.count

        return sorted(self._groups.values(), key=rank)

    @property
    def told(self) -> str:
        """How many runs there are of each verdict, in a line."""
        parts = [f"{self.badges[badge]:,} {word(badge)}" for badge in ORDER if self.badges[badge]]
        if self.noted:  # the healthy ones come last
            parts[-1] += f" ({self.noted:,} with notes)"
        return f"{counted(self.total, 'run')}: {', '.join(parts)}" if parts else "0 runs"

    def name(self, record: Record) -> str:
        """A run's name without the folder that all share."""
        return clean(record.name.removeprefix(self.folder), LONGEST_NAME) or "?"

    def examples(self, group: RunGroup, room: int = LONGEST_NAME) -> str:
        """The worst of a group by name, as many as there is room for, and how many more they are."""
        names = [self.name(record) for record in group.examples]
        for shown in range(len(names), 0, -1):
            rest = group.count - shown
            told = in_words([*names[:shown], *([f"{rest:,} more"] if rest else [])])
            if len(told) <= room:
                return told
        return in_words([names[0], *([f"{group.count - 1:,} more"] if group.count > 1 else [])]) if names else ""


def tally(records: Iterable[Record], keep: int, by: str = "leaf") -> Tally:
    """Count records, which come worst first, in one pass."""
    check_by(by)
    counts = Tally(keep, by)
    for record in records:
        counts.add(record)
    return counts


def word(badge: str) -> str:
    """A verdict as it stands in a sentence."""
    return LOOKS[badge].word.lower()


def next_command(record: Record, *options: str) -> str:
    """What to type to see a run in full; a name that no line can hold is left to be filled in."""
    told = ["stabtree diagnose", _typed(f"./{record.path}" if record.path[:1] == "-" else record.path, "PATH")]
    told += ["--run", _typed(record.run, "NAME")] if record.run else []
    return " ".join([*told, *options])


def _typed(name: str, instead: str) -> str:
    return shlex.quote(name) if name and clean(name, LONGEST_NAME) == name else instead


def _light(record: Record) -> Record:
    """A record without what only machines read."""
    return replace(record, data=b"", notes=())


def ordered(records: Iterable[Record]) -> list[Record]:
    """A few records as they are shown: worst first, what was found together, the commonest of it first."""
    held = list(records)
    count = Counter((record.badge, record.title) for record in held)
    first = {(record.badge, record.title): place for place, record in reversed([*enumerate(held)])}

    def rank(record: Record) -> tuple[int, int, int]:
        key = record.badge, record.title
        return ORDER.index(record.badge), -count[key], first[key]

    return sorted(held, key=rank)
