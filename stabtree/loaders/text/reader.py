"""Reads the lines of a text log in their order: each by its shape, which is parsed once."""

from __future__ import annotations

import math
import re
import sys
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common import endings
from stabtree.loaders.table import Skips
from stabtree.loaders.tables import cells
from stabtree.loaders.text import grammar
from stabtree.loaders.text.blocks import Blocks, Masked
from stabtree.loaders.text.grammar import MASK
from stabtree.loaders.text.messages import (
    HARMLESS,
    MAX_FORM,
    SOURCE,
    UNITS,
    ErrorLines,
    PrintedSettings,
    Saves,
    Unread,
    is_spoken,
    may_report_error,
)
from stabtree.loaders.text.parse import parse
from stabtree.loaders.text.rows import LogRows
from stabtree.loaders.text.shape import MAX_STEP, NOWHERE, Slot, Template, joined
from stabtree.metrics.metric import Role
from stabtree.metrics.table import normalize, with_role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.loaders.source import Lines
    from stabtree.loaders.text.shape import Block
    from stabtree.metrics.names import Names

# So many numbers in a row before a word for nothing: a loss that is printed at intervals has fewer.
MIN_BEFORE = 3
# A line with more words, or with more numbers before there was any loss, is one of settings.
MAX_FIRST = 30
# A line of values beside those of training may say so many words more.
MAX_WORDS = 6
# How many shapes to remember, and characters of them: a log has some dozens, prose has a new one in each line.
MAX_SHAPES, MAX_CHARACTERS = 20_000, 40_000_000
# So many shapes around the same names, none of them known, are prose.
MAX_WORDY = 100
# How often the numbers of one setting are looked at.
MAX_LOOKS = 200
# A number, or a word in its place.
_CELL = rf"({MASK}|[^\s,;|()\[\]{{}}'\"]++)"
_DICT = re.compile(r"""[{,]\s*['"‘“]\w""")
_DIGITS = re.compile(r"[0-9]+")
_NAMES = re.compile(r"(?<![\w./-])[^\W\d][\w./-]*+(?=[\"']?\s*+[:=])")
_FIRST_WORD = re.compile(r"[^\W\d]\w*+")
HELD, TRAINED = 1, 2
ROW, HEADER, NOTHING = 1, 2, 3
NO_NORM = -2


class Form(Struct):
    """What is known of the lines of one shape."""

    template: Template  # what their numbers are
    head: int = 0  # whether they say what the lines below were measured on: `HELD` or `TRAINED`
    title: bool = False  # whether a printed configuration may begin with them
    ruler: bool = False  # whether they are a line of dashes
    block: bool = False  # whether they may belong to a block over several lines
    metrics: bool = False  # whether they may hold metrics
    code: bool = False  # whether they are code, part of a model, or sum up a whole run
    model: bool = False  # whether they are part of a printed model
    error: bool = False  # whether their words may be about an error
    message: bool = False  # whether their values are part of such words
    ending: bool = False  # whether they report how the program ended
    frame: bool = False  # whether they name a line of the user's own code
    setting: bool = False  # whether they are settings
    looks: int = 0  # how often that was looked at
    save: bool = False  # whether they report a saved checkpoint
    scale: int = NOWHERE  # the place of the new loss scale where a step was skipped; `NO_NORM` for a gradient of NaN
    skipped: bool = False  # whether they report an update that was left out
    dict_row: bool = False  # whether they hold a dict
    heads: bool = False  # whether they name a step or an epoch of the lines below them
    trains: bool = False  # whether they hold a loss, of any name
    quick: int = 0  # whether they are nothing but a `ROW`, or a `HEADER` of rows, or say `NOTHING` outside of a call
    beside: tuple[int, Block | None] = (-1, None)  # the values beside training, by what was known of it at that time
    below: Block | None = None  # the values below the head of an evaluation
    unread: tuple[int, int, str] = (0, 0, "")  # how many were not read, and the number and the text of the first one

    @property
    def is_alone(self) -> bool:
        """Whether a line means the same whatever stands around it."""
        return not (self.block or self.save or self.setting or self.error) and self.looks > 0


