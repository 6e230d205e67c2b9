"""Many runs on a screen: how many of each verdict, the causes with what to do, the worst runs, a line each."""

from __future__ import annotations

import os.path
import re
import shlex
from collections import Counter
from itertools import groupby
from textwrap import shorten
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean, in_words, inert, to_ascii
from stabtree.judging.verdict import LEVELS, ORDER, UNREAD
from stabtree.loaders.config import KEYS
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import BADGES, counted, new_page, styled
from stabtree.report.plot import short
from stabtree.run import LOGGING
from stabtree.tools.fleet.record import spark
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stabtree.report.page import Page, Piece
    from stabtree.tools.fleet.record import Record

CAUSES = ("verdict", "runs", "what was found", "from step", "the worst", "what to do first")
RUN = ("verdict", "run", "from step", "what was found", "restart", "last step")
FEW = 40  # runs that are all listed, healthy ones too
WORST = 20  # of more runs, those that are listed
MIN_GROUPED = 4  # runs; a table of fewer says more
MAX_GROUPS, MAX_EXAMPLES, MAX_NAME = 30, 3, 1000
MIN_NAME, MIN_TITLE = 16, 12  # characters that a run's name, and what was found, may always have
MAX_SETTINGS, SEED, DIGITS = 6, "seed", 6
LEAST = 3  # runs on each side of a limit: with fewer, too many settings split the runs by chance
LEAST_TEXT = 30  # columns that settings leave to what was found
NARROW = 72  # columns below which no small line is drawn
BADGE = 13  # columns of a badge with a space behind it
_OWN_NUMBERS = re.compile(r" \([^()]* → [^()]*\)")  # of one run: (lr 0.003 → 0.0015)


class RunGroup(Struct, frozen=True):
    """Runs of one verdict in which the same was found."""

    badge: str  # the verdict
    leaf: str  # the id of what was found; empty where nothing was
    runs: Sequence[Record]  # the runs, of which there is at least one
    heading: str = "Healthy"  # what was found in them
    steps: str = ""  # the range of the steps at which it began; empty where there are none
    first: str = ""  # what to do about them first, where that is the same for all

    def examples(self, name: Callable[[Record], str], room: int = MAX_NAME) -> str:
        """Return the names of the first runs, as many as there is room for, and how many more there are."""
        names = [name(run) for run in self.runs[:MAX_EXAMPLES]]
        text = ""
        while names and not (text and len(text) <= room):
            rest = len(self.runs) - len(names)
            text = in_words([*names, *([f"{rest:,} more"] if rest else [])])
            names.pop()
        return text


