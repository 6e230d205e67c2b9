"""The shape of the code: data flows one way, and starting up stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "stabtree"
HEALTHY = str(PACKAGE.parent / "fixtures" / "phase19" / "healthy")
ORDER = (
    ("errors", "_lazy", "text", "yaml12"),
    ("stats",),
    ("metrics",),
    ("run",),
    ("monitor",),
    ("loaders",),
    ("answer",),
    ("facts",),
    ("predicates",),
    ("tree",),
    ("diagnosis",),
    ("render",),
    ("cli", "__init__", "__main__"),
)
RANK = {name: place for place, names in enumerate(ORDER) for name in names}


def modules() -> list[Path]:
    """All modules of the package."""
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_stands_to_its_left(path: Path) -> None:
    """No import, not even inside a function, points to a later stage of the data's way."""
    own = RANK[path.relative_to(PACKAGE).parts[0].removesuffix(".py")]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "stabtree" and len(parts) > 1:
                assert RANK[parts[1]] <= own, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_command_line_prints_or_exits(path: Path) -> None:
    """Nothing outside cli/ prints, exits or reads the environment."""
    if path.relative_to(PACKAGE).parts[0] in ("cli", "__main__.py"):
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("print", "exit", "quit", "input")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in {("sys", "exit"), ("os", "environ"), ("os", "getenv")}


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ["pandas", "numpy", "rich", "yaml"]),
        (["diagnose", "--help"], ["pandas", "numpy", "rich", "yaml"]),
        (["explain", "Q2.3"], ["pandas", "numpy", "pydantic"]),
        (["diagnose", HEALTHY, "--checkpoint-every", "50"], ["pandas", "pydantic"]),
        (["tree", "graph", "--format", "dot"], ["pandas", "numpy", "pydantic"]),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], absent: list[str]) -> None:
    """Help imports none of the heavy libraries, explain no array library, a small CSV no pandas."""
    code = (
        "import sys\nfrom stabtree.cli import main\nmain()\n"
        f"sys.stderr.write(' '.join(m for m in {absent!r} if m in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout
