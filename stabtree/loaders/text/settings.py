"""The configuration that a trainer prints before it starts: dumps of arguments in a few spellings."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from stabtree.frameworks.load import OTHER, all_trainers
from stabtree.loaders.config import KEYS, read_config, text_of
from stabtree.loaders.text.grammar import past_prefix
from stabtree.metrics.table import normalize
from stabtree.run import REDUCED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar


# `  lr ............... 0.0001`
_DOTTED = re.compile(r"^\s*(?:\[[^\]]*\]:?\s*)*([A-Za-z_][\w-]*) \.{3,}\s?(.*)$")
# `TrainingArguments(lr=0.1, fp16=True)`, over one line or many.
_CALL = re.compile(r"\b(?:Namespace|\w*Arguments|\w*Args|\w*Config)\(")
_KEYWORD = re.compile(r"\b([A-Za-z_]\w*)=('[^']{0,2000}'|\"[^\"]{0,2000}\"|<[^<>]{0,200}>|[^\s,()]+)")
_ALONE = re.compile(r"^\s*([A-Za-z_]\w*)=([^\s,()]+),?\s*$")
_ARGUMENT = re.compile(r"^\s*[A-Za-z_]\w*=")
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
    """Collects settings while a log is read, and recognises the lines of a configuration that is printed below a title.

    Attributes:
        in_call: whether a call over several lines is open.
        below_title: whether the last line was part of a configuration below its title.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._found: list[tuple[int, str, str]] = []
        self.in_call = False
        self.below_title = False

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
        if _begins_call(line):
            self.in_call = line.count("(") > line.count(")")
            for key, value in _KEYWORD.findall(line):
                self._keep(row, key, value)
        elif self.in_call:
            alone = _ALONE.match(line)
            self.in_call = _ARGUMENT.match(line) is not None  # a dict or a list is an argument too
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


def _begins_call(line: str) -> bool:
    return ("(" in line and "=" in line and _CALL.search(line) is not None) or line.rstrip().endswith("Arguments(")


def _typed(text: str, word: str) -> Any:
    """Return the value that a setting's text stands for; None if it is not set."""
    enum = _ENUM.fullmatch(text)
    if enum:
        text = enum[1].lower()
    if text.lower() in _NOT_SET:
        return None
    if text in ("True", "true", "False", "false"):
        if word in (*REDUCED, "overlap_comm"):
            return text.lower() == "true"
        return None
    number = _number(text)
    if number is not None:
        return number
    if word in _NUMERIC:
        return None
    return text


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    if number.is_integer() and abs(number) < 2**53:
        return int(number)
    return number


def _begins(text: str, *, begun: bool) -> bool:
    if not _TITLE.fullmatch(text):
        return False
    if _CONFIG.search(text) or _SECTION.fullmatch(text):
        return True
    return not begun and not _MEASURED.search(text) and " " not in text.strip()
