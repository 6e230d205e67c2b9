"""The rows of a text log: lines of one step joined, overflow lines kept in their place.

Most lines differ from the one before in their numbers only: their form is learned once, and a long log is read at
the speed of one pattern.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.loaders.table import MAX_CELLS, Column, affordable
from stabtree.loaders.text.grammar import may_train
from stabtree.loaders.text.parse import Line, Pair, to_float

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.metrics.names import Names


FLUSH_ROWS = 8192


class Dense(NamedTuple):
    """A column over all rows of a log.

    Attributes:
        values: float64 (n,).
        logged: bool (n,), which of them were logged.
    """

    values: Floats
    logged: Bools

    @classmethod
    def empty(cls, count: int) -> Dense:
        """Return a column of so many rows in which nothing was logged."""
        return cls(np.zeros(count), np.zeros(count, dtype=np.bool_))

    def pick(self, rows: Ints) -> Dense:
        """Return a copy of some of the rows."""
        return Dense(self.values[rows], self.logged[rows])

    def column(self, rows: Ints) -> Column:
        """Return some of the rows as a column of a table."""
        logged = self.logged[rows]
        return Column(self.values[rows], None if logged.all() else logged)


class Cells(Struct):
    """The cells of one column, sparse."""

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
    names: set[str] = field(default_factory=set)

    def is_of(self, step: float | None, epoch: float | None) -> bool:
        """Return whether a line of this step and epoch, each None if it names none, may belong to the row."""
        if step is not None and step != self.step and (self.step is not None or self.names):
            return False
        return epoch is None or self.epoch in (None, epoch)


class Block(Struct):
    """Rows of lines that share one layout, read together.

    Attributes:
        names: the columns that a row fills, with `step`, `epoch` and `rank` in the roles of those names.
        step_name: how the lines spell the step.
        trains: whether they hold the training loss.
        rows: the number of each row.
        texts: the numbers as written, not yet parsed.
        parts: what was parsed: float64 (n, len(names)).
        last: the row that was parsed last, as written.
        bad: (row, index in names) of texts that are no numbers.
    """

    names: tuple[str, ...]
    step_name: str
    trains: bool
    rows: array[int] = field(default_factory=lambda: array("q"))
    texts: list[Sequence[str]] = field(default_factory=list)
    parts: list[Floats] = field(default_factory=list)
    last: Sequence[str] = ()
    bad: list[tuple[int, int]] = field(default_factory=list)

    def wrote(self, row: int) -> bool:
        """Return whether a row is the last one of the block."""
        return bool(self.rows) and self.rows[-1] == row

    def flush(self) -> None:
        """Parse what is waiting, so that a long log need not be kept as text."""
        if self.texts:
            size = len(self.texts) * len(self.names)
            try:
                values = np.fromiter(map(float, chain.from_iterable(self.texts)), np.float64, size)
            except ValueError:
                values = np.fromiter(map(self._checked, chain.from_iterable(self.texts), range(size)), np.float64, size)
            self.parts.append(values.reshape(len(self.texts), len(self.names)))
            self.last = self.texts[-1]
            self.texts.clear()

    def _checked(self, text: str, index: int) -> float:
        try:
            return float(text)
        except ValueError:
            row, column = divmod(index, len(self.names))
            self.bad.append((self.rows[len(self.rows) - len(self.texts) + row], column))
            return 0.0


_TOKEN = re.compile(
    r"[+-]?\d+(?:[.,:]\d+)*(?:\.(?!\d))?(?:[eE][+-]?\d+)?|(?<![\w.])[+-]?(?:nan|inf)(?!\w)", re.IGNORECASE
)
# One set of characters is matched far faster than the exact form of a number; `Block.flush` checks it.
# Nothing is ever given back (`++`), so that a line which fits almost costs no more than one that fits.
_VALUE = r"([-+.0-9eEnNaAiIfF]++)"
_OTHER = r"[-+.,:\deEnNaAiIfF]++"
_GROUPS = {None: _OTHER, "step": r"([0-9]++)"}
MAX_FORMS = 4
MAX_LEARNED = 24
MAX_TOKENS = 80
MAX_LENGTH = 2000


class LineForm(Struct, frozen=True):
    """What all lines of one kind have in common.

    Attributes:
        match: a compiled pattern's `fullmatch`, one group for each name.
        step: which group holds the step.
        names: the metrics that a line holds, for joining other lines to it.
        block: where the rows go.
    """

    match: Callable[[str], re.Match[str] | None]
    step: int
    names: frozenset[str]
    block: Block


class Forms:
    """The forms of the most frequent lines, latest first, and the rows that are read by them.

    Attributes:
        last_step: the step of the last line, as written.
    """

    def __init__(self, rows: LogRows) -> None:
        self.last_step = ""
        self._rows = rows
        self._forms: list[LineForm] = []
        self._learned = 0

    def top(self) -> LineForm:
        """Return the form to try first; one that no line has if none was learned."""
        if self._forms:
            return self._forms[0]
        return NO_FORM

    def read(self, line: str) -> bool:
        """Read a line by a form other than the last one, which then is tried first."""
        for index, form in enumerate(self._forms[1:], 1):
            found = form.match(line)
            if not found:
                continue
            step = found[form.step + 1]
            if step != self.last_step:
                self._forms.insert(0, self._forms.pop(index))
                self.last_step = step
                self._rows.count += 1
            elif not self._joins(form):
                return False
            form.block.rows.append(self._rows.count - 1)
            form.block.texts.append(found.groups())
            if len(form.block.texts) >= FLUSH_ROWS:
                form.block.flush()
            return True
        return False

    def _joins(self, form: LineForm) -> bool:
        """Return whether lines of this form add to the last row, which other forms wrote."""
        wrote = [other for other in self._forms if other.block.wrote(self._rows.count - 1)]
        return bool(wrote) and all(other.names.isdisjoint(form.names) for other in wrote)

    def settle(self) -> None:
        """Open the row that was read last by its form, so that other lines can join it."""
        last = self._rows.count - 1
        for form in self._forms:
            block = form.block
            if block.wrote(last):
                values = dict(zip(block.names, block.texts[-1] if block.texts else block.last, strict=True))
                step, epoch, rank = (_number(values.get(name)) for name in ("step", "epoch", "rank"))
                before = self._rows.opened.get(rank)
                joined = before.names if before and before.row == last else frozenset()
                self._rows.opened[rank] = OpenRow(last, step, epoch, {*joined, *form.names})
            if len(block.texts) >= FLUSH_ROWS:
                block.flush()

    def learn(self, text: str, line: Line) -> None:
        """Remember the form of a line that was read, if it has a fixed one."""
        self.last_step = ""
        if line.step:
            self.last_step = line.step.text
        if self._learned >= MAX_LEARNED or line.bar or line.problem or len(text) > MAX_LENGTH:
            return
        form = learned(text, line, self._rows)
        if form:
            self._learned += 1
            self._forms.insert(0, form)
            del self._forms[MAX_FORMS:]

    def hold(self, names: set[str]) -> bool:
        """Return whether lines of one form hold all these names and perhaps more."""
        return any(names <= form.names for form in self._forms)


def learned(text: str, line: Line, rows: LogRows) -> LineForm | None:
    """Return the form of a line that names its own step; None if it has no fixed one."""
    if not line.step or line.step.start < 0 or line.step.power:
        return None
    wanted = _wanted(line, line.step, rows)
    pattern = _checked_pattern(text, wanted)
    if pattern is None:
        return None
    names = tuple(wanted[start][0] for start in sorted(wanted))
    block = Block(names, line.step.name, line.loss is not None)
    rows.blocks.append(block)
    return LineForm(pattern.fullmatch, names.index("step"), frozenset(pair.name for pair in line.metrics), block)


def _wanted(line: Line, step: Pair, rows: LogRows) -> dict[int, tuple[str, str]]:
    """Return (column, text) of the numbers to keep, by where they begin; nothing if the line has no fixed form."""
    kept = [pair for pair in line.metrics if rows.wanted(pair.name)]
    if not all(pair.start >= 0 and not pair.power and not pair.total for pair in kept):
        return {}
    axes = (("step", step), ("epoch", line.epoch), ("rank", line.rank))
    wanted = {pair.start: (name, pair.text) for name, pair in axes if pair and pair.start >= 0}
    found = wanted | {pair.start: (pair.name, pair.text) for pair in kept}
    names = {name for name, _ in found.values()}
    if not kept or len(names) != len(found):
        return {}
    return found


def _checked_pattern(text: str, wanted: dict[int, tuple[str, str]]) -> re.Pattern[str] | None:
    """Return the pattern of a text; None if there are no numbers to keep, or it would read others from the text."""
    tokens = list(_TOKEN.finditer(text))
    if not wanted or len(tokens) > MAX_TOKENS or not wanted.keys() <= {token.start() for token in tokens}:
        return None
    pattern = _pattern(text, tokens, {start: name for start, (name, _) in wanted.items()})
    found = pattern.fullmatch(text)
    if not found or found.groups() != tuple(wanted[start][1] for start in sorted(wanted)):
        return None
    return pattern


def _number(text: str | None) -> float | None:
    """Return the number of a learned form's group, whose pattern is wider than numbers are; None if it is none."""
    if text is None:
        return None
    try:
        return to_float(text)
    except ValueError:
        return None


