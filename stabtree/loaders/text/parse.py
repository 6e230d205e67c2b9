"""What each number of a shape is, found out by hand-written rules from the first line of the shape."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.common.text import clean
from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import ASIDE, MASK, role
from stabtree.loaders.text.shape import MAX_DIGITS, MAX_STEP, NOWHERE, Slot, Template
from stabtree.metrics.metric import Role
from stabtree.metrics.table import normalize, with_role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.metrics.names import Names

# A line with so many numbers is a table of something, not a step.
MAX_PAIRS = 2000
# A line has at most so many counters `12/391`; one with more is a table of ratios.
MAX_COUNTS = 4
# So many blanks at most stand between a column and the bar before it.
MAX_BLANKS = 20
MAX_GROUP = 40

_MARKS = re.compile(f"[{MASK}{ASIDE}]")
_WORD = re.compile(r"[^\W\d]{2,}")
# What separates a name from the text before it: blanks, a dash, seconds that end a sentence.
_BLANKS = re.compile(r"\s\s+|\s-+\s|\bs\.\s")
_PERCENT = re.compile(r"\s*\(\s*[\d.]+%\)")


class _Line:
    """The first line of a shape while it is parsed: its text, where its numbers stand, and what is known of them."""

    def __init__(self, shape: str, numbers: Sequence[str], names: Names, *, kinds: bool) -> None:
        self.shape = grammar.spelled(shape)
        self.names = names
        self.kinds = kinds
        self.out = Template()
        marks = _MARKS.findall(self.shape)
        self.gaps = _MARKS.split(self.shape)
        self.numbers = [text if mark == MASK else "" for text, mark in zip(numbers, marks, strict=False)]
        self.starts: list[int] = []
        self.counts: list[Slot] = []  # that may number the epoch
        self.blank: list[Slot] = []  # behind a blank alone
        self.bare: list[int] = []  # without a name
        parts = [self.gaps[0]]
        end = len(self.gaps[0])
        for number, gap in zip(self.numbers, self.gaps[1:], strict=False):
            self.starts.append(end)
            end += len(number) + len(gap)
            parts += number, gap
        self.text = "".join(parts)

    def end(self, place: int) -> int:
        """Return where a number ends."""
        return self.starts[place] + len(self.numbers[place])

    def past(self, place: int) -> int:
        """Return where the text after a number and its unit begins."""
        unit = grammar.UNIT.match(self.text, self.end(place))
        return unit.end() if unit else self.end(place)

    def total(self, place: int) -> int:
        """Return the place of the number behind a slash, which says how far a counter goes; -1 where there is none."""
        after = place + 1
        if after >= len(self.starts) or self.gaps[after].strip() != "/":
            return NOWHERE
        whole = self.numbers[after].isdigit() and not self.text[self.end(after) : self.end(after) + 1].isidentifier()
        return after if whole else NOWHERE

    def is_none(self, place: int) -> bool:
        """Return whether a number is part of a time of day or of a place in the source: `12:30`, `train.py:96:stop`."""
        end = self.end(place)
        after = self.text[end : end + 2]
        return after[:1] == ":" and (after[1:].isalnum() or after[1:] == "_")

    def slot(self, place: int, name: str, kind: str = "") -> Slot:
        """Return the number at a place, by a name that means `kind`, or nothing yet."""
        return Slot(name, place, self.numbers[place], self.starts[place], kind)

    def take(self, slot: Slot) -> None:
        """Add a number to what the line holds, by its role."""
        out = self.out
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
            out.known = out.known or known or grammar.may_train(slot.name, kinds=self.kinds)

    def name_places(self, places: Sequence[int], called: Sequence[str]) -> None:
        """Add numbers by names that the line does not spell."""
        for place, name in zip(places, called, strict=False):
            self.take(self.slot(place, name).named(name, self.names))


def parse(shape: str, numbers: Sequence[str], names: Names, *, kinds: bool = False) -> Template:
    """Read the first line of a shape, free of escape codes.

    Args:
        shape: the line with its numbers masked.
        numbers: its numbers as written.
        names: what the names of columns mean.
        kinds: whether to accept losses named only by their kind (`xent`), and rewards of any name.
    """
    line = _Line(shape, numbers, names, kinds=kinds)
    out = line.out
    begin = grammar.past_prefix(line.text)
    if _MLLOG in line.text:
        _mllog(line)
    else:
        _rank_prefix(line)
        _numbers(line, begin)
        _settle_counts(line)
        _lead(line, begin)
        _take_blank(line)
        if not out.metrics:
            _unnamed(line)
        _finish(line)
    out.settle(kinds=kinds)
    out.leads = out.loss is not None and not out.loss.blank and line.text.startswith(out.loss.name, begin)
    return out


def _numbers(line: _Line, begin: int) -> None:
    """Take each number behind the prefixes with the name before it, as a counter, or as one without a name."""
    out, text, end, last = line.out, line.text, begin, NOWHERE
    for place, start in enumerate(line.starts):
        if start < begin or place <= last or not line.numbers[place] or line.is_none(place):
            continue
        if len(out.metrics) >= MAX_PAIRS:
            break
        total = line.total(place)
        slot = _slot(line, max(end, start - grammar.MAX_KEY), place, total)
        last = max(place, total)
        if slot:
            last = _add(line, slot) or last
        elif total >= 0:
            _count(line, place, total)
        elif line.numbers[place][-1].isalpha() and line.gaps[place].rstrip()[-1:] not in (":", ",", "["):
            continue  # a word of the name behind it, as in `number of nan iterations`
        else:
            line.bare.append(place)
        out.words += _words(text[end:start], slot.name if slot else "")
        end = line.past(last)
    out.words += _words(text[end:], "")


def _add(line: _Line, slot: Slot) -> int:
    """Add a named number to what the line holds; return the place of its value if a step stands before that."""
    after = 0
    if _has_step_first(line, slot):
        after = slot.place + 1
        line.out.step = slot._replace(name="iteration", role="step", unit="")
        slot = slot._replace(place=after, text=line.numbers[after], start=line.starts[after])
    end = line.end(slot.place)
    if slot.blank:
        line.blank.append(slot)
    elif slot.text.isdigit() and grammar.PASS.fullmatch(slot.name) and line.text[end : end + 1] != "%":
        line.counts.append(slot)
    else:
        line.take(slot)
    return after


def _rank_prefix(line: _Line) -> None:
    """Read the rank that a launcher puts before the line."""
    prefix = grammar.RANK_PREFIX.search(line.text[:200])
    if prefix:
        group = prefix.lastindex or 1
        start = prefix.start(group)
        place = line.starts.index(start) if start in line.starts else NOWHERE
        line.out.rank = Slot("rank", place, prefix[group], start, "rank")


def _has_step_first(line: _Line, slot: Slot) -> bool:
    """Return whether a step stands between a loss and its value, as in `Train loss 1200 0.453`."""
    after = slot.place + 1
    if slot.role not in ("loss", "eval_loss") or line.out.step or not "".join(line.numbers[after : after + 1]):
        return False
    return slot.text.isdigit() and line.gaps[after].strip(": ") == "" and not line.numbers[after].isdigit()


def _count(line: _Line, place: int, total: int) -> None:
    """Add a number without a name if it is a counter such as `12/391`."""
    out, done, of = line.out, line.numbers[place], line.numbers[total]
    if not done.isdigit() or max(len(done), len(of)) >= MAX_DIGITS or int(done) > int(of):
        return
    if out.position is None or (not out.known and len(line.counts) < MAX_COUNTS):
        line.counts.append(line.slot(place, "epoch", "epoch")._replace(of=total))
        out.position = place, total
        out.percent = _PERCENT.match(line.text, line.end(total)) is not None


def _settle_counts(line: _Line) -> None:
    """Take the first count of `[3/100][50/391]` and `Train: 3 [50/391]` as the epoch."""
    out = line.out
    if out.epoch or not out.position or not line.counts:
        return
    if len(line.counts) > 1:
        out.epoch = line.counts[0]._replace(name="epoch", role="epoch")


_BOXED = re.compile(r"\[\0\]\s")
# `Train 100: loss: 0.9` counts as `100: loss: 0.9` does.
_LEAD = re.compile(r"\s*(?:(?:train|test|val(?:id)?)[a-z]* )?[\[(#]?\s*", re.IGNORECASE)
_AFTER_LEAD = re.compile(r"[\]):,]?\s+|[\]):]")
_SIDES = {"learn": "train_loss", "train": "train_loss", "val": "val_loss", "valid": "val_loss", "test": "test_loss"}


def _lead(line: _Line, begin: int) -> None:
    """Take the whole number that a line begins with as its step, where nothing else says which step it is.

    `[12]	train-rmse:0.3`, `12:	learn: 0.6`, `250 train 3.1`, `1000: 0.25`.
    """
    out, blank = line.out, line.blank
    first = NOWHERE if out.is_located else _leading(line, begin)
    if first < 0 or not (out.metrics or blank or any(place > first for place in line.bare)):
        return
    line.bare = [place for place in line.bare if place != first]
    if out.rank and out.rank.place == first:
        out.rank = None
    # Behind the name of a part of the data it is a batch, which begins anew in each epoch.
    part = line.text[begin : line.starts[first]].strip().isalpha()
    out.step = line.slot(first, "batch" if part else "iteration", "step")
    for slots in (out.metrics, blank):
        for index, slot in enumerate(slots):
            if side := _SIDES.get(slot.name.lower()):
                slots[index] = slot._replace(name=side, role=role(side, line.names).role)
    out.known = out.known or any(slot.role for slot in out.metrics)


def _leading(line: _Line, begin: int) -> int:
    """Return the place of the whole number that a line begins with, before what may be its values; -1 for none."""
    rank, text = line.out.rank, line.text
    is_rank = rank is not None and rank.place == 0 and text[line.end(0) : line.end(0) + 1] == ":"
    first = 0
    if not is_rank and not _BOXED.match(line.shape):
        first = next((place for place, start in enumerate(line.starts) if start >= begin), NOWHERE)
        if line.bare[:1] != [first]:
            return NOWHERE
    if not line.numbers[first].isdigit() or len(line.numbers[first]) >= MAX_DIGITS:
        return NOWHERE
    return first if is_rank or _is_set_off(line, min(begin, line.starts[first]), first) else NOWHERE


def _is_set_off(line: _Line, begin: int, first: int) -> bool:
    """Return whether a sign sets a number at the beginning off, or a name follows it."""
    after = _AFTER_LEAD.match(line.text, line.end(first))
    if not after or not _LEAD.fullmatch(line.text[begin : line.starts[first]]):
        return False
    followers = (*line.out.metrics[:1], *line.blank[:1])
    named = any(slot.start - len(slot.name) <= after.end() + 1 for slot in followers)
    return named or after[0].strip() not in ("", ",")


_LIST = re.compile(r"[^\[\]]{0,120}\[\0((?:, \0){1,15})\]\s*$")
# A list in prose: `copying a param with shape [10, 64]`.
_IN_PROSE = re.compile(r"[a-z] $")


def _unnamed(line: _Line) -> None:
    """Name the numbers of a line that names none: a list of values at its end, or a step with one value."""
    if listed := _LIST.match(line.shape):
        count = listed[1].count(MASK) + 1
        places = range(len(line.starts) - count, len(line.starts))
        before = line.text[: line.starts[places[0]] - 1]
        if not _IN_PROSE.search(before) or before.lower().endswith(("loss ", "losses ")):
            line.name_places(places, [f"value_{number}" for number in range(1, count + 1)])
    elif line.out.step and len(line.bare) == 1 and not line.out.words and line.shape.rstrip()[-1:] != ",":
        line.name_places(line.bare, ["value"])


def _words(text: str, name: str) -> int:
    return max(0, len(_WORD.findall(text)) - len(_WORD.findall(name)))


def _slot(line: _Line, start: int, place: int, total: int) -> Slot | None:
    """Return the number at a place with its name; None if there is no name before it."""
    text, number, end = line.text, line.numbers[place], line.end(place)
    key = grammar.KEY.search(text, start, line.starts[place])
    if not key:
        return None
    name = _last_words(key["name"])
    kind, preference = role(name, line.names)
    # `loss [0.5]` is a number, `loss [1, 2]` or `loss [12/600]` none.
    alone = "[" in key["sep"] and text[end : end + 1] == "]" and grammar.FRACTION.search(number)
    signed = _is_signed(line, " " if alone else key["sep"], name, kind)
    if not name or name.endswith(grammar.SOURCES) or name in grammar.DEVICES:
        return None
    if not (signed or _is_word(line, key, name, place)):
        return None
    if kind in ("step", "epoch", "rank"):
        if number[-1].isalpha():
            return None
    elif grammar.DATE.match(text, end):
        return None
    unit = text[end : line.past(place)] if total < 0 else ""
    whole = of = NOWHERE
    if total >= 0 and len(line.numbers[total]) < MAX_DIGITS:
        if kind in ("step", "epoch"):
            of = total
        elif kind in ("", "eval_quality") and signed and grammar.QUALITY.search(name):
            whole = total
    if not kind and whole < 0 <= total:
        return None
    power = grammar.POWERS.get(unit, 0)
    return Slot(name, place, number, line.starts[place], kind, preference, power, whole, of, unit, blank=not signed)


def _last_words(text: str) -> str:
    """Return the name at the end of the text before a number."""
    name = _BLANKS.split(text)[-1].strip(".-/ ")
    return name if "(" in name else name.rstrip(")")


def _is_signed(line: _Line, separator: str, name: str, kind: str) -> bool:
    """Return whether a sign separates a name from its number, or a blank suffices.

    It does in `loss 3.2`, but not in `Loaded 12 files` or `number of nan iterations`.
    """
    if ":" in separator or "=" in separator:
        return True
    if "[" in separator and kind not in ("epoch", "step"):
        return False
    return bool(kind) or (line.kinds and (name.lower().endswith("loss") or ("_" in name and grammar.is_reward(name))))


def _is_word(line: _Line, key: re.Match[str], name: str, place: int) -> bool:
    """Return whether a blank may separate a name from its number, which has a fraction or is not finite."""
    text, number, end = line.text, line.numbers[place], line.end(place)
    named = "_" in name or grammar.FRACTION.search(number)  # an underscore stands in no sentence
    if key["sep"].strip() or not named or name.rsplit(maxsplit=1)[-1] in grammar.NO_NAMES:
        return False
    if number[-1].isalpha() and grammar.WORD.match(text, end + 1):
        return False
    begin = key.start() + key["name"].rfind(name)
    before = text[max(0, begin - MAX_BLANKS) : begin].rstrip(" ")
    return grammar.WORD.fullmatch(name) is not None or before[-1:] in ("|", ",", ";", "\t")


def _take_blank(line: _Line) -> None:
    """Add the names that a blank separates from their numbers, if the rest of the line says that it holds metrics."""
    out = line.out
    if not line.blank or not (out.is_located or out.known):
        return
    names = {slot.name for slot in out.metrics}
    more = [slot for slot in line.blank if slot.name not in names]
    out.metrics = sorted((*out.metrics, *more), key=lambda slot: slot.start)
    out.known = out.known or any(slot.role or grammar.may_train(slot.name, kinds=False) for slot in more)


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


_MLLOG = ":::MLLOG"
_MLLOG_CELL = re.compile(r'"(\w+)": "?\0')
_MLLOG_KEY = re.compile(r'"key": "(\w+)"')


def _mllog(line: _Line) -> None:
    """Read an event of MLPerf: its number is in `value` or beside it in `metadata`, the step in `metadata`."""
    out, shape = line.out, line.shape
    key = _MLLOG_KEY.search(shape)
    for cell in _MLLOG_CELL.finditer(shape):
        name = key[1] if key and cell[1] == "value" else cell[1]
        if name not in ("lineno", "epoch_num", "time_ms"):
            line.name_places([shape.count(MASK, 0, cell.end()) - 1], [name])
    # Events of the set-up name rates and sizes too, but no step.
    out.known = out.known and out.step is not None


def _mark_evaluated(line: _Line) -> None:
    """Rename the metrics after a word such as `eval`, as measured on held-out data."""
    out, text = line.out, line.text
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
            out.metrics[index] = slot.held_out(line.names)


def _name_apart(line: _Line) -> None:
    """Give a name that comes again on its line the name of its group: `loss[loss=7.5], tot_loss[loss=7.4]`."""
    met: set[str] = set()
    held = False
    for index, slot in enumerate(line.out.metrics):
        if slot.name in met:
            group = _group(line.text, slot.start)
            name = f"valid/{slot.name}" if held else f"{slot.name} ({index + 1})"
            line.out.metrics[index] = slot.named(f"{group}/{slot.name}" if group else name, line.names)
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


def _finish(line: _Line) -> None:
    """Settle what only the whole line shows: held-out data, bars, numbers that are no steps."""
    out, text = line.out, line.text
    if out.problem and not out.known:
        # Prose of two steps: `Tried to log to step 5 that is less than the current step 51`.
        out.step, out.problem = None, ""
    if out.metrics:
        _mark_evaluated(line)
    if not out.epoch and (glued := grammar.GLUED_EPOCH.search(text)) and glued.start(1) in line.starts:
        out.epoch = line.slot(line.starts.index(glued.start(1)), "epoch", "epoch")
    if (step := out.step) and not step.is_step(line.numbers):
        negative = step.text[0] == "-" and step.text[1:].isdecimal()
        if abs(step.value(line.numbers)) < MAX_STEP and not negative:  # measured: it has a unit, or a fraction
            out.metrics.append(step)
            out.step = None
    if out.position:
        bars = (("keras", grammar.KERAS_BAR), ("tqdm", grammar.TQDM_BAR))
        out.bar = next((name for name, pattern in bars if pattern.search(text)), "")
    if (odd := _ODD.search(text)) and role(odd[1], line.names).role:
        out.problem = f"holds no number for its {clean(odd[1], 40)}: {clean(odd[2], 40)!r}"
    _name_apart(line)
