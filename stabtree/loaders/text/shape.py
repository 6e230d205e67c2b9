"""The shape of a line: the line with its numbers masked. What each number of a shape is, is found out once.

A shape is parsed by hand-written rules from its first line; of all further lines only the numbers are read.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from stabtree.common.text import clean
from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import role
from stabtree.metrics.metric import Role
from stabtree.metrics.table import normalize, with_role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stabtree.loaders.text.rows import Block
    from stabtree.metrics.names import Names

# Stands for a number in a shape.
MASK = "\0"
MAX_STEP = 2.0**53
# A line with so many numbers is a table of something, not a step.
MAX_PAIRS = 2000
# No count of steps is longer.
MAX_DIGITS = 16
# A line has at most so many counters `12/391`; one with more is a table of ratios.
MAX_COUNTS = 4
# So many blanks at most stand between a column and the bar before it.
MAX_BLANKS = 20
MAX_GROUP = 40
NOWHERE = -1


class Slot(NamedTuple):
    """A named number of a line.

    Attributes:
        name: as the line spells it, with `valid/` in front where the line marks it as evaluated.
        place: its index among the numbers of the line; negative where the line holds none, as for a NaN in words.
        text: the number in the first line of the shape, or the constant where there is no place.
        start: where it begins in that line.
        role: what the name means, as `grammar.role` has it.
        preference: the index among the names of the role, 0 best.
        power: the power of ten that a suffix multiplies the number by: 3 for `1K`.
        whole: the place of the number that it is a part of, as of an accuracy of `9800/10000`.
        of: the place of the number that says how far a counter goes: 600 for the step of `399/600`.
        unit: what directly follows the number.
        blank: whether a blank alone separates the name from the number.
    """

    name: str
    place: int
    text: str
    start: int = 0
    role: str = ""
    preference: int = 0
    power: int = 0
    whole: int = NOWHERE
    of: int = NOWHERE
    unit: str = ""
    blank: bool = False

    def value(self, numbers: Sequence[str]) -> float:
        """Return the number as a float."""
        if self.place >= 0 and not self.power and self.whole < 0:
            text = numbers[self.place]
            return float(text) if "," not in text else to_float(text)
        number = to_float(self.text if self.place < 0 else numbers[self.place], self.power)
        return number / (to_float(numbers[self.whole]) or 1) if self.whole >= 0 else number

    def rounded_to(self, numbers: Sequence[str]) -> float:
        """Return what a number with a suffix was rounded to: 1000 for `2K`, 100 for `2.1K`."""
        return 10.0 ** (self.power - len(numbers[self.place].partition(".")[2]))


class Template(Struct):
    """What lines of one shape hold.

    Attributes:
        metrics: the numbers that are neither step nor epoch nor rank, of known and unknown names.
        loss: the one that is the training loss.
        known: whether one of them is a known metric; a label, as the number of a batch, is none.
        step: the number that names the step best.
        epoch: the number of the epoch.
        rank: the number of the rank.
        position: the places of (done, total) of a bar or of `[12/391]`; of several the last one before the metrics.
        bar: `keras`, `tqdm` or empty.
        percent: whether the position is given in percent as well.
        held: whether it is marked as measured on held-out data.
        words: the number of words that belong to no number.
        problem: why a line that looks like metrics can't be read.
        has_side: whether a name says what it was measured on, as `train_loss`.
        counted: whether a number says how far a counter goes.
        own: the names of metrics that no row has twice.
        block: where its rows go; None before the first one.
    """

    metrics: list[Slot] = field(default_factory=list)
    loss: Slot | None = None
    known: bool = False
    step: Slot | None = None
    epoch: Slot | None = None
    rank: Slot | None = None
    position: tuple[int, int] | None = None
    bar: str = ""
    percent: bool = False
    held: bool = False
    words: int = 0
    problem: str = ""
    has_side: bool = False
    counted: bool = False
    own: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    block: Block | None = None

    @property
    def is_located(self) -> bool:
        """Whether it says where the run is."""
        return bool(self.step or self.epoch or self.position)

    def settle(self, *, kinds: bool) -> None:
        """Settle the names, now that the metrics are settled."""
        self.has_side = any(grammar.SIDE.search(slot.name) for slot in self.metrics)
        self.counted = any(slot and slot.of >= 0 for slot in (self.step, self.epoch))
        self.loss = next((slot for slot in self.metrics if slot.role == "loss"), None)
        self.names = frozenset(slot.name for slot in self.metrics)
        self.own = frozenset(
            slot.name for slot in self.metrics if slot.role or (kinds and grammar.may_train(slot.name, kinds=True))
        )

    def place(self, numbers: Sequence[str]) -> tuple[int, int]:
        """Return how far a bar or a counter has come, and how far it goes."""
        done, total = self.position or (0, 0)
        return int(numbers[done]), int(numbers[total])

    def total(self, numbers: Sequence[str]) -> str:
        """Return how far the counter of a line goes, as written; nothing where it does not say so."""
        place = self.step.of if self.step else self.position[1] if self.position else NOWHERE
        return numbers[place] if place >= 0 else ""

    def has_digits(self) -> bool:
        """Return whether names hold digits, so that lines of other digits have other names."""
        slots = (*self.metrics, *filter(None, (self.step, self.epoch)))
        names = "".join(slot.name for slot in slots)
        return (
            bool(self.problem)
            or not names.isascii()
            or _DIGIT.search(names) is not None
            or (self.rank is not None and self.rank.place < 0)
        )


def picker(slots: Sequence[Slot]) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """Return what takes the texts of some slots from the numbers of a line."""
    places = [place for slot in slots for place in (slot.place, slot.whole) if place >= 0]
    if len(places) > 1:
        return itemgetter(*places)
    return lambda numbers: tuple(numbers[place] for place in places)


def to_float(text: str, power: int = 0) -> float:
    """Return a number as written, times a power of ten.

    >>> to_float("1,234.5"), to_float("2e+3"), to_float("1.1", 3)
    (1234.5, 2000.0, 1100.0)
    """
    text = text.replace(",", "")
    if power and text[-1:].isdigit() and "e" not in text.lower():
        return float(f"{text}e{power}")
    return float(text)


def split(text: str) -> tuple[str, list[str]]:
    """Return the shape of a text and its numbers."""
    parts = grammar.NUMBER.split(text)
    return MASK.join(parts[::2]), parts[1::2]


def joined(shape: str, numbers: Sequence[str]) -> str:
    """Return the text of a shape with numbers in their places."""
    first, *others = shape.split(MASK)
    return first + "".join(number + part for number, part in zip(numbers, others, strict=False))


_DIGIT = re.compile("[0-9]")
_WORD = re.compile(r"[^\W\d]{2,}")
# What separates a name from the text before it: blanks, a dash, seconds that end a sentence.
_BLANKS = re.compile(r"\s\s+|\s-+\s|\bs\.\s")
_TOTAL = re.compile(r"\s*/\s*")
# `12:30`, `train.py:96:stop`: a time of day, a place in the source.
_NO_NUMBER = re.compile(r":\w|:\0")
_PERCENT = re.compile(r"\s*\(\s*[\d.]+%\)")


class _Line:
    """The first line of a shape while it is parsed: its text, and where its numbers stand."""

    def __init__(self, shape: str, numbers: Sequence[str]) -> None:
        self.shape = grammar.spelled(shape)
        self.numbers = numbers
        self.gaps = self.shape.split(MASK)
        self.starts: list[int] = []
        self.counts: list[Slot] = []  # that may number the epoch
        self.blank: list[Slot] = []  # behind a blank alone
        self.bare: list[int] = []  # without a name
        parts = [self.gaps[0]]
        end = len(self.gaps[0])
        for number, gap in zip(numbers, self.gaps[1:], strict=False):
            self.starts.append(end)
            end += len(number) + len(gap)
            parts += number, gap
        self.text = "".join(parts)

    def end(self, place: int) -> int:
        """Return where a number ends."""
        return self.starts[place] + len(self.numbers[place])

    def total(self, place: int) -> int:
        """Return the place of the number behind a slash, which says how far a counter goes; -1 where there is none."""
        after = place + 1
        if after >= len(self.starts) or not _TOTAL.fullmatch(self.gaps[after]):
            return NOWHERE
        whole = self.numbers[after].isdigit() and not self.text[self.end(after) : self.end(after) + 1].isidentifier()
        return after if whole else NOWHERE

    def is_none(self, place: int) -> bool:
        """Return whether a number is part of a time of day or of a place in the source."""
        end = self.end(place)
        after = self.text[end : end + 2]
        return after[:1] == ":" and (after[1:].isalnum() or after[1:] == "_")


def parse(shape: str, numbers: Sequence[str], names: Names, *, kinds: bool = False) -> Template:
    """Read the first line of a shape, free of escape codes.

    Args:
        shape: the line with its numbers masked.
        numbers: its numbers as written.
        names: what the names of columns mean.
        kinds: whether to accept losses named only by their kind (`xent`), and rewards of any name.
    """
    out = Template()
    line = _Line(shape, numbers)
    text = line.text
    if ":::MLLOG" in text:
        _mllog(line, out, names)
        out.settle(kinds=kinds)
        return out
    begin = end = grammar.past_prefix(text)
    _rank_prefix(line, out)
    last = NOWHERE
    for place, start in enumerate(line.starts):
        if start < begin or place <= last or line.is_none(place):
            continue
        if len(out.metrics) >= MAX_PAIRS:
            break
        total = line.total(place)
        slot = _slot(line, max(end, start - grammar.MAX_KEY), place, total, names, kinds=kinds)
        if slot and not slot.role and slot.whole < 0 <= total:
            slot = None
        last = max(place, total)
        if slot:
            last = _add(line, slot, out, kinds=kinds) or last
        elif total >= 0:
            _count(line, place, total, out)
        elif numbers[place][-1].isalpha() and line.gaps[place].rstrip()[-1:] not in (":", ",", "["):
            continue  # a word of the name behind it, as in `number of nan iterations`
        else:
            line.bare.append(place)
        out.words += _words(text[end:start], slot.name if slot else "")
        end = _past(text, line.end(last))
    out.words += _words(text[end:], "")
    _settle_counts(line, out)
    _lead(line, begin, out, names)
    _take_blank(line, out)
    if not out.metrics:
        _unnamed(line, out, names)
    _finish(line, out, names, kinds=kinds)
    out.settle(kinds=kinds)
    return out


def _add(line: _Line, slot: Slot, out: Template, *, kinds: bool) -> int:
    """Add a named number to what the line holds; return the place of its value if a step stands before that."""
    after = 0
    if _has_step_first(line, slot, out):
        after = slot.place + 1
        out.step = slot._replace(name="iteration", role="step", unit="")
        slot = slot._replace(place=after, text=line.numbers[after], start=line.starts[after])
    if slot.blank:
        line.blank.append(slot)
    elif _is_pass(slot, line.text, line.end(slot.place)):
        line.counts.append(slot)
    else:
        _take(slot, out, kinds=kinds)
    return after


def _rank_prefix(line: _Line, out: Template) -> None:
    """Read the rank that a launcher puts before the line."""
    prefix = grammar.RANK_PREFIX.search(line.text[:200])
    if prefix:
        group = prefix.lastindex or 1
        start = prefix.start(group)
        place = line.starts.index(start) if start in line.starts else NOWHERE
        out.rank = Slot("rank", place, prefix[group], start, "rank")


def _has_step_first(line: _Line, slot: Slot, out: Template) -> bool:
    """Return whether a step stands between a loss and its value, as in `Train loss 1200 0.453`."""
    after = slot.place + 1
    if slot.role not in ("loss", "eval_loss") or out.step or not slot.text.isdigit() or after >= len(line.starts):
        return False
    return line.gaps[after].strip(": ") == "" and not line.numbers[after].isdigit()


def _is_pass(slot: Slot, text: str, end: int) -> bool:
    """Return whether a number that ends at `end` numbers an epoch or a pass, as `Train: 3`."""
    return slot.text.isdigit() and grammar.PASS.fullmatch(slot.name) is not None and text[end : end + 1] != "%"


def _count(line: _Line, place: int, total: int, out: Template) -> None:
    """Add a number without a name if it is a counter such as `12/391`."""
    done, of = line.numbers[place], line.numbers[total]
    if not done.isdigit() or max(len(done), len(of)) >= MAX_DIGITS or int(done) > int(of):
        return
    if out.position is None or (not out.known and len(line.counts) < MAX_COUNTS):
        line.counts.append(Slot("epoch", place, done, line.starts[place], "epoch", of=total))
        out.position = place, total
        out.percent = _PERCENT.match(line.text, line.end(total)) is not None


def _settle_counts(line: _Line, out: Template) -> None:
    """Take the first count of `[3/100][50/391]`, `[3/100] batch 50` and `Train: 3 [50/391]` as the epoch."""
    if out.epoch or not out.position or not line.counts:
        return
    first = line.counts[0]
    batch = out.step is not None and first.start < out.step.start and normalize(out.step.name) in grammar.WITHIN_EPOCH
    if batch or len(line.counts) > 1:
        out.epoch = first._replace(name="epoch", role="epoch")
    if batch:
        out.position = None


_BOXED = re.compile(r"\[\0\]\s")
_LEAD = re.compile(r"\s*[\[(#]?\s*")
_AFTER_LEAD = re.compile(r"[\]):,]?\s+|[\]):]")
_SIDES = {"learn": "train_loss", "train": "train_loss", "val": "val_loss", "valid": "val_loss", "test": "test_loss"}


def _first(line: _Line, begin: int) -> int:
    """Return the place of the first number after the prefixes."""
    return next((place for place, start in enumerate(line.starts) if start >= begin), NOWHERE)


def _lead(line: _Line, begin: int, out: Template, names: Names) -> None:
    """Take the whole number that a line begins with as its step, where nothing else says which step it is.

    `[12]	train-rmse:0.3`, `12:	learn: 0.6`, `250 train 3.1`, `1000: 0.25`.
    """
    if out.is_located:
        return
    rank, bare, blank = out.rank, line.bare, line.blank
    if rank and rank.place == 0 and line.text[line.end(0) : line.end(0) + 1] == ":":
        first = 0
    elif line.starts and (_BOXED.match(line.shape) or bare[:1] == [_first(line, begin)]):
        first = 0 if _BOXED.match(line.shape) else bare[0]
        begin = min(begin, line.starts[first])
        after = _AFTER_LEAD.match(line.text, line.end(first))
        signed = after is not None and after[0].strip() not in ("", ",")
        named = after is not None and any(
            slot.start - len(slot.name) <= after.end() + 1 for slot in (*out.metrics[:1], *blank[:1])
        )
        if not _LEAD.fullmatch(line.text[begin : line.starts[first]]) or not (signed or named):
            return
    else:
        return
    if not line.numbers[first].isdigit() or len(line.numbers[first]) >= MAX_DIGITS:
        return
    others = [place for place in bare if place > first]
    if not (out.metrics or blank or others):
        return
    if first in bare:
        bare.remove(first)
    if rank and rank.place == first:
        out.rank = None
    out.step = Slot("iteration", first, line.numbers[first], line.starts[first], "step")
    if not out.metrics and len(blank) <= 1 and len(others) > 1:
        _behind(line, others, out, names)
        blank.clear()
    for slots in (out.metrics, blank):
        slots[:] = [
            slot._replace(name=side, role=role(side, names).role) if (side := _SIDES.get(slot.name.lower())) else slot
            for slot in slots
        ]
    out.known = out.known or any(slot.role for slot in out.metrics)


_CELL = re.compile(r"\s+([a-z][a-z ]{0,30}?)\s*(?=,|$)", re.IGNORECASE)
_CALLED = {"avg": "avg loss", "rate": "lr"}


def _behind(line: _Line, places: list[int], out: Template, names: Names) -> None:
    """Take numbers with their names behind them, as darknet writes: `1200: 2.0, 2.1 avg loss, 0.001 rate`."""
    for place in places:
        cell = _CELL.match(line.text, line.end(place))
        name = cell[1].lower() if cell else ""
        name = _CALLED.get(name, name)
        if place == places[0] and not cell and "avg" in line.shape:
            name = "loss"
        if name:
            _take(Slot(name, place, line.numbers[place], line.starts[place], *role(name, names)), out)


_LIST = re.compile(r"[^\[\]]{0,120}\[\0((?:, \0){1,15})\]\s*$")
# A list in prose: `copying a param with shape [10, 64]`.
_IN_PROSE = re.compile(r"[a-z] $")
_TIMED = re.compile(r"\s*\[\0((?:, (?:\0|None)){2,15}), '\0:\0(?::\0)?'\]\s*$")
_COLUMNS = re.compile(r"\s*\0[ \t]+\0\s*$")
# VITS and what came from it list the losses of the discriminator, the generator, features, mel and KL.
_VITS = ("loss/disc", "loss/gen", "loss/fm", "loss/mel", "loss/kl", "step", "lr")
# fastai lists the epoch, the training and the held-out loss, metrics and the time.
_FASTAI = ("epoch", "train_loss", "valid_loss")


def _unnamed(line: _Line, out: Template, names: Names) -> None:
    """Name the numbers of a line that names none: a list of values, a step with one value, a row of fastai."""
    bare = line.bare
    listed, timed = _LIST.match(line.shape), _TIMED.match(line.shape)
    called: Sequence[str]
    if timed:
        places = range(timed[1].count(MASK) + 1)
        called = [*_FASTAI, *(f"metric_{number}" for number in range(1, len(places)))]
    elif listed:
        count = listed[1].count(MASK) + 1
        places = range(len(line.starts) - count, len(line.starts))
        called = [f"value_{number}" for number in range(1, count + 1)]
        before = line.text[: line.starts[places[0]] - 1]
        if count == len(_VITS) and line.numbers[places[5]].isdigit():
            called = _VITS
        elif _IN_PROSE.search(before) and not before.lower().endswith(("loss ", "losses ")):
            return
    elif out.step and len(bare) == 1 and not out.words:
        places, called = range(bare[0], bare[0] + 1), ["value"]
    elif _COLUMNS.match(line.shape) and line.numbers[0].isdigit() and not line.numbers[1].isdigit():
        places, called = range(2), ["step", "value"]
    else:
        return
    for place, name in zip(places, called, strict=False):
        _take(Slot(name, place, line.numbers[place], line.starts[place], *role(name, names)), out)


def _past(text: str, end: int) -> int:
    """Return where the text after a number and its unit begins."""
    unit = grammar.UNIT.match(text, end)
    return unit.end() if unit else end


def _words(text: str, name: str) -> int:
    return max(0, len(_WORD.findall(text)) - len(_WORD.findall(name)))


def _slot(line: _Line, start: int, place: int, total: int, names: Names, *, kinds: bool) -> Slot | None:
    """Return the number at a place with its name; None if there is no name before it."""
    text, number = line.text, line.numbers[place]
    at, end = line.starts[place], line.end(place)
    key = grammar.KEY.search(text, start, at)
    if not key:
        return None
    name = _last_words(key["name"])
    kind, preference = role(name, names)
    separator = key["sep"]
    signed = ":" in separator or "=" in separator or _needs_no_sign(separator, name, kind, kinds=kinds)
    if not name or name.endswith(grammar.SOURCES) or name in grammar.DEVICES:
        return None
    if not (signed or _is_word(line, key, name, place)):
        return None
    if kind in ("step", "epoch", "rank"):
        if number[-1].isalpha():
            return None
    elif grammar.DATE.match(text, end):
        return None
    unit = text[end : _past(text, end)] if total < 0 else ""
    whole = of = NOWHERE
    if total >= 0 and len(line.numbers[total]) < MAX_DIGITS:
        if kind in ("step", "epoch"):
            of = total
        elif kind in ("", "eval_quality") and signed and grammar.QUALITY.search(name):
            whole = total
    power = grammar.POWERS.get(unit, 0)
    return Slot(name, place, number, at, kind, preference, power, whole, of, unit, blank=not signed)


def _last_words(text: str) -> str:
    """Return the name at the end of the text before a number."""
    name = _BLANKS.split(text)[-1].strip(".-/ ")
    return name if "(" in name else name.rstrip(")")


def _is_word(line: _Line, key: re.Match[str], name: str, place: int) -> bool:
    """Return whether a blank may separate a name from its number, which has a fraction or is not finite."""
    text, number, end = line.text, line.numbers[place], line.end(place)
    if key["sep"].strip() or not grammar.FRACTION.search(number) or name.rsplit(maxsplit=1)[-1] in grammar.NO_NAMES:
        return False
    if number[-1].isalpha() and grammar.WORD.match(text, end + 1):
        return False
    begin = key.start() + key["name"].rfind(name)
    before = text[max(0, begin - MAX_BLANKS) : begin].rstrip(" ")
    return grammar.WORD.fullmatch(name) is not None or before[-1:] in ("|", ",", ";", "\t")


def _take_blank(line: _Line, out: Template) -> None:
    """Add the names that a blank separates from their numbers, if the rest of the line says that it holds metrics."""
    if not line.blank or not (out.is_located or out.known):
        return
    names = {slot.name for slot in out.metrics}
    more = [slot for slot in line.blank if slot.name not in names]
    out.metrics = sorted((*out.metrics, *more), key=lambda slot: slot.start)
    out.known = out.known or any(slot.role or grammar.may_train(slot.name, kinds=False) for slot in more)


def _needs_no_sign(separator: str, name: str, kind: str, *, kinds: bool) -> bool:
    """Return whether a blank suffices: in `loss 3.2`, but not in `Loaded 12 files` or `number of nan iterations`."""
    if "[" in separator and kind not in ("epoch", "step"):
        return False
    return bool(kind) or (kinds and (name.lower().endswith("loss") or ("_" in name and grammar.is_reward(name))))


def _take(slot: Slot, out: Template, *, kinds: bool = False) -> None:
    """Add a number to the line by its role."""
    if slot.role == "step":
        _take_step(slot, out)
    elif slot.role == "epoch":
        if not out.epoch:
            out.epoch = slot
        elif slot.name == "epch":  # lerobot counts episodes as well: `ep:40 epch:0.50`
            out.metrics.append(out.epoch._replace(role=""))
            out.epoch = slot
    elif slot.role == "rank":
        out.rank = slot
    else:
        out.metrics.append(slot)
        known = bool(slot.role) and slot.role not in with_role(Role.LABEL)
        out.known = out.known or known or grammar.may_train(slot.name, kinds=kinds)


def _take_step(slot: Slot, out: Template) -> None:
    before = out.step
    if not before:
        out.step = slot
    elif _is_episode(before) != _is_episode(slot):
        # `Episode 12 | Steps: 143` gives the length of one.
        episode, step = (slot, before) if _is_episode(slot) else (before, slot)
        counts, other = (episode, step) if normalize(step.name) in ("steps", "num_steps") else (step, episode)
        out.step = counts
        out.metrics.append(other._replace(role="", preference=0))
    elif slot.preference < before.preference:
        out.step = slot
    elif slot.text != before.text and slot.preference == before.preference:
        out.problem = "names several steps"


def _is_episode(slot: Slot) -> bool:
    return normalize(slot.name) in ("episode", "episodes")


_MLLOG_CELL = re.compile(r'"(\w+)": "?\0')
_MLLOG_KEY = re.compile(r'"key": "(\w+)"')


def _mllog(line: _Line, out: Template, names: Names) -> None:
    """Read an event of MLPerf: its number is in `value` or beside it in `metadata`, the step in `metadata`."""
    key = _MLLOG_KEY.search(line.shape)
    if not line.shape.rstrip().endswith("}"):
        out.problem = "is an MLLOG event cut short" if "loss" in line.shape else ""
        return
    for cell in _MLLOG_CELL.finditer(line.shape):
        place = line.shape.count(MASK, 0, cell.end()) - 1
        name = key[1] if key and cell[1] == "value" else cell[1]
        if name not in ("lineno", "epoch_num", "time_ms"):
            _take(Slot(name, place, line.numbers[place], NOWHERE, *role(name, names)), out)
    # Events of the set-up name rates and sizes too, but no step.
    out.known = out.known and out.step is not None


def held_out(slot: Slot, names: Names) -> Slot:
    """Return a number by the name of the same metric on held-out data."""
    if not slot.role and grammar.HELD_OUT.search(slot.name):
        return slot
    name = f"valid/{slot.name}"
    if slot.role and not role(name, names).role:
        name = f"valid/{slot.role}"
    return _renamed(slot, name, names)


def _renamed(slot: Slot, name: str, names: Names) -> Slot:
    kind, preference = role(name, names)
    return slot._replace(name=name, role=kind, preference=preference)


def _mark_evaluated(text: str, out: Template, names: Names) -> None:
    """Rename the metrics after a word such as `eval`, as measured on held-out data."""
    begins = [slot.start - len(slot.name) for slot in out.metrics]
    # What is printed behind a bar does not belong to the name of the bar.
    bars = [bar.end() for bar in grammar.BAR_END.finditer(text) if bar.end() <= max(begins)]
    scope = max(0, max(bars, default=0) - 1)
    tags = [(tag.start(), tag["held"] is not None) for tag in grammar.EVALUATED.finditer(text, scope)]
    out.held = any(held for _, held in tags)
    if not out.held:
        return
    for index, (slot, begin) in enumerate(zip(out.metrics, begins, strict=True)):
        before = [held for start, held in tags if start < begin]
        if before and before[-1] and slot.role not in ("eval_loss", "lr"):
            out.metrics[index] = held_out(slot, names)


def _name_apart(text: str, out: Template, names: Names) -> None:
    """Give a name that comes again on its line the name of its group: `loss[loss=7.5], tot_loss[loss=7.4]`."""
    met: set[str] = set()
    held = False
    for index, slot in enumerate(out.metrics):
        if slot.name in met:
            group = _group(text, slot.start)
            name = f"valid/{slot.name}" if held else f"{slot.name} ({index + 1})"
            out.metrics[index] = _renamed(slot, f"{group}/{slot.name}" if group else name, names)
        else:
            held = grammar.HELD_OUT.search(slot.name) is not None
        met.add(slot.name)


def _group(text: str, start: int) -> str:
    """Return the word before the bracket that is open at `start`; nothing where none is."""
    low = max(0, start - grammar.MAX_KEY)
    bracket = max(text.rfind(sign, low, start) for sign in "[({")
    if bracket < max(text.rfind(sign, low, start) for sign in "])}"):
        return ""
    group = grammar.GROUP.search(text, max(low, bracket - MAX_GROUP), bracket)
    return group[0] if group else ""


# What Python alone takes for a number: `1_234`, digits of another script.
_ODD = re.compile(
    r"(?<!\w)([^\W\d]\w*+)['\"]?(?:\s*[:=]\s*|\s+)([0-9][0-9.]*_[\d_.]+|(?=[0-9.]*[^\x00-\x7f])\d[\d.]*)(?!\w)"
)
_AROUND = " '\"[(tensor"  # what may separate a name from its number


def _finish(line: _Line, out: Template, names: Names, *, kinds: bool) -> None:
    """Settle what only the whole line shows: held-out data, bars, numbers that are no steps."""
    text = line.text
    if out.problem and not out.known:
        # Prose of two steps: `Tried to log to step 5 that is less than the current step 51`.
        out.step, out.problem = None, ""
    if out.metrics:
        _mark_evaluated(text, out, names)
    if not out.epoch and (glued := grammar.GLUED_EPOCH.search(text)) and glued.start(1) in line.starts:
        out.epoch = Slot("epoch", line.starts.index(glued.start(1)), glued[1], glued.start(1), "epoch")
    if out.step and (not is_step(out.step, line.numbers) and _is_measure(line, out.step)):
        out.metrics.append(out.step)
        out.step = None
    if out.position:
        bars = (("keras", grammar.KERAS_BAR), ("tqdm", grammar.TQDM_BAR))
        out.bar = next((name for name, pattern in bars if pattern.search(text)), "")
    if (odd := _ODD.search(text)) and role(odd[1], names).role:
        out.problem = f"holds no number for its {clean(odd[1], 40)}: {clean(odd[2], 40)!r}"
    if not out.problem and _lacks_loss(text, out, kinds=kinds):
        out.problem = "has no number behind its loss"
    _name_apart(text, out, names)


def is_step(step: Slot, numbers: Sequence[str]) -> bool:
    """Return whether a number can be a step."""
    text = numbers[step.place]
    if text.isdigit() and len(text) < MAX_DIGITS and not step.unit:
        return True
    value = step.value(numbers)
    counted = step.power or not step.unit or step.unit in grammar.ORDINALS
    return bool(counted and 0 <= value < MAX_STEP and value.is_integer())


def _is_measure(line: _Line, step: Slot) -> bool:
    """Return whether what looks like a step is measured: it has a unit, or a fraction."""
    impossible = not abs(step.value(line.numbers)) < MAX_STEP or (step.text[0] == "-" and step.text[1:].isdecimal())
    return not impossible


def _is_loss(slot: Slot, *, kinds: bool) -> bool:
    return slot.role in ("loss", "eval_loss") or (kinds and "loss" in slot.name.lower())


def _lacks_loss(text: str, out: Template, *, kinds: bool) -> bool:
    """Return whether the line names a loss without a number; `Policy Loss: 0.1` has one."""
    if not out.step and "'" not in text:
        return False
    if any(_is_loss(slot, kinds=kinds) for slot in out.metrics):
        return False
    starts = [slot.start for slot in out.metrics]
    for loss in grammar.LOSS_WITHOUT_NUMBER.finditer(text):
        end = loss.end()
        if not any(end <= start and not text[end:start].strip(_AROUND) for start in starts):
            return True
    return False
