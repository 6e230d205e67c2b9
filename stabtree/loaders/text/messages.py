"""Lines of a text log beside its metrics: errors, saved checkpoints, printed settings, and what was not read."""

from __future__ import annotations

import re
from collections import Counter, deque
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from stabtree.common import endings
from stabtree.common.files import UnreadKind
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.frameworks.load import OTHER, all_trainers, frameworks
from stabtree.loaders.config import KEYS, read_config, text_of
from stabtree.loaders.table import Save
from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import past_prefix
from stabtree.metrics.table import normalize
from stabtree.run import REDUCED, LogLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.common.lazy import Ints
    from stabtree.loaders.text.shape import Template
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar


_DIGITS = re.compile(r"[\d.]+")
KEEP_FIRST = 200
KEEP_LAST = 300
# Ranks repeat each other and so do warnings: of lines that differ only in digits the first ones are kept.
SAME = 5
MAX_FORMS = 2000
MAX_TEXT = 300
MAX_FORM = 400
MAX_BLANKS = 2  # of the name of a value, as `Mean Squared Error`; a longer one is a sentence

# A line of a traceback that quotes the source is indented further than the exception; a group of exceptions has bars.
SOURCE = re.compile(r"(?:\[?rank ?\d+\]?:)?[ \t]{2,}(?![|+ \t])", re.IGNORECASE)


@cache
def error_words() -> re.Pattern[str]:
    """Return what finds the words of lines that may be about an error in a text in lower case, which is fast."""
    errors = [one.log.errors for one in frameworks().values() if one.log.errors]
    return re.compile("|".join((endings.table().words, *errors)))


def may_report_error(text: str) -> bool:
    """Return whether the beginning of a line holds a word of those about errors."""
    return error_words().search(text[:MAX_FORM].lower()) is not None


def is_spoken(line: Template) -> bool:
    """Return whether the values of a line stand in a sentence."""
    return line.words > 1 or any(slot.name.count(" ") > MAX_BLANKS for slot in line.metrics)


class ErrorLines(Struct):
    """Collects the lines of a log about errors: the first and the last of them."""

    dropped: int = 0  # how many were not kept
    _first: list[tuple[int, str, int]] = field(default_factory=list)
    _last: deque[tuple[int, str, int]] = field(default_factory=lambda: deque(maxlen=KEEP_LAST))
    _forms: Counter[str] = field(default_factory=Counter)

    def add(self, number: int, text: str, rows: int) -> None:
        """Keep a line, with the number of rows of metrics before it, unless there are many like it."""
        form = _DIGITS.sub("", text[:MAX_FORM])
        if form in self._forms or len(self._forms) < MAX_FORMS:
            self._forms[form] += 1
        if self._forms[form] > SAME:
            self.dropped += 1
        elif len(self._first) < KEEP_FIRST:
            self._first.append((number, text[: 4 * MAX_TEXT], rows))
        else:
            self.dropped += len(self._last) == KEEP_LAST
            self._last.append((number, text[: 4 * MAX_TEXT], rows))

    def between(self, begin: int, end: int, last: int | None = None) -> tuple[LogLine, ...]:
        """Return the lines after the first `begin` rows, up to row `end`; for `begin` 0 those before all rows too.

        Args:
            begin: the first row of a run.
            end: the row after it.
            last: the row after its last one that counts; None for `end`.
        """
        over = end if last is None else last
        return tuple(
            LogLine(number, clean(text, MAX_TEXT), rows >= over, SOURCE.match(text) is not None)
            for number, text, rows in (*self._first, *self._last)
            if begin < rows <= end or rows == begin == 0
        )


def ended_in_error(lines: Iterable[LogLine]) -> bool:
    """Return whether lines after the last row report that the program failed or was ended."""
    found = [endings.ending_of(line.text, last=True) for line in lines if line.at_end]
    return any(ending not in ("", endings.FINISHED, endings.UNCLEAR) for ending in found)


SHOWN = 20
MAX_EXAMPLE = 160