class Training:
    """The lines that hold the training loss."""

    def __init__(self, name: str) -> None:
        self.rows = 0  # how many lines held it
        self.name = name  # how the last one spelled it
        self.names: set[str] = set()  # all that such lines show beside it
        self.replaces = False  # whether the last bar corrects the one before it, which moved on with its old values
        self._drawn: tuple[object, tuple[str, ...]] = (None, ())
        self._carried = False
        self._first_epoch: float | None = None
        self._sparse = False
        self._last: Template | None = None
        self._rows: list[tuple[re.Pattern[str], list[Slot]]] = []  # what their shapes look like, with their metrics

    def saw(self, template: Template, loss: Slot) -> None:
        """Note that a line with the loss was read."""
        self.rows += 1
        if template is not self._last:
            self._last, self.name = template, loss.name
            self.names.update(slot.name for slot in template.metrics if slot is not loss)

    def learns(self, shape: str, template: Template) -> None:
        """Remember where the rows of a shape hold their metrics, to know a row that holds words there."""
        slots = {slot.place: slot for slot in template.metrics if slot.role or grammar.may_train(slot.name, kinds=True)}
        slots.pop(NOWHERE, None)
        gaps = [_DIGITS.sub("[0-9]+", re.escape(gap)) for gap in shape.split(MASK)]
        if not slots or len(slots) > MAX_FIRST or len(self._rows) >= MAX_FIRST:
            return
        parts = [_CELL if place in slots else MASK for place in range(len(gaps) - 1)]
        pattern = re.compile("".join((gaps[0], *chain.from_iterable(zip(parts, gaps[1:], strict=True)))))
        self._rows.append((pattern, [slots[place] for place in sorted(slots)]))

    def words(self, shape: str, numbers: Sequence[str]) -> Iterator[Slot]:
        """Yield the metrics of a line like a row that holds words in the places of their numbers.

        A word for nothing is a NaN in the place of the loss, after numbers in each of the rows so far.
        """
        for pattern, slots in self._rows:
            if match := pattern.fullmatch(shape):
                places = (shape.count(MASK, 0, start) for start, _ in match.regs[1:])
                words = [joined(word, numbers[place:]) for word, place in zip(match.groups(), places, strict=True)]
                yield from filter(None, map(self._word, slots, match.groups(), words))
                return

    def _word(self, slot: Slot, masked: str, word: str) -> Slot | None:
        """Return a metric with the word in the place of its number; None for a number, or for nothing."""
        try:
            value = None if masked == MASK else cells.number(word)
        except (ValueError, OverflowError):
            value = 0.0
        if value is None and masked != MASK and slot.role == "loss":
            self._sparse |= self.rows < MIN_BEFORE
            value = None if self._sparse else math.nan
        if value is None:
            return None
        garbled = math.isfinite(value)
        text = str(value)
        if garbled:
            text = word
        return slot._replace(place=NOWHERE, text=text, whole=NOWHERE, power=0, garbled=garbled)

    def beside(self, template: Template, names: Names) -> list[Slot]:
        """Return the values of a line that is none of training; nothing if they say nothing of how it goes."""
        no_values = {*with_role(Role.LABEL), "step", "epoch", *(["loss"] * (self.rows > 0))}
        slots = [slot for slot in template.metrics if slot.role not in no_values]
        if all(HARMLESS.search(slot.name) or UNITS.fullmatch(slot.unit) for slot in slots):
            return []
        if any(slot.name in self.names for slot in slots):
            # What each line of training shows beside its loss was measured elsewhere where there is none.
            return [slot.held_out(names) for slot in slots]
        return slots

    def redrawn(self, template: Template, numbers: Sequence[str], position: tuple[int, int]) -> bool:
        """Return whether a bar repeats the position and the values of the last one, as it does after a traceback."""
        place = position, template.epoch and numbers[template.epoch.place]
        before = self._drawn
        values = tuple(numbers[slot.place] for slot in template.metrics if slot.place >= 0)
        self._drawn = place, values
        # tqdm counts on before it is handed the values of the new step, and draws the bar both times.
        self.replaces = self._carried and place == before[0]
        self._carried = place != before[0] and values == before[1]
        # A bar that is back at its start and shows the values of the last one has measured nothing.
        return self._drawn == before or (before[0] is not None and not position[0] and values == before[1])

    def position(
        self, template: Template, numbers: Sequence[str], position: tuple[int, int], head_epoch: float | None
    ) -> float | None:
        """Return the step of a line that only says how far the epoch has come; None if too large."""
        done, total = float(position[0]), position[1]
        epoch = template.epoch.value(numbers) if template.epoch else head_epoch
        if epoch is not None and epoch.is_integer() and total:
            if self._first_epoch is None:
                # A line that names its epoch says how much was trained before a resume.
                self._first_epoch = min(epoch, 1.0) if template.epoch else epoch
            done += max(0.0, epoch - self._first_epoch) * total
        return done if done < MAX_STEP else None


