"""The value of an expression in a Python file, as far as it can be known without running anything."""

from __future__ import annotations

import ast
import operator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping

MISTAKES = (ValueError, TypeError, RecursionError, MemoryError, OverflowError, ArithmeticError)
_FEW = 16  # more values than these in a list are no setting
_MOST = 2**53
_SIGNS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Pow: operator.pow,
}
_MAX_POWER = 64
_CASTS: Mapping[str, Callable[[Any], Any]] = {"int": int, "float": float, "str": str, "bool": bool}


@dataclass(frozen=True, slots=True)
class Scope:
    """What names stand for in a Python file.

    Attributes:
        values: what was assigned to them.
        imported: those that are imported, which stand for themselves.
        objects: the settings in objects by name, for `args.lr` and `config["lr"]`.
    """

    values: MutableMapping[str, Any] = field(default_factory=dict)
    imported: frozenset[str] = frozenset()
    objects: MutableMapping[str, Mapping[str, Any]] = field(default_factory=dict)


def literal_of(node: ast.expr, names: Scope) -> Any:
    """Return the value of an expression: a literal, signs between numbers, a known name, or `dict(lr=0.1)` of such.

    Raises:
        ValueError: where it is neither, or one of the other `MISTAKES`.
    """
    if isinstance(node, ast.BinOp) and (sign := _SIGNS.get(type(node.op))):
        return _calculated(sign, literal_of(node.left, names), literal_of(node.right, names))
    if isinstance(node, ast.Name | ast.Attribute):
        return _named(ast.unparse(node), names)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return _named(f"{ast.unparse(node.value)}.{node.slice.value!s}", names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _called(node.func.id, node, names)
    if isinstance(node, ast.Dict):
        return dict(_items(node, names))
    if isinstance(node, ast.List | ast.Tuple):
        return [literal_of(one, names) for one in node.elts]
    return ast.literal_eval(node)


def open_value(node: ast.expr) -> str:
    """Return a value that says that something is given, and not what: a default does not count then."""
    return f"${{{ast.unparse(node)[:60]}}}"


def keywords(node: ast.Call, names: Scope) -> Iterator[tuple[str, Any, int]]:
    """Yield the arguments of a call that are named, each with its line; one that can't be read as an open value."""
    for word in node.keywords:
        if word.arg:
            try:
                yield word.arg, literal_of(word.value, names), word.value.lineno
            except MISTAKES:
                yield word.arg, open_value(word.value), word.value.lineno


def _calculated(sign: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    pair = (left, right)
    if not all(isinstance(one, int | float) and abs(one) < _MOST for one in pair):
        raise ValueError
    if sign is operator.pow and abs(right) > _MAX_POWER:
        raise ValueError
    return sign(left, right)


def _called(name: str, node: ast.Call, names: Scope) -> Any:
    if name == "dict" and not node.args:
        return {key: value for key, value, _ in keywords(node, names)}
    if name in _CASTS and len(node.args) == 1 and not node.keywords:
        return _CASTS[name](literal_of(node.args[0], names))
    raise ValueError


def _items(node: ast.Dict, names: Scope) -> Iterator[tuple[str, Any]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant):
            try:
                yield str(key.value), literal_of(value, names)
            except MISTAKES:
                yield str(key.value), open_value(value)


def _named(name: str, names: Scope) -> Any:
    """Return what a name stands for: never an object, as those in one another would grow without end."""
    first, _, rest = name.partition(".")
    if first in names.imported:
        return name
    if rest:
        holder, _, key = name.rpartition(".")
        value = names.objects.get(holder.rpartition(".")[2], {}).get(key)
    else:
        value = names.values.get(name)
    inner = value if isinstance(value, list | tuple) else (value,)
    if len(inner) > _FEW or not all(isinstance(one, int | float | str) for one in inner):
        raise ValueError
    return value
