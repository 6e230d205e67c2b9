"""Hold the sum: no count in budget.yaml may rise, and whoever lowers one writes it down.

    python -m release.budget [--lower]

Counts the lines of each room, of tests, trees, benchmarks and the code of the docs; files, classes, nodes and leaves;
and the functions (class bodies among them) and modules that diagnosing one CSV executes. Prints each with its
difference from budget.yaml; the exit code is 1 where one is above it. `--lower` writes lower ones. Where one rises
together with an equal fall elsewhere, edit budget.yaml by hand, in the commit that says so.
"""

from __future__ import annotations

import ast
import contextlib
import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "stabtree"
BUDGET = ROOT / "budget.yaml"
RUN = ROOT / "fixtures" / "phase19" / "spike-persistent"
"""The run whose functions are counted: a CSV of 800 rows and nine columns with a finding."""


def counts() -> dict[str, int]:
    """Count everything that the budget bounds."""
    core = [path for path in PACKAGE.rglob("*.py") if "tools" not in path.relative_to(PACKAGE).parts]
    tools = [*(PACKAGE / "tools").rglob("*.py")]
    found = {"core": lines(core), "tools": lines(tools)}
    found |= {f"core/{room.name}": lines(room.rglob("*.py")) for room in _rooms(PACKAGE) if room.name != "tools"}
    found |= {f"tools/{room.name}": lines(room.rglob("*.py")) for room in _rooms(PACKAGE / "tools")}
    found["trees"] = lines((ROOT / "trees").glob("*.yaml"))
    for folder in ("tests", "benchmarks", "docs", "faultbench", "fixtures", "release"):
        found[folder] = lines((ROOT / folder).rglob("*.py"))
    found["files"] = len(core) + len(tools)
    found["classes"] = sum(_classes(path) for path in (*core, *tools))
    found["nodes"], found["leaves"] = _tree_counts()
    found["functions of one CSV run"], found["modules of one CSV run"] = executed()
    return found


def _rooms(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if (path / "__init__.py").exists())


def lines(paths: Iterable[Path]) -> int:
    """Return the number of lines of all these files."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def _classes(path: Path) -> int:
    return sum(isinstance(node, ast.ClassDef) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def _tree_counts() -> tuple[int, int]:
    """Return the number of questions and of leaves in all shipped trees."""
    from stabtree.tree.load import load_trees

    tree = load_trees()
    return len(tree.questions), len(tree.leaves)


def executed() -> tuple[int, int]:
    """Return how many of our functions, and modules, diagnosing one CSV executes, in a process of its own."""
    words = [sys.executable, "-m", "release.budget", "--executed"]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    functions, modules = result.stdout.split()
    return int(functions), int(modules)


def _print_executed() -> None:
    seen: set[tuple[str, str]] = set()

    def profile(frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and not code.co_name.startswith("<"):
            seen.add((code.co_filename, code.co_name))

    from stabtree import cli

    sys.setprofile(profile)
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")):
        cli.main([str(RUN), "--fail-on", "never"])
    sys.setprofile(None)
    print(len(seen), len({file for file, _ in seen}))


def above(budget: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    """List what is above its budget; what has none may not be there."""
    return [name for name, count in found.items() if count > budget.get(name, 0)]


def main() -> int:
    """Print all counts with their differences from the budget, and lower it where that is asked for."""
    if "--executed" in sys.argv:
        _print_executed()
        return 0
    budget: dict[str, int] = yaml.safe_load(BUDGET.read_text(encoding="utf-8")) if BUDGET.exists() else {}
    found = counts()
    for name, count in found.items():
        print(f"{name:28} {count:7,} {count - budget.get(name, count):+7,}")
    risen = above(budget, found) if budget else []
    for name in risen:
        print(
            f"{name} rose above its budget of {budget.get(name, 0):,}: lower it, or something else in the same commit"
        )
    if "--lower" in sys.argv and not risen:
        BUDGET.write_text(yaml.safe_dump(found, sort_keys=False), encoding="utf-8")
    return 1 if risen else 0


if __name__ == "__main__":
    raise SystemExit(main())
