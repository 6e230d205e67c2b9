"""The flags of a training in a shell script: `--lr 1e-4`, `--lr=1e-4`, `trainer.max_steps=100`; nothing is run."""

from __future__ import annotations

import re
import shlex
from dataclasses import field
from typing import TYPE_CHECKING, Any

from stabtree.common import yaml12
from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ASSIGNED = re.compile(r"(?:export\s+|local\s+|readonly\s+|declare\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?:\[[@*]\])?(?:(:?[-=])([^{}]*))?\}|(\w+))")
_QUOTED_ARRAY = re.compile(r'"(\$\{\w+\[[@*]\]\})"')
_SUM = re.compile(r"\$\(\(([^()]*)\)\)")
_TERM = re.compile(r"\s*\$?(\w+)\s*([-*/+])\s*\$?(\w+)\s*")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w./@-]*)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_SEPARATORS = (";", "&&", "||", "|", "&")
_MOST_LINES = 5000
_DEEPEST = 5  # variables in variables
_MOST_GIVEN = 1 << 20  # characters that variables may put into a script as a whole: each may double the one before
_LONG = 1 << 15  # a command line that is longer is split by its blanks


@dataclass(frozen=True, slots=True)
class Script:
    """What was found in a script: the fields of a `ConfigFile`."""

    values: Mapping[str, Any]
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class _Variables(dict[str, str]):
    """The variables of a script by name; `left` is how many characters they may still put into it."""

    left = _MOST_GIVEN

    def given(self, name: str) -> str | None:
        """Return the value of a variable; None for one that is not known, or has become too long."""
        value = self.get(name)
        if value is None or len(value) > self.left:
            return None
        self.left -= len(value)
        return value


def parsed(text: str) -> Script:
    """Read a script: the command that has the most flags, with the variables as they are where it stands."""
    variables = _Variables()
    best: list[tuple[str, Any, int]] = []
    for number, line in _logical(text):
        assigned = _ASSIGNED.fullmatch(line.strip())
        if assigned and _is_one_word(assigned[3]):
            value = _unquoted(assigned[3], variables)
            variables[assigned[1]] = f"{variables.get(assigned[1], '')} {value}" if assigned[2] else value
            continue
        for words in _commands(_expanded(line, variables)):
            flags = [(key, value, number) for key, value in _flags(words)]
            if len(flags) > len(best):
                best = flags
    values: dict[str, Any] = {}
    lines: dict[tuple[str | int, ...], int] = {}
    for key, value, number in best:
        path = _nest(values, key, value)
        lines[path] = number
    return Script(values, lines)


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with those that go on joined, arrays too, without comments and texts for other programs."""
    joined, start, number = "", 0, 0
    for number, line in _own_lines(text):
        if joined and line.strip().startswith("#"):
            continue  # a flag that is switched off within a command
        if not joined:
            start = number
        bare = _without_comment(line).rstrip()
        if bare.endswith("\\"):
            joined += f"{bare[:-1]} "
            continue
        joined += bare
        if _goes_on(joined):
            joined += " "
            continue
        yield start, joined
        joined = ""
    if joined:
        yield start, joined


def _own_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a script without the texts that it hands to other programs."""
    until = ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n")[:_MOST_LINES], 1):
        if until:
            if line.strip() == until:
                until = ""
            continue
        heredoc = _HEREDOC.search(line)
        if heredoc:
            until = heredoc[1]
        yield number, line


def _goes_on(line: str) -> bool:
    """Whether an array or a quotation is still open at the end of a line."""
    is_array = re.match(r"\s*(?:\w+\s+)?\w+\+?=\(", line)
    return bool(is_array and ")" not in line) or line.count('"') % 2 == 1


def _without_comment(line: str) -> str:
    """Return a line without its comment, which begins at a `#` after a blank that is not quoted."""
    if line.lstrip().startswith("#"):
        return ""
    for found in re.finditer(r"\s#", line):
        before = line[: found.start()]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            return before
    return line


def _is_one_word(text: str) -> bool:
    """Whether an assignment stands alone: `A=1`, not `A=1 python train.py`."""
    text = text.strip()
    if text.startswith("(") or _quoted(text):
        return True
    return not re.search(r"\s\S", re.sub(r"\$\(.*\)|\$\{[^}]*\}", "x", text)) and not text.endswith(";;")


