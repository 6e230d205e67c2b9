"""The rows of a text log: lines of one step joined, overflow lines kept in their place."""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stabtree.common.lazy import np
from stabtree.loaders.counters import Dense
from stabtree.loaders.table import MAX_CELLS, affordable
from stabtree.loaders.text.grammar import role
from stabtree.loaders.text.shape import Block, Slot, Template, joined, to_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Bools
    from stabtree.loaders.text.blocks import Masked
    from stabtree.metrics.names import Names

# A log with more names than this prints something else than metrics.
MAX_NAMES = 20_000
MAX_TOTALS = 3  # a counter with more than one total is of parts of the run, such as evaluations
AXES = ("step", "epoch", "rank")
SHARE = ("share", "share_of")
SKIPPED_NAN = "number of nan iterations"  # as Megatron counts the losses that it leaves out


class Cells(Struct):
    """The cells of one column, in the order in which they were written."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def set(self, row: int, value: float) -> None:
        """Write one cell; a later value of the same row replaces it."""
        self.rows.append(row)
        self.values.append(value)


class OpenRow(Struct):
    """A row that following lines may still join."""

    row: int
    step: float | None = None
    epoch: float | None = None
    names: frozenset[str] = frozenset()

    def is_of(self, step: float | None, epoch: float | None) -> bool:
        """Return whether a line of this step and epoch, each None if it names none, may belong to the row."""
        if step is not None and step != self.step and (self.step is not None or self.names):
            return False
        return epoch is None or self.epoch in (None, epoch)


ROLES = ("step", "epoch", "rank", "rounded", "bar", "below", "below_of")


class LogRows(Struct):
    """All rows of a log, and the row that is open for each rank."""

    names: Names  # what the names of a line mean
    kinds: bool = False  # whether losses named only by their kind are looked for
    count: int = 0  # rows so far
    columns: dict[str, None] = field(default_factory=dict)  # every metric column met, in the order of appearance
    # Cells of `step`, `epoch`, `rank` of rows whose lines name none, and what a step was `rounded` to; of rows without
    # a step `bar`, the progress bar above, and `below` with `below_of`, the one that is drawn next.
    roles: dict[str, Cells] = field(default_factory=lambda: {n: Cells() for n in ROLES})
    cells: dict[str, Cells] = field(default_factory=dict)  # those that no line holds as a number
    garbled: dict[str, str] = field(default_factory=dict)  # of a column the first line that holds a word in its place
    blocks: list[Block] = field(default_factory=list)
    events: array[int] = field(default_factory=lambda: array("q"))  # rows that are overflows, not lines of metrics
    asides: array[int] = field(default_factory=lambda: array("q"))  # rows of values printed beside those of training
    aside_steps: dict[str, Cells] = field(default_factory=dict)  # the steps that these name
    # The number and the text of the first line of each column that began in an aside.
    printed_at: dict[str, tuple[int, str]] = field(default_factory=dict)
    step_names: Counter[str] = field(default_factory=Counter)  # how often each name of a step stood below the rows
    headed: int = 0  # how many rows had it above them
    positions: int = 0  # how many say only how far the epoch has come
    head: OpenRow | None = None
    head_name: str = "step"
    trailing: bool = False  # whether the step stands below the rows
    # Whether lines with a step and no loss end several losses without one; unknown before the first of either.
    anchored: bool | None = None
    opened: dict[str, OpenRow] = field(default_factory=dict)
    last_event: tuple[str, int] = ("", -1)
    bar: tuple[int, int] | None = None
    below_bar: list[int] = field(default_factory=list)
    below_bar_head: bool = False  # whether a bar of keras stands above the rows
    # (row, epoch) of each header that names an epoch: the rows from there on belong to it.
    epochs_at: list[tuple[int, float]] = field(default_factory=list)
    bar_row: tuple[int, int, tuple[int, int]] = (-1, 0, (0, 0))
    # How far the counters of steps and of epochs go.
    totals: dict[str, set[int]] = field(default_factory=lambda: {"step": set(), "epoch": set()})

    def marked(self, rows: array[int]) -> Bools:
        """Return which rows are among those listed, as `asides` or `events`: bool (n,)."""
        found = np.zeros(self.count, dtype=np.bool_)
        found[rows.tolist()] = True
        return found

    @property
    def begun(self) -> bool:
        """Whether there is a row, or the head of one."""
        return self.own > 0 or self.head is not None

    @property
    def own(self) -> int:
        """The number of rows that are neither overflows nor asides."""
        return self.count - len(self.asides) - len(self.events)

    def wanted(self, name: str) -> bool:
        """Return whether there is room for a column, and remember it."""
        if len(self.columns) < MAX_NAMES:
            self.columns.setdefault(name)
        return name in self.columns

    def affordable(self) -> list[str]:
        """Return the columns that memory has room for, known ones and losses before the others."""
        known = [name for name in self.columns if self.names.wanted(name)][: MAX_CELLS // max(1, self.count)]
        others = [name for name in self.columns if not self.names.wanted(name)]
        kept = {*known, *affordable(others, len(known), self.count)}
        return [name for name in self.columns if name in kept]

    def block_of(self, template: Template, metrics: Sequence[Slot], *, axes: bool = True) -> Block:
        """Return a new block for the lines of a shape."""
        slots = [slot for slot in metrics if self.wanted(slot.name)]
        if axes:
            places = zip(AXES, (template.step, template.epoch, template.rank), strict=True)
            slots += [slot._replace(name=name, whole=-1) for name, slot in places if slot]
            if template.position and template.loss and template.percent:
                slots += [Slot(name, place, "") for name, place in zip(SHARE, template.position, strict=True)]
        block = Block.of(slots, template.step.name if axes and template.step else "")
        self.blocks.append(block)
        return block

    def add(
        self,
        template: Template,
        numbers: Sequence[str],
        line: int,
        *,
        step: float | None = None,
        dict_row: bool = False,
        over: bool = False,
    ) -> None:
        """Add a line of metrics: it joins the open row of its rank and step, goes over its values, or begins a row.

        Args:
            template: what its shape holds.
            numbers: its numbers.
            line: its number.
            step: the step of a line that only says how far the epoch has come.
            dict_row: whether it is a dict.
            over: whether it replaces the line before.
        """
        rank = _text(template.rank, numbers)
        own_step = template.step
        at = own_step.value(numbers) if own_step else step
        epoch = _value(template.epoch, numbers)
        row = self.opened.get(rank)
        above = row or self.opened.get("")
        if at is not None and above and above.step is None and self._anchors(above, template):
            row = above
            self._locate(row, at, epoch, template)
        elif row is None or (at is not None and row.step is not None and at != row.step):
            row = self._new(rank, at, epoch, template)
        elif (
            self._joins(row, at, epoch, template, dict_row=dict_row)
            or (over and row.step == at)
            or (template.bar == "keras" and self._same_bar(row, template, numbers, line))
        ):
            self._locate(row, at, epoch, template)
        else:
            row = self._new(rank, at, epoch, template)
        block = template.block
        if block is None:
            block = template.block = self.block_of(template, template.metrics)
        block.add(row.row, line, numbers)
        if template.counted:
            self._note_totals(template, numbers)
        row.names = row.names | template.names if row.names else template.names
        if own_step is None:
            if step is not None:
                self.positions += 1
        elif own_step.power:  # 1000 for `2K`, 100 for `2.1K`
            digits = len(numbers[own_step.place].partition(".")[2])
            self.roles["rounded"].set(row.row, 10.0 ** (own_step.power - digits))
        if template.bar == "keras":
            self.bar_row = row.row, line, template.place(numbers)

    def _same_bar(self, row: OpenRow, template: Template, numbers: Sequence[str], line: int) -> bool:
        """Return whether a bar of keras replaces the one of the row, whose means go on."""
        last, before, done = self.bar_row
        if last != row.row:
            return False
        now = template.place(numbers)
        return line == before + 1 or (done[1] == now[1] and done[0] < now[0])

    def _anchors(self, row: OpenRow, template: Template) -> bool:
        """Return whether a line with a step and no loss names that of the loss above it, as the first such line did."""
        if self.anchored is None:
            self.anchored = any(role(name, self.names).role == "loss" for name in row.names)
        return self.anchored and not template.loss and template.names.isdisjoint(row.names)

    def _joins(
        self, row: OpenRow, step: float | None, epoch: float | None, template: Template, *, dict_row: bool
    ) -> bool:
        if not row.is_of(step, epoch) or (step is None and dict_row and template.loss):
            return False
        # The same metric twice is the same step logged again, which `assemble` resolves.
        return template.own.isdisjoint(row.names)

    def repeats(self, template: Template, numbers: Sequence[str]) -> bool:
        """Return whether a line without a loss measures again what the open row, which has its place, holds."""
        row = self.opened.get(_text(template.rank, numbers))
        if template.loss or row is None or row.step is row.epoch is None:
            return False
        return not template.names.isdisjoint(row.names)

    def _new(self, rank: str, step: float | None, epoch: float | None, template: Template) -> OpenRow:
        """Begin a row, of the step that a line above named if it names none."""
        row = OpenRow(self.count, step, epoch)
        self.count += 1
        if step is not None and self.anchored is None:
            self.anchored = False
        if step is None:
            if self.head and not self.trailing:
                row.step = self.head.step
                if epoch is None:
                    row.epoch = self.head.epoch
                self.headed += 1
            if row.step is None and self.bar:
                self.roles["bar"].set(row.row, self.bar[0])
                self.below_bar.append(row.row)
        if row.step is not None and template.step is None:
            self.roles["step"].set(row.row, row.step)
        if row.epoch is not None and template.epoch is None:
            self.roles["epoch"].set(row.row, row.epoch)
        self.opened[rank] = row
        return row

    def _locate(self, row: OpenRow, step: float | None, epoch: float | None, template: Template | None = None) -> None:
        """Set step and epoch of a row that has none; where the line holds them, its block does."""
        if step is not None and row.step is None:
            if template is None or template.step is None:
                self.roles["step"].set(row.row, step)
            row.step = step
        if epoch is not None and row.epoch is None:
            if template is None or template.epoch is None:
                self.roles["epoch"].set(row.row, epoch)
            row.epoch = epoch

    def set(self, name: str, row: int, value: float) -> None:
        """Write a cell that no line holds as a number."""
        self.cells.setdefault(name, Cells()).set(row, value)

    def aside(self, template: Template, masked: Masked, block: Block) -> None:
        """Add values that a line holds beside the rows of training; `block` names them."""
        row = self.count
        self.count += 1
        self.asides.append(row)
        self._locate_aside(row, template, masked.numbers)
        if not block.rows:
            for slot in block.slots:
                self.printed_at.setdefault(slot.name, (masked.line, joined(masked.shape, masked.numbers)))
        block.add(row, masked.line, masked.numbers)

    def _note_totals(self, template: Template, numbers: Sequence[str]) -> None:
        for axis, slot in (("step", template.step), ("epoch", template.epoch)):
            if slot and slot.of >= 0:
                self.note_total(axis, to_count(numbers[slot.of]))

    def note_total(self, axis: str, total: int) -> None:
        """Note how far a counter of steps or epochs goes."""
        if len(self.totals[axis]) < MAX_TOTALS:
            self.totals[axis].add(total)

    def skipped(self, step: float | None, count: int) -> None:
        """Count a step whose update was left out, which its message may name; there was none up to the first."""
        name = self.names.column("skipped_steps")
        self.wanted(name)
        if count == 1:
            self.set(name, 0, 0.0)
        row = self.count
        self.count += 1
        self.asides.append(row)
        if step is not None:
            self.aside_steps.setdefault(self.step_name(), Cells()).set(row, step)
        else:
            self._locate_aside(row, Template(), ())
        self.set(name, row, count)

    def _locate_aside(self, row: int, template: Template, numbers: Sequence[str]) -> None:
        """Keep the step and the epoch that a line or its header names, but not as those of a row of training."""
        step, epoch = _value(template.step, numbers), _value(template.epoch, numbers)
        name = template.step.name if template.step else self.head_name
        if step is None and self.head and not self.trailing and _text(template.rank, numbers) not in self.opened:
            step = self.head.step
            if epoch is None:
                epoch = self.head.epoch
        if step is not None:
            self.aside_steps.setdefault(name, Cells()).set(row, step)
        if epoch is not None:
            self.roles["epoch"].set(row, epoch)

    def header(self, template: Template, numbers: Sequence[str]) -> None:
        """Read a line that names a step and nothing else: of the lines below it, or of those above."""
        rank = _text(template.rank, numbers)
        step, epoch = _value(template.step, numbers), _value(template.epoch, numbers)
        above = self.opened.get(rank)
        self._note_totals(template, numbers)
        if template.step:
            self.head_name = template.step.name
        if step is not None and above and above.names and above.step is None and (self.trailing or not self.head):
            self.trailing = True
            self._locate(above, step, None)
            self.step_names[self.head_name] += 1
            self.opened.pop(rank)
        elif not self.trailing:
            if epoch is not None and step is None:
                self.epochs_at.append((self.count, epoch))
            self._set_head(rank, step, epoch)

    def _set_head(self, rank: str, step: float | None, epoch: float | None) -> None:
        """Begin the rows below a header, unless it only adds the epoch to the one before."""
        head = self.head
        if not head or step not in (None, head.step) or (epoch is not None and head.epoch not in (None, epoch)):
            self.head = OpenRow(-1, step, epoch)
            self.opened.pop(rank, None)
        elif head.epoch is None and epoch is not None:
            head.epoch = epoch
            above = self.opened.get(rank)
            if above:
                self._locate(above, None, epoch)

    def overflow(self, scale: str | None) -> None:
        """Add a row for a skipped step, unless it repeats the last one, as ranks do.

        Args:
            scale: the loss scale; None if the gradient is NaN.
        """
        event = (scale or "nan", self.count)
        if event == self.last_event:
            return
        row = self.count
        self.count += 1
        self.events.append(row)
        self.last_event = (event[0], self.count)
        if self.bar:
            self.roles["bar"].set(row, self.bar[0])
        norm, loss_scale = self.names.column("grad_norm"), self.names.column("loss_scale")
        if scale is None:
            self.set(norm, row, float("nan"))
        else:
            self.wanted(loss_scale)
            self.set(loss_scale, row, float(scale))
        self.wanted(norm)

    def moved(self, position: tuple[int, int]) -> None:
        """Note the new position of a progress bar, which applies to lines that name no step."""
        for row in self.below_bar:
            self.roles["below"].set(row, position[0])
            self.roles["below_of"].set(row, position[1])
        self.below_bar.clear()
        if position != self.bar:
            self.bar, self.last_event = position, ("", -1)

    def step_name(self) -> str:
        """Return how most rows spell the step."""
        names = Counter(self.step_names)
        names[self.head_name] += self.headed
        names["position in the epoch"] += self.positions
        for block in self.blocks:
            if block.step_name:
                names[block.step_name] += len(block.rows)
        if not self.own:
            names.update({name: len(cells.rows) for name, cells in self.aside_steps.items()})
        if names.total():
            return names.most_common(1)[0][0]
        return "step"

    @property
    def located(self) -> bool:
        """Whether any row says where the run is."""
        axes = (slot.name for slot in chain.from_iterable(block.slots for block in self.blocks))
        return bool(
            self.step_names
            or self.headed
            or self.positions
            or self.roles["epoch"].rows
            or not {"step", "epoch"}.isdisjoint(axes)
        )

    def epochs(self) -> Dense:
        """Return the epoch of each row: its own, else that of the header above."""
        values, logged = self.dense("epoch")
        if self.epochs_at and not self.trailing:
            rows, headed = np.array(self.epochs_at).T
            above = np.searchsorted(rows, np.arange(self.count), side="right") - 1
            fill = ~logged & (above >= 0)
            values[fill] = headed[above[fill]]
            logged = logged | fill
        return Dense(values, logged)

    def dense(self, name: str) -> Dense:
        """Return a column or role over all rows."""
        values, logged = Dense.empty(self.count)
        cells = self.roles.get(name) or self.cells.get(name)
        if cells and cells.rows:
            rows = np.frombuffer(cells.rows, dtype=np.int64)
            values[rows], logged[rows] = np.frombuffer(cells.values, dtype=np.float64), True
        written = [(block, slot) for block in self.blocks for slot in block.slots if slot.name == name and block.rows]
        if not written:
            return Dense(values, logged)
        rows = np.concatenate([np.frombuffer(block.rows, dtype=np.int64) for block, _ in written])
        found = np.concatenate([block.values(slot) for block, slot in written])
        if len(written) > 1:  # of a cell that several lines write the last counts
            order = np.argsort(
                np.concatenate([np.frombuffer(block.lines, dtype=np.int64) for block, _ in written]), kind="stable"
            )
            rows, found = rows[order], found[order]
        values[rows], logged[rows] = found, True
        return Dense(values, logged)


def _value(slot: Slot | None, numbers: Sequence[str]) -> float | None:
    if slot is None:
        return None
    return slot.value(numbers)


def _text(slot: Slot | None, numbers: Sequence[str]) -> str:
    if slot is None:
        return ""
    return slot.text if slot.place < 0 else numbers[slot.place]