# What a line may count without saying anything of how the training goes.
HARMLESS = re.compile(
    r"time|(?<![a-z])(?:eta|elapsed|took|taken|dur(?:ation)?|secs?|seconds?|minutes?|min|ms|hours?|days?|left|remaining)"
    r"(?![a-z])|speed|throughput|it/s|s/it|(?:per|/)_?sec|/s\b|(?<![a-z])(?:mem(?:ory)?|gpus?|cpus?|cuda|vram|ram|[gmk]i?b"
    r"|tflops|mfu|fps|pid|port|version|v_num|seed)(?![a-z])|allocated|reserved|date(?!d)",
    re.IGNORECASE,
)
# A frame of a traceback; the next line quotes its source.
FRAME = re.compile(r"\s*File \"[^\"]{1,500}\", line \d+")
UNITS = re.compile(r"m?s|secs?|seconds?|minutes?|min|h(?:ours?)?|[gmk]i?b|it/s|s/it|/s(?:ec)?", re.IGNORECASE)


class Unread(Struct):
    """Collects the kinds of lines that hold numbers and were not read: those of one shape are one kind."""

    frame: int = -1  # the last line that was a frame of a traceback
    _kinds: list[UnreadKind] = field(default_factory=list)

    def is_quoted(self, text: str, number: int) -> bool:
        """Return whether a line is a frame of a traceback, or the source quoted below it."""
        if "File" in text and FRAME.match(text, past_prefix(text)):
            self.frame = number
        return number in (self.frame, self.frame + 1)

    def add(self, count: int, line: int, text: str, *, code: bool = False) -> None:
        """Add so many lines like the one of a number; `code` says whether they are source code."""
        text = text[:MAX_FORM]
        if grammar.NUMBER.search(text, past_prefix(text)):
            harmless = code or bool(HARMLESS.search(text, past_prefix(text)))
            self._kinds.append(UnreadKind(count, line, clean(text.strip(), MAX_EXAMPLE), harmless))

    def kinds(self) -> tuple[UnreadKind, ...]:
        """Return the kinds that may matter, then the harmless ones.

        The most frequent ones stand first, and the last of each counts all that are not listed.
        """
        kinds: list[UnreadKind] = []
        for harmless in (False, True):
            alike = [kind for kind in self._kinds if kind.harmless == harmless]
            alike.sort(key=lambda kind: (-kind.count, kind.line))
            rest = sum(kind.count for kind in alike[SHOWN:])
            kinds += alike[:SHOWN] + [UnreadKind(rest, 0, "", harmless=harmless)] * (rest > 0)
        return tuple(kinds)


