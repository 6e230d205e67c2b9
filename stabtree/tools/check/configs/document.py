"""A configuration file as plain values: JSON, YAML, TOML, or the assignments of a Python file."""

from __future__ import annotations

import ast
import json
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from stabtree.common import toml, yaml12
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked
from stabtree.loaders.source import NAME_METRICS, open_source

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.source import Source

# The whole configuration of a large model fits many times; the state of a trainer holds its log.
MAX_BYTES = 1 << 20
MAX_JSON = 32 << 20
DEEPEST = yaml12.MAX_DEPTH
HINT = "name the configuration of a run: JSON, YAML, TOML, or Python assignments"
Path_ = tuple[str | int, ...]
_FEW = 16  # more values than these in a list are no setting


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file that was read.

    Attributes:
        name: the file's own name, safe to print.
        values: its top-level object.
        lines: the line of each value by its path of keys, where the format shows it.
        notes: what was wrong but readable.
    """

    name: str
    values: Mapping[str, Any]
    lines: Mapping[Path_, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_document(path: Path) -> ConfigFile:
    """Read one configuration file, whatever its name.

    Raises:
        StabtreeError: where it can't be read, or holds no settings.
    """
    try:
        source = open_source(path)
    except StabtreeError as error:
        hint = HINT if error.hint == NAME_METRICS else error.hint
        raise StabtreeError(error.problem, where=error.where, hint=hint) from None
    if source.binary:
        raise StabtreeError(f"is {source.binary}, not a configuration", where=source.path, hint=HINT)
    parser = _parser(path.suffix.lower(), source.head)
    text, notes = _text(source, MAX_JSON if parser is _json else MAX_BYTES)
    found = parser(text, source)
    if not isinstance(found.values, Mapping) or not found.values:
        raise StabtreeError("holds no settings", where=source.path, hint=HINT)
    return ConfigFile(found.name, _unwrapped(found.values), found.lines, (*notes, *found.notes))


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
    if suffix == ".toml":
        return _toml
    if suffix == ".json" or (suffix not in (".yaml", ".yml") and head.lstrip()[:1] == "{"):
        return _json
    return _yaml


def _json(text: str, source: Source) -> ConfigFile:
    repeated: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) < len(pairs):
            repeated.extend(key for key, many in Counter(key for key, _ in pairs).items() if many > 1)
        return found

    try:
        values = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        where = f"{source.path}:{error.lineno}"
        raise StabtreeError(f"is not valid JSON: {error.msg}", where=where, hint="correct that line") from None
    except (RecursionError, ValueError):
        raise StabtreeError("nests too deeply, or holds a number too long, to be read", where=source.path) from None
    notes = tuple(_twice(source.name, key) for key in dict.fromkeys(repeated))
    return ConfigFile(source.name, values, {}, notes)


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


def _python(text: str, source: Source) -> ConfigFile:
    """The literals that a Python file assigns at its top level, as a `config.py` does; nothing is run."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of the file's own escapes
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f"{source.path}:{line}" if line else source.path
        raise StabtreeError("is not valid Python", where=where, hint=HINT) from None
    values: dict[str, Any] = {}
    lines: dict[Path_, int] = {}
    imports = chain.from_iterable(node.names for node in tree.body if isinstance(node, _IMPORTS))
    imported = {name.asname or name.name for name in imports}
    names = _Names(values, imported)
    for node in tree.body:
        target, value = _assigned(node)
        if isinstance(target, ast.Name) and value is not None:
            try:
                values[target.id] = _literal(value, names)
            except (ValueError, TypeError, RecursionError, MemoryError, OverflowError, ArithmeticError):
                # What is assigned again counts, also where it can't be read.
                values.pop(target.id, None)
                continue
            lines[(target.id,)] = node.lineno
    return ConfigFile(source.name, values, lines)


_IMPORTS = ast.Import | ast.ImportFrom
_MOST = 2**53
_SIGNS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
}


@dataclass(frozen=True, slots=True)
class _Names:
    """What names stand for in a Python file: what was assigned to them, or, where it is imported, their own name."""

    values: Mapping[str, Any]
    imported: set[str]


def _assigned(node: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """What a statement assigns to, and the value: `x = 1`, `x: int = 1`, `x *= 2`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return node.targets[0], node.value
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return node.target, ast.BinOp(ast.Name(node.target.id), node.op, node.value)
    if isinstance(node, ast.AnnAssign):
        return (node.target, node.value)
    return (None, None)


def _literal(node: ast.expr, names: _Names) -> Any:
    """A literal, what signs make of numbers, a name that was assigned or imported, or `dict(lr=0.1)` of such.

    Raises:
        ValueError: where it is neither.
    """
    if isinstance(node, ast.BinOp) and (sign := _SIGNS.get(type(node.op))):
        pair = _literal(node.left, names), _literal(node.right, names)
        if not all(isinstance(one, int | float) and abs(one) < _MOST for one in pair):
            raise ValueError
        return sign(*pair)
    if isinstance(node, ast.Name | ast.Attribute):
        return _named(ast.unparse(node), names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return dict(_keywords(node, names))
    return ast.literal_eval(node)


def _keywords(node: ast.Call, names: _Names) -> Iterator[tuple[str, Any]]:
    for word in node.keywords:
        try:
            if word.arg:
                yield word.arg, _literal(word.value, names)
        except (ValueError, TypeError, OverflowError, ArithmeticError):
            continue


def _named(name: str, names: _Names) -> Any:
    """What a name stands for: never an object, as those in one another would grow without end."""
    if name.partition(".")[0] in names.imported:
        return name
    value = names.values.get(name)
    inner = value if isinstance(value, list | tuple) else (value,)
    if len(inner) > _FEW or not all(isinstance(one, int | float | str) for one in inner):
        raise ValueError
    return value


def literal(text: str) -> Any:
    """The value that Python prints so; a text that is none stays text."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _twice(name: str, key: str) -> str:
    return f"{name}: the key {masked(clean(key, 40))!r} is given twice: the last one counts."
