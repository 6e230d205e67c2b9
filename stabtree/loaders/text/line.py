"""One line of a text log as pairs of name and number, whatever framework wrote it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stabtree.common.text import clean, plain
from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import role
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from stabtree.metrics.names import Names


@dataclass(frozen=True, slots=True)
class Pair:
    """A name and its number.

    Attributes:
        name: as the line spells it, `valid/` before it where the line marks it as evaluated.
        text: the number as written.
        start: where the number begins in the line, for learning the line's form.
        role: what the name stands for, as `grammar.role` has it.
        place: among the names of the role, 0 best.
    """

    name: str
    text: str
    start: int = -1
    role: str = ""
    place: int = 0


@dataclass(slots=True)
class Line:
    """What one line holds.

    Attributes:
        metrics: pairs that are neither step nor epoch nor rank, known and unknown ones.
        known: whether one of them is a known metric.
        step: the pair that names the step best.
        epoch: the pair that names the epoch.
        rank: the pair, or prefix, that names the rank.
        position: (done, total) of a progress bar or of `[12/391]`; of several the last one before the metrics.
        bar: `keras`, `tqdm` or nothing.
        percent: whether the position is told in percent as well.
        held: whether it is marked as measured on held-out data.
        words: words of the line that belong to no pair.
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


_WORD = re.compile(r"[^\W\d]{2,}")
# What parts a name from what stands before it: blanks, a dash, seconds that end a sentence.
_BLANKS = re.compile(r"\s\s+|\s-+\s|\bs\.\s")
_AROUND = " '\"[(tensor"  # what may stand between a name and its number
# A line that names so many different numbers is a table of something, not a step.
MAX_PAIRS = 2000
# No count of steps is longer.
MAX_DIGITS = 16
# A line says of so few things how far they have come; a table of ratios says it of more.
MAX_COUNTS = 4
MAX_STEP = 2.0**53


def to_float(text: str) -> float:
    """The number that a pair holds.

    >>> to_float("1,234.5"), to_float("2e+3")
    (1234.5, 2000.0)
    """
    return float(text.replace(",", ""))


def parse(line: str, names: Names, *, kinds: bool = False) -> Line:
    """Read one line, free of escape codes; `kinds` takes losses that go by their kind, and rewards by any name."""
    found = grammar.MLLOG.search(line)
    if found:
        return _mllog(found[1], names)
    # Braces and quotes are how a dict is written; a blank in their place keeps the names apart.
    start = grammar.past_prefix(line)
    out = Line()
    counts: list[Pair] = []
    prefix = grammar.RANK_PREFIX.search(line[:200])
    if prefix:
        place = next(i for i in range(1, 6) if prefix[i] is not None)
        out.rank = Pair("rank", prefix[place], prefix.start(place), "rank")
    end = start
    for number in grammar.NUMBER.finditer(line, start):
        if len(out.metrics) >= MAX_PAIRS:
            break
        pair = _pair(line, max(end, number.start() - grammar.MAX_KEY), number, names, kinds=kinds)
        if pair and not (number["total"] and not pair.role):
            out.words += _words(line[end : number.start()], pair.name)
            end = _past(line, number.end())
            if (
                grammar.PASS.fullmatch(pair.name)
                and pair.text.isdigit()
                and line[number.end() : number.end() + 1] != "%"
            ):
                counts.append(pair)
            else:
                _take(pair, out, kinds=kinds)
        elif _is_digit(number["value"]):
            _count(number, counts, out)
            out.words += _words(line[end : number.start()], "")
            end = _past(line, number.end())
    out.words += _words(line[end:], "")
    _place(counts, out)
    _finish(line, out, names, kinds=kinds)
    return out


def _count(number: re.Match[str], counts: list[Pair], out: Line) -> None:
    """Take a number without a name: how far something has come, if it says of how many."""
    done, total = number["value"], number["total"]
    if not total or not done.isdigit() or max(len(done), len(total)) >= MAX_DIGITS or int(done) > int(total):
        return
    if out.position is None or (not out.known and len(counts) < MAX_COUNTS):
        counts.append(Pair("epoch", done, number.start("value"), "epoch"))
        out.position = int(done), int(total)
        out.percent = grammar.PERCENT.match(number.string, number.end()) is not None


def _place(counts: list[Pair], out: Line) -> None:
    """Of `[3/100][50/391]`, `[3/100] batch 50` and `Train: 3 [50/391]` the first count is the epoch."""
    if out.epoch or not out.position or not counts:
        return
    first = counts[0]
    batch = out.step is not None and first.start < out.step.start and normalize(out.step.name) in grammar.WITHIN_EPOCH
    if batch or len(counts) > 1:
        out.epoch = Pair("epoch", first.text, first.start, "epoch")
    if batch:
        out.position = None


def _past(line: str, end: int) -> int:
    """Where the text behind a number and its unit begins."""
    unit = grammar.UNIT.match(line, end)
    return unit.end() if unit else end


def _is_digit(text: str) -> bool:
    return text.replace(",", "").isdigit() or not text[-1].isalpha()


def _words(text: str, name: str) -> int:
    return max(0, len(_WORD.findall(text)) - len(_WORD.findall(name)))


def _pair(line: str, start: int, number: re.Match[str], names: Names, *, kinds: bool) -> Pair | None:
    """The pair that ends with a number; nothing where no name stands before it."""
    key = grammar.KEY.search(line, start, number.start()) if start < number.start() else None
    if not key:
        return None
    name = key["name"]
    parts = _BLANKS.split(name)
    name = parts[-1].strip(".-/ ")
    name = name if "(" in name else name.rstrip(")")
    kind, rank = role(name, names)
    if ":" not in key["sep"] and "=" not in key["sep"]:
        # `loss 3.2` is a pair, `Loaded 12 files` and `number of nan iterations` are not.
        bracket = "[" in key["sep"] and kind not in ("epoch", "step")
        likely = kinds and (name.lower().endswith("loss") or ("_" in name and grammar.is_reward(name)))
        if bracket or not (kind or likely):
            return None
    if kind in ("step", "epoch", "rank") and number["value"][-1:].isalpha():
        return None
    return Pair(name, number["value"], number.start("value"), kind, rank) if name else None


