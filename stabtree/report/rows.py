"""The rows of the log that show an incident, as a small table, and those around a step."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import row_of
from stabtree.common.stats import median
from stabtree.diagnosis.result import STRONG
from stabtree.diagnosis.timeline import JUMP, ROWS_OF_NOISE, bad_side, last_good_row, worst_row
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.result import Incident
    from stabtree.run import Run, Series

MAX_ROWS = 6
DIGITS = 4
MAX_COLUMNS = 4
FEW_ROWS = 12  # a series of no more rows shows all it has in a table
HERE = "◀ here"
LAST_GOOD, BEFORE = "last good row", "row before"
BEST = "◀ best"
FROM_HERE = "◀ the first row from there on"
HASHES = "batch_id"
GOES_ALONG = ("loss", "grad_norm", "eval_loss")  # shown where there is room


class QuotedLine(Struct, frozen=True):
    """A row of the table."""

    step: int
    cells: tuple[str, ...]  # a text for each column; empty where nothing was logged
    note: str = ""  # what the row is
    here: bool = False  # whether the trouble begins there
    rank: int = 0  # how much it is worth a line, 0 for the most

    @property
    def texts(self) -> tuple[str, ...]:
        """The row of the whole table: its step, its cells and its note."""
        return f"{self.step:,}", *self.cells, self.note


class Quoted(Struct, frozen=True):
    """The rows that show an incident, by step."""

    unit: str  # what the first column counts
    metrics: tuple[str, ...]  # the series that shows it best first
    lines: tuple[QuotedLine, ...]
    sharp: bool  # whether they show the trouble by themselves; else it takes a plot
    few: bool  # whether they are most of what was logged, and a plot would show no more

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads of the columns; none above the notes."""
        return self.unit, *self.metrics, ""


def quoted(run: Run, finding: Incident) -> Quoted | None:
    """Return the rows that show an incident; None where it has no onset or its series has no row there."""
    onset, shown = finding.onset_step, _series(run, finding)
    if onset is None or not shown:
        return None
    jumping = [series for series in shown if _jumps(series, onset)]
    broken = [series for series in jumping if not np.isfinite(series.values[row_of(series.steps, onset)]).all()]
    lead = [*broken, *jumping, *shown][0]
    at = int(lead.steps.searchsorted(onset))
    if at == len(lead):
        return None
    shown = [lead, *(series for series in shown if series is not lead)]
    notes = _notes(shown, at, finding, sharp=bool(jumping))
    steps, ranks = sorted(notes), list(notes)
    often = [series for series in shown if series is lead or float(np.isin(steps, series.steps).mean()) > 0.5]
    columns, lines = often[:MAX_COLUMNS], []
    for step in steps:
        cells = tuple(_cell(series, step) for series in columns)
        lines.append(QuotedLine(step, cells, notes[step], step == onset, ranks.index(step)))
    metrics = tuple(series.metric for series in columns)
    return Quoted(finding.unit, metrics, tuple(lines), bool(jumping), few=len(lead) <= FEW_ROWS)


def _series(run: Run, finding: Incident) -> list[Series]:
    """Return the series that show an incident: its own, those that moved, and what an engineer looks at beside them."""
    proofs = chain.from_iterable(judged.evidence for judged in finding.causes if judged.state in STRONG)
    own = [finding.metric, *(item.metric for item in chain(finding.evidence, proofs))]
    first = [event.metric for event in finding.departures if event.first]
    moved = [event.metric for event in finding.departures]
    names = dict.fromkeys((own[0], *first, *own[1:], *GOES_ALONG, *moved))
    return distinct(filter(None, (run.find(name) for name in names if name and name != HASHES)))


def distinct(held: Iterable[Series]) -> list[Series]:
    """Return some series without those that repeat an earlier one, value by value."""
    found: list[Series] = []
    for series in held:
        if not any(np.array_equal(series.values, other.values, equal_nan=True) for other in found):
            found.append(series)
    return found


def _jumps(series: Series, onset: int) -> bool:
    """Return whether a series leaves its level from one row to the next at a step."""
    at = int(series.steps.searchsorted(onset))
    if not 0 < at < len(series) or int(series.steps[at]) != onset:
        return False
    before, here = series.values[max(at - ROWS_OF_NOISE, 0) : at], float(series.values[at])
    if not np.isfinite(here):
        return True
    before = before[np.isfinite(before)]
    if len(before) < 2:
        return False
    usual = median(np.abs(np.diff(before)))
    return bool(abs(here - float(before[-1])) > JUMP * max(usual, 1e-12))


def _notes(shown: Sequence[Series], at: int, finding: Incident, *, sharp: bool) -> dict[int, str]:
    """Return the steps to quote, each with what its row is; what is most worth a row comes first."""
    lead = shown[0]
    steps, last = lead.steps, len(lead) - 1
    onset = int(steps[at])
    values = bad_side(lead) * lead.values
    good, before = _before(lead, at, finding, sharp=sharp)
    notes = {onset: HERE} | before
    if finding.leaf.take is Take.BEST and values[at] == values[np.isfinite(values)].min(initial=np.inf):
        notes = {onset: BEST}
    if onset != finding.onset_step:
        notes[onset] = FROM_HERE
    if not np.isfinite(lead.values[at:]).any():
        after = last - at
        if after:
            notes[onset] += f", and all {after:,} rows after it" if after > 1 else ", and the row after it"
        around = [at - 2, at - 3]
    else:
        if last > at:
            notes[int(steps[last])] = "last row"
        worst = worst_row(lead, onset, good)
        if worst is not None:
            notes.setdefault(int(steps[worst]), "worst")
        # Ever farther apart, so that the way back is seen; of a slow change evenly spread.
        around = [at + 1, *(at + round((last - at) ** share) for share in (0.4, 0.7, 0.85)), at - 2]
        if not sharp:
            around = [round(share * last) for share in (0, 0.5, 0.75, 0.25)]
        if last < MAX_ROWS:
            around = list(range(last + 1))
    for index in around:
        if 0 <= index <= last and len(notes) < MAX_ROWS:
            notes.setdefault(int(steps[index]), "")
    return notes


def _before(lead: Series, at: int, finding: Incident, *, sharp: bool) -> tuple[int | None, dict[int, str]]:
    """Return the index of the last good row, None where none is known, and the rows before the onset to quote."""
    notes, moved, name, before = dict[int, str](), at, "", ""
    for event in [event for event in finding.departures if event.first][:1]:
        row = int(lead.steps.searchsorted(event.step))
        if row < at and event.metric not in (lead.metric, HASHES):
            moved, name = row, event.metric
            notes[int(lead.steps[row])] = f"{name} moved first"
    by_step = int(lead.steps[moved]) - 1
    if finding.last_good_step is not None:
        by_step = min(by_step, finding.last_good_step)
    good = last_good_row(lead, by_step)
    if sharp and not name:
        before = BEFORE
    if good is not None and (sharp or name):
        notes.setdefault(int(lead.steps[good]), LAST_GOOD)
    if at:
        notes.setdefault(int(lead.steps[at - 1]), before)
    return good, notes


def _cell(series: Series, step: int) -> str:
    at = int(series.steps.searchsorted(step))
    return "" if at == len(series) or int(series.steps[at]) != step else figure(float(series.values[at]), DIGITS)