_WHAT = r"(?:checkpoints?|ckpt|models?|weights|(?:training|train) state)\b"
_SAVED = re.compile(
    rf"\bsav(?:ing|ed)\b[^,;.=]{{0,40}}?\b{_WHAT}(?!/)|\b{_WHAT}[^,;.=]{{0,40}}?\b(?:was |is )?saved\b", re.IGNORECASE
)
# What is not written yet, is no checkpoint, is an exception's own text, or is only mentioned in source code.
_NOT = re.compile(
    r"\b(?:not|will|would|won't|don't|if|to be|no|skip\w*|fail\w*|\w*(?:error|exception)|unable|config\w*|tokenizer"
    r"|plots?|figures?|results?|tensors?|every|can|should)\b|[({]\s*[\"'f]",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d{1,12}")
MAX_SAVES = 100_000


class Saves:
    """Collects these lines while a log is read."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int, tuple[int, ...]]] = []

    @staticmethod
    def is_save(text: str) -> bool:
        """Return whether a line reports a saved checkpoint."""
        # Looking for a word is far cheaper than for a pattern.
        return ("sav" in text or "Sav" in text) and bool(_SAVED.search(text)) and not _NOT.search(text)

    def add(self, text: str, number: int, row: int) -> None:
        """Keep a line that reports a checkpoint, saved after the first `row` rows."""
        if row and len(self._found) < MAX_SAVES:
            self._found.append((row, number, tuple(map(int, _NUMBER.findall(text)))))

    def within(self, begin: int, end: int, kept: Ints) -> tuple[Save, ...]:
        """Return those after the rows `begin` to `end`, with the indices of their rows among those kept."""
        return tuple(
            Save(int(np.searchsorted(kept, row - 1 - begin, side="right")) - 1, line, numbers)
            for row, line, numbers in self._found
            if begin < row <= end and len(kept) and kept[0] <= row - 1 - begin
        )


# `  lr ............... 0.0001`
_DOTTED = re.compile(r"^\s*(?:\[[^\]]*\]:?\s*)*([A-Za-z_][\w-]*) \.{3,}\s?(.*)$")
# `TrainingArguments(lr=0.1, fp16=True)`, over one line or many.
_CALL = re.compile(r"\b(?:Namespace|\w*Arguments|\w*Args|\w*Config)\(")
_KEYWORD = re.compile(r"\b([A-Za-z_]\w*)=('[^']{0,2000}'|\"[^\"]{0,2000}\"|<[^<>]{0,200}>|[^\s,()]+)")
_ALONE = re.compile(r"^\s*([A-Za-z_]\w*)=([^\s,()]+),?\s*$")
# An argument, or the brackets that end one of several lines.
_ARGUMENT = re.compile(r"^\s*(?:[A-Za-z_]\w*=|[)\]}]+,?\s*$)")
# `lr: 0.1`, `"lr": 0.1,`, one setting per line.
_SINGLE = re.compile(r"^\s*(?:[-*] )?[\"']?([A-Za-z_][\w.-]*)[\"']?\s*:\s*[\"']?([^\"'{}\[\]()\s]+)[\"']?,?\s*$")
_KNOWN = frozenset((*" ".join(f"{key} {others}" for key, (_, others) in KEYS.items()).split(), *REDUCED))
_AMBIGUOUS = frozenset(
    ["name", "step", "steps", "schedule", "scheduler", "classes", "vocab", "opt", "warmup", "batch_size"]
)
# `Mixed precision type: fp16`, `autocast dtype: torch.bfloat16`, `Using bf16 mixed precision`.
_FORMATS = "bfloat16|bf16|float16|fp16|fp8"
_PRECISION = re.compile(
    r"\b(?:mixed[ _]precision(?: type| training)?|autocast(?:[ _]dtype)?)\s?[:=]\s?['\"]?(?:torch\.)?"
    rf"({_FORMATS})\b|\b({_FORMATS})\s(?:automatic )?(?:mixed[ -]precision|autocast)\b(?!\s*[:=])",
    re.IGNORECASE,
)
_ENUM = re.compile(r"(?:\w+\.)*[A-Z]\w*\.([A-Z_]+)")
_NOT_SET = frozenset(("none", "null", "auto", "-1", ""))
_WORDS = frozenset(
    ("dtype", "checkpoints", "overlap_comm", *(key for key, (reader, _) in KEYS.items() if reader is text_of))
)
_NUMERIC = frozenset(" ".join(f"{key} {others}" for key, (_, others) in KEYS.items() if key not in _WORDS).split())


_TITLE = re.compile(r"[^\W\d][\w .-]{0,60}:\s*")
_SETTING = re.compile(r"(?:- )?[\"']?[\w./-]{1,120}[\"']?:(?:\s+(?P<value>\S.*))?|-\s.*|[\]}),]+\s*")
_SECTION = re.compile(r"[A-Z][A-Z_]+:\s*")
_CONFIG = re.compile(r"config|setting|option|argument|\bargs\b|param", re.IGNORECASE)
# What may stand above metrics as well.
_MEASURED = re.compile(
    r"train|val|eval|test|metric|result|epoch|step|iter|stat|score|summary|performance|loss|episode", re.IGNORECASE
)
_PAIR = re.compile(r"\w[:=] ?[-+]?\.?\d")
_OUTSIDE = ("step", "epoch", "loss", "eval_loss")


class PrintedSettings:
    """Collects settings while a log is read, and recognises the lines of a configuration printed below a title."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._found: list[tuple[int, str, str]] = []
        self.in_call = False  # whether a call over several lines is open
        self.below_title = False  # whether the last line was part of a configuration below its title
        self._brackets = 0  # of the call that are open

    def look(self, line: str, row: int, *, code: bool) -> bool:
        """Keep the settings of a line.

        Args:
            line: the line.
            row: the row of metrics that it precedes.
            code: whether the log holds source code, in which `name: word` is no setting.

        Returns:
            Whether the line is one of settings.
        """
        if not code:
            self._recognise(line, row)
        before = len(self._found)
        dotted = "..." in line and _DOTTED.match(line)
        if dotted:
            self._keep(row, dotted[1], dotted[2])
            return True
        precision = ("recision" in line or "utocast" in line) and _PRECISION.search(line)
        if precision:
            self._keep(row, "dtype", precision[1] or precision[2])
            return True
        if "(" in line and ("=" in line or line.rstrip().endswith("(")) and _CALL.search(line):
            self._brackets = line.count("(") - line.count(")")
            self.in_call = self._brackets > 0
            for key, value in _KEYWORD.findall(line):
                self._keep(row, key, value)
        elif self.in_call:
            alone = _ALONE.match(line)
            self._brackets += line.count("(") - line.count(")")
            self.in_call = self._brackets > 0 and _ARGUMENT.match(line) is not None
            if alone:
                self._keep(row, alone[1], alone[2])
        elif not code:
            single = _SINGLE.match(line)
            if single and single[1] not in _AMBIGUOUS:
                self._keep(row, single[1], single[2])
        return len(self._found) > before or self.in_call

    def _recognise(self, line: str, row: int) -> None:
        """Keep which trainer prints such a line, and the setting that it stands for."""
        pattern, meanings = _printed()
        for piece in pattern.findall(line):
            for key, value in meanings[piece]:
                if not any(known == key for _, known, _ in self._found):
                    self._found.append((row, key, value))

    def _keep(self, row: int, key: str, text: str) -> None:
        word = normalize(key)
        if word in _KNOWN or word == "save_strategy":
            self._found.append((row, word, text.strip().strip("'\"")))

    def until(self, row: int) -> dict[str, ConfigScalar]:
        """Return the configuration of the run that begins at row `row`: later dumps replace earlier ones."""
        values: dict[str, Any] = {}
        for before, key, text in self._found:
            value = _typed(text, key)
            if before <= row and value is not None:
                values[key] = value
        strategy = str(values.pop("save_strategy", "steps"))
        if not strategy.endswith("steps"):
            values.pop("save_steps", None)
        return read_config(values)[0]

    @staticmethod
    def is_title(line: str) -> bool:
        """Return whether a configuration may begin with a line."""
        return _TITLE.fullmatch(line, past_prefix(line)) is not None

    def follow(self, line: str, *, begun: bool) -> None:
        """Follow a configuration below its title; `begun` says whether there are rows of metrics."""
        text = line[past_prefix(line) :]
        goes_on = self.below_title and self._goes_on(line, text)
        self.below_title = goes_on or _begins(text, begun=begun)

    def _goes_on(self, line: str, text: str) -> bool:
        found = _SETTING.fullmatch(text)
        if not found:
            return not text.strip()
        if found["value"] and _PAIR.search(found["value"]):
            return False
        # A step or a loss that is not indented ends it.
        return line[:1].isspace() or self._names.role(text.partition(":")[0]) not in _OUTSIDE


@cache
def _printed() -> tuple[re.Pattern[str], Mapping[str, list[tuple[str, str]]]]:
    """Return what finds the lines that a trainer alone prints, and the settings that each piece stands for."""
    meanings: dict[str, list[tuple[str, str]]] = {}
    for id_, one in all_trainers().items():
        for piece, setting in one.log.prints.items():
            key, _, value = setting.partition("=")
            found = meanings.setdefault(piece, [])
            if id_ != OTHER:
                found.append(("framework", id_))
            if key:
                found.append((key, value))
    return re.compile("|".join(map(re.escape, meanings))), meanings


def _typed(text: str, word: str) -> Any:
    """Return the value that a setting's text stands for; None if it is not set."""
    enum = _ENUM.fullmatch(text)
    if enum:
        text = enum[1].lower()
    if text.lower() in _NOT_SET:
        return None
    if text in ("True", "true", "False", "false"):
        return text.lower() == "true" if word in (*REDUCED, "overlap_comm") else None
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        number = float(text)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return None if word in _NUMERIC else text


def _begins(text: str, *, begun: bool) -> bool:
    if not _TITLE.fullmatch(text):
        return False
    if _CONFIG.search(text) or _SECTION.fullmatch(text):
        return True
    return not begun and not _MEASURED.search(text) and " " not in text.strip()
