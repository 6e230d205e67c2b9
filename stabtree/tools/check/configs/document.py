"""A configuration file as plain values: JSON, YAML, TOML, a Python file, or a shell script that starts a run."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from stabtree.common import yaml12
from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked
from stabtree.judging import toml
from stabtree.loaders.source import NAME_METRICS, open_source
from stabtree.tools.check.configs.forms import python, shell

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.source import Source

# The whole configuration of a large model fits many times; the state of a trainer holds its log.
MAX_BYTES = 1 << 20
MAX_JSON = 32 << 20
SHELL = (".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".job", ".pbs")
# A text in JSON, which stays as it is, or a comment; and one or a comma that nothing follows.
_TEXT = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
_COMMENT = re.compile(_TEXT + r"|(//[^\n]*|/\*.*?(?:\*/|\Z))", re.DOTALL)
_LAST_COMMA = re.compile(_TEXT + r"|(,)(?=\s*[}\]])", re.DOTALL)
_SHEBANG = re.compile(r"#!.*\b(?:ba|z|k|da)?sh\b")
HINT = "name the configuration of a run: JSON, YAML, TOML, a Python file, or a shell script"
Path_ = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file that was read.

    Attributes:
        name: the file's own name, safe to print.
        values: its top-level object.
        lines: the line of each value by its path of keys, where the format shows it.
        notes: what was wrong but readable.
        own_names: whether the names outside of `first` are the file's own, as the variables of a Python file are.
        first: sections that count before what stands outside of them, as the call of a trainer before a constant.
    """

    name: str
    values: Mapping[str, Any]
    lines: Mapping[Path_, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    first: frozenset[str] = frozenset()
    own_names: bool = False


def read_document(path: Path) -> ConfigFile:
    """Read one configuration file, whatever its name.

    Raises:
        StabtreeError: where it can't be read, or holds no settings.
    """
    try:
        source = open_source(path)
    except StabtreeError as error:
        hint = HINT if error.hint == NAME_METRICS or "stabtree inspect" in error.hint else error.hint
        raise StabtreeError(error.problem, where=error.where, hint=hint) from None
    if source.binary:
        raise StabtreeError(f"is {source.binary}, not a configuration", where=source.path, hint=HINT)
    parser = _parser(path.suffix.lower(), source.head)
    text, notes = _text(source, MAX_JSON if parser is _json else MAX_BYTES)
    found = parser(text, source)
    if not isinstance(found.values, Mapping) or not found.values:
        raise StabtreeError("holds no settings", where=source.path, hint=HINT)
    return replace(found, values=_unwrapped(found.values), notes=(*notes, *found.notes))


def _unwrapped(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values of W&B's `config.yaml`, in which each stands as `{value: ...}`."""
    wrapped = {key: one["value"] for key, one in values.items() if isinstance(one, Mapping) and "value" in one}
    if wrapped and len(wrapped) >= len(values) - 1:
        return wrapped
    return values


def _text(source: Source, most: int) -> tuple[str, tuple[str, ...]]:
    """The whole text of a source, and what had to be replaced in it."""
    lines = source.lines()
    parts: list[str] = []
    size = 0
    for block in lines.blocks():
        size += len(block)
        if size > most:
            raise StabtreeError(f"is larger than any configuration ({most >> 20} MiB)", where=source.path, hint=HINT)
        parts.append(block)
    return "".join(parts), tuple(lines.notes)


def _parser(suffix: str, head: str) -> Callable[[str, Source], ConfigFile]:
    if suffix == ".py":
        return _python
    if suffix in SHELL or _SHEBANG.match(head):
        return _shell
    if suffix == ".toml":
        return _toml
    if suffix == ".json" or (suffix not in (".yaml", ".yml") and head.lstrip()[:1] == "{"):
        return _json
    return _yaml


def _python(text: str, source: Source) -> ConfigFile:
    """What a Python file assigns and hands to its trainer; nothing is run."""
    try:
        found = python.parsed(text)
    except python.UnreadableError as error:
        where = f"{source.path}:{error.line}" if error.line else source.path
        raise StabtreeError("is not valid Python", where=where, hint=HINT) from None
    return ConfigFile(source.name, found.values, found.lines, found.notes, found.first, own_names=True)


def _shell(text: str, source: Source) -> ConfigFile:
    """The flags of the command in a shell script that starts the run; nothing is run."""
    found = shell.parsed(text)
    return ConfigFile(source.name, found.values, found.lines, found.notes)


def _json(text: str, source: Source) -> ConfigFile:
    repeated: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) < len(pairs):
            repeated.extend(key for key, many in Counter(key for key, _ in pairs).items() if many > 1)
        return found

    loose = ""
    try:
        try:
            values = json.loads(text, object_pairs_hook=once)
        except json.JSONDecodeError:
            repeated.clear()
            loose = _without_comments(text)
            values = json.loads(loose, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        where = f"{source.path}:{error.lineno}"
        raise StabtreeError(f"is not valid JSON: {error.msg}", where=where, hint="correct that line") from None
    except (RecursionError, ValueError):
        raise StabtreeError("nests too deeply, or holds a number too long, to be read", where=source.path) from None
    notes = [_twice(source.name, key) for key in dict.fromkeys(repeated)]
    if loose:
        notes.append(f"{source.name} has comments or trailing commas, which not every trainer accepts in JSON.")
    return ConfigFile(source.name, values, {}, tuple(notes))


def _without_comments(text: str) -> str:
    """JSON without the comments and the trailing commas that some write in it; all lines stay where they are."""
    bare = _COMMENT.sub(lambda found: "\n" * found[0].count("\n") if found[1] else found[0], text)
    return _LAST_COMMA.sub(lambda found: "" if found[1] else found[0], bare)


def _yaml(text: str, source: Source) -> ConfigFile:
    try:
        document = yaml12.parse(text, source.path)
    except StabtreeError as error:
        raise StabtreeError(error.problem, where=error.where, hint=HINT) from None
    notes = tuple(f"{source.name}:{line}: {clean(text, 120)}: the last one counts." for line, text in document.mistakes)
    return ConfigFile(source.name, document.value, document.lines, notes)


def _toml(text: str, source: Source) -> ConfigFile:
    try:
        return ConfigFile(source.name, toml.parse(text))
    except ValueError as error:
        raise StabtreeError(f"is not valid TOML: {clean(error, 120)}", where=source.path, hint=HINT) from None


def literal(text: str) -> Any:
    """The value that Python prints so; a text that is none stays text."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _twice(name: str, key: str) -> str:
    return f"{name}: the key {masked(clean(key, 40))!r} is given twice: the last one counts."
