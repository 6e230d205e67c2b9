"""The configuration that a trainer prints before it starts: dumps of arguments in a few spellings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stabtree.loaders.config import KEYS, read_config
from stabtree.metrics.table import normalize
from stabtree.run import REDUCED

if TYPE_CHECKING:
    from stabtree.run import ConfigScalar

# `  lr ............... 0.0001`
_DOTTED = re.compile(r"^\s*(?:\[[^\]]*\]:?\s*)*([A-Za-z_][\w-]*) \.{3,}\s?(.*)$")
# `TrainingArguments(lr=0.1, fp16=True)`, over one line or many.
_CALL = re.compile(r"\b(?:Namespace|\w*Arguments|\w*Args|\w*Config)\(")
_KEYWORD = re.compile(r"\b([A-Za-z_]\w*)=('[^']{0,2000}'|\"[^\"]{0,2000}\"|<[^<>]{0,200}>|[^\s,()]+)")
_ALONE = re.compile(r"^\s*([A-Za-z_]\w*)=([^\s,()]+),?\s*$")
# `lr: 0.1`, `"lr": 0.1,`, one setting a line.
_SINGLE = re.compile(r"^\s*(?:[-*] )?[\"']?([A-Za-z_][\w.-]*)[\"']?\s*:\s*[\"']?([^\"'{}\[\]()\s]+)[\"']?,?\s*$")
_KNOWN = {word for key, (_, others) in KEYS.items() for word in (key, *others.split())} | set(REDUCED)
_AMBIGUOUS = frozenset(
    ["name", "step", "steps", "schedule", "scheduler", "classes", "vocab", "opt", "warmup", "batch_size"]
)
_ENUM = re.compile(r"(?:\w+\.)*[A-Z]\w*\.([A-Z_]+)")
_NOT_SET = frozenset(("none", "null", "auto", "-1", ""))
_NUMBERS = frozenset(
    f"{key} {KEYS[key][1]}"
    for key in KEYS
    if key not in ("name", "dtype", "optimizer", "lr_schedule", "checkpoints", "overlap_comm")
)
_NUMERIC = {word for words in _NUMBERS for word in words.split()}


class ConfigDump:
    """Collects settings while a log is read; what is no setting leaves it as it is.

    Args:
        everything: whether to keep what no run's configuration has, too.
    """

    def __init__(self, *, everything: bool = False) -> None:
        self._everything = everything
        self._found: list[tuple[int, str, str]] = []
        self._inside = False

    def look(self, line: str, row: int, *, code: bool) -> bool:
        """Keep the settings of a line that stands before row `row`; whether the line is one of settings."""
        before = len(self._found)
        dotted = _DOTTED.match(line) if "..." in line else None
        if dotted:
            self._keep(row, dotted[1], dotted[2])
        elif ("(" in line and "=" in line and _CALL.search(line)) or line.rstrip().endswith("Arguments("):
            self._inside = line.count("(") > line.count(")")
            for key, value in _KEYWORD.findall(line):
                self._keep(row, key, value)
        elif self._inside:
            alone = _ALONE.match(line)
            if alone:
                self._keep(row, alone[1], alone[2])
            self._inside = alone is not None
        elif not code and (single := _SINGLE.match(line)) and single[1] not in _AMBIGUOUS:
            self._keep(row, single[1], single[2])
        return len(self._found) > before or self._inside or dotted is not None

    def _keep(self, row: int, key: str, text: str) -> None:
        word = normalize(key)
        if self._everything or word in _KNOWN or word == "save_strategy":
            self._found.append((row, word, text.strip().strip("'\"")))

    def texts(self) -> dict[str, str]:
        """All that was kept, as it was printed; of several the first, which the trainer prints before its libraries."""
        return {key: text for _, key, text in reversed(self._found)}

    def until(self, row: int) -> dict[str, ConfigScalar]:
        """The configuration of the run that begins at row `row`: later dumps replace earlier ones."""
        typed = ((key, _typed(text, key)) for at, key, text in self._found if at <= row)
        values = {key: value for key, value in typed if value is not None}
        strategy = str(values.pop("save_strategy", "steps"))
        if not strategy.endswith("steps"):
            values.pop("save_steps", None)
        return read_config(values)[0]


def _typed(text: str, word: str) -> Any:
    enum = _ENUM.fullmatch(text)
    text = enum[1].lower() if enum else text
    if text.lower() in _NOT_SET:
        return None
    if text in ("True", "true", "False", "false"):
        return text.lower() == "true" if word in (*REDUCED, "overlap_comm") else None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None if word in _NUMERIC else text
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