def _take(pair: Pair, out: Line, *, kinds: bool = False) -> None:
    if pair.role and not plain(pair.text):
        out.problem = f"holds no number for its {clean(pair.name, 40)}: {clean(pair.text, 40)!r}"
    elif pair.role == "step" and out.step and _is_length(pair.name, out.step.name):
        out.metrics.append(Pair(pair.name, pair.text, pair.start))
    elif pair.role == "step":
        if not out.step or pair.place < out.step.place:
            out.step = pair
        elif pair.text != out.step.text and out.step.place == pair.place:
            out.problem = "names several steps"
    elif pair.role == "epoch":
        out.epoch = out.epoch or pair
    elif pair.role == "rank":
        out.rank = pair
    else:
        out.metrics.append(pair)
        likely = grammar.is_loss(pair.name, kinds=kinds) or (kinds and grammar.is_reward(pair.name))
        out.known = out.known or bool(pair.role) or likely


def _is_length(name: str, counted: str) -> bool:
    """Whether steps beside a count of episodes are the length of one: `Episode 12 | Steps: 143`."""
    return normalize(counted) in ("episode", "episodes") and normalize(name) in ("steps", "num_steps")


def _finish(line: str, out: Line, names: Names, *, kinds: bool) -> None:
    """Settle what only the whole line tells: held-out data, bars, steps that are none."""
    if kinds and not (out.step or out.epoch) and (first := grammar.ITERATION.match(line)):
        out.step = Pair("iteration", first[1], first.start(1), "step")
    elif out.problem and not out.known:
        # Prose of two steps: `Tried to log to step 5 that is less than the current step 51`.
        out.step, out.problem = None, ""
    if out.known:
        _mark_evaluated(line, out, names)
    if not out.epoch and (glued := grammar.GLUED_EPOCH.search(line)):
        out.epoch = Pair("epoch", glued[1], role="epoch")
    if out.step and not abs(to_float(out.step.text)) < MAX_STEP:
        out.problem = out.problem or "names a step that is impossible"
    elif out.step and out.step.text[0] == "-" and out.step.text[1:].isdecimal():
        out.problem = out.problem or f"names a step that is impossible: {out.step.text[:20]}"
    elif out.step and not _is_step(line, out.step):
        out.metrics.append(out.step)
        out.step = None
    if out.position:
        out.bar = "keras" if grammar.KERAS_BAR.search(line) else "tqdm" if grammar.TQDM_BAR.search(line) else ""
    if (
        not out.problem
        and (out.step or "'" in line)
        and not any(
            pair.role in ("loss", "eval_loss") or (kinds and "loss" in pair.name.lower()) for pair in out.metrics
        )
        and _lacks_loss(line, out)
    ):
        out.problem = "has no number behind its loss"


def _lacks_loss(line: str, out: Line) -> bool:
    """Whether the line names a loss and no number stands behind it; `Policy Loss: 0.1` has one."""
    starts = [pair.start for pair in out.metrics]
    return any(
        not any(loss.end() <= start and not line[loss.end() : start].strip(_AROUND) for start in starts)
        for loss in grammar.LOSS_WITHOUT_NUMBER.finditer(line)
    )


def _is_step(line: str, pair: Pair) -> bool:
    """Whether a number can be a step: whole, with no unit glued to it."""
    value = to_float(pair.text)
    after = line[pair.start + len(pair.text) : pair.start + len(pair.text) + 1]
    return value.is_integer() and 0 <= value < MAX_STEP and not (after.isalpha() or after == "%")


def _mark_evaluated(line: str, out: Line, names: Names) -> None:
    tags = [(tag.start(), tag["held"] is not None) for tag in grammar.EVALUATED.finditer(line)]
    if not any(held for _, held in tags):
        return
    marked = []
    for pair in out.metrics:
        before = [held for start, held in tags if start < pair.start - len(pair.name)]
        held = bool(before) and before[-1] and pair.role not in ("", "eval_loss", "lr")
        marked.append(_held_out(pair, names) if held else pair)
    out.metrics, out.held = marked, True


def _held_out(pair: Pair, names: Names) -> Pair:
    named = _named(f"valid/{pair.name}", pair.text, names)
    return named if named.role else _named(f"valid/{pair.role}", pair.text, names)


def _named(name: str, text: str, names: Names) -> Pair:
    return Pair(name, text, -1, *role(name, names))


def _mllog(text: str, names: Names) -> Line:
    """An event of MLPerf: its number in `value` or beside it in `metadata`, the step in `metadata`."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return Line(problem="is an MLLOG event cut short" if "loss" in text else "")
    out = Line()
    if not isinstance(event, dict):
        return out
    meta, value = event.get("metadata"), event.get("value")
    meta = meta if isinstance(meta, dict) else {}
    cells = {**(value if isinstance(value, dict) else {str(event.get("key")): value}), **meta}
    for name, cell in cells.items():
        if isinstance(cell, int | float) and not isinstance(cell, bool) and name not in ("lineno", "epoch_num"):
            _take(_named(str(name), repr(float(cell)) if isinstance(cell, float) else str(cell), names), out)
    # Events of the set-up name rates and sizes too, but no step.
    out.known = out.known and out.step is not None
    return out
