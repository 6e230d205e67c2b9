"""What the lines of training so far say about the next ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.loaders.text.lines import grammar
from stabtree.loaders.text.lines.grammar import NOTHING
from stabtree.loaders.text.lines.line import MAX_STEP, Line, Pair
from stabtree.loaders.text.lines.phase import held_out
from stabtree.loaders.text.unread import HARMLESS, UNITS
from stabtree.metrics.metric import Role
from stabtree.metrics.table import normalize, with_role

if TYPE_CHECKING:
    from stabtree.loaders.text.cells import OpenRow
    from stabtree.loaders.text.rows import LogRows
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