class LogReader:
    """Reads the lines of one log in order."""

    def __init__(self, names: Names, *, kinds: bool = False, enough: int = sys.maxsize) -> None:
        self.rows = LogRows(names, kinds)
        self.skips = Skips()  # lines that look like metrics and can't be read
        self.config = PrintedSettings(names)
        self.errors = ErrorLines()  # and of each traceback the last line of the user's own code
        self.saves = Saves()
        self.unread = Unread()  # the other lines that hold numbers
        self._names = names
        self._enough = enough  # so many losses end the reading
        self._anchor = grammar.anchor(names)
        self._forms: dict[str, Form] = {}  # by shape
        self._alike: dict[str, Form] = {}  # by shape, with the digits in its words masked as well
        self._room = MAX_CHARACTERS
        self._wordy: dict[str, int] = {}  # how many shapes there are around some names
        self._prose = Form(Template(), looks=MAX_LOOKS)
        self._source = Form(Template(), code=True)  # counts all lines of source code
        self._blocks = Blocks(names)
        self._training = Training(names.column("loss"))
        self._code = self._evaluating = False
        self._totals: set[int] = set()  # how far the counters of rows of training go
        self._skipped = 0
        self._frame: tuple[int, str, int] | None = None

    @property
    def losses(self) -> int:
        """The number of lines that hold the training loss."""
        return self._training.rows

    def read(self, lines: Iterable[str], source: Lines | None = None) -> None:
        """Read all lines of a log, each by its shape; `source` shows whether its last line is whole."""
        split, forms, blocks, config = grammar.NUMBER.split, self._forms, self._blocks, self.config
        number, ruler = 0, ""
        for line in lines:
            if self._training.rows >= self._enough:
                break
            number += 1
            text = line[: grammar.MAX_LINE]
            if text == ruler != "":  # it says no more, however often it comes
                continue
            if text[:1] == "\n":  # blank lines
                number, text = number + len(line), ""
            parts = split(text)
            shape, numbers = MASK.join(parts[::2]), parts[1::2]
            form = forms.get(shape)
            busy = blocks.waiting or config.below_title or self._evaluating
            if form and form.quick and not (busy or (config.in_call and form.quick == NOTHING)):
                step = form.template.step
                if step is None or numbers[step.place].isdigit() or step.is_step(numbers):
                    if form.quick == ROW:
                        self._row(form, numbers, number)
                    else:
                        self._progress(form, numbers)
                    continue
            self._line(text, Masked(shape, numbers, number), cut=not form and source is not None and not source.ended)
            ruler = text * (not any(map(str.isalnum, text)))
        for masked in self._blocks.end():
            self._feed(masked)
        for block in self.rows.blocks:
            block.flush()
        every = (*self._forms.values(), *self._alike.values(), self._prose, self._source)
        for each in {id(each): each for each in every}.values():
            if each.unread[0]:
                self.unread.add(*each.unread, code=each is self._source)

    def _line(self, text: str, masked: Masked, *, cut: bool) -> None:
        """Read a line that is not plainly a row."""
        form = self._form(masked, text)
        before, waiting = self.rows.count, self._blocks.waiting
        if form.head:
            self._evaluating = form.head == HELD
        if form.save:
            self.saves.add(text, masked.line, before)
        if not (waiting or form.ruler) and self._is_setting(text, form):
            if not self.config.below_title:
                self._keep_error(text, masked.line, form)
            return
        if cut and masked.shape[-1:] == MASK and self._goes_on(masked.shape):
            # Earlier lines go on: the end of the file may have cut the last number.
            masked = Masked(masked.shape[:-1], masked.numbers[:-1], masked.line)
            if not self._form(masked).template.known:
                self.skips.add(masked.line, "is cut: the file ends inside this line")
                return
        ready = [masked]
        if form.ending and not form.template.known and self._keep_error(text, masked.line, form):
            return
        if waiting or form.block:
            ready = self._blocks.feed(masked)
        elif not (form.metrics or (self.rows.head and text[:1] in (" ", "\t", "-"))):
            ready = []
        read = [self._feed(part) for part in ready]
        drawn_again = form.template.bar and any(read)
        if self.rows.count > before or drawn_again or (not ready and (waiting or form.block)):
            return
        # A line that names a step may report an error all the same.
        if not self._keep_error(text, masked.line, form) and not any(read):
            self._note_unread(text, masked, form)

    def _note_unread(self, text: str, masked: Masked, form: Form) -> None:
        """Count a line that was not read, if it holds numbers; remember if one without any says nothing."""
        quiet = not (masked.numbers or form.metrics or form.head or form.title or form.ruler or form.frame)
        if quiet and form.is_alone and form is not self._prose:
            form.quick = NOTHING
        if masked.numbers and not self.unread.is_quoted(text, masked.line):
            form = self._source if form.code and self._code else form
            count, number, example = form.unread
            form.unread = count + 1, number or masked.line, example or text

    def _goes_on(self, shape: str) -> bool:
        """Return whether other lines begin like a line and go on."""
        return any(len(other) > len(shape) and other.startswith(shape) for other in self._forms)

    def _is_setting(self, text: str, form: Form) -> bool:
        """Return whether a line is one of settings."""
        setting = form.setting
        if form.looks < MAX_LOOKS and (not form.looks or form.setting or self.config.in_call):
            form.looks += 1
            self._code = self._code or grammar.STATEMENT.match(text) is not None
            form.setting = setting = self.config.look(text, self.rows.count, code=self._code)
        if self.config.below_title or form.title:
            self.config.follow(text, begun=self.rows.own > 0)
        return self.config.below_title or (setting and not form.block)

    def _keep_error(self, text: str, number: int, form: Form) -> bool:
        """Keep a line without metrics if its words may be about an error."""
        if form.frame:
            self._frame = number, text, self.rows.count
            return True
        if form.error:
            if self._frame and not SOURCE.match(text):
                self.errors.add(*self._frame)
                self._frame = None
            self.errors.add(number, text, self.rows.count)
        return form.error

    def _form(self, masked: Masked, text: str = "") -> Form:
        """Return what is known of the lines of a shape: found out now if it is a new one."""
        form = self._forms.get(masked.shape)
        if form is None:
            text = text or joined(masked.shape, masked.numbers)
            alike = _DIGITS.sub("#", masked.shape)
            form = self._alike.get(alike)
            if form is None:
                form = self._learn_unless_prose(masked, text, alike)
                if len(self._alike) < MAX_SHAPES and self._room > 0 and not form.template.has_digits():
                    self._alike[alike] = form
            if len(self._forms) < MAX_SHAPES and self._room > 0:
                self._room -= len(masked.shape)
                self._forms[masked.shape] = form
        return form

    def _learn_unless_prose(self, masked: Masked, text: str, alike: str) -> Form:
        """Return what the lines of a shape hold; nothing where words never stop changing around the same unknown names.

        Where there are no names, the first word stands for them. The numbers say nothing that could be followed.
        """
        named = _NAMES.findall(alike)
        around = " ".join(named or _FIRST_WORD.findall(alike[: grammar.MAX_KEY])[:1])
        met = self._wordy.get(around, 0)
        if met >= MAX_WORDY and (named or not may_report_error(text)):
            return self._prose
        form = self._learn(masked, text)
        template = form.template
        if template.known or template.is_located or form.block or form.error:
            self._wordy[around] = -MAX_SHAPES
        elif len(self._wordy) < MAX_SHAPES:
            self._wordy[around] = met + 1
        return form

    def _learn(self, masked: Masked, text: str) -> Form:
        """Return what the lines of a shape hold."""
        shape, numbers, error = masked.shape, masked.numbers, may_report_error(text)
        dict_row = _DICT.search(text) is not None
        anchored = self._anchor.search(text) or grammar.ASSIGNED.search(text) or grammar.ALONE.match(shape)
        form = Form(
            Template(),
            head=_head(shape),
            title=self.config.is_title(text),
            ruler=grammar.RULER.match(shape) is not None,
            block=self._blocks.may_begin(shape),
            metrics=anchored is not None,
            error=error,
            ending=error and not dict_row and endings.ending_of(text[:MAX_FORM]) != "",
            frame=endings.OWN_FRAME.match(text[:400]) is not None,
            save=self.saves.is_save(text),
            dict_row=dict_row,
            model=grammar.MODULE.match(text) is not None,
        )
        if not (form.metrics or numbers or form.block):
            return form
        code = grammar.CODE.match(text) is not None and (self._code or not grammar.PRINTED.match(text))
        form.code = form.model or code or grammar.NO_ROW.search(text) is not None
        form.scale = _scale(shape, text)
        form.skipped = "kip" in text and grammar.SKIPPED.search(text) is not None
        if form.code:
            return form
        form.template = template = parse(shape, numbers, self._names, kinds=self.rows.kinds)
        form.block = form.block and template.bar != "tqdm"
        words = [slot for slot in self._training.words(shape, numbers) if slot.name not in template.names]
        if "oss " in text and grammar.NAN_LOSS.search(text) and not template.loss:
            words = [Slot(self._training.name, NOWHERE, "nan", role="loss")]
        for slot in words:
            template.metrics.append(slot)
            template.known, template.problem = True, ""
            if slot.garbled:
                self.rows.garbled.setdefault(slot.name, cells.example(masked.line, slot.text))
        if words:
            template.settle(kinds=self.rows.kinds)
        form.heads = template.words <= 1 and self._is_header(template)
        form.message = form.ending or (form.error and is_spoken(template))
        may_train = any(grammar.may_train(slot.name, kinds=True) for slot in template.metrics)
        form.trains = template.loss is not None or (self.rows.kinds and may_train)
        return form

    def _feed(self, masked: Masked) -> bool:
        """Read one line or block; return whether anything of it was read."""
        form, numbers = self._form(masked), masked.numbers
        template = form.template
        if self._skips_step(form, numbers) or form.model:
            return True
        if form.code:
            return False
        if template.problem or (template.step and not template.step.is_step(numbers)):
            self.skips.add(masked.line, template.problem or "names a step that is impossible")
            return True
        if (template.known and self._metrics(form, masked)) or self._aside(form, masked):
            return True
        if not template.is_located or template.known:
            return False
        self._progress(form, numbers)
        if form.is_alone and not template.metrics:
            form.quick = HEADER
        return not template.metrics

    def _skips_step(self, form: Form, numbers: Sequence[str]) -> bool:
        """Read a line that reports a skipped step or a gradient norm of NaN; return whether it does."""
        rows, template = self.rows, form.template
        if form.scale >= 0:
            if template.position and template.position[1] < form.scale:
                rows.moved(template.place(numbers))
            rows.overflow(numbers[form.scale].replace(",", ""))
        elif form.scale == NO_NORM:
            rows.overflow(None)
        elif form.skipped and rows.own:
            self._skipped += 1
            step = template.step
            rows.skipped(step.value(numbers) if step and step.is_step(numbers) else None, self._skipped)
        else:
            return False
        return True

    def _metrics(self, form: Form, masked: Masked) -> bool:
        """Read a line with a known metric; return whether it is a row, or part of one."""
        template, numbers = form.template, masked.numbers
        if self._evaluating and self._is_evaluation(form, numbers):
            if form.below is None:
                slots = [slot.held_out(self._names) for slot in template.metrics]
                form.below = self.rows.block_of(template, slots, axes=False)
            self.rows.aside(Template(rank=template.rank), masked, form.below)
            return True
        # A parameter of a call or a setting in prose is alone on its line and belongs to no step.
        counts = bool(template.position) and form.trains and not (template.step or form.dict_row)
        located = counts and template.bar != "keras"
        if not self._is_row(form, numbers, located=located):
            return False
        if template.block is None:
            self._training.learns(masked.shape, template)
        self._row(form, numbers, masked.line)
        if form.is_alone and not self.config.in_call and (template.loss or located or template.step):
            form.quick = ROW
        return True

    def _is_evaluation(self, form: Form, numbers: Sequence[str]) -> bool:
        """Return whether a line below the head of an evaluation is part of it; a row of training ends it."""
        template, total = form.template, form.template.total(numbers)
        if total:
            self._evaluating = total not in self._totals
        elif template.is_located:
            self._evaluating = False
        return self._evaluating and self.rows.own > 0 and not (template.held or template.has_side)

    def _row(self, form: Form, numbers: Sequence[str], line: int) -> None:
        """Read a line that is a row, or part of one."""
        rows, training, template = self.rows, self._training, form.template
        step, over = None, False
        if template.position:
            head_epoch = rows.head.epoch if rows.head else None
            place = template.place(numbers)
            if form.dict_row:
                rows.moved(place)
            elif form.trains and not template.step and template.bar != "keras":
                step = training.position(template, numbers, place, head_epoch)
                if step is not None and template.epoch is None and head_epoch is None:
                    rows.note_total("step", place[1])
            if template.bar == "tqdm":
                if training.redrawn(template, numbers, place):
                    return
                over = training.replaces
        if template.counted or template.position:
            self._totals.add(template.total(numbers))
        rows.add(template, numbers, line, step=step, dict_row=form.dict_row, over=over)
        if template.loss:
            training.saw(template, template.loss)

    def _is_row(self, form: Form, numbers: Sequence[str], *, located: bool) -> bool:
        """Return whether a line with a known metric belongs to a step."""
        rows, template = self.rows, form.template
        if not (located or template.step or template.epoch or form.dict_row or template.bar) and (
            rows.repeats(template, numbers) or not self._may_join(form)
        ):
            return False
        if located or template.loss or (template.step and normalize(template.step.name) != "batch"):
            return True
        # Without a step and a loss only if it can be one of metrics so early in the log.
        if not rows.own and not ((template.epoch or rows.kinds) and form.trains):
            return False
        return template.words <= MAX_FIRST and (self._training.rows > 0 or len(template.metrics) <= MAX_FIRST)

    def _may_join(self, form: Form) -> bool:
        """Return whether a line without a step is one of metrics: of a block, or nothing but pairs."""
        rows, template = self.rows, form.template
        if template.held and rows.own:
            return True
        if rows.kinds and form.trains:
            return template.words <= max(2, len(template.metrics))
        if template.loss is not None and (template.words == 0 or template.leads):
            return True
        return template.words <= 2 and (rows.begun or len(template.metrics) >= 3)

    def _aside(self, form: Form, masked: Masked) -> bool:
        """Read a line with values beside those of training; return whether it is one."""
        rows, template = self.rows, form.template
        if not (template.step or template.epoch or rows.begun) or template.words > MAX_WORDS or form.message:
            return False
        version = len(self._training.names) * 2 + (self._training.rows > 0)
        if form.beside[0] != version:
            slots = self._training.beside(template, self._names)
            form.beside = version, (rows.block_of(template, slots, axes=False) if slots else None)
        block = form.beside[1]
        if block is None:
            return False
        if template.is_located:
            self._progress(form, masked.numbers)
        rows.aside(template, masked, block)
        return True

    def _progress(self, form: Form, numbers: Sequence[str]) -> None:
        """Read a line that says where the run is and nothing else."""
        template = form.template
        if form.heads:
            self.rows.header(template, numbers)
            self._evaluating = form.head == HELD
            self.rows.below_bar_head |= template.bar == "keras"
        if template.position and (template.bar == "tqdm" or template.step or template.epoch):
            self.rows.moved(template.place(numbers))

    def _is_header(self, template: Template) -> bool:
        counted = template.bar == "tqdm" and all(HARMLESS.search(slot.name) for slot in template.metrics)
        if template.metrics and template.bar != "keras" and not counted:
            return False
        if not template.step:
            return template.epoch is not None
        name = template.step.name
        return name == self._names.step_column or normalize(name) in grammar.HEADER_STEPS


def _scale(shape: str, text: str) -> int:
    """Return the place of the new loss scale where lines of a shape report a skipped step."""
    if any(word in text for word in grammar.OVERFLOW_WORDS) and (found := grammar.OVERFLOW.search(shape)):
        return shape.count(MASK, 0, found.start("to" if found["to"] else "kept"))
    if " norm is " in text and grammar.NAN_NORM.search(text):
        return NO_NORM
    return NOWHERE


def _head(shape: str) -> int:
    """Return what the lines below a line were measured on, if that is all it says."""
    message = shape[grammar.past_masked_prefix(shape) :]
    if len(message) > grammar.MAX_KEY:
        return 0
    return HELD if grammar.HEAD_HELD.fullmatch(message) else TRAINED * bool(grammar.HEAD_TRAIN.fullmatch(message))
