"""How many numbers decide a verdict: in the trees, in the modules that judge, and in what these share."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common import shared
from stabtree.common.yaml12 import parse
from stabtree.tree.shipped import shipped

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_TREES = 175
IN_MODULES = 42
SHARED = 20
PACKAGE = Path(shared.__file__).resolve().parents[1]
JUDGING = ("measures", "profile")
STATED = ("params", "advanced")


def numbers(node: Any, *, stated: bool = False) -> Iterator[float]:
    """Yield the numbers that a tree states of its questions, causes and facts."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from numbers(value, stated=stated or key in STATED)
    elif isinstance(node, list):
        for item in node:
            yield from numbers(item, stated=stated)
    elif stated and isinstance(node, int | float) and not isinstance(node, bool):
        yield node


def constants(file: Path) -> Iterator[str]:
    """Yield the constants of a module that are numbers; 0, 1 and texts decide nothing."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if "# no limit" in lines[node.lineno - 1]:
            continue
        if isinstance(node, ast.Assign) and any(map(_is_number, ast.walk(node.value))):
            yield from (f"{file.relative_to(PACKAGE)} {ast.unparse(target)}" for target in node.targets)


def _is_number(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and not isinstance(value, bool) and value not in (0, 1)


def test_the_trees_state_few_numbers() -> None:
    """Those that documents give, and few others; what is fitted is not stated there."""
    counts = {
        name: sum(1 for _ in numbers(parse(path.read_text(encoding="utf-8"), name).value))
        for name, path in shipped().items()
    }
    assert sum(counts.values()) <= IN_TREES, counts


def test_the_modules_that_judge_hold_few_numbers() -> None:
    """What is physics, a format or a bound of the work is marked in its module by `# no limit`."""
    files = sorted(file for folder in JUDGING for file in (PACKAGE / folder).rglob("*.py"))
    found = [name for file in files for name in constants(file)]
    assert len(found) <= IN_MODULES, found


def test_few_limits_are_shared() -> None:
    """A limit for each idea, not for each question."""
    assert len([name for name in vars(shared) if name.isupper()]) <= SHARED
