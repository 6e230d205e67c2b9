"""One line of a text log as pairs of name and number, whatever framework wrote it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.text import clean, plain
from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import role
from stabtree.metrics.metric import Role
from stabtree.metrics.table import normalize, with_role

if TYPE_CHECKING:
    from stabtree.metrics.names import Names


MAX_STEP = 2.0**53


class Pair(Struct, frozen=True):
    """A name and its number.

    Attributes:
        name: as the line spells it, with `valid/` in front where the line marks it as evaluated.
        text: the number as written.
        start: where the number begins in the line, for learning the line's form; -1 if unknown.
        role: what the name means, as `grammar.role` has it.
        preference: the index among the names of the role, 0 best.
        power: the power of ten that a suffix multiplies the number by: 3 for `1K`.
        total: what the number is a part of: 10000 for an accuracy of `9800/10000`; 0 for any other.
        of: how far a counter goes: 600 for the step of `399/600`; 0 where that is not said.
        unit: what directly follows the number.
        blank: whether a blank alone separates the name from the number.
    """

    name: str
    text: str
    start: int = -1
    role: str = ""
    preference: int = 0
    power: int = 0
    total: int = 0
    unit: str = ""
    blank: bool = False
    of: int = 0

    @property
    def value(self) -> float:
        """The number as a float."""
        return to_float(self.text, self.power) / (self.total or 1)

    @property
    def rounded_to(self) -> float:
        """What a number with a suffix was rounded to: 1000 for `2K`, 100 for `2.1K`; 0 for any other."""
        if not self.power:
            return 0.0
        return 10.0 ** (self.power - len(self.text.partition(".")[2]))


class Line(Struct):
    """What one line holds.

    Attributes:
        metrics: pairs that are neither step nor epoch nor rank, known and unknown ones.
        known: whether one of them is a known metric; a label, as the number of a batch, is none.
        step: the pair that names the step best.
        epoch: the pair that names the epoch.
        rank: the pair, or prefix, that names the rank.
        position: (done, total) of a progress bar or of `[12/391]`; of several the last one before the metrics.
        bar: `keras`, `tqdm` or empty.
        percent: whether the position is given in percent as well.
        held: whether it is marked as measured on held-out data.
        words: the number of words that belong to no pair.
        problem: why a line that looks like metrics can't be read.
    """

    metrics: list[Pair] = field(default_factory=list)
    known: bool = False
    step: Pair | None = None
    epoch: Pair | None = None
    rank: Pair | None = None
    position: tuple[int, int] | None = None
    bar: str = ""
    percent: bool = False
    held: bool = False
    words: int = 0
    problem: str = ""

    @property
    def loss(self) -> Pair | None:
        """The pair that holds the training loss."""
        return next((pair for pair in self.metrics if pair.role == "loss"), None)

    @property
    def is_located(self) -> bool:
        """Whether it says where the run is."""
        return bool(self.step or self.epoch or self.position)

    @property
    def location(self) -> tuple[float | None, float | None, float | None]:
        """Rank, step and epoch as numbers, None for each that the line does not name."""
        return (
            _value(self.rank),
            _value(self.step),
            _value(self.epoch),
        )


def _value(pair: Pair | None) -> float | None:
    if pair:
        return pair.value
    return None


def to_float(text: str, power: int = 0) -> float:
    """Return the number of a pair, times a power of ten.

    >>> to_float("1,234.5"), to_float("2e+3"), to_float("1.1", 3)
    (1234.5, 2000.0, 1100.0)
    """
    if power and text[-1:].isdigit() and "e" not in text.lower():
        return float(f"{text.replace(',', '')}e{power}")
    return float(text.replace(",", ""))


MAX_GROUP = 40


def mark_evaluated(line: str, out: Line, names: Names) -> None:
    """Rename the metrics after a word such as `eval`, as measured on held-out data."""
    begins = [pair.start - len(pair.name) for pair in out.metrics]
    tags = _tags(line, max(begins))
    out.held = any(held for _, held in tags)
    if not out.held:
        return
    for index, (pair, begin) in enumerate(zip(out.metrics, begins, strict=True)):
        before = [held for start, held in tags if start < begin]
        if before and before[-1] and pair.role not in ("eval_loss", "lr"):
            out.metrics[index] = held_out(pair, names)


def _tags(line: str, end: int) -> list[tuple[int, bool]]:
    """Return where the words are that say what follows them was measured on, and whether it was held-out data."""
    # What is printed behind a bar does not belong to the name of the bar.
    bars = [bar.end() for bar in grammar.BAR_END.finditer(line) if bar.end() <= end]
    scope = max(0, max(bars, default=0) - 1)
    return [(tag.start(), tag["held"] is not None) for tag in grammar.EVALUATED.finditer(line, scope)]


def held_out(pair: Pair, names: Names) -> Pair:
    """Return a pair by the name of the same metric on held-out data."""
    if not pair.role and grammar.HELD_OUT.search(pair.name):
        return pair
    name = f"valid/{pair.name}"
    if pair.role and not role(name, names).role:
        name = f"valid/{pair.role}"
    return _renamed(pair, name, names)


def _renamed(pair: Pair, name: str, names: Names) -> Pair:
    kind, preference = role(name, names)
    return replace(pair, name=name, role=kind, preference=preference)


def name_apart(line: str, out: Line, names: Names) -> None:
    """Give a name that comes again on its line the name of its group: `loss[loss=7.5], tot_loss[loss=7.4]`."""
    met: set[str] = set()
    held = False
    for index, pair in enumerate(out.metrics):
        name = pair.name
        if name in met:
            name = _apart(line, pair, index, held)
            out.metrics[index] = _renamed(pair, name, names)
        else:
            held = grammar.HELD_OUT.search(name) is not None
        met.add(name)


def _apart(line: str, pair: Pair, index: int, held: bool) -> str:
    """Return another name for the pair at `index`; `held` says whether those before it are of held-out data."""
    group = _group(line, pair.start)
    if group:
        return f"{group}/{pair.name}"
    if held:
        return f"valid/{pair.name}"
    return f"{pair.name} ({index + 1})"


def _group(line: str, start: int) -> str:
    """Return the word before the bracket that is open at `start`; nothing where none is."""
    low = max(0, start - grammar.MAX_KEY)
    bracket = max(line.rfind(sign, low, start) for sign in "[({")
    if bracket < max(line.rfind(sign, low, start) for sign in "])}"):
        return ""
    found = grammar.GROUP.search(line, max(low, bracket - MAX_GROUP), bracket)
    return found[0] if found else ""


_AROUND = " '\"[(tensor"  # what may separate a name from its number


def finish(line: str, out: Line, names: Names, *, kinds: bool) -> None:
    """Settle what only the whole line shows: held-out data, bars, numbers that are no steps."""
    first = kinds and grammar.ITERATION.match(line)
    if first and not (out.step or out.epoch):
        out.step = Pair("iteration", first[1], first.start(1), "step")
    elif out.problem and not out.known:
        # Prose of two steps: `Tried to log to step 5 that is less than the current step 51`.
        out.step, out.problem = None, ""
    if out.metrics:
        mark_evaluated(line, out, names)
    if not out.epoch:
        out.epoch = _glued_epoch(line)
    if out.step:
        _check_step(line, out, out.step)
    if out.position:
        bars = (("keras", grammar.KERAS_BAR), ("tqdm", grammar.TQDM_BAR))
        out.bar = next((name for name, pattern in bars if pattern.search(line)), "")
    if not out.problem and _lacks_loss(line, out, kinds=kinds):
        out.problem = "has no number behind its loss"
    name_apart(line, out, names)


def _glued_epoch(line: str) -> Pair | None:
    """Return the epoch of a line such as `12epoch`."""
    found = grammar.GLUED_EPOCH.search(line)
    return found and Pair("epoch", found[1], role="epoch")


def _check_step(line: str, out: Line, step: Pair) -> None:
    """Report a step that is impossible; make a metric of a number that is none: not whole, or with a unit."""
    if not abs(step.value) < MAX_STEP:
        out.problem = out.problem or "names a step that is impossible"
    elif step.text[0] == "-" and step.text[1:].isdecimal():
        out.problem = out.problem or f"names a step that is impossible: {step.text[:20]}"
    elif step.value < 0 or not step.value.is_integer() or _has_unit(line, step):
        out.metrics.append(step)
        out.step = None


def _has_unit(line: str, step: Pair) -> bool:
    """Return whether a unit or a percent sign follows a number; `10k` and `3rd` are counts all the same."""
    after = line[step.start + len(step.text) : step.start + len(step.text) + 1]
    counted = step.power or step.unit in grammar.ORDINALS
    return after == "%" or (after.isalpha() and not counted)


def _is_loss(pair: Pair, *, kinds: bool) -> bool:
    return pair.role in ("loss", "eval_loss") or (kinds and "loss" in pair.name.lower())


def _lacks_loss(line: str, out: Line, *, kinds: bool) -> bool:
    """Return whether the line names a loss without a number; `Policy Loss: 0.1` has one."""
    if not out.step and "'" not in line:
        return False
    if any(_is_loss(pair, kinds=kinds) for pair in out.metrics):
        return False
    starts = [pair.start for pair in out.metrics]
    for loss in grammar.LOSS_WITHOUT_NUMBER.finditer(line):
        end = loss.end()
        if not any(end <= start and not line[end:start].strip(_AROUND) for start in starts):
            return True
    return False


_WORD = re.compile(r"[^\W\d]{2,}")
# What separates a name from the text before it: blanks, a dash, seconds that end a sentence.
_BLANKS = re.compile(r"\s\s+|\s-+\s|\bs\.\s")
# A line with so many numbers is a table of something, not a step.
MAX_PAIRS = 2000
# So many blanks at most stand between a column and the bar before it.
MAX_BLANKS = 20
# No count of steps is longer.
MAX_DIGITS = 16
# A line has at most so many counters `12/391`; one with more is a table of ratios.
MAX_COUNTS = 4


def parse(line: str, names: Names, *, kinds: bool = False) -> Line:
    """Read one line, free of escape codes.

    Args:
        line: the line.
        names: what the names of columns mean.
        kinds: whether to accept losses named only by their kind (`xent`), and rewards of any name.
    """
    found = grammar.MLLOG.search(line)
    if found:
        return _mllog(found[1], names)
    out = Line()
    prefix = grammar.RANK_PREFIX.search(line[:200])
    if prefix:
        group = prefix.lastindex or 1
        out.rank = Pair("rank", prefix[group], prefix.start(group), "rank")
    counts: list[Pair] = []
    blank: list[Pair] = []
    end = grammar.past_prefix(line)
    for number in grammar.NUMBER.finditer(line, end):
        if len(out.metrics) >= MAX_PAIRS:
            break
        pair = _pair(line, max(end, number.start() - grammar.MAX_KEY), number, names, kinds=kinds)
        name = ""
        if pair and (pair.role or pair.total or not number["total"]):
            name = pair.name
            if pair.blank:
                blank.append(pair)
            elif _is_pass(pair, line, number.end()):
                counts.append(pair)
            else:
                _take(pair, out, kinds=kinds)
        elif number["value"][-1].isalpha():  # nan or inf, without a name
            continue
        else:
            _count(number, counts, out)
        out.words += _words(line[end : number.start()], name)
        end = _past(line, number.end())
    out.words += _words(line[end:], "")
    _settle_counts(counts, out)
    _take_blank(blank, out)
    finish(line, out, names, kinds=kinds)
    return out


def _is_pass(pair: Pair, line: str, end: int) -> bool:
    """Return whether a pair that ends at `end` numbers an epoch or a pass, as `Train: 3`."""
    return pair.text.isdigit() and grammar.PASS.fullmatch(pair.name) is not None and line[end : end + 1] != "%"


def _count(number: re.Match[str], counts: list[Pair], out: Line) -> None:
    """Add a number without a name if it is a counter such as `12/391`."""
    done, total = number["value"], number["total"]
    if not total or not done.isdigit() or max(len(done), len(total)) >= MAX_DIGITS or int(done) > int(total):
        return
    if out.position is None or (not out.known and len(counts) < MAX_COUNTS):
        counts.append(Pair("epoch", done, number.start("value"), "epoch", of=int(total)))
        out.position = int(done), int(total)
        out.percent = grammar.PERCENT.match(number.string, number.end()) is not None


def _settle_counts(counts: list[Pair], out: Line) -> None:
    """Take the first count of `[3/100][50/391]`, `[3/100] batch 50` and `Train: 3 [50/391]` as the epoch."""
    if out.epoch or not out.position or not counts:
        return
    first = counts[0]
    batch = out.step is not None and first.start < out.step.start and normalize(out.step.name) in grammar.WITHIN_EPOCH
    if batch or len(counts) > 1:
        out.epoch = Pair("epoch", first.text, first.start, "epoch", of=first.of)
    if batch:
        out.position = None


def _past(line: str, end: int) -> int:
    """Return where the text after a number and its unit begins."""
    unit = grammar.UNIT.match(line, end)
    if unit:
        return unit.end()
    return end


def _words(text: str, name: str) -> int:
    return max(0, len(_WORD.findall(text)) - len(_WORD.findall(name)))


def _pair(line: str, start: int, number: re.Match[str], names: Names, *, kinds: bool) -> Pair | None:
    """Return the pair that ends with a number; None if there is no name before it."""
    key = grammar.KEY.search(line, start, number.start())
    if not key:
        return None
    name = _last_words(key["name"])
    kind, preference = role(name, names)
    separator, text = key["sep"], number["value"]
    signed = ":" in separator or "=" in separator or _needs_no_sign(separator, name, kind, kinds=kinds)
    if not name or name.endswith(grammar.SOURCES) or not (signed or _is_word(key, name, number)):
        return None
    if kind in ("step", "epoch", "rank"):
        if text[-1].isalpha():
            return None
    elif grammar.DATE.match(line, number.end("value")):
        return None
    unit = line[number.end() : _past(line, number.end())]
    of, total = _whole(kind, name, number, signed=signed)
    power = grammar.POWERS.get(unit, 0)
    return Pair(name, text, number.start("value"), kind, preference, power, total, unit, blank=not signed, of=of)


def _last_words(text: str) -> str:
    """Return the name at the end of the text before a number."""
    name = _BLANKS.split(text)[-1].strip(".-/ ")
    return name if "(" in name else name.rstrip(")")


def _whole(kind: str, name: str, number: re.Match[str], *, signed: bool) -> tuple[int, int]:
    """Return the planned count behind a step or an epoch, and the whole that a score is a share of; 0 for neither."""
    if not number["total"] or len(number["total"]) >= MAX_DIGITS:
        return 0, 0
    if kind in ("step", "epoch"):
        return int(number["total"]), 0
    if kind in ("", "eval_quality") and signed and grammar.QUALITY.search(name):
        return 0, int(number["total"])
    return 0, 0


def _is_word(key: re.Match[str], name: str, number: re.Match[str]) -> bool:
    """Return whether a blank may separate a name from its number, which has a fraction or is not finite."""
    line, end = number.string, number.end()
    if (
        key["sep"].strip()
        or not grammar.FRACTION.search(number["value"])
        or name.rsplit(maxsplit=1)[-1] in grammar.NO_NAMES
    ):
        return False
    if number["value"][-1].isalpha() and grammar.WORD.match(line, end + 1):
        return False
    begin = key.start() + key["name"].rfind(name)
    before = line[max(0, begin - MAX_BLANKS) : begin].rstrip(" ")
    return grammar.WORD.fullmatch(name) is not None or before[-1:] in ("|", ",", ";", "\t")


def _take_blank(blank: list[Pair], out: Line) -> None:
    """Add the names that a blank separates from their numbers, if the rest of the line says that it holds metrics."""
    if not blank or not (out.is_located or out.known):
        return
    names = {pair.name for pair in out.metrics}
    more = [pair for pair in blank if pair.name not in names]
    out.metrics = sorted((*out.metrics, *more), key=lambda pair: pair.start)
    out.known = out.known or any(grammar.may_train(pair.name, kinds=False) for pair in more)


def _needs_no_sign(separator: str, name: str, kind: str, *, kinds: bool) -> bool:
    """Return whether a blank suffices: in `loss 3.2`, but not in `Loaded 12 files` or `number of nan iterations`."""
    if "[" in separator and kind not in ("epoch", "step"):
        return False
    return bool(kind) or (kinds and (name.lower().endswith("loss") or ("_" in name and grammar.is_reward(name))))


def _take(pair: Pair, out: Line, *, kinds: bool = False) -> None:
    """Add a pair to the line by its role."""
    if pair.role and not plain(pair.text):
        out.problem = f"holds no number for its {clean(pair.name, 40)}: {clean(pair.text, 40)!r}"
    elif pair.role == "step":
        _take_step(pair, out)
    elif pair.role == "epoch":
        _take_epoch(pair, out)
    elif pair.role == "rank":
        out.rank = pair
    else:
        out.metrics.append(pair)
        known = bool(pair.role) and pair.role not in with_role(Role.LABEL)
        out.known = out.known or known or grammar.may_train(pair.name, kinds=kinds)


def _take_epoch(pair: Pair, out: Line) -> None:
    before = out.epoch
    if not before:
        out.epoch = pair
    elif pair.name == "epch":
        # lerobot counts episodes as well: `ep:40 epch:0.50`.
        out.epoch = pair
        out.metrics.append(replace(before, role=""))


def _take_step(pair: Pair, out: Line) -> None:
    before = out.step
    if not before:
        out.step = pair
    elif _is_episode(before) != _is_episode(pair):
        _take_episode(pair, before, out)
    elif pair.preference < before.preference:
        out.step = pair
    elif pair.text != before.text and pair.preference == before.preference:
        out.problem = "names several steps"


def _take_episode(pair: Pair, before: Pair, out: Line) -> None:
    """Keep both of an episode and a step as numbers: `Episode 12 | Steps: 143` gives the length of one."""
    episode, step = (pair, before) if _is_episode(pair) else (before, pair)
    counts, other = (episode, step) if normalize(step.name) in ("steps", "num_steps") else (step, episode)
    out.step = counts
    out.metrics.append(Pair(other.name, other.text, other.start))


def _is_episode(pair: Pair) -> bool:
    return normalize(pair.name) in ("episode", "episodes")


def _mllog(text: str, names: Names) -> Line:
    """Read an event of MLPerf: its number is in `value` or beside it in `metadata`, the step in `metadata`."""
    out = Line()
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        if "loss" in text:
            out.problem = "is an MLLOG event cut short"
        return out
    if not isinstance(event, dict):
        return out
    meta, value = event.get("metadata"), event.get("value")
    cells = value if isinstance(value, dict) else {str(event.get("key")): value}
    if isinstance(meta, dict):
        cells = cells | meta
    for name, cell in cells.items():
        if type(cell) in (int, float) and name not in ("lineno", "epoch_num"):
            _take(Pair(name, str(cell), -1, *role(name, names)), out)
    # Events of the set-up name rates and sizes too, but no step.
    out.known = out.known and out.step is not None
    return out
