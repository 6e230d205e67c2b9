"""The parts of Python's statements that say what is assigned, and in what order."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def own_name(target: ast.expr | None) -> str:
    """Return the attribute that an assignment in a class sets, `lr` or `self.lr`; empty where it sets none."""
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
        return target.attr
    return ""


def default_of(field_: ast.Call) -> ast.expr | None:
    """Return the default of a dataclass's field, that of a factory without arguments included."""
    given = {word.arg: word.value for word in field_.keywords}
    factory = given.get("default_factory")
    return factory.body if isinstance(factory, ast.Lambda) else given.get("default")


def assigned(node: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """Return what a statement assigns to, and the value: `x = 1`, `x: int = 1`, `x *= 2`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return node.targets[0], node.value
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return node.target, ast.BinOp(ast.Name(node.target.id), node.op, node.value)
    if isinstance(node, ast.AnnAssign):
        return (node.target, node.value)
    return (None, None)


def statements(part: list[Any]) -> Iterator[ast.stmt]:
    """Yield the statements of a part of a compound one, those of its handlers included."""
    for node in part:
        if isinstance(node, ast.ExceptHandler):
            yield from node.body
        else:
            yield node


def head(node: ast.stmt) -> list[ast.expr]:
    """Return the expressions at the head of a loop or a `with`."""
    items = [item.context_expr for item in getattr(node, "items", [])]
    return [*items, *(one for one in (getattr(node, part, None) for part in ("iter", "test")) if one)]


def is_main(test: ast.expr) -> bool:
    """Return whether a condition is that of `if __name__ == "__main__"`."""
    return "__name__" in ast.unparse(test)
