"""The form of a line, learned once: most lines of a log differ in their numbers only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.loaders.text.cells import FLUSH_ROWS, Block, OpenRow
from stabtree.loaders.text.lines.line import to_float

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.loaders.text.lines.line import Line, Pair
    from stabtree.loaders.text.rows import LogRows

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
