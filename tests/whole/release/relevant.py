"""Which tests a change of one file calls for: those of its room that import it, or all of the room's where none does.

    python -m tests.whole.release.relevant FILE

Prints what to hand to pytest. `make test-of FILE=...` runs it.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OF_TREES = ("tests/tree", "tests/whole/test_leaves.py")
"""The tests of all trees: each leaf is reached by its own run."""


def relevant(file: str) -> list[str]:
    """List the test files or folders for a file, each as a path from the root.

    Raises:
        ValueError: where the file is outside of the project, or no test is known for its kind.
    """
    path = Path(file).resolve().relative_to(ROOT)
    if path.parts[0] == "tests":
        return [path.as_posix()]
    if path.parts[0] == "trees":
        return [*OF_TREES]
    if path.parts[0] != "stabtree" or path.suffix != ".py":
        raise ValueError(f"{path}: no tests are known for it; run them all")
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    importing = [test for test in _tests() if module in _imports(test)]
    return importing or [_mirror(path)]


def _mirror(path: Path) -> str:
    """Return the nearest folder of tests that mirrors a module's folder."""
    folder = ROOT / "tests" / Path(*path.parts[1:-1])
    while not folder.is_dir():
        folder = folder.parent
    return folder.relative_to(ROOT).as_posix()


@cache
def _tests() -> tuple[str, ...]:
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")))


@cache
def _imports(test: str) -> frozenset[str]:
    """The modules of the package that a test file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / test).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("stabtree"):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


if __name__ == "__main__":
    try:
        sys.stdout.write(" ".join(relevant(sys.argv[1])) + "\n")
    except (IndexError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