def _pattern(text: str, tokens: list[re.Match[str]], wanted: dict[int, str]) -> re.Pattern[str]:
    parts: list[str] = []
    end = 0
    for token in tokens:
        name = wanted.get(token.start())
        # Directly after another number that is not wanted, as in a date, the last part covers this one too.
        if name or token.start() > end or parts[-1:] != [_OTHER]:
            parts += _literal(text[end : token.start()]), _GROUPS.get(name, _VALUE)
        end = token.end()
    parts.append(_literal(text[end:]))
    return re.compile("".join(parts))


def _literal(text: str) -> str:
    """Return the pattern of constant text, with blanks that padding may widen or close."""
    pieces = re.split(r"( +)", text)
    return "".join(" *+" if piece.isspace() else re.escape(piece) for piece in pieces)


def _no_match(line: str) -> None:  # noqa: ARG001
    return None


NO_FORM = LineForm(_no_match, 0, frozenset(), Block((), "", trains=False))


# A log with more names than this prints something else than metrics.
MAX_NAMES = 20_000
ROLES = ("step", "epoch", "rank", "rounded", "bar", "below", "below_of", "share", "share_of")
SKIPPED_NAN = "number of nan iterations"  # as Megatron counts the losses that it leaves out


class LogRows(Struct):
    """All rows of a log, and the row that is open for each rank.

    Attributes:
        names: what the names of a line mean; `kinds`: whether losses named only by their kind are looked for.
        count: rows so far.
        columns: every metric column met, in the order of first appearance.
        roles: cells of `step`, `epoch`, `rank`, and what a step was `rounded` to; of rows without a step `bar`, the
            progress bar above, and `below` with `below_of`, the one that is drawn next; `share`, `share_of` of
            positions that are given in percent as well.
        epochs_at: (row, epoch) of each header that names an epoch: the rows from there on belong to it.
        below_bar_head: whether a bar does so.
        events: rows that are overflows, not lines of metrics.
        asides: rows of values that were printed beside those of training; `aside_steps`: the steps that they name.
        printed_at: the number and the text of the first line of each column that began in an aside.
    """

    names: Names
    kinds: bool = False
    count: int = 0
    columns: dict[str, None] = field(default_factory=dict)
    roles: dict[str, Cells] = field(default_factory=lambda: {n: Cells() for n in ROLES})
    cells: dict[str, Cells] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    events: array[int] = field(default_factory=lambda: array("q"))
    asides: array[int] = field(default_factory=lambda: array("q"))
    aside_steps: dict[str, Cells] = field(default_factory=dict)
    printed_at: dict[str, tuple[int, str]] = field(default_factory=dict)
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

    def add(self, line: Line, number: int, *, dict_row: bool = False, over: bool = False) -> None:
        """Add a line of metrics: it joins the open row of its rank and step, goes over its values, or begins a row."""
        rank, step, epoch = line.location
        row = self.opened.get(rank)
        same = row and (self._same_bar(row, line, number) or (over and row.step == step))
        if row and (same or self._joins(row, step, epoch, line, dict_row=dict_row)):
            self._locate(row, step, epoch)
        else:
            row = self._new(rank, step, epoch)
        if line.step:
            self.step_names[line.step.name] += 1
        for pair in line.metrics:
            if self.wanted(pair.name):
                self._set(pair.name, row.row, pair.value)
            row.names.add(pair.name)
        if line.step and line.step.power:
            self.roles["rounded"].set(row.row, line.step.rounded_to)
        if line.bar == "keras":
            self.bar_row = row.row, number, line.position or (0, 0)

    def _same_bar(self, row: OpenRow, line: Line, number: int) -> bool:
        """Return whether a bar of keras replaces the one of the row, whose means go on."""
        last, before, done = self.bar_row
        if line.bar != "keras" or last != row.row:
            return False
        goes_on = line.position is not None and done[1] == line.position[1] and done[0] < line.position[0]
        return number == before + 1 or goes_on

    def _joins(self, row: OpenRow, step: float | None, epoch: float | None, line: Line, *, dict_row: bool) -> bool:
        if not row.is_of(step, epoch) or (step is None and dict_row and line.loss):
            return False
        # The same metric twice is the same step logged again, which `assemble` resolves.
        again = [pair for pair in line.metrics if pair.name in row.names]
        return not any(pair.role or (self.kinds and may_train(pair.name, kinds=True)) for pair in again)

    def repeats(self, line: Line) -> bool:
        """Return whether a line without a loss measures again what the open row, which has its place, holds."""
        row = self.opened.get(line.location[0])
        if line.loss or row is None or row.step is row.epoch is None:
            return False
        return any(pair.name in row.names for pair in line.metrics)

    def _new(self, rank: float | None, step: float | None, epoch: float | None) -> OpenRow:
        """Begin a row, of the step that a line above named if it names none."""
        if step is None and self.head and not self.trailing:
            step = self.head.step
            if epoch is None:
                epoch = self.head.epoch
            self.step_names[self.head_name] += 1
        row = OpenRow(self.count)
        self.count += 1
        if step is None and self.bar:
            self.roles["bar"].set(row.row, self.bar[0])
            self.below_bar.append(row.row)
        self._locate(row, step, epoch)
        if rank is not None:
            self.roles["rank"].set(row.row, rank)
        self.opened[rank] = row
        return row

    def _locate(self, row: OpenRow, step: float | None, epoch: float | None) -> None:
        """Set step and epoch of a row that has none."""
        if step is not None and row.step is None:
            self.roles["step"].set(row.row, step)
            row.step = step
        if epoch is not None and row.epoch is None:
            self.roles["epoch"].set(row.row, epoch)
            row.epoch = epoch

    def _set(self, name: str, row: int, value: float) -> None:
        self.cells.setdefault(name, Cells()).set(row, value)

    def aside(self, line: Line, pairs: Iterable[Pair], printed: tuple[int, str]) -> None:
        """Add values that a line holds beside the rows of training; `printed` is its number and its text."""
        row = self.count
        self.count += 1
        self.asides.append(row)
        self._locate_aside(row, line)
        for pair in pairs:
            if pair.name not in self.columns:
                self.printed_at[pair.name] = printed
            if self.wanted(pair.name):
                self._set(pair.name, row, pair.value)

    def skipped(self, step: Pair | None, count: int, printed: tuple[int, str]) -> None:
        """Count a step whose update was left out, which its message may name; there was none up to the first."""
        name = self.names.column("skipped_steps")
        named = step and replace(step, name=self.step_name())
        if count == 1:
            self._set(name, 0, 0.0)
        self.aside(Line(step=named), [Pair(name, str(count))], printed)

    def _locate_aside(self, row: int, line: Line) -> None:
        """Keep the step and the epoch that a line or its header names, but not as those of a row of training."""
        rank, step, epoch = line.location
        name = line.step.name if line.step else self.head_name
        if step is None and self.head and not self.trailing and rank not in self.opened:
            step = self.head.step
            if epoch is None:
                epoch = self.head.epoch
        if step is not None:
            self.aside_steps.setdefault(name, Cells()).set(row, step)
        if epoch is not None:
            self.roles["epoch"].set(row, epoch)

    def header(self, line: Line) -> None:
        """Read a line that names a step and nothing else: of the lines below it, or of those above."""
        rank, step, epoch = line.location
        above = self.opened.get(rank)
        if line.step:
            self.head_name = line.step.name
        if step is not None and above and above.names and above.step is None and (self.trailing or not self.head):
            self.trailing = True
            self._locate(above, step, None)
            self.step_names[self.head_name] += 1
            self.opened.pop(rank)
        elif not self.trailing:
            if epoch is not None and step is None:
                self.epochs_at.append((self.count, epoch))
            self._set_head(rank, step, epoch)

    def _set_head(self, rank: float | None, step: float | None, epoch: float | None) -> None:
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
            self._set(norm, row, float("nan"))
        else:
            self.wanted(loss_scale)
            self._set(loss_scale, row, float(scale))
        self.wanted(norm)

    def share(self, position: tuple[int, int]) -> None:
        """Note that the last row gives its position in the epoch in percent as well."""
        self.roles["share"].set(self.count - 1, position[0])
        self.roles["share_of"].set(self.count - 1, position[1])

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
        for block in self.blocks:
            names[block.step_name] += len(block.rows)
        if not self.own:
            names.update({name: len(cells.rows) for name, cells in self.aside_steps.items()})
        if names:
            return names.most_common(1)[0][0]
        return "step"

    @property
    def located(self) -> bool:
        """Whether any row says where the run is."""
        return bool(self.step_names or self.roles["epoch"].rows or self.blocks)

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
        for block in self.blocks:
            if name in block.names and block.parts:
                index = block.names.index(name)
                rows = np.frombuffer(block.rows, dtype=np.int64)
                values[rows] = np.concatenate([part[:, index] for part in block.parts])
                logged[rows] = True
                logged[[row for row, bad in block.bad if bad == index]] = False
        cells = self.roles.get(name) or self.cells.get(name)
        if cells and cells.rows:
            rows = np.frombuffer(cells.rows, dtype=np.int64)
            values[rows] = np.frombuffer(cells.values, dtype=np.float64)
            logged[rows] = True
        return Dense(values, logged)
