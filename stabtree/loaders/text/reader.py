"""Reads the lines of a text log in their order: usual ones by their form, the others by the grammar."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.loaders.source import Lines
from stabtree.loaders.table import Skips
from stabtree.loaders.text import grammar
from stabtree.loaders.text.blocks import Blocks
from stabtree.loaders.text.grammar import NOTHING, spelled
from stabtree.loaders.text.messages import HARMLESS, MAX_FORM, UNITS, Chatter, Saves, Unread, is_message
from stabtree.loaders.text.parse import MAX_STEP, Line, Pair, held_out, parse
from stabtree.loaders.text.rows import FLUSH_ROWS, NO_FORM, Forms, LogRows
from stabtree.loaders.text.settings import ConfigDump, PrintedSettings
from stabtree.loaders.text.steps import Totals
from stabtree.metrics.metric import Role
from stabtree.metrics.table import normalize, with_role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.loaders.text.rows import OpenRow
    from stabtree.metrics.names import Names


# So many numbers in a row before a word for nothing: a loss that is printed at intervals has fewer.
MIN_BEFORE = 3


# A line with more words, or with more numbers before there was any loss, is one of settings.
MAX_FIRST = 30


def trains(line: Line, rows: LogRows) -> bool:
    """Return whether a line holds what may be the training loss."""
    return line.loss is not None or (rows.kinds and may_train(line, rows))


def may_train(line: Line, rows: LogRows) -> bool:
    """Return whether a line holds an unknown name that may be that of a loss, or of a reward."""
    return any(grammar.may_train(pair.name, kinds=rows.kinds) for pair in line.metrics)


class Training:
    """The lines that hold the training loss.

    Attributes:
        rows: how many lines with the training loss the grammar read.
        pairs: how many metrics the last one held.
        name: how it spelled the loss.
        names: all that such lines show beside it.
        role: what a value aside may not be once there is such a line: the loss.
        replaces: whether the last bar corrects the one before it, which had moved on with its old values.
    """

    def __init__(self, name: str) -> None:
        self.rows = 0
        self.pairs = 0
        self.name = name
        self.names: set[str] = set()
        self.role: tuple[str, ...] = ()
        self.replaces = False
        self._drawn: tuple[object, tuple[str, ...]] = (None, ())
        self._carried = False
        self._first_epoch: float | None = None
        self._nothing: re.Pattern[str] | None = None
        self._sparse = False

    def saw(self, line: Line) -> None:
        """Note that a line of metrics was read."""
        if line.loss:
            self.rows += 1
            self.pairs = len(line.metrics)
            if line.loss.name != self.name:
                self.name, self._nothing = line.loss.name, None
            self.role = ("loss",)
            self.names.update(pair.name for pair in line.metrics if pair is not line.loss)

    def breaks_off(self, text: str, line: Line, rows: int) -> bool:
        """Return whether a line says `None` or `null` for its loss after numbers in each of the `rows` so far."""
        if line.loss or line.held or not rows:
            return False
        if self._nothing is None:
            # Behind another word it is another loss, as `val loss`.
            name = re.escape(self.name)
            self._nothing = re.compile(rf"(?<![\w/-])(?<![A-Za-z] ){name}['\"]?{NOTHING}", re.IGNORECASE)
        if not self._nothing.search(text):
            return False
        self._sparse |= rows < MIN_BEFORE
        return not self._sparse

    def beside(self, line: Line, names: Names) -> list[Pair]:
        """Return the values of a line that is none of training; nothing if they say nothing of how it goes."""
        no_values = {*with_role(Role.LABEL), *self.role, "step", "epoch"}
        pairs = [pair for pair in line.metrics if pair.role not in no_values]
        if all(HARMLESS.search(pair.name) or UNITS.fullmatch(pair.unit) for pair in pairs):
            return []
        if any(pair.name in self.names for pair in pairs):
            # What each line of training shows beside its loss was measured elsewhere where there is none.
            return [held_out(pair, names) for pair in pairs]
        return pairs

    def redrawn(self, line: Line) -> bool:
        """Return whether a bar repeats the position and the values of the last one, as it does after a traceback."""
        (place, texts), before = self._drawn, self._drawn
        self._drawn = (line.position, line.epoch and line.epoch.text), tuple(pair.text for pair in line.metrics)
        # tqdm counts on before it is handed the values of the new step, and draws the bar both times.
        self.replaces = self._carried and self._drawn[0] == place
        self._carried = self._drawn[0] != place and self._drawn[1] == texts
        return self._drawn == before

    def position(self, line: Line, head: OpenRow | None) -> Pair | None:
        """Return the step of a line below a header that only says how far the epoch has come; None if too large."""
        done, total = line.position or (0, 0)
        _, _, epoch = line.location
        if head and epoch is None:
            epoch = head.epoch
        step = float(done)
        if epoch is not None and epoch.is_integer() and total:
            if self._first_epoch is None:
                # A line that names its epoch says how much was trained before a resume.
                self._first_epoch = min(epoch, 1.0) if line.epoch else epoch
            step += max(0.0, epoch - self._first_epoch) * total
        if step < MAX_STEP:
            return Pair("position in the epoch", str(int(step)), role="step", of=0 if epoch is not None else total)
        return None

    def is_row(self, line: Line, rows: LogRows, *, dict_row: bool) -> bool:
        """Return whether a line with a known metric belongs to a step."""
        located = line.step or line.epoch or dict_row or line.bar
        if not located and (rows.repeats(line) or not self._may_join(line, rows)):
            return False
        step = line.step is not None and normalize(line.step.name) != "batch"
        return step or line.loss is not None or self._may_come_first(line, rows)

    def _may_come_first(self, line: Line, rows: LogRows) -> bool:
        """Return whether a line without a step and a loss can be one of metrics so early in the log."""
        if not rows.own and not ((line.epoch or rows.kinds) and may_train(line, rows)):
            return False
        return line.words <= MAX_FIRST and (self.rows > 0 or len(line.metrics) <= MAX_FIRST)

    @staticmethod
    def _may_join(line: Line, rows: LogRows) -> bool:
        """Return whether a line without a step is one of metrics: of a block, or nothing but pairs."""
        if line.held and rows.own:
            return True
        if rows.kinds and may_train(line, rows):
            return line.words <= max(2, len(line.metrics))
        if line.words == 0 and line.loss is not None:
            return True
        return line.words <= 2 and (rows.head is not None or rows.own > 0 or len(line.metrics) >= 3)


# A line of values beside those of training may say so many words more.
MAX_WORDS = 6
RULES = ("-----", "=====", "*****", "#####")
_DICT = re.compile(r"""[{,]\s*['"‘“]\w""")


class LogReader:
    """Reads the lines of one log in order.

    Attributes:
        rows: the rows of metrics.
        skips: lines that look like metrics and can't be read.
        config: the settings that the log prints.
        chatter: the other lines, of which those about errors are kept.
        saves: the lines that report a saved checkpoint.
        unread: the other lines that hold numbers.
    """

    def __init__(self, names: Names, *, kinds: bool = False) -> None:
        self.rows = LogRows(names, kinds)
        self.skips = Skips()
        self.config = ConfigDump()
        self.chatter = Chatter()
        self.saves = Saves()
        self.unread = Unread()
        self._names = names
        self._anchor = grammar.anchor(names)
        self._forms = Forms(self.rows)
        self._blocks = Blocks(names)
        self._training = Training(names.column("loss"))
        self._code = False
        self.totals = Totals()
        self._printed = PrintedSettings(names)
        self._skipped = 0
        self._used = False
        self._drawn_again = False

    def read(self, lines: Lines | Iterable[str]) -> None:
        """Read all lines of a log, most of them by the form of the line before."""
        rows, forms, blocks = self.rows, self._forms, self._blocks
        form, last = forms.top(), forms.last_step
        match, step, block = form.match, form.step, form.block
        for number, line in enumerate(lines, 1):
            found = match(line)
            if found:
                groups = found.groups()
                if groups[step] != last:
                    last = groups[step]
                    block.rows.append(rows.count)
                    block.texts.append(groups)
                    rows.count += 1
                    if not number % FLUSH_ROWS:
                        block.flush()
                    continue
            # Everything that is not the usual line, which `last` and the block's last texts describe.
            forms.last_step = last
            if found or blocks.waiting or not forms.read(line):
                self._read_slowly(line, number, cut=not found and _is_cut(lines))
            form, last = NO_FORM if blocks.waiting else forms.top(), forms.last_step
            match, step, block = form.match, form.step, form.block
        self._finish(cut=_is_cut(lines))

    def _finish(self, *, cut: bool) -> None:
        """Read what was waiting for the end of a dict or a table."""
        self._forms.settle()
        for part, number in self._blocks.end():
            self._line(part, number, cut=cut)
        for block in self.rows.blocks:
            block.flush()

    def _read_slowly(self, line: str, number: int, *, cut: bool) -> None:
        text = line[: grammar.MAX_LINE]
        if "\x1b" in text:
            text = grammar.ANSI.sub("", text)
        text = spelled(text)
        self.saves.look(text, number, self.rows.count)
        form = ""
        if not self._blocks.waiting and not text.rstrip().endswith(RULES):
            if len(text) <= MAX_FORM:
                form = grammar.DIGITS.sub("", text)
            if self._is_chatter(text, number, form):
                return
        self._forms.settle()
        self._read_parts(text, number, form, cut=cut)

    def _read_parts(self, text: str, number: int, form: str, *, cut: bool) -> None:
        """Read what a line completes; keep it if it holds nothing but an error, and count what was not read."""
        before = self.rows.count
        self._drawn_again = False
        unused = []
        for part, start in self._blocks.feed(text, number):
            empty = not part or self._line(part, start, cut=cut)
            if not self._used:
                unused.append((start, part))
            if empty and form and part == text:
                if self.chatter.keep_error(text, number, form, self.rows.count):
                    return
                self.chatter.ignore(form)
        if self.rows.count == before and not self._drawn_again and self.chatter.keep_error(text, number, "", before):
            return
        for start, part in unused:
            self.leave(start, part)

    def leave(self, number: int, text: str) -> None:
        """Count a line that was not read."""
        self.unread.add(grammar.DIGITS.sub("", text[:MAX_FORM]), text[:MAX_FORM], number)

    def _is_chatter(self, text: str, number: int, form: str) -> bool:
        """Return whether a line holds no metrics; keep it if it is one of settings or errors."""
        row = self.rows.count
        if self.chatter.knows(form, text, number, row):
            self.unread.count_again(form)
            return True
        self._code = self._code or bool(grammar.STATEMENT.match(text))
        setting = self.config.look(text, row, code=self._code)
        if self._printed.look(text, begun=self.rows.own > 0):
            return True
        in_block = self.rows.head is not None and text[:1] in (" ", "\t", "-")
        if not setting and (in_block or self._anchor.search(text) or grammar.ASSIGNED.search(text)):
            return False
        if not self.chatter.keep_error(text, number, form, row) and not setting:
            self.leave(number, text)
        return True

    @property
    def losses(self) -> int:
        """The number of rows that hold the training loss."""
        return self._training.rows + sum(len(block.rows) for block in self.rows.blocks if block.trains)

    def _line(self, text: str, number: int, *, cut: bool) -> bool:
        """Read one line or block; return whether any line like it would hold nothing."""
        self._used = self._overflow(text, number) or grammar.MODULE.match(text) is not None
        if self._used or grammar.NO_ROW.search(text) or self._is_code(text):
            return False
        line = self._parsed(text, cut=cut)
        self._used = True
        if line.problem:
            self.skips.add(number, line.problem)
        elif (line.known and self._metrics(text, line, number)) or self._aside(text, line, number):
            return False
        elif line.is_located and not line.known:
            self._progress(line)
            self._used = not line.metrics
        else:
            self._used = False
            return not line.metrics or line.words > MAX_WORDS
        return False

    def _is_code(self, text: str) -> bool:
        return grammar.CODE.match(text) is not None and (self._code or not grammar.PRINTED.match(text))

    def _aside(self, text: str, line: Line, number: int) -> bool:
        """Read a line with values beside those of training; return whether it is one."""
        if not (line.step or line.epoch or self.rows.own or self.rows.head) or line.words > MAX_WORDS:
            return False
        if is_message(text, line):
            return False
        pairs = self._training.beside(line, self._names)
        if not pairs:
            return False
        if line.is_located:
            self._progress(line)
        self.rows.aside(line, pairs, (number, text[:MAX_FORM]))
        return True

    def _parsed(self, text: str, *, cut: bool) -> Line:
        line = parse(text, self._names, kinds=self.rows.kinds)
        nan = "oss " in text and grammar.NAN_LOSS.search(text) and not line.loss
        if nan or self._training.breaks_off(text, line, self.losses):
            line.metrics.append(Pair(self._training.name, "nan", role="loss"))
            line.known, line.problem = True, ""
        if cut:
            self._drop_cut_number(text, line)
        return line

    def _drop_cut_number(self, text: str, line: Line) -> None:
        """Drop the number that the end of the file may have cut, if earlier lines go on after it."""
        names = {pair.name for pair in line.metrics}
        shorter = len(names) < self._training.pairs or self._forms.hold(names)
        if line.metrics and shorter and text.rstrip().endswith(line.metrics[-1].text):
            line.metrics.pop()
            line.known = any(pair.role for pair in line.metrics)
            if not line.known:
                line.problem = "is cut: the file ends inside this line"

    def _progress(self, line: Line) -> None:
        """Read a line that says where the run is and nothing else."""
        if line.words <= 1 and self._is_header(line):
            self.rows.header(line)
            self.totals.saw(line)
            self.rows.below_bar_head |= line.bar == "keras"
        if line.position and (line.bar == "tqdm" or line.step or line.epoch):
            self.rows.moved(line.position)

    def _is_header(self, line: Line) -> bool:
        counted = line.bar == "tqdm" and all(HARMLESS.search(pair.name) for pair in line.metrics)
        if line.metrics and line.bar != "keras" and not counted:
            return False
        if not line.step:
            return line.epoch is not None
        return line.step.name == self._names.step_column or normalize(line.step.name) in grammar.HEADER_STEPS

    def _overflow(self, text: str, number: int) -> bool:
        """Read a line that reports a skipped step or a gradient norm of NaN; return whether it does."""
        # Looking for a word is far cheaper than for a pattern.
        if any(word in text for word in grammar.OVERFLOW_WORDS):
            found = grammar.OVERFLOW.search(text)
            if found:
                position = parse(text[: found.start()], self._names).position
                if position:
                    self.rows.moved(position)
                self.rows.overflow(found["to"] or found["kept"])
                return True
        if " norm is " in text and grammar.NAN_NORM.search(text):
            self.rows.overflow(None)
            return True
        if "kip" in text and self.rows.own and grammar.SKIPPED.search(text):
            self._skipped += 1
            step = parse(text, self._names).step
            self.rows.skipped(step, self._skipped, (number, text[:MAX_FORM]))
            return True
        return False

    def _metrics(self, text: str, line: Line, number: int) -> bool:
        """Read a line with a known metric; return whether it is a row, or part of one."""
        # A parameter of a call or a setting in prose is alone on its line and belongs to no step.
        dict_row = bool(_DICT.search(text))
        if line.position and dict_row:
            self.rows.moved(line.position)
        if line.position and not (line.step or dict_row or line.bar == "keras") and trains(line, self.rows):
            line.step = self._training.position(line, self.rows.head)
        is_bar = line.bar == "tqdm"
        again = is_bar and self._training.redrawn(line)
        self._drawn_again = again or (is_bar and self._training.replaces)
        if again:
            return True
        if not self._training.is_row(line, self.rows, dict_row=dict_row):
            return False
        self.rows.add(line, number, dict_row=dict_row, over=self._drawn_again)
        if line.percent and line.position and line.loss:
            self.rows.share(line.position)
        self._training.saw(line)
        self.totals.saw(line)
        self._forms.learn(text, line)
        return True


def _is_cut(lines: Lines | Iterable[str]) -> bool:
    """Return whether the last line that was read has no line end."""
    return isinstance(lines, Lines) and not lines.ended
