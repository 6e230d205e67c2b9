"""The shape of the code: data flows one way, and starting up stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "stabtree"
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
        (["diagnose", str(PACKAGE.parent / "fixtures" / "phase19" / "healthy")], ["pandas", "pydantic"]),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], absent: list[str]) -> None:
    """Help imports none of the heavy libraries, explain no array library, a small log no pandas."""
    assert imported(arguments, absent) == ""


def test_a_large_csv_is_read_without_pandas(tmp_path: Path) -> None:
    """However large a file is: importing pandas alone takes more memory than a million rows."""
    file = tmp_path / "large.csv"
    rows = "".join(f"{i},{1 + i % 7 / 7:.6f},0.001,0.5,0.25,0.125,65536.0\n" for i in range(150_000))
    file.write_text(f"step,loss,lr,grad_norm,acc,kl,loss_scale\n{rows}", encoding="utf-8")
    assert file.stat().st_size > 6 << 20
    assert imported(["diagnose", str(file), "--fail-on", "never"], ["pandas", "pyarrow"]) == ""


def imported(arguments: list[str], absent: list[str]) -> str:
    """Those of the modules that a command imports although it should not."""
    code = (
        "import sys\nfrom stabtree.cli import main\nsys.argv = ['stabtree', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"sys.stderr.write(' '.join(m for m in {absent!r} if m in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout
    return done.stderr