class Summary:
    """Many runs, counted and grouped.

    Args:
        records: the runs, worst first.

    Attributes:
        records: all of them.
        calling: those that are not healthy.
        counts: how many runs have each verdict, as it is shown, the worst first.
        folder: the folder in which all paths are, to be named once; empty where there is none.
        where: that folder, as it is shown.
        notes: what was noted of every run that was judged.
        groups: runs in which the same was found, worst first, the largest first.
        numbers: the settings that vary and lie on an axis.
        splits: a sentence for each of them at which a limit lies between the runs that diverge and all others.
        varied: the settings to show: those that split the runs, then other numbers, words, and the seed last.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        self.labels = Counter(run.label for run in self.records)
        self.calling = [run for run in self.records if run.badge != Severity.OK]
        self.counts = Counter(sorted((run.badge for run in self.records), key=ORDER.index))
        folders = [f"{run.path.rstrip('/').rpartition('/')[0]}/" for run in self.records]
        above = os.path.commonprefix(folders).rpartition("/")[0]  # noqa: RUF071 - cut at the last slash
        self.folder = f"{above}/" * bool(above.strip("/"))
        self.where = f"in {clean(self.folder)}" * bool(self.folder)
        judged = [run.notes for run in self.records if run.badge != UNREAD]
        self.notes = [note for note in (judged or [()])[0] if all(note in notes for notes in judged)]
        same: dict[tuple[str, str], list[Record]] = {}
        for run in self.records:
            same.setdefault((run.badge, run.leaf * (run.badge != Severity.OK)), []).append(run)
        groups = [_group(badge, leaf, runs) for (badge, leaf), runs in same.items()]
        self.groups = sorted(groups, key=lambda group: (ORDER.index(group.badge), -len(group.runs)))
        self._compare()

    def _compare(self) -> None:
        """Find out in which settings the runs differ, and what splits those that diverge from the others."""
        sound = [run for run in self.records if run.badge not in (UNREAD, UNKNOWN)]
        known = {key: [run.settings[key] for run in sound if key in run.settings] for key in KEYS}
        keys = [key for key in KEYS if _varies(key, known[key], len(sound))]
        self.numbers = [key for key in keys if not any(isinstance(value, str) for value in known[key])]
        told = {key: _split(key, sound) for key in self.numbers if key != SEED}
        self.splits = {key: sentence for key, sentence in told.items() if sentence}
        keys.sort(key=lambda key: (key == SEED, key not in self.splits, key not in self.numbers))
        self.varied = keys[:MAX_SETTINGS]

    @property
    def grouped(self) -> bool:
        """Whether a line a group is what people want: of many runs, and where groups are half of some runs."""
        alike = MIN_GROUPED <= len(self.records) >= 2 * len(self.groups)
        return len(self.records) > FEW or alike

    @property
    def title(self) -> str:
        """How many runs there are, and in how many of them something is wrong."""
        runs, alarms = counted(len(self.records), "run"), sum(self.counts[level] for level in LEVELS if level.is_alarm)
        if not alarms:
            return runs
        return f"{alarms:,} of {runs} {('have', 'has')[alarms == 1]} a warning or worse"

    @property
    def headline(self) -> str:
        """How many runs there are of each verdict, in a line."""
        parts = [f"{count:,} {word(badge)}" for badge, count in self.counts.items()]
        noted = sum(run.badge == Severity.OK != run.verdict for run in self.records)  # `--fail-on note` fails for these
        if noted:
            parts[-1] += f" ({noted:,} with notes)"
        return f"{self.title}{': ' * bool(parts)}{', '.join(parts)}"

    def share(self, group: RunGroup) -> str:
        """Return how many of all runs are in a group."""
        return f"{len(group.runs):,} of {len(self.records):,}"

    def causes(self) -> list[tuple[str, ...]]:
        """Return a row of texts for each group that is not healthy, as `CAUSES` names them."""
        groups = [group for group in self.groups[:MAX_GROUPS] if group.badge != Severity.OK]
        return [
            (group.badge, self.share(group), group.heading, group.steps, group.examples(self.name), group.first)
            for group in groups
        ]

    def run(self, record: Record) -> tuple[str, ...]:
        """Return a row of texts for a run, as `RUN` names them with the settings that vary behind the first two."""
        settings = [value_text(record.settings.get(key, "")) for key in self.varied]
        steps = ["" if step is None else f"{step:,}" for step in (record.restart_step, record.last_step)]
        return (record.badge, self.name(record), *settings, record.onset, record.found, *steps)

    def name(self, record: Record) -> str:
        """Return what people call a run: its label, with its path where two share it; else its path below all runs."""
        if record.label and self.labels[record.label] == 1:
            return clean(record.label, MAX_NAME)
        return clean(record.name.removeprefix(self.folder), MAX_NAME) or "?"


def _group(badge: str, leaf: str, runs: Sequence[Record]) -> RunGroup:
    """Return runs as a group, with what they have in common."""
    if badge == Severity.OK:
        return RunGroup(badge, leaf, runs)
    heading = runs[0].title
    if any(run.title != heading for run in runs):
        heading += ", and the like"
    onsets = [run.onset_step for run in runs if run.onset_step is not None]
    steps = "-".join(f"{step:,}" for step in sorted({min(onsets), max(onsets)})) if onsets else ""
    first, *others = {_OWN_NUMBERS.sub("", run.first) for run in runs}
    return RunGroup(badge, leaf, runs, heading, steps, "" if others else first)


def _varies(key: str, values: Sequence[float | str], runs: int) -> bool:
    """Return whether many runs differ in a setting that may matter: neither a path nor a name of each run's own."""
    texts = [value for value in values if isinstance(value, str)]
    named = (len(set(texts)) > LEAST and len(set(texts)) == len(texts)) or any("/" in text for text in texts)
    matters = key == SEED or key not in LOGGING
    return matters and not named and len(values) * 2 >= runs and len(set(values)) > 1


def _split(key: str, runs: Sequence[Record]) -> str:
    """Return beyond which value of a number all runs diverge, and none on its other side; empty where no limit does."""
    known = sorted((float(run.settings[key]), run.diverged) for run in runs if key in run.settings)
    bad, good = ([value for value, diverged in known if diverged is side] for side in (True, False))
    if min(len(bad), len(good)) < LEAST or (bad[0] <= good[-1] and good[0] <= bad[-1]):
        return ""
    sign, limit, other = ">=", bad[0], "below"
    if bad[0] < good[0]:
        sign, limit, other = "<=", bad[-1], "above"
    counts = f"{len(bad)} of {len(bad)}; 0 of {len(good)} {other}"
    return f"every run with {key} {sign} {value_text(limit)} diverges ({counts})"


def value_text(value: float | str) -> str:
    """Return a setting in few characters."""
    if isinstance(value, str):
        return clean(value, MIN_NAME)
    return short(value, DIGITS)


def word(badge: str) -> str:
    """Return a verdict as a word in a sentence."""
    return BADGES[badge].word.lower()


def next_command(record: Record, *options: str) -> str:
    """Return what to type to see a run in full; a name that no line can hold is left to be filled in."""
    path = f"./{record.path}" if record.path.startswith("-") else record.path
    run = ["--run", _typed(record.run, "NAME")] if record.run else []
    return " ".join(["stabtree diagnose", _typed(path, "PATH"), *run, *options])


def _typed(name: str, instead: str) -> str:
    return shlex.quote(name) if name and clean(name, MAX_NAME) == name else instead


