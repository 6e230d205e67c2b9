"""The form of a line, learned once: most lines of a log differ in their numbers only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.loaders.text.cells import FLUSH_ROWS, Block
from stabtree.loaders.text.line import to_float
from stabtree.loaders.text.rows import OpenRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.loaders.text.line import Line
    from stabtree.loaders.text.rows import LogRows

_TOKEN = re.compile(
    r"[+-]?\d+(?:[.,:]\d+)*(?:\.(?!\d))?(?:[eE][+-]?\d+)?|(?<![\w.])[+-]?(?:nan|inf)(?!\w)", re.IGNORECASE
)
# One set of characters is matched far faster than the exact form of a number; `Block.flush` checks it.
# Nothing is ever given back (`++`), so that a line which fits almost costs no more than one that fits.
_VALUE = r"([-+.0-9eEnNaAiIfF]++)"
_OTHER = r"[-+.,:\deEnNaAiIfF]++"
MAX_FORMS = 4
MAX_LEARNED = 24
MAX_TOKENS = 80
LONGEST = 2000


@dataclass(frozen=True, slots=True)
class LineForm:
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
    """The forms of the most frequent lines, the one that came last first, and the rows that are read by them.

    Attributes:
        last_step: the step of the last line, as written.
    """

    def __init__(self, rows: LogRows) -> None:
        self.last_step = ""
        self._rows = rows
        self._forms: list[LineForm] = []
        self._learned = 0

    def top(self) -> LineForm:
        """The form to try first; one that no line has where none was learned."""
        return self._forms[0] if self._forms else NO_FORM

    def read(self, line: str) -> bool:
        """Read a line by a form other than the last one, which then is tried first."""
        for index, form in enumerate(self._forms[1:], 1):
            found = form.match(line)
            if not found:
                continue
            same = found[form.step + 1] == self.last_step
            if same and not self._joins(form):
                return False
            if not same:
                self._forms.insert(0, self._forms.pop(index))
                self.last_step = found[form.step + 1]
                self._rows.count += 1
            form.block.rows.append(self._rows.count - 1)
            form.block.texts.append(found.groups())
            if len(form.block.texts) >= FLUSH_ROWS:
                form.block.flush()
            return True
        return False

    def _joins(self, form: LineForm) -> bool:
        """Whether lines of this form add to the last row, which other forms wrote."""
        last = self._rows.count - 1
        wrote = [other for other in self._forms if other.block.rows and other.block.rows[-1] == last]
        return bool(wrote) and all(other.names.isdisjoint(form.names) for other in wrote)

    def settle(self) -> None:
        """Open the row that was read last by its form, so that other lines can join it."""
        for form in self._forms:
            block = form.block
            if block.rows and block.rows[-1] == self._rows.count - 1:
                values = dict(zip(block.names, block.texts[-1] if block.texts else block.last, strict=True))
                step, epoch, rank = (
                    _number(values[name]) if name in values else None for name in ("step", "epoch", "rank")
                )
                before = self._rows.opened.get(rank)
                joined = before.names if before and before.row == self._rows.count - 1 else set()
                self._rows.opened[rank] = OpenRow(self._rows.count - 1, step, epoch, joined | form.names)
            if len(block.texts) >= FLUSH_ROWS:
                block.flush()

    def learn(self, text: str, line: Line) -> None:
        """Remember the form of a line that was read, if it has a fixed one."""
        self.last_step = line.step.text if line.step else ""
        if self._learned < MAX_LEARNED and (form := learned(text, line, self._rows)):
            self._learned += 1
            self._forms.insert(0, form)
            del self._forms[MAX_FORMS:]

    def hold(self, names: set[str]) -> bool:
        """Whether lines of one form hold all these names and perhaps more."""
        return any(names <= form.names for form in self._forms)


def learned(text: str, line: Line, rows: LogRows) -> LineForm | None:
    """The form of a line that names its own step; None where it has no fixed one."""
    if not line.step or line.step.start < 0 or line.bar or line.problem or len(text) > LONGEST:
        return None
    wanted = {line.step.start: "step"}
    for name, pair in (("epoch", line.epoch), ("rank", line.rank)):
        if pair and pair.start >= 0:
            wanted[pair.start] = name
    trains = line.loss is not None
    metrics = 0
    for pair in line.metrics:
        # The count of NaN iterations matters only where the loss is missing.
        if rows.wanted(pair.name) and (rows.columns[pair.name] or not trains):
            if pair.start < 0:
                return None
            wanted[pair.start] = pair.name
            metrics += pair.role not in ("", "step", "epoch", "rank")
    if len(set(wanted.values())) < len(wanted) or not metrics:
        return None
    tokens = list(_TOKEN.finditer(text))
    starts = {token.start() for token in tokens}
    if len(tokens) > MAX_TOKENS or not wanted.keys() <= starts:
        return None
    pattern = _pattern(text, tokens, wanted)
    found = pattern.fullmatch(text)
    names = tuple(wanted[start] for start in sorted(wanted))
    values = {pair.start: pair.text for pair in (line.step, line.epoch, line.rank, *line.metrics) if pair}
    if not found or any(found[i] != values[start] for i, start in enumerate(sorted(wanted), 1)):
        return None
    block = Block(names, line.step.name, trains)
    rows.blocks.append(block)
    return LineForm(pattern.fullmatch, names.index("step"), frozenset(pair.name for pair in line.metrics), block)


def _number(text: str) -> float | None:
    """The number of a learned form's group, whose pattern is wider than numbers are."""
    try:
        return to_float(text)
    except ValueError:
        return None


def _pattern(text: str, tokens: list[re.Match[str]], wanted: dict[int, str]) -> re.Pattern[str]:
    parts: list[str] = []
    end = 0
    for token in tokens:
        name = wanted.get(token.start())
        if token.start() == end and name is None and parts and parts[-1] == _OTHER:
            # The parts of a date.
            end = token.end()
            continue
        parts.append(_literal(text[end : token.start()]))
        parts.append(_OTHER if name is None else r"([0-9]++)" if name == "step" else _VALUE)
        end = token.end()
    parts.append(_literal(text[end:]))
    return re.compile("".join(parts))


def _literal(text: str) -> str:
    """Text that stays, with blanks that padding may widen or close."""
    pieces = re.split(r"( +)", text)
    return "".join(" *+" if piece.isspace() and piece else re.escape(piece) for piece in pieces)


def _no_match(line: str) -> None:  # noqa: ARG001
    return None


NO_FORM = LineForm(_no_match, 0, frozenset(), Block((), "", trains=False))
