"""Many runs in one pass: how many of each verdict, the causes with their worst runs, and the worst of all."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import field, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words
from stabtree.judging.outcome import ORDER, UNREAD
from stabtree.report.text import counted
from stabtree.report.verdicts import BADGES
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stabtree.tools.fleet.record import Record

HEALTHY = Severity.OK
MAX_EXAMPLES = 3  # runs that a group names
MAX_CAUSES = 3
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
        if self.first is None:
            self.first = first
        elif self.first != first:
            self.first = ""
        self.alike = self.alike and record.title == self.title
        self.badge = min(self.badge, record.badge, key=ORDER.index)
        self.count += 1
        self.badges[record.badge] += 1
        if record.badge == HEALTHY:
            return
        if record.leaf:
            self.leaves[record.leaf] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(_light(record))
        if record.onset_step is not None:
            steps = [step for step in (self.low, self.high, record.onset_step) if step is not None]
            self.low, self.high = min(steps), max(steps)

    @property
    def steps(self) -> str:
        """The range of the first steps; empty where there are none."""
        if self.low is None or self.high is None:
            return ""
        if self.low == self.high:
            return f"{self.low:,}"
        return f"{self.low:,}-{self.high:,}"

    @property
    def heading(self) -> str:
        """What was found in them, in words."""
        if self.badge == HEALTHY:
            return "Healthy"
        if self.alike:
            return self.title
        return f"{self.title}, and the like"

    @property
    def causes(self) -> str:
        """The commonest findings, and how many other ones there are."""
        if not self.leaves:
            return ""
        words = [f"{count:,} {leaf}" for leaf, count in self.leaves.most_common(MAX_CAUSES)]
        rest = len(self.leaves) - len(words)
        if rest:
            words.append(counted(rest, "other cause"))
        return in_words(words)


def _by_leaf(record: Record) -> str:
    if record.badge == HEALTHY:
        return ""
    return record.leaf


def _by_folder(record: Record) -> str:
    return record.path.rstrip("/").rpartition("/")[0] or "."


BY: dict[str, Callable[[Record], str]] = {"leaf": _by_leaf, "folder": _by_folder, "verdict": lambda _: ""}
"""What runs can be grouped by."""


def check_by(by: str) -> None:
    """Refuse a word that runs can't be grouped by.

    Raises:
        StabtreeError: for any but those of `BY`.
    """
    if by not in BY:
        raise StabtreeError(f"cannot group by {clean(by, 40)!r}", where="--by", hint=f"type one of {', '.join(BY)}")


@dataclass(slots=True)
class Tally:
    """What was counted of many runs; it grows with the causes and the folders, never with the runs.

    Attributes:
        keep: how many of the runs that call for something are kept whole.
        by: what they are grouped by.
        badges: how many runs have each verdict, as it is shown.
        noted: how many of those that are shown as healthy have notes, for which `--fail-on note` fails.
        kept: the worst runs; healthy ones only while all fit.
        folder: the folder in which all paths are, empty where there is none.
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
        # a folder is one group whatever its runs came to
        if self.by == "folder":
            apart = ""
        else:
            apart = record.badge
        group = self._groups.setdefault((apart, key), RunGroup(record.badge, key, record.title))
        group.add(record)
        if len(self.kept) < self.keep:
            self.kept.append(_light(record))

    def _narrow(self, record: Record) -> None:
        above = record.path.rstrip("/").split("/")[:-1]
        if self._above is None:
            self._above = above
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self._above, above, strict=False))
        self._above = [folder for folder, _ in same]
        if record.badge == UNREAD:
            return
        if self.notes is None:
            self.notes = record.notes
        else:
            self.notes = tuple(n for n in self.notes if n in record.notes)

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
        """The folder in which all paths are, to be named once; empty where there is none."""
        if self._above and any(self._above):
            return "/".join([*self._above, ""])
        return ""

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
    def summary(self) -> str:
        """How many runs there are of each verdict, in a line."""
        parts = [f"{self.badges[badge]:,} {word(badge)}" for badge in ORDER if self.badges[badge]]
        if self.noted:  # the healthy ones come last
            parts[-1] += f" ({self.noted:,} with notes)"
        if parts:
            return f"{counted(self.total, 'run')}: {', '.join(parts)}"
        return "0 runs"

    def listed(self, few: int, worst: int) -> list[Record]:
        """Return the runs to list, in order: up to `few` runs all, of more those of the worst that are not healthy."""
        if self.total <= few:
            return ordered(self.kept)
        return ordered(record for record in self.kept[:worst] if record.badge != HEALTHY)

    def name(self, record: Record) -> str:
        """Return a run's name without the folder that all share."""
        return clean(record.name.removeprefix(self.folder), LONGEST_NAME) or "?"

    def examples(self, group: RunGroup, room: int = LONGEST_NAME) -> str:
        """Return the worst of a group by name, as many as there is room for, and how many more they are."""
        names = [self.name(record) for record in group.examples]
        text = ""
        for shown in range(len(names), 0, -1):
            words = names[:shown]
            if group.count > shown:
                words.append(f"{group.count - shown:,} more")
            text = in_words(words)
            if len(text) <= room:
                break
        return text


def count_runs(records: Iterable[Record], keep: int, by: str = "leaf") -> Tally:
    """Count records, which come worst first, in one pass."""
    check_by(by)
    counts = Tally(keep, by)
    for record in records:
        counts.add(record)
    return counts


def word(badge: str) -> str:
    """Return a verdict as a word in a sentence."""
    return BADGES[badge].word.lower()


def next_command(record: Record, *options: str) -> str:
    """Return what to type to see a run in full; a name that no line can hold is left to be filled in."""
    path = record.path
    if path.startswith("-"):
        path = f"./{path}"
    words = ["stabtree diagnose", _typed(path, "PATH")]
    if record.run:
        words += ["--run", _typed(record.run, "NAME")]
    return " ".join([*words, *options])


def _typed(name: str, instead: str) -> str:
    if name and clean(name, LONGEST_NAME) == name:
        return shlex.quote(name)
    return instead


def _light(record: Record) -> Record:
    """Return a record without what only machines read."""
    return replace(record, data=b"", notes=())


def ordered(records: Iterable[Record]) -> list[Record]:
    """Return a few records as they are shown: worst first, what was found together, the commonest of it first."""
    rows = list(records)
    count = Counter((record.badge, record.title) for record in rows)
    index = {key: at for at, key in enumerate(count)}  # by first appearance

    def rank(record: Record) -> tuple[int, int, int]:
        key = record.badge, record.title
        return ORDER.index(record.badge), -count[key], index[key]

    return sorted(rows, key=rank)