def _quoted(text: str) -> bool:
    return len(text) > 1 and text[0] in "\"'" and text.count(text[0]) == 2 and text.endswith(text[0])


def _unquoted(text: str, variables: _Variables) -> str:
    text = text.strip().rstrip(";")
    if (text.startswith("(") and text.endswith(")")) or _quoted(text):
        text = text[1:-1]
    return _expanded(text, variables)


def _expanded(text: str, variables: _Variables) -> str:
    """Return a text with the variables of the script in it; those that are not known stay `${NAME}`."""

    def one(found: re.Match[str]) -> str:
        name = found[1] or found[4]
        value = variables.given(name)
        if value is not None:
            return value
        return found[3] if found[2] else f"${{{name}}}"

    text = _QUOTED_ARRAY.sub(r"\1", text)
    for _ in range(_DEEPEST):
        later = _SUM.sub(lambda found: _summed(found[1], variables), _VARIABLE.sub(one, text))
        if later == text:
            break
        text = later
    return text


def _summed(text: str, variables: Mapping[str, str]) -> str:
    found = _TERM.fullmatch(text)
    if not found:
        return "${sum}"
    left, right = (variables.get(name, name) for name in (found[1], found[3]))
    if not (left.isdigit() and right.isdigit() and len(left) < 10 and len(right) < 10):
        return "${sum}"
    numbers = int(left), int(right)
    made = {"*": numbers[0] * numbers[1], "+": sum(numbers), "-": numbers[0] - numbers[1]}
    return str(made.get(found[2], numbers[0] // (numbers[1] or 1)))


def _commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line; of one that can't be split, by its blanks."""
    try:
        if len(line) > _LONG:
            raise ValueError
        words = shlex.split(line.replace("`", "'"), comments=False)
    except ValueError:
        words = line.split()
    part: list[str] = []
    for word in words:
        if word in _SEPARATORS:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _flags(words: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the flags and overrides among the words of a command."""
    place = 0
    while place < len(words) and _ASSIGNED.fullmatch(words[place]):
        place += 1  # variables of this command alone
    while place < len(words):
        flag = _FLAG.fullmatch(words[place])
        override = _OVERRIDE.fullmatch(words[place])
        place += 1
        if flag and flag[2] is not None:
            yield flag[1], _value([flag[2]])
        elif flag:
            given = []
            while place < len(words) and _is_value(words[place]):
                given.append(words[place])
                place += 1
            yield from _named(flag[1], given)
        elif override:
            yield override[1], _value([override[2]])


def _is_value(word: str) -> bool:
    return bool(_NUMBER.fullmatch(word)) or not (word.startswith("-") or _OVERRIDE.fullmatch(word))


def _named(flag: str, given: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield what a flag with the words behind it says: `--fp16` is true, `--no-fp16` is false."""
    off = re.match(r"no[-_]", flag)
    if not given and off:
        yield flag[off.end() :], False
    elif flag.endswith("config") and given and all("=" in word for word in given):
        yield flag, given
    else:
        # A script or a data set after a flag that takes no value is no value of it.
        yield flag, _value(given) if given and not given[0].endswith(".py") else True


def _value(words: list[str]) -> Any:
    if len(words) > 1 and all(map(_NUMBER.fullmatch, words)):
        return [_scalar(word) for word in words]
    return _scalar(words[0])


def _scalar(word: str) -> Any:
    text = word.strip("\"'")
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _NUMBER.fullmatch(text) or text[:1] in "[{":
        try:
            return yaml12.parse(text, "").value
        except StabtreeError:
            return text
    return text


def _nest(values: dict[str, Any], key: str, value: Any) -> tuple[str, ...]:
    """Put a value where its dotted key leads, and return its path; a later one counts."""
    *sections, last = re.split(r"[./]", key)
    inner = values
    for section in sections:
        further = inner.setdefault(section, {})
        if not isinstance(further, dict):
            further = inner[section] = {}
        inner = further
    inner[last] = value
    return (*sections, last)
