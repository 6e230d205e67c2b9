"""Reads the lines of a text log in their order: each by its shape, which is parsed once."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common import endings
from stabtree.loaders.source import Lines
from stabtree.loaders.table import Skips
from stabtree.loaders.text import grammar
from stabtree.loaders.text.blocks import Blocks, Masked
from stabtree.loaders.text.grammar import NOTHING
from stabtree.loaders.text.messages import HARMLESS, UNITS, ErrorLines, Saves, Unread, is_message, may_report_error
from stabtree.loaders.text.rows import LogRows
from stabtree.loaders.text.settings import ConfigDump, PrintedSettings
from stabtree.loaders.text.shape import MASK, MAX_STEP, NOWHERE, Slot, Template, held_out, is_step, joined, parse, split
from stabtree.loaders.text.steps import Totals
from stabtree.metrics.metric import Role
from stabtree.metrics.table import normalize, with_role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.metrics.names import Names

# So many numbers in a row before a word for nothing: a loss that is printed at intervals has fewer.
MIN_BEFORE = 3
# A line with more words, or with more numbers before there was any loss, is one of settings.
MAX_FIRST = 30
# A line of values beside those of training may say so many words more.
MAX_WORDS = 6
# Shapes to remember, and how long they may be: a log has some dozens, prose has a new one in each line.
MAX_SHAPES, MAX_LENGTH = 20_000, 4_000
# How often the numbers of one setting are looked at.
MAX_LOOKS = 200
_DICT = re.compile(r"""[{,]\s*['"‘“]\w""")
_DIGITS = re.compile(r"[0-9]+")
# So many shapes around the same names, none of them known, are prose.
MAX_WORDY = 100
_NAMES = re.compile(r"(?<![\w./-])[^\W\d][\w./-]*+(?=[\"']?\s*+[:=])")
# Colour codes that lost their escape character.
LOST_CODES = re.compile(r"\[\d{0,3}(?:;\d{1,3})*m")


class Kind(Struct):
    """What the reader knows of the lines of one shape, beside the numbers in it.

    Attributes:
        title: whether a printed configuration may begin with them; `ruler`: whether they are a line of dashes.
        block: whether they may belong to a block over several lines.
        head: whether they say what the lines below were measured on: `HELD` or `TRAINED`.
        total: how far the counter of the last row of training went.
        evaluated: what such lines hold below the head of an evaluation.
        quick: whether they are rows, or headers of rows, and nothing else; `trains`: whether they hold a loss of any name.
        metrics: whether they may hold metrics.
        error: whether their words may be about an error; `frame`: whether they name a line of the user's own code.
        setting: whether they are settings.
        save: whether they report a saved checkpoint.
        overflow: the place of the new loss scale in a line about a skipped step; -2 for a gradient that is NaN.
        skipped: whether they report an update that was left out.
        code: whether they are code, part of a model, or sum up a whole run.
        dict_row: whether they hold a dict.
        message: whether their values are part of a message about an error.
        aside: the values beside those of training, by what was known of training at that time.
    """

    title: bool = False
    ruler: bool = False
    block: bool = False
    head: int = 0
    total: str | None = None
    evaluated: Template | None = None
    quick: int = 0
    trains: bool = False
    metrics: bool = False
    error: bool = False
    frame: bool = False
    setting: bool = False
    save: bool = False
    overflow: int = NOWHERE
    skipped: bool = False
    code: bool = False
    dict_row: bool = False
    message: bool = False
    looks: int = 0
    aside: tuple[int, Template | None] = (-1, None)


NO_NORM = -2
HELD, TRAINED = 1, 2
ROW, HEADER = 1, 2


class Training:
    """The lines that hold the training loss.

    Attributes:
        rows: how many lines held it; `pairs`: how many metrics the last one held.
        name: how it spelled the loss.
        names: all that such lines show beside it.
        replaces: whether the last bar corrects the one before it, which had moved on with its old values.
    """

    def __init__(self, name: str) -> None:
        self.rows = 0
        self.pairs = 0
        self.name = name
        self.names: set[str] = set()
        self.replaces = False
        self._drawn: tuple[object, tuple[str, ...]] = (None, ())
        self._carried = False
        self._first_epoch: float | None = None
        self._sparse = False
        self._last: Template | None = None

    def saw(self, template: Template, loss: Slot) -> None:
        """Note that a line with the loss was read."""
        self.rows += 1
        if template is not self._last:
            self._last = template
            self.names.update(slot.name for slot in template.metrics if slot is not loss)
            self.pairs, self.name = len(template.metrics), loss.name

    def breaks_off(self, text: str, template: Template) -> bool:
        """Return whether a line says `None` or `null` for its loss after numbers in each of the rows so far."""
        if template.loss or template.held or not self.rows:
            return False
        # Behind another word it is another loss, as `val loss`.
        name = re.escape(self.name)
        if not re.search(rf"(?<![\w/-])(?<![A-Za-z] ){name}['\"]?{NOTHING}", text, re.IGNORECASE):
            return False
        self._sparse |= self.rows < MIN_BEFORE
        return not self._sparse

    def beside(self, template: Template, names: Names) -> list[Slot]:
        """Return the values of a line that is none of training; nothing if they say nothing of how it goes."""
        no_values = {*with_role(Role.LABEL), "step", "epoch", *(["loss"] * (self.rows > 0))}
        slots = [slot for slot in template.metrics if slot.role not in no_values]
        if all(HARMLESS.search(slot.name) or UNITS.fullmatch(slot.unit) for slot in slots):
            return []
        if any(slot.name in self.names for slot in slots):
            # What each line of training shows beside its loss was measured elsewhere where there is none.
            return [held_out(slot, names) for slot in slots]
        return slots

    def redrawn(self, template: Template, numbers: Sequence[str], position: tuple[int, int]) -> bool:
        """Return whether a bar repeats the position and the values of the last one, as it does after a traceback."""
        place = position, template.epoch and numbers[template.epoch.place]
        before = self._drawn
        values = template.block.pick(numbers) if template.block else ()
        self._drawn = place, values
        # tqdm counts on before it is handed the values of the new step, and draws the bar both times.
        self.replaces = self._carried and place == before[0]
        self._carried = place != before[0] and values == before[1]
        # A bar that is back at its start and shows the values of the last one has measured nothing.
        return self._drawn == before or (not position[0] and values == before[1])

    def position(
        self, template: Template, numbers: Sequence[str], place: tuple[int, int], head_epoch: float | None
    ) -> float | None:
        """Return the step of a line that only says how far the epoch has come; None if too large."""
        done, total = float(place[0]), place[1]
        epoch = template.epoch.value(numbers) if template.epoch else head_epoch
        if epoch is not None and epoch.is_integer() and total:
            if self._first_epoch is None:
                # A line that names its epoch says how much was trained before a resume.
                self._first_epoch = min(epoch, 1.0) if template.epoch else epoch
            done += max(0.0, epoch - self._first_epoch) * total
        return done if done < MAX_STEP else None


class LogReader:
    """Reads the lines of one log in order.

    Attributes:
        rows: the rows of metrics.
        skips: lines that look like metrics and can't be read.
        config: the settings that the log prints.
        errors: the lines about errors, and of each traceback the last line of the user's own code.
        saves: the lines that report a saved checkpoint.
        unread: the other lines that hold numbers.
    """

    def __init__(self, names: Names, *, kinds: bool = False, codes: bool = False) -> None:
        self.rows = LogRows(names, kinds)
        self.skips = Skips()
        self.config = ConfigDump()
        self.errors = ErrorLines()
        self.saves = Saves()
        self.unread = Unread()
        self.totals = Totals()
        self._names = names
        self._anchor = grammar.anchor(names)
        self._shapes: dict[str, Template] = {}
        self._general: dict[str, Template] = {}
        self._wordy: dict[str, int] = {}
        self._empty = Template(notes=Kind(looks=MAX_LOOKS))
        self._blocks = Blocks(names)
        self._training = Training(names.column("loss"))
        self._codes = codes
        self._code = False
        self._printed = PrintedSettings(names)
        self._inside = False
        self._evaluating = False
        self._skipped = 0
        self._frame: tuple[int, str, int] | None = None

    @property
    def losses(self) -> int:
        """The number of lines that hold the training loss."""
        return self._training.rows

    def read(self, lines: Lines | Iterable[str]) -> None:
        """Read all lines of a log, each by its shape."""
        number_split, shapes, blocks = grammar.NUMBER.split, self._shapes, self._blocks
        for number, line in enumerate(lines, 1):
            text = line if len(line) <= grammar.MAX_LINE else line[: grammar.MAX_LINE]
            if self._codes:
                text = LOST_CODES.sub("", text)
            parts = number_split(text)
            shape = MASK.join(parts[::2])
            template = shapes.get(shape)
            quick = template and template.notes.quick and not (blocks.waiting or self._inside or self._evaluating)
            if template and quick:
                numbers, step = parts[1::2], template.step
                if step is None or numbers[step.place].isdigit() or is_step(step, numbers):
                    if template.notes.quick == ROW:
                        self._row(template, numbers, number)
                    else:
                        self._progress(template, numbers)
                    continue
            self._line(text, Masked(shape, parts[1::2], number), cut=not template and _is_cut(lines))
        for masked in self._blocks.end():
            self._feed(masked, cut=_is_cut(lines))
        for block in self.rows.blocks:
            block.flush()
        self._finish()

    def _finish(self) -> None:
        """Name the kinds of lines that were not read."""
        for template in {id(one): one for one in chain(self._shapes.values(), self._general.values())}.values():
            if template.lines:
                self.unread.add(template.lines, *template.first)

    def _line(self, text: str, masked: Masked, *, cut: bool) -> None:
        """Read a line that is not plainly a row."""
        template = self._template(masked, text)
        kind: Kind = template.notes
        row = self.rows.count
        if kind.head:
            self._evaluating = kind.head == HELD
        if kind.save:
            self.saves.add(text, masked.line, row)
        ready = [masked]
        if not self._blocks.waiting:
            if not kind.ruler and self._is_chatter(text, template, masked):
                return
            if kind.block:
                ready = self._blocks.feed(masked)
        else:
            ready = self._blocks.feed(masked)
        used = not ready
        for part in ready:
            used = self._feed(part, cut=cut) or used
        if used or self.rows.count > row:
            return
        if not self._keep_error(text, masked.line, template) and ready[-1].line == masked.line:
            self._leave(template, masked, text)

    def _leave(self, template: Template, masked: Masked, text: str) -> None:
        """Count a line that was not read, if it holds a number."""
        if masked.numbers and not self._is_quoted(text, masked.line):
            template.lines += 1
            template.first = template.first if template.first[0] else (masked.line, text)

    def _is_quoted(self, text: str, number: int) -> bool:
        """Return whether a line is a frame of a traceback, or the source below it."""
        if self.unread.is_frame(text):
            self.unread.frame = number
            return True
        return number == self.unread.frame + 1

    def _is_chatter(self, text: str, template: Template, masked: Masked) -> bool:
        """Return whether a line holds no metrics; keep it if it is one of settings or errors."""
        kind: Kind = template.notes
        setting = False
        if kind.looks < MAX_LOOKS and (not kind.looks or kind.setting or self.config.inside):
            kind.looks += 1
            self._code = self._code or bool(grammar.STATEMENT.match(text))
            kind.setting = setting = self.config.look(text, self.rows.count, code=self._code)
        if self._inside or kind.title:
            self._inside = self._printed.look(text, begun=self.rows.own > 0)
            if self._inside:
                return True
        if kind.block or (not setting and not kind.setting and (kind.metrics or self._is_in_block(text))):
            return False
        if not self._keep_error(text, masked.line, template) and not (setting or kind.setting):
            self._leave(template, masked, text)
        return True

    def _is_in_block(self, text: str) -> bool:
        return self.rows.head is not None and text[:1] in (" ", "\t", "-")

    def _keep_error(self, text: str, number: int, template: Template) -> bool:
        """Keep a line without metrics if its words may be about an error."""
        kind: Kind = template.notes
        if kind.frame:
            self._frame = number, text, self.rows.count
            return True
        if kind.error:
            if self._frame and not self.errors.is_source(text):
                line, frame, rows = self._frame
                self.errors.add(line, frame, split(frame)[0], rows)
                self._frame = None
            self.errors.add(number, text, _form(template, text), self.rows.count)
        return kind.error

    def _template(self, masked: Masked, text: str) -> Template:
        """Return what the lines of a shape hold: found out now if it is a new one."""
        template = self._shapes.get(masked.shape)
        if template is None:
            general = _DIGITS.sub("#", masked.shape)
            template = self._general.get(general)
            if template is None:
                template = self._learn_if_new(masked, text, general)
                if len(self._general) < MAX_SHAPES and len(general) < MAX_LENGTH and not _has_digits(template):
                    self._general[general] = template
            if len(self._shapes) < MAX_SHAPES and len(masked.shape) < MAX_LENGTH:
                self._shapes[masked.shape] = template
        return template

    def _learn_if_new(self, masked: Masked, text: str, general: str) -> Template:
        """Return what the lines of a shape hold; nothing where words never stop changing around the same unknown names.

        Each would be another shape, whose numbers say nothing that could be followed over the lines.
        """
        around = " ".join(_NAMES.findall(general))
        met = self._wordy.get(around, 0)
        if met >= MAX_WORDY and (around or not may_report_error(text[:400])):
            return self._empty
        template = self._learn(masked, text)
        if template.known or template.step or template.epoch or template.notes.block or template.notes.error:
            self._wordy[around] = -MAX_SHAPES
        elif len(self._wordy) < MAX_SHAPES:
            self._wordy[around] = met + 1
        return template

    def _learn(self, masked: Masked, text: str) -> Template:
        """Return what the lines of a shape hold."""
        shape, numbers = masked.shape, masked.numbers
        head = text[:400]
        error = may_report_error(head)
        kind = Kind(
            block=self._blocks.may_begin(shape),
            metrics=bool(self._anchor.search(text) or grammar.ASSIGNED.search(text)) or bool(grammar.ALONE.match(shape)),
            error=error,
            frame=endings.OWN_FRAME.match(head) is not None,
            save=self.saves.is_save(text),
            title=self._printed.is_title(text),
            ruler=grammar.RULER.match(shape) is not None,
        )
        message = shape[grammar.past_masked_prefix(shape) :]
        if len(message) < grammar.MAX_KEY:
            kind.head = HELD * bool(grammar.HEAD_HELD.fullmatch(message)) or TRAINED * bool(
                grammar.HEAD_TRAIN.fullmatch(message)
            )
        template = Template(notes=kind)
        if not kind.metrics and not numbers and not kind.block:
            return template
        kind.code = (
            grammar.MODULE.match(text) is not None
            or grammar.NO_ROW.search(text) is not None
            or (grammar.CODE.match(text) is not None and (self._code or not grammar.PRINTED.match(text)))
        )
        self._overflow_words(shape, text, kind)
        if kind.code:
            return template
        template = parse(shape, numbers, self._names, kinds=self.rows.kinds)
        template.notes = kind
        kind.block = kind.block and template.bar != "tqdm"
        nan = "oss " in text and grammar.NAN_LOSS.search(text) and not template.loss
        if nan or self._training.breaks_off(text, template):
            template.metrics.append(Slot(self._training.name, NOWHERE, "nan", role="loss"))
            template.known, template.problem = True, ""
            template.name_all(kinds=self.rows.kinds)
        kind.dict_row = _DICT.search(text) is not None
        kind.message = error and is_message(text, template)
        return template

    def _overflow_words(self, shape: str, text: str, kind: Kind) -> None:
        """Find out whether a line reports a skipped step or a gradient norm of NaN."""
        if any(word in text for word in grammar.OVERFLOW_WORDS):
            found = grammar.OVERFLOW.search(shape)
            if found:
                group = "to" if found["to"] else "kept"
                kind.overflow = shape.count(MASK, 0, found.start(group))
        elif " norm is " in text and grammar.NAN_NORM.search(text):
            kind.overflow = NO_NORM
        elif "kip" in text and grammar.SKIPPED.search(text):
            kind.skipped = True

    def _feed(self, masked: Masked, *, cut: bool) -> bool:
        """Read one line or block; return whether anything of it was read."""
        text = ""
        template = self._shapes.get(masked.shape)
        if template is None:
            text = joined(masked.shape, masked.numbers)
            template = self._template(masked, text)
        kind: Kind = template.notes
        numbers = masked.numbers
        if self._overflow(kind, template, masked):
            return True
        if kind.code:
            return grammar.MODULE.match(joined(masked.shape, numbers)) is not None
        if cut:
            template = self._without_cut_number(template, masked)
        if template.step and not is_step(template.step, numbers):
            template = Template(problem="names a step that is impossible", notes=kind, known=template.known)
        if template.problem:
            self.skips.add(masked.line, template.problem)
            return True
        if template.known and self._metrics(template, masked):
            return True
        if self._aside(template, masked):
            return True
        if template.is_located and not template.known:
            self._progress(template, numbers)
            alone = not (kind.block or kind.save or kind.setting or kind.error or self.config.inside)
            if alone and kind.looks and not template.metrics:
                kind.quick = HEADER
            return not template.metrics
        return False

    def _without_cut_number(self, template: Template, masked: Masked) -> Template:
        """Return a line without the number that the end of the file may have cut, if earlier lines go on after it."""
        names = {slot.name for slot in template.metrics}
        longer = any(
            names <= other.names and len(other.metrics) >= len(names) and other is not template and other.block
            for other in self._shapes.values()
        )
        shorter = len(names) < self._training.pairs or longer
        last = len(masked.numbers) - 1
        if not (shorter and template.metrics and template.metrics[-1].place == last and masked.shape.rstrip()[-1:] == MASK):
            return template
        kept = template.metrics[:-1]
        known = any(slot.role for slot in kept)
        problem = template.problem if known else "is cut: the file ends inside this line"
        rest = Template(
            metrics=kept,
            known=known,
            step=template.step,
            epoch=template.epoch,
            rank=template.rank,
            position=template.position,
            problem=problem,
            notes=Kind(),
        )
        rest.name_all(kinds=self.rows.kinds)
        return rest

    def _aside(self, template: Template, masked: Masked) -> bool:
        """Read a line with values beside those of training; return whether it is one."""
        kind: Kind = template.notes
        rows = self.rows
        if not (template.step or template.epoch or rows.own or rows.head) or template.words > MAX_WORDS or kind.message:
            return False
        version = len(self._training.names) * 2 + (self._training.rows > 0)
        if kind.aside[0] != version:
            slots = self._training.beside(template, self._names)
            kind.aside = version, (self._beside(template, slots) if slots else None)
        values = kind.aside[1]
        if values is None or values.block is None:
            return False
        if template.is_located:
            self._progress(template, masked.numbers)
        text = joined(masked.shape, masked.numbers) if not values.block.rows else ""
        rows.aside(template, masked.numbers, masked.line, values.block, text)
        return True

    def _beside(self, template: Template, slots: list[Slot]) -> Template:
        values = Template(slots)
        values.block = self.rows.block_of(template, slots, axes=False)
        return values

    def _progress(self, template: Template, numbers: Sequence[str]) -> None:
        """Read a line that says where the run is and nothing else."""
        if template.words <= 1 and self._is_header(template):
            self.rows.header(template, numbers)
            self._evaluating = template.notes.head == HELD
            if template.counted:
                self.totals.saw(template, numbers)
            self.rows.below_bar_head |= template.bar == "keras"
        if template.position and (template.bar == "tqdm" or template.step or template.epoch):
            self.rows.moved(_place(template, numbers))

    def _is_header(self, template: Template) -> bool:
        counted = template.bar == "tqdm" and all(HARMLESS.search(slot.name) for slot in template.metrics)
        if template.metrics and template.bar != "keras" and not counted:
            return False
        if not template.step:
            return template.epoch is not None
        name = template.step.name
        return name == self._names.step_column or normalize(name) in grammar.HEADER_STEPS

    def _overflow(self, kind: Kind, template: Template, masked: Masked) -> bool:
        """Read a line that reports a skipped step or a gradient norm of NaN; return whether it does."""
        rows, numbers = self.rows, masked.numbers
        if kind.overflow >= 0:
            if template.position and template.position[1] < kind.overflow:
                rows.moved(_place(template, numbers))
            rows.overflow(numbers[kind.overflow].replace(",", ""))
        elif kind.overflow == NO_NORM:
            rows.overflow(None)
        elif kind.skipped and rows.own:
            self._skipped += 1
            step = template.step
            rows.skipped(step.value(numbers) if step and is_step(step, numbers) else None, self._skipped)
        else:
            return False
        return True

    def _metrics(self, template: Template, masked: Masked) -> bool:
        """Read a line with a known metric; return whether it is a row, or part of one."""
        kind: Kind = template.notes
        if self._evaluating and self._is_evaluation(template, masked.numbers):
            self._evaluated(template, masked)
            return True
        kind.trains = template.loss is not None or (self.rows.kinds and self._may_train(template))
        # A parameter of a call or a setting in prose is alone on its line and belongs to no step.
        counts = bool(template.position) and kind.trains and not (template.step or kind.dict_row)
        if not self._is_row(template, masked.numbers, located=counts and template.bar != "keras"):
            return False
        self._row(template, masked.numbers, masked.line)
        alone = not (kind.block or kind.save or kind.setting or kind.error or self.config.inside)
        if alone and kind.looks and (template.loss or counts or template.step):
            kind.quick = ROW
        return True

    def _is_evaluation(self, template: Template, numbers: Sequence[str]) -> bool:
        """Return whether a line below the head of an evaluation is part of it; a row of training ends it."""
        total = _total(template, numbers)
        if template.held or not template.known or (template.notes.total is not None and total == template.notes.total):
            self._evaluating = template.held or not template.known
            return False
        if template.notes.total == "" and template.is_located:
            self._evaluating = False
        return self._evaluating

    def _evaluated(self, template: Template, masked: Masked) -> None:
        """Read a line below the head of an evaluation."""
        kind: Kind = template.notes
        if kind.evaluated is None:
            kind.evaluated = self._beside(template, [held_out(slot, self._names) for slot in template.metrics])
        if kind.evaluated.block:
            text = joined(masked.shape, masked.numbers)
            self.rows.aside(Template(rank=template.rank), masked.numbers, masked.line, kind.evaluated.block, text)

    def _row(self, template: Template, numbers: Sequence[str], line: int) -> None:
        """Read a line that is a row, or part of one."""
        kind: Kind = template.notes
        rows, training = self.rows, self._training
        step = None
        over = False
        if template.position:
            place = _place(template, numbers)
            if kind.dict_row:
                rows.moved(place)
            elif kind.trains and not template.step and template.bar != "keras":
                step = training.position(template, numbers, place, rows.head.epoch if rows.head else None)
                if step is not None and template.epoch is None and not (rows.head and rows.head.epoch is not None):
                    self.totals.saw_bar(place[1])
            if template.bar == "tqdm":
                if training.redrawn(template, numbers, place):
                    return
                over = training.replaces
        kind.total = _total(template, numbers)
        rows.add(template, numbers, line, step=step, dict_row=kind.dict_row, over=over)
        if template.loss:
            if template.percent and template.position:
                rows.share(_place(template, numbers))
            training.saw(template, template.loss)
        if template.counted:
            self.totals.saw(template, numbers)

    def _may_train(self, template: Template) -> bool:
        """Return whether a line holds an unknown name that may be that of a loss, or of a reward."""
        return any(grammar.may_train(slot.name, kinds=self.rows.kinds) for slot in template.metrics)

    def _is_row(self, template: Template, numbers: Sequence[str], *, located: bool) -> bool:
        """Return whether a line with a known metric belongs to a step."""
        rows, kind = self.rows, template.notes
        located = located or bool(template.step or template.epoch or kind.dict_row or template.bar)
        if not located and (rows.repeats(template, numbers) or not self._may_join(template)):
            return False
        named = template.step is not None and normalize(template.step.name) != "batch"
        return located and (named or template.step is None and template.bar == "" and template.position is not None and template.loss is not None) or template.loss is not None or self._may_come_first(template)

    def _may_come_first(self, template: Template) -> bool:
        """Return whether a line without a step and a loss can be one of metrics so early in the log."""
        if not self.rows.own and not ((template.epoch or self.rows.kinds) and self._may_train(template)):
            return False
        return template.words <= MAX_FIRST and (self._training.rows > 0 or len(template.metrics) <= MAX_FIRST)

    def _may_join(self, template: Template) -> bool:
        """Return whether a line without a step is one of metrics: of a block, or nothing but pairs."""
        rows = self.rows
        if template.held and rows.own:
            return True
        if rows.kinds and self._may_train(template):
            return template.words <= max(2, len(template.metrics))
        if template.words == 0 and template.loss is not None:
            return True
        return template.words <= 2 and (rows.head is not None or rows.own > 0 or len(template.metrics) >= 3)


def _place(template: Template, numbers: Sequence[str]) -> tuple[int, int]:
    done, total = template.position or (0, 0)
    return int(numbers[done]), int(numbers[total])


def _total(template: Template, numbers: Sequence[str]) -> str:
    """Return how far the counter of a line goes; nothing where it does not say so."""
    place = template.step.of if template.step else template.position[1] if template.position else NOWHERE
    return numbers[place] if place >= 0 else ""


def _has_digits(template: Template) -> bool:
    """Return whether names of a line hold digits, so that lines of other digits have other names."""
    slots = (*template.metrics, template.step, template.epoch)
    return bool(template.problem) or any(slot and not slot.name.isascii() or slot and _DIGITS.search(slot.name) for slot in slots) or bool(template.rank and template.rank.place < 0)


def _form(template: Template, text: str) -> str:
    return _DIGITS.sub("", text[:400])


def _is_cut(lines: Lines | Iterable[str]) -> bool:
    """Return whether the last line that was read has no line end."""
    return isinstance(lines, Lines) and not lines.ended
