"""Reads the lines of a text log in their order: usual ones by their layout, the others by the grammar."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.loaders.source import Lines
from stabtree.loaders.table import Skips
from stabtree.loaders.text import grammar
from stabtree.loaders.text.blocks import Blocks
from stabtree.loaders.text.grammar import role
from stabtree.loaders.text.line import Line, Pair, parse, to_float
from stabtree.loaders.text.messages import MAX_FORMS, TELLING, Telling
from stabtree.loaders.text.rows import FLUSH_ROWS, Block, Open, Rows
from stabtree.loaders.text.settings import ConfigDump
from stabtree.loaders.text.shortcut import MAX_LAYOUTS, MAX_LEARNED, Layout, learn
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stabtree.loaders.table import Select

# Lines without metrics, told by their words once they were looked at.
MAX_CHATTER = 2000
MAX_FORM = 400
_DICT = re.compile(r"""[{,]\s*['"‘“]\w""")


class Reader:
    """Reads the lines of one log in order."""

    def __init__(self, select: Select) -> None:
        self.rows = Rows(select)
        self.skips = Skips()
        self.config = ConfigDump()
        self.telling = Telling()
        self.rows_of_loss = 0
        self._layouts: list[Layout] = []
        self._learned = 0
        self._last_step = ""
        self._blocks = Blocks()
        self._code = False
        self._chatter: set[str] = set()
        self._told: set[str] = set()
        self._first_epoch: float | None = None
        self._pairs = 0
        self._loss_name = "loss"

    def read(self, lines: Lines | Iterable[str]) -> None:
        """All lines of a log, most of them by the layout of the line before."""
        rows = self.rows
        match, at, block, last = self._top()
        for place, line in enumerate(lines, 1):
            found = match(line)
            if found:
                groups = found.groups()
                if groups[at] != last:
                    last = groups[at]
                    block.rows.append(rows.count)
                    block.texts.append(groups)
                    rows.count += 1
                    if not place % FLUSH_ROWS:
                        block.flush()
                    continue
            # Everything that is not the usual line, which `last` and the block's last texts stand for.
            self._last_step = last
            if found or not self._by_another(line):
                self._read_slowly(line, place, cut=isinstance(lines, Lines) and not lines.ended and not found)
            match, at, block, last = self._top()
        self._finish()

    def _top(self) -> tuple[Callable[[str], re.Match[str] | None], int, Block, str]:
        """The layout to try first: its pattern, its group of the step, its rows; and the last step."""
        if not self._layouts or self._blocks.waiting:
            return _no_match, 0, _NO_BLOCK, self._last_step
        top = self._layouts[0]
        return top.match, top.step, top.block, self._last_step

    def _by_another(self, line: str) -> bool:
        """Read a line by a layout other than the last one, which then is tried first."""
        if self._blocks.waiting:
            return False
        for index, layout in enumerate(self._layouts[1:], 1):
            found = layout.match(line)
            if not found:
                continue
            same = found[layout.step + 1] == self._last_step
            if same and not self._joins(layout):
                return False
            if not same:
                self._layouts.insert(0, self._layouts.pop(index))
                self._last_step = found[layout.step + 1]
                self.rows.count += 1
            layout.block.rows.append(self.rows.count - 1)
            layout.block.texts.append(found.groups())
            if len(layout.block.texts) >= FLUSH_ROWS:
                layout.block.flush()
            return True
        return False

    def _joins(self, layout: Layout) -> bool:
        """Whether lines of this layout add to the last row, which other layouts wrote."""
        last = self.rows.count - 1
        wrote = [other for other in self._layouts if other.block.rows and other.block.rows[-1] == last]
        return bool(wrote) and all(other.names.isdisjoint(layout.names) for other in wrote)

    def _settle(self) -> None:
        """Open the row that was read last by its layout, so that other lines can join it."""
        for layout in self._layouts:
            block = layout.block
            if block.rows and block.rows[-1] == self.rows.count - 1:
                values = dict(zip(block.names, block.texts[-1] if block.texts else block.last, strict=True))
                step, epoch, rank = (
                    _number(values[name]) if name in values else None for name in ("step", "epoch", "rank")
                )
                before = self.rows.opened.get(rank)
                joined = before.names if before and before.row == self.rows.count - 1 else set()
                self.rows.opened[rank] = Open(self.rows.count - 1, step, epoch, joined | layout.names)
            if len(block.texts) >= FLUSH_ROWS:
                block.flush()

    def _read_slowly(self, line: str, place: int, *, cut: bool) -> None:
        text = line[: grammar.MAX_LINE]
        if "\x1b" in text:
            text = grammar.ANSI.sub("", text)
        form = ""
        if not self._blocks.waiting:
            form = grammar.DIGITS.sub("", text) if len(text) <= MAX_FORM else ""
            if form in self._chatter:
                return
            if form in self._told:
                self.telling.add(place, text, form, self.rows.count)
                return
            self._code = self._code or bool(grammar.STATEMENT.match(text))
            setting = self.config.look(text, self.rows.count, code=self._code)
            in_block = self.rows.head is not None and text[:1] in (" ", "\t", "-")
            if setting or not (in_block or grammar.ANCHOR.search(text)):
                self._tell(text, place, form)
                return
        before = self.rows.count
        self._settle()
        for part, where in self._blocks.feed(text, place):
            nothing = not part or self._line(part, where, cut=cut)
            if nothing and form and part == text and self._tell(text, place, form):
                return
            if nothing and form and part == text and len(self._chatter) < MAX_CHATTER:
                self._chatter.add(form)
        if self.rows.count == before:
            self._tell(text, place, "")

    def _tell(self, text: str, place: int, form: str) -> bool:
        """Keep a line without metrics if its words may tell of an error; with a form, remember what was found."""
        telling = TELLING.search(text[:MAX_FORM]) is not None
        if telling:
            self.telling.add(place, text, form or grammar.DIGITS.sub("", text[:MAX_FORM]), self.rows.count)
            if form and len(self._told) < MAX_FORMS:
                self._told.add(form)
        return telling

    @property
    def losses(self) -> int:
        """How many rows hold the training loss."""
        return self.rows_of_loss + sum(len(block.rows) for block in self.rows.blocks if block.trains)

    def _finish(self) -> None:
        """Read what was waiting for the end of a dict or a table."""
        self._settle()
        for part, where in self._blocks.end():
            self._line(part, where, cut=False)
        for block in self.rows.blocks:
            block.flush()

    def _line(self, text: str, place: int, *, cut: bool) -> bool:
        """One line or block; whether any line like it would hold nothing."""
        # Looking for a word is far cheaper than for a pattern.
        overflow = grammar.OVERFLOW.search(text) if any(word in text for word in grammar.OVERFLOW_WORDS) else None
        if overflow or (" norm is " in text and grammar.NAN_NORM.search(text)):
            self._overflow(text, overflow)
            return False
        if grammar.SUMMARY.search(text) or grammar.CODE.match(text):
            return False
        line = parse(text)
        if (
            "oss " in text
            and grammar.NAN_LOSS.search(text)
            and not any(role(pair.name)[0] == "loss" for pair in line.metrics)
        ):
            line.metrics.append(Pair(self._loss_name, "nan"))
            line.known, line.problem = True, ""
        if cut:
            self._cut(text, line)
        if line.problem:
            self.skips.add(place, line.problem)
        elif line.known:
            self._metrics(text, line, place)
        elif line.step or line.epoch or line.position:
            self._progress(line)
        elif line.metrics and line.words == 0 and self.rows.head and text[0] in " \t-":
            self.rows.add(line, place)
        else:
            return not line.metrics or line.words > 0
        return False

    def _cut(self, text: str, line: Line) -> None:
        """Drop the number that the end of the file may have cut, if the lines before go on behind it."""
        names = {pair.name for pair in line.metrics}
        shorter = len(names) < self._pairs or any(names <= layout.names for layout in self._layouts)
        if line.metrics and shorter and text.rstrip().endswith(line.metrics[-1].text):
            line.metrics.pop()
            line.known = any(role(pair.name)[0] for pair in line.metrics)
            if not line.known:
                line.problem = "is cut: the file ends inside this line"

    def _progress(self, line: Line) -> None:
        """A line that says where the run is and nothing else."""
        if (line.step or line.epoch) and line.words <= 1 and not line.metrics and _is_header(line):
            self.rows.header(line)
        if line.position and (line.bar == "tqdm" or line.step or line.epoch):
            self.rows.moved(line.position)

    def _overflow(self, text: str, found: re.Match[str] | None) -> None:
        position = parse(text[: found.start()] if found else "").position
        if position:
            self.rows.moved(position)
        if found:
            self.rows.overflow(found["to"] or found["kept"])
        else:
            self.rows.overflow(None)

    def _metrics(self, text: str, line: Line, place: int) -> None:
        """A line with a known metric: a row, or part of one."""
        # A parameter of a call or a setting in prose is alone on its line and belongs to no step.
        dict_row = bool(_DICT.search(text))
        if line.position and dict_row:
            self.rows.moved(line.position)
        trains = any(role(pair.name)[0] == "loss" for pair in line.metrics)
        if not line.step and line.position and line.bar != "keras" and not dict_row and trains:
            self._place(line)
        located = line.step or line.epoch or dict_row or line.bar
        if not located and not self._may_join(line):
            return
        if not trains and not self.rows.count and not line.step:
            return
        self.rows.add(line, place, dict_row=dict_row)
        self.rows_of_loss += trains
        self._last_step = line.step.text if line.step else ""
        if trains:
            self._pairs = len(line.metrics)
            self._loss_name = next(pair.name for pair in line.metrics if role(pair.name)[0] == "loss")
        if self._learned < MAX_LEARNED and (layout := learn(text, line, self.rows)):
            self._learned += 1
            self._layouts.insert(0, layout)
            del self._layouts[MAX_LAYOUTS:]

    def _may_join(self, line: Line) -> bool:
        """Whether a line without a step is one of metrics: of a block, or nothing but pairs."""
        return line.words <= 2 and (self.rows.head is not None or self.rows.count > 0 or len(line.metrics) >= 3)

    def _place(self, line: Line) -> None:
        """The step of a line that only says how far the epoch has come."""
        done, total = line.position or (0, 0)
        head = self.rows.head
        epoch = to_float(line.epoch.text) if line.epoch else head.epoch if head else None
        before = 0.0
        if epoch is not None and epoch.is_integer() and total:
            self._first_epoch = epoch if self._first_epoch is None else self._first_epoch
            before = max(0.0, epoch - self._first_epoch) * total
        line.step = Pair("position in the epoch", str(int(done + before)))


_NO_BLOCK = Block((), "", trains=False)


def _no_match(line: str) -> None:  # noqa: ARG001
    return None


def _is_header(line: Line) -> bool:
    return not line.step or normalize(line.step.name) in grammar.HEADER_STEPS


def _number(text: str) -> float | None:
    """The number of a learned layout's group, whose pattern is wider than numbers are."""
    try:
        return to_float(text)
    except ValueError:
        return None