def screen(records: Iterable[Record], look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield the runs, worst first; of many the causes first, then the worst of them."""
    summary, page = Summary(records), new_page(look)
    page.line((summary.headline, "heading"))
    page.line((summary.where, "dim"))
    for sentence in summary.splits.values():
        page.item(("→", "ok word"), [(sentence, "")], indent=0, head_width=2)
    shown = summary.records
    if summary.grouped:
        _groups(page, summary)
    if look.worst or len(shown) > FEW:
        shown = summary.calling[: look.worst or WORST]
    if shown:
        _listed(page, shown, summary, look)
    page.blank()
    rest = len(summary.calling) - len(shown)
    if rest > 0:
        more = f"--worst {len(summary.calling)}, or --output csv=runs.csv"
        page.line((f"and {rest:,} more that are not ok: {more}", ""))
    if any(record.more for record in shown):
        page.line(("+1: one more finding in that run; diagnose it to see all", "dim"))
    for note in summary.notes:
        page.item(("·", "dim"), [(note, "dim")], indent=0, head_width=2)
    text = page.text()
    for record in (shown or summary.records)[:1]:
        text += inert(f"next  {next_command(record)}\n")  # in one line, however long: it is there to be copied
    # An ellipsis stands where a word was too long for its column.
    yield to_ascii(text.replace("…", ".")) if look.ascii else text


def _groups(page: Page, summary: Summary) -> None:
    """Add up to three lines a group: what was found and from which steps on, in which runs, what to do about it."""
    counts = [summary.share(group) for group in summary.groups]
    digits = max(map(len, counts))
    left = BADGE + digits + 2
    room = max(MIN_TITLE, page.width - left)
    page.blank()
    for group, count in zip(summary.groups[:MAX_GROUPS], counts, strict=False):
        heading = f"{group.heading}, from step {group.steps}".removesuffix(", from step ")
        row = [_badge(group.badge), (count.rjust(digits), "number"), (heading, "title")]
        page.rows([row], indent=0, widths=(BADGE, digits + 2))
        if group.badge != Severity.OK:
            leaf = page.plain(f"{group.leaf} · " if group.leaf else "")
            names = _tail(page.plain(group.examples(summary.name, room - len(leaf))), room - len(leaf))
            page.lines([[(leaf, "id"), (names, "dim")]], indent=left)
        if group.first:
            sentence = page.plain(f"→ {group.first}").partition(". ")[0].removesuffix(".")
            page.lines([[(shorten(sentence, room, placeholder=" …"), "ok word")]], indent=left)
    if (rest := len(summary.groups) - MAX_GROUPS) > 0:
        page.line((f"and {rest:,} more groups", "dim"), indent=left)


def _listed(page: Page, shown: Sequence[Record], summary: Summary, look: RenderOptions) -> None:
    """Add the heads and a line a run, those of one verdict below its badge."""
    longest = max(MIN_NAME, look.width * 2 // 5)
    names = [page.plain(_tail(page.plain(summary.name(record)), longest)) for record in shown]
    steps = [run.onset or "–" * (run.verdict != UNREAD) for run in shown]
    before, after = [_Column("run", names)], [_Column("step", steps, "number", right=True)]
    if look.plots and look.width >= NARROW and any(record.spark for record in shown):
        after.insert(0, _Column("loss", [spark(record.spark, ascii=look.ascii) for record in shown], "curve"))
    room = look.width - 2 - LEAST_TEXT - sum(column.width for column in (*before, *after))
    for key in summary.varied:
        values = [value_text(record.settings.get(key, "")) for record in shown]
        column = _Column(key, values, "number", right=key in summary.numbers)
        if column.width <= room:
            before.append(column)
            room -= column.width
    columns = (*before, *after)
    widths = tuple(column.width for column in columns)
    heads = [(column.cells[0], "dim") for column in columns]
    page.blank()
    page.rows([[*heads, ("what was found", "dim")]], indent=2, widths=widths)
    for badge, members in groupby(enumerate(shown, 1), key=lambda item: item[1].badge):
        page.blank()
        page.rows([[_badge(badge), (counted(summary.counts[badge], "run"), "dim")]], indent=0, widths=(BADGE,))
        for place, record in members:
            cells = [(column.cells[place], column.style) for column in columns]
            page.rows([[*cells, (record.found, "")]], indent=2, widths=widths)


class _Column:
    """The head and the cells of a column, padded where they stand to the right, and its width with a gap."""

    def __init__(self, head: str, cells: Sequence[str], style: str = "", *, right: bool = False) -> None:
        width = max(styled([(text, "")]).cell_len for text in (head, *cells))
        self.cells = [text.rjust(width * right) for text in (head, *cells)]
        self.style, self.width = style, width + 2


def _badge(badge: str) -> Piece:
    return f" {BADGES[badge].word} ", badge


def _tail(name: str, longest: int) -> str:
    """Return the end of a long name: that is where the names of runs differ."""
    return name if len(name) <= longest else f"…{name[1 - max(longest, MIN_TITLE) :]}"
