"""Reads the lines of a text log in their order: usual ones by their form, the others by the grammar."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.loaders.source import Lines
from stabtree.loaders.table import Skips
from stabtree.loaders.text import grammar
from stabtree.loaders.text.blocks import Blocks
from stabtree.loaders.text.cells import FLUSH_ROWS
from stabtree.loaders.text.forms import NO_FORM, Forms
from stabtree.loaders.text.line import MAX_STEP, Line, Pair, parse, to_float
from stabtree.loaders.text.messages import MAX_FORM, Chatter
from stabtree.loaders.text.rows import LogRows
from stabtree.loaders.text.saves import Saves
from stabtree.loaders.text.settings import ConfigDump
from stabtree.loaders.text.spellings import spelled
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.metrics.names import Names

RULES = ("-----", "=====", "*****", "#####")
# A line that names more numbers, or words, before there was any loss tells of settings.
MAX_FIRST = 30
_DICT = re.compile(r"""[{,]\s*['"‘“]\w""")


class LogReader:
    """Reads the lines of one log in order.

    Attributes:
        rows: the rows of metrics.
        skips: lines that look like metrics and can't be read.
        config: the settings that the log prints.
        chatter: what its other lines say.
        saves: those of them that say that a checkpoint was saved.
    """

    def __init__(self, names: Names, *, kinds: bool = False) -> None:
        self.rows = LogRows(names, kinds)
        self.skips = Skips()
        self.config = ConfigDump()
        self.chatter = Chatter()
        self.saves = Saves()
        self._names = names
        self._anchor = grammar.anchor(names)
        self._forms = Forms(self.rows)
        self._blocks = Blocks(names)
        self._training = _Training(names.column("loss"))
        self._code = False

    def read(self, lines: Lines | Iterable[str]) -> None:
        """All lines of a log, most of them by the form of the line before."""
        rows, forms, blocks = self.rows, self._forms, self._blocks
        form, last = forms.top(), forms.last_step
        match, at, block = form.match, form.step, form.block
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
            forms.last_step = last
            if found or blocks.waiting or not forms.read(line):
                self._read_slowly(line, place, cut=isinstance(lines, Lines) and not lines.ended and not found)
            form, last = NO_FORM if blocks.waiting else forms.top(), forms.last_step
            match, at, block = form.match, form.step, form.block
        self._finish(cut=isinstance(lines, Lines) and not lines.ended)

    def _read_slowly(self, line: str, place: int, *, cut: bool) -> None:
        text = line[: grammar.MAX_LINE]
        if "\x1b" in text:
            text = grammar.ANSI.sub("", text)
        text = spelled(text)
        before = self.rows.count
        self.saves.look(text, place, before)
        form = ""
        if not self._blocks.waiting and not text.rstrip().endswith(RULES):
            form = grammar.DIGITS.sub("", text) if len(text) <= MAX_FORM else ""
            if self.chatter.knows(form, text, place, before):
                return
            self._code = self._code or bool(grammar.STATEMENT.match(text))
            setting = self.config.look(text, before, code=self._code)
            in_block = self.rows.head is not None and text[:1] in (" ", "\t", "-")
            if setting or not (in_block or self._anchor.search(text)):
                self.chatter.tell(text, place, form, before)
                return
        self._forms.settle()
        for part, where in self._blocks.feed(text, place):
            if (not part or self._line(part, where, cut=cut)) and form and part == text:
                if self.chatter.tell(text, place, form, self.rows.count):
                    return
                self.chatter.ignore(form)
        if self.rows.count == before:
            self.chatter.tell(text, place, "", before)

    @property
    def losses(self) -> int:
        """How many rows hold the training loss."""
        return self._training.rows + sum(len(block.rows) for block in self.rows.blocks if block.trains)

    def _finish(self, *, cut: bool) -> None:
        """Read what was waiting for the end of a dict or a table."""
        self._forms.settle()
        for part, where in self._blocks.end():
            self._line(part, where, cut=cut)
        for block in self.rows.blocks:
            block.flush()

    def _line(self, text: str, place: int, *, cut: bool) -> bool:
        """One line or block; whether any line like it would hold nothing."""
        # Looking for a word is far cheaper than for a pattern.
        overflow = grammar.OVERFLOW.search(text) if any(word in text for word in grammar.OVERFLOW_WORDS) else None
        if overflow or (" norm is " in text and grammar.NAN_NORM.search(text)):
            self._overflow(text, overflow)
            return False
        if grammar.NO_ROW.search(text) or grammar.CODE.match(text):
            return False
        line = parse(text, self._names, kinds=self.rows.kinds)
        if "oss " in text and grammar.NAN_LOSS.search(text) and not line.loss:
            line.metrics.append(Pair(self._training.name, "nan", role="loss"))
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
        shorter = len(names) < self._training.pairs or self._forms.hold(names)
        if line.metrics and shorter and text.rstrip().endswith(line.metrics[-1].text):
            line.metrics.pop()
            line.known = any(pair.role for pair in line.metrics)
            if not line.known:
                line.problem = "is cut: the file ends inside this line"

    def _progress(self, line: Line) -> None:
        """A line that says where the run is and nothing else."""
        bare = not line.metrics or line.bar == "keras"
        if (line.step or line.epoch) and line.words <= 1 and bare and self._is_header(line):
            self.rows.header(line)
            self.rows.below_bar_head |= line.bar == "keras"
        if line.position and (line.bar == "tqdm" or line.step or line.epoch):
            self.rows.moved(line.position)

    def _is_header(self, line: Line) -> bool:
        own = self._names.step_column
        return not line.step or line.step.name == own or normalize(line.step.name) in grammar.HEADER_STEPS

    def _overflow(self, text: str, found: re.Match[str] | None) -> None:
        position = parse(text[: found.start()] if found else "", self._names).position
        if position:
            self.rows.moved(position)
        self.rows.overflow((found["to"] or found["kept"]) if found else None)

    def _metrics(self, text: str, line: Line, place: int) -> None:
        """A line with a known metric: a row, or part of one."""
        # A parameter of a call or a setting in prose is alone on its line and belongs to no step.
        dict_row = bool(_DICT.search(text))
        if line.position and dict_row:
            self.rows.moved(line.position)
        trains = line.loss is not None or (self.rows.kinds and self._may_be_loss(line))
        if not line.step and line.position and line.bar != "keras" and not dict_row and trains:
            line.step = self._training.position(line, self.rows.head.epoch if self.rows.head else None)
        located = line.step or line.epoch or dict_row or line.bar
        if not located and not self._may_join(line):
            return
        step = line.step is not None and normalize(line.step.name) != "batch"
        begins = line.loss or step or ((line.epoch or self.rows.kinds) and self._may_be_loss(line))
        if not self.rows.count and not begins:
            return
        settings = not (self._training.rows or line.loss or step)
        if settings and max(line.words, len(line.metrics)) > MAX_FIRST:
            return
        if line.bar == "tqdm" and self._training.redrawn(line):
            return
        self.rows.add(line, place, dict_row=dict_row)
        if line.percent and line.position and line.loss:
            self.rows.share(line.position)
        self._training.saw(line)
        self._forms.learn(text, line)

    def _may_join(self, line: Line) -> bool:
        """Whether a line without a step is one of metrics: of a block, or nothing but pairs."""
        if line.held and self.rows.count:
            return True
        alone = line.words == 0 and line.loss is not None
        if self.rows.kinds and self._may_be_loss(line):
            return line.words <= max(2, len(line.metrics))
        return alone or (line.words <= 2 and (bool(self.rows.head or self.rows.count) or len(line.metrics) >= 3))

    def _may_be_loss(self, line: Line) -> bool:
        kinds = self.rows.kinds
        return any(
            grammar.is_loss(pair.name, kinds=kinds) or (kinds and grammar.is_reward(pair.name)) for pair in line.metrics
        )


class _Training:
    """What the lines of training read so far say of the next ones.

    Attributes:
        rows: how many lines with the training loss the grammar read.
        pairs: how many metrics the last one held.
        name: how it spelled the loss.
    """

    def __init__(self, name: str) -> None:
        self.rows = 0
        self.pairs = 0
        self.name = name
        self._drawn: tuple[object, ...] = ()
        self._first_epoch: float | None = None

    def saw(self, line: Line) -> None:
        """A line of metrics was read."""
        if line.loss:
            self.rows += 1
            self.pairs = len(line.metrics)
            self.name = line.loss.name

    def redrawn(self, line: Line) -> bool:
        """Whether a bar stands where it stood and says what it said, as one that is drawn again after a traceback."""
        before = self._drawn
        self._drawn = line.position, line.epoch and line.epoch.text, *(pair.text for pair in line.metrics)
        return self._drawn == before

    def position(self, line: Line, head: float | None) -> Pair | None:
        """The step of a line that only says how far the epoch has come, its own or that of the header above.

        None where that is further than anyone can count.
        """
        done, total = line.position or (0, 0)
        epoch = to_float(line.epoch.text) if line.epoch else head
        before = 0.0
        if epoch is not None and epoch.is_integer() and total:
            if self._first_epoch is None:
                # A line that names its epoch says how much was trained before a resume.
                self._first_epoch = min(epoch, 1.0) if line.epoch else epoch
            before = max(0.0, epoch - self._first_epoch) * total
        step = done + before
        return Pair("position in the epoch", str(int(step)), role="step") if step < MAX_STEP else None
