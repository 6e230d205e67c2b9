"""Hold the code to its limits: how long, how branched and how dense it may be.

    python -m release.style

Prints the counts of the core and of the tools, then each place beyond a limit; the exit code is 1 where there is one.
Complexity is radon's: it counts `and`, `or`, conditional expressions and the conditions of comprehensions, which the
lint's own rule does not.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radon.complexity import cc_visit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE = Path(__file__).resolve().parent.parent / "stabtree"
NOT_HELD = ("measures",)
"""What is not held to the limits yet: how questions decide is to change."""

PUBLIC = ("load_run", "scan", "__init__")
"""Functions that users call by keyword: their options are their signature, and are documented one by one."""

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 8
MAX_COMPLEXITY = 32
COMPLEX = 10
MAX_COMPLEX_SHARE = 0.111
MAX_CONDITIONALS_PER_1000 = 22.0
MAX_DOUBLE_COMPREHENSIONS = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Counts:
    """What was counted in some modules.

    Attributes:
        lines: their lines.
        functions: their functions and methods.
        conditionals: conditional expressions.
        nested: those directly inside another.
        double_comprehensions: comprehensions with two `for`.
        complexities: radon's complexity of each function, with where it is.
        beyond: each place beyond a limit.
    """

    lines: int = 0
    functions: int = 0
    conditionals: int = 0
    nested: int = 0
    double_comprehensions: int = 0
    complexities: list[tuple[int, str]] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)

    @property
    def conditionals_per_1000(self) -> float:
        """Conditional expressions per 1,000 lines."""
        return 1000 * self.conditionals / max(self.lines, 1)

    @property
    def complex_share(self) -> float:
        """The share of functions above a complexity of 10."""
        return sum(value > COMPLEX for value, _ in self.complexities) / max(self.functions, 1)


def modules(*, tools: bool) -> list[Path]:
    """List the modules of the core, or those of the tools."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if ("tools" in path.relative_to(PACKAGE).parts) is tools]


def held(path: Path) -> bool:
    """Whether a module is held to the limits."""
    return not path.relative_to(PACKAGE).as_posix().startswith(NOT_HELD)


def count(paths: Iterable[Path]) -> Counts:
    """Count modules."""
    counts = Counts()
    for path in paths:
        _count_module(path, counts)
    return counts


def _count_module(path: Path, counts: Counts) -> None:
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(PACKAGE).as_posix()
    lines = text.count("\n")
    counts.lines += lines
    if lines > MAX_FILE_LINES:
        counts.beyond.append(f"{name}: {lines} lines")
    for node in ast.walk(ast.parse(text)):
        _count_node(node, name, counts)
    for block in _functions(cc_visit(text)):
        counts.complexities.append((block.complexity, f"{name}:{block.lineno} {block.name}"))
        if block.complexity > MAX_COMPLEXITY:
            counts.beyond.append(f"{name}:{block.lineno}: {block.name} has a complexity of {block.complexity}")


def _functions(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield the functions among radon's blocks; it lists methods beside their class and inside it."""
    for block in blocks:
        if not hasattr(block, "methods"):
            yield block


def _count_node(node: ast.AST, name: str, counts: Counts) -> None:
    if isinstance(node, ast.IfExp):
        counts.conditionals += 1
        if any(isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse)):
            counts.nested += 1
            counts.beyond.append(f"{name}:{node.lineno}: a conditional expression inside another")
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        counts.double_comprehensions += len(node.generators) > 1
    elif isinstance(node, Function):
        counts.functions += 1
        counts.beyond += [f"{name}:{node.lineno}: {node.name} {problem}" for problem in _too_long(node)]


def _too_long(function: Function) -> Iterator[str]:
    """Yield what is too long about a function."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if function.name in PUBLIC:
        lines -= (ast.get_docstring(function) or "").count("\n")
    if lines > MAX_FUNCTION_LINES:
        yield f"has {lines} lines"
    if function.name in PUBLIC:
        return
    arguments = function.args
    parameters = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
    if parameters > MAX_PARAMETERS:
        yield f"takes {parameters} parameters"


def beyond(counts: Counts) -> list[str]:
    """List what is beyond a limit, single places first."""
    found = sorted(counts.beyond)
    if counts.conditionals_per_1000 > MAX_CONDITIONALS_PER_1000:
        found.append(f"{counts.conditionals_per_1000:.1f} conditional expressions per 1,000 lines")
    if counts.complex_share > MAX_COMPLEX_SHARE:
        found.append(f"{counts.complex_share:.1%} of the functions are above a complexity of {COMPLEX}")
    if counts.double_comprehensions >= MAX_DOUBLE_COMPREHENSIONS:
        found.append(f"{counts.double_comprehensions} comprehensions with two `for`")
    return found


def described(title: str, counts: Counts) -> str:
    """Return the counts in a line."""
    return (
        f"{title}: {counts.lines:,} lines, {counts.functions:,} functions, "
        f"{counts.conditionals_per_1000:.1f} conditional expressions per 1,000 lines ({counts.nested} nested), "
        f"{counts.double_comprehensions} comprehensions with two `for`, "
        f"{counts.complex_share:.1%} of the functions above complexity {COMPLEX}"
    )


def main() -> int:
    """Print the counts, and each place beyond a limit."""
    core, tools = modules(tools=False), modules(tools=True)
    print(described("core", count(core)))
    print(described("tools", count(tools)))
    checked = count(filter(held, [*core, *tools]))
    print(described("held to the limits", checked))
    found = beyond(checked)
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
