"""The rows of a text log: lines of one step joined, overflow lines kept in their place."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.loaders.table import Column
from stabtree.loaders.text.cells import Block, Cells
from stabtree.loaders.text.grammar import is_loss, is_reward
from stabtree.loaders.text.line import Line, Pair, to_float

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.metrics.names import Names

# A log with more names than this prints something else than metrics.
MAX_NAMES = 20_000
ROLES = ("step", "epoch", "rank", "bar", "below", "below_of", "share", "share_of")
SKIPPED_NAN = "number of nan iterations"


@dataclass(slots=True)
class OpenRow:
    """The row that following lines may still join."""

    row: int
    step: float | None = None
    epoch: float | None = None
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class LogRows:
    """All rows of a log, and the row that is open for each rank.

    Attributes:
        names: what the names of a line mean, and so which are wanted.
        kinds: whether losses that go by their kind are kept as well.
        count: rows so far.
        columns: every metric column met and whether it is wanted, in the order of first appearance.
        roles: cells of `step`, `epoch`, `rank`; of rows without a step `bar`, the progress bar above, and `below` with
            `below_of`, the one that is drawn next; `share`, `share_of` of positions that are told in percent as well.
        below_bar_head: whether a bar names the epoch of the lines below it.
        epochs_at: (row, epoch) of each header that names an epoch: the rows from there on belong to it.
        events: rows that are overflows, not lines of metrics.
    """

    names: Names
    kinds: bool = False
    count: int = 0
    columns: dict[str, bool] = field(default_factory=dict)
    roles: dict[str, Cells] = field(default_factory=lambda: {n: Cells() for n in ROLES})
    cells: dict[str, Cells] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    events: array[int] = field(default_factory=lambda: array("q"))
    step_names: Counter[str] = field(default_factory=Counter)
    head: OpenRow | None = None
    head_name: str = "step"
    trailing: bool = False
    opened: dict[float | None, OpenRow] = field(default_factory=dict)
    last_event: tuple[str, int] = ("", -1)
    bar: tuple[int, int] | None = None
    below_bar: list[int] = field(default_factory=list)
    below_bar_head: bool = False
    epochs_at: list[tuple[int, float]] = field(default_factory=list)
    bar_row: tuple[int, int, tuple[int, int]] = (-1, 0, (0, 0))

    def wanted(self, name: str) -> bool:
        """Whether the cells of a column are worth keeping; remembers that it was met."""
        known = self.columns.get(name)
        if known is None:
            if len(self.columns) >= MAX_NAMES:
                return False
            known = self.names.wanted(name) or (self.kinds and is_loss(name, kinds=True))
            self.columns[name] = known
        return known or name == SKIPPED_NAN

    def add(self, line: Line, place: int, *, dict_row: bool = False) -> None:
        """A line of metrics: it joins the open row of its rank and step, or begins a row."""
        rank = _value(line.rank)
        step, epoch = _value(line.step), _value(line.epoch)
        row = self.opened.get(rank)
        same_bar = row is not None and line.bar == "keras" and self._same_bar(row, line, place)
        if not row or not (same_bar or self._joins(row, step, epoch, line, dict_row=dict_row)):
            row = self._new(rank, step, epoch)
        if step is not None and row.step is None:
            self._role("step", row.row, step)
            row.step = step
        if line.step:
            self.step_names[line.step.name] += 1
        if epoch is not None and row.epoch is None:
            self._role("epoch", row.row, epoch)
            row.epoch = epoch
        self._fill(row, line.metrics)
        if line.bar == "keras":
            self.bar_row = row.row, place, line.position or (0, 0)

    def _same_bar(self, row: OpenRow, line: Line, place: int) -> bool:
        """Whether a bar is drawn anew over the one of the row, whose means go on."""
        last, before, done = self.bar_row
        goes_on = line.position is not None and done[1] == line.position[1] and done[0] < line.position[0]
        return last == row.row and (place == before + 1 or goes_on)

    def _joins(self, row: OpenRow, step: float | None, epoch: float | None, line: Line, *, dict_row: bool) -> bool:
        if step is not None and step != row.step and not (row.step is None and not row.names):
            return False
        if epoch is not None and row.epoch is not None and epoch != row.epoch:
            return False
        if step is None and dict_row and line.loss:
            return False
        # The same metric twice is the same step logged again, which `assemble` resolves.
        return not any(pair.name in row.names for pair in line.metrics if pair.role or self._judged(pair.name))

    def _judged(self, name: str) -> bool:
        """Whether a name that no metric has is read as a loss or a reward here."""
        return self.kinds and (is_loss(name, kinds=True) or is_reward(name))

    def _new(self, rank: float | None, step: float | None, epoch: float | None) -> OpenRow:
        """A row of its own, of the step that a line above named if it names none."""
        if step is None and self.head and not self.trailing:
            step, epoch = self.head.step, epoch if epoch is not None else self.head.epoch
            self.step_names[self.head_name] += 1
        row = OpenRow(self.count)
        self.count += 1
        if step is not None:
            self._role("step", row.row, step)
        elif self.bar:
            self._role("bar", row.row, self.bar[0])
            self.below_bar.append(row.row)
        if epoch is not None:
            self._role("epoch", row.row, epoch)
        if rank is not None:
            self._role("rank", row.row, rank)
        row.step, row.epoch = step, epoch
        self.opened[rank] = row
        return row

    def _fill(self, row: OpenRow, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            if self.wanted(pair.name):
                self.cells.setdefault(pair.name, Cells()).set(row.row, to_float(pair.text))
            row.names.add(pair.name)

    def _role(self, name: str, row: int, value: float) -> None:
        self.roles[name].set(row, value)

    def header(self, line: Line) -> None:
        """A line that names a step and nothing else: of the lines below it, or of those above."""
        rank, step, epoch = _value(line.rank), _value(line.step), _value(line.epoch)
        above = self.opened.get(rank)
        if line.step:
            self.head_name = line.step.name
        if step is not None and above and above.names and above.step is None and (self.trailing or not self.head):
            self.trailing = True
            self._role("step", above.row, step)
            self.step_names[self.head_name] += 1
            self.opened.pop(rank)
            return
        if self.trailing:
            return
        if epoch is not None and step is None:
            self.epochs_at.append((self.count, epoch))
        head = self.head
        same = head and (step is None or step == head.step) and (epoch is None or head.epoch in (None, epoch))
        if not head or not same:
            self.head = OpenRow(-1, step, epoch)
            self.opened.pop(rank, None)
        elif head.epoch is None and epoch is not None:
            head.epoch = epoch
            if above and above.epoch is None:
                above.epoch = epoch
                self._role("epoch", above.row, epoch)

    def overflow(self, scale: str | None) -> None:
        """A skipped step, without a scale if its gradient is NaN: a row between those of metrics; ranks repeat it."""
        event = (scale or "nan", self.count)
        if event == self.last_event:
            return
        row = self.count
        self.count += 1
        self.events.append(row)
        self.last_event = (event[0], self.count)
        if self.bar:
            self._role("bar", row, self.bar[0])
        norm = self.names.column("grad_norm")
        name, value = (norm, float("nan")) if scale is None else (self.names.column("loss_scale"), float(scale))
        self.wanted(name)
        self.wanted(norm)
        self.cells.setdefault(name, Cells()).set(row, value)

    def share(self, position: tuple[int, int]) -> None:
        """The last row tells its position in the epoch in percent as well."""
        self._role("share", self.count - 1, position[0])
        self._role("share_of", self.count - 1, position[1])

    def moved(self, position: tuple[int, int]) -> None:
        """A progress bar went on: what it says holds for lines that name no step."""
        for row in self.below_bar:
            self._role("below", row, position[0])
            self._role("below_of", row, position[1])
        self.below_bar.clear()
        if position != self.bar:
            self.bar, self.last_event = position, ("", -1)

    def step_name(self) -> str:
        """How most rows spell the step."""
        names = Counter(self.step_names)
        for block in self.blocks:
            names[block.step_name] += len(block.rows)
        return names.most_common(1)[0][0] if names else "step"

    @property
    def located(self) -> bool:
        """Whether any row says where the run is."""
        return bool(self.step_names or self.roles["epoch"].rows or self.blocks)

    def epochs(self) -> tuple[Floats, Bools]:
        """The epoch of each row: its own, else that of the header above: (values, logged)."""
        values, logged = self.dense("epoch")
        if self.epochs_at and not self.trailing:
            rows, headed = np.array(self.epochs_at).T
            above = np.searchsorted(rows, np.arange(self.count), side="right") - 1
            fill = ~logged & (above >= 0)
            values[fill] = headed[above[fill]]
            logged = logged | fill
        return values, logged

    def dense(self, name: str) -> tuple[Floats, Bools]:
        """A column or role over all rows: (values, logged)."""
        values, logged = np.zeros(self.count), np.zeros(self.count, dtype=np.bool_)
        for block in self.blocks:
            if name in block.names and block.parts:
                rows = np.frombuffer(block.rows, dtype=np.int64)
                values[rows] = np.concatenate([part[:, block.names.index(name)] for part in block.parts])
                logged[rows] = True
                logged[[row for row, place in block.bad if block.names[place] == name]] = False
        cells = self.roles.get(name) or self.cells.get(name)
        if cells and cells.rows:
            rows = np.frombuffer(cells.rows, dtype=np.int64)
            values[rows] = np.frombuffer(cells.values, dtype=np.float64)
            logged[rows] = True
        return values, logged


def column(values: Floats, logged: Bools, keep: Ints) -> Column:
    """A column of some rows."""
    some = logged[keep]
    return Column(values[keep], None if some.all() else some)


def _value(pair: Pair | None) -> float | None:
    return to_float(pair.text) if pair else None
