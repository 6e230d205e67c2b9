"""The shape of the code: data flows one way, and starting up stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stabtree.cli.program import commands

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parents[2] / "stabtree"
HEALTHY = str(PACKAGE.parent / "fixtures" / "phase19" / "healthy")
# Stages from left to right, names of one stage with blanks between them.
CORE = "_version common|metrics|frameworks|run|loaders|profile|context|measures|tree|diagnosis|judging|report"
# The tools stand to the right of the core, and what users import to the right of both.
ORDER = f"{CORE}|cli|tools|__init__ __main__ integrations"
INNER_ORDERS = {
    # The terminal, the options, how words become a call, where results go, the commands.
    "cli": "terminal|options|program|output|diagnose explain inspect tree|__init__",
    # What is known and how, with the columns and settings that show it; each part, the whole.
    "context": "__init__ model|find",
    # What all formats share, the formats, what makes a run of tables, what looks for the files, what reads a
    # configuration that has no log yet.
    "loaders": "binary config|source|table|counters folder|tables|json|text tensorboard|trackers|assemble"
    "|formats|paths|__init__",
    # Styles and words, what a report says, what draws it, and the outputs.
    "report": "outputs|page|advice rows contract|words|model plot json trees|explain svg inspect curves|sections"
    "|screen markdown html|card|__init__",
    "tools": "__init__|check|anonymize compare|fleet|ci|live calibrate cases",
}
FORMATS = ("tables", "json", "text", "tensorboard", "trackers")
MAX_IN_A_FOLDER = 25
HEAVY = ("pandas", "numpy", "rich", "yaml", "pydantic")
ROOMS = (
    *("run", "metrics", "loaders", "profile", "context", "measures", "tree", "diagnosis", "judging.judge"),
    *("report", "tools.fleet", "tools.live"),
)
COMMAND_MODULES = [entry.address.partition(":")[0] for entry in commands().values()]
UNCOUNTED = {"__init__.py", "conftest.py", "__main__.py", "_version.py", "py.typed", "__pycache__"}


@cache
def modules() -> tuple[Path, ...]:
    """All modules of the package."""
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def parsed(path: Path) -> ast.Module:
    """A module's code."""
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> tuple[str, ...]:
    """A module's place in the package: `("loaders", "source")`."""
    return (*path.relative_to(PACKAGE).parts[:-1], path.stem)


@cache
def known_modules() -> frozenset[tuple[str, ...]]:
    """The names of all modules."""
    return frozenset(map(name_of, modules()))


@cache
def imports(path: Path) -> frozenset[tuple[str, ...]]:
    """The modules of the package that a module imports, inside functions and for type checking too."""
    known = known_modules()
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            # `from stabtree.tree import model` imports a module, `from stabtree.run import Run` a name of one.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            first, *parts = name.split(".")
            if first == "stabtree":
                inner = tuple(parts)
                found.add(next((m for m in (inner, inner[:-1]) if m in known), (*inner[:-1], "__init__")))
    return frozenset(found)


def test_a_module_imports_only_what_stands_to_its_left() -> None:
    """No import, not even inside a function, points to a later stage of the data's way, nor inside a room."""
    wrong = [
        f"{'.'.join(own)} imports {'.'.join(other)}"
        for own, other in every_import()
        if not stage(ORDER, other[0]) <= stage(ORDER, own[0]) or not in_room_order(own, other)
    ]
    assert not wrong


def test_the_core_imports_no_tool() -> None:
    """Reading, walking and printing work without the tools; the core finds them in their tables."""
    core = {*CORE.replace("|", " ").split(), "cli"}
    wrong = [
        f"{'.'.join(own)} imports {'.'.join(other)}"
        for own, other in every_import()
        if own[0] in core and other[0] == "tools"
    ]
    assert not wrong


def every_import() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield each import of one module of the package by another: who imports, what is imported."""
    for path in modules():
        for other in sorted(imports(path)):
            yield name_of(path), other


def in_room_order(own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether an import inside a room keeps to that room's own order."""
    if own[0] != other[0] or own[0] not in INNER_ORDERS:
        return True
    order = INNER_ORDERS[own[0]]
    return stage(order, other[1]) <= stage(order, own[1])


def stage(order: str, name: str) -> int:
    """Return the index of the stage that a name belongs to."""
    return next(index for index, names in enumerate(order.split("|")) if name in names.split())


def test_a_format_knows_of_no_other_but_for_cells_json_and_printed_lines() -> None:
    """The rooms of the last formats import none of each other's; cells, JSON values and printed lines are shared."""
    last = {*FORMATS} - {"tables", "json", "text"}
    for path in modules():
        own = name_of(path)
        if own[0] == "loaders" and own[1] in FORMATS:
            rooms = {other[1] for other in imports(path) if other[0] == "loaders" and other[1] in FORMATS} - {own[1]}
            assert not rooms & last, f"{own} imports {rooms}"
            shared = {other for other in imports(path) if other[0] == "loaders" and other[1] in rooms}
            assert shared <= {
                ("loaders", "tables", "cells"),
                ("loaders", "tables", "collected"),
                ("loaders", "tables", "delimited"),
                ("loaders", "json", "lines"),
                ("loaders", "json", "rows"),
                ("loaders", "text", "messages"),
                ("loaders", "text", "reader"),
            }, f"{own} imports {shared}"


def test_no_modules_import_each_other() -> None:
    """There is no circle of imports, those for type checking counted."""
    graph = {name_of(path): imports(path) - {name_of(path)} for path in modules()}
    while free := {name for name, others in graph.items() if not others & graph.keys()}:
        graph = {name: others for name, others in graph.items() if name not in free}
    assert not graph


def test_no_rooms_inside_report_import_each_other() -> None:
    """What a report says imports nothing that draws it, and no way to draw it imports another of its stage."""
    inside = [(own[1], other[1]) for own, other in every_import() if own[0] == other[0] == "report"]
    order = INNER_ORDERS["report"]
    assert not {(own, other) for own, other in inside if own != other and stage(order, own) == stage(order, other)}


def test_what_a_column_means_is_asked_in_one_place() -> None:
    """Only `metrics.names` looks into the aliases; everyone else asks the names that it was handed."""
    hidden = {"match", "table"}
    for path in modules():
        if name_of(path)[0] != "metrics":
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.ImportFrom) and node.module == "stabtree.metrics.table":
                    assert not hidden & {alias.name for alias in node.names}, path


def test_no_two_classes_share_a_name() -> None:
    """A class's name says which one it is."""
    names = [node.name for path in modules() for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("root", [PACKAGE, PACKAGE.parent / "tests"], ids=["stabtree", "tests"])
def test_a_folder_can_be_taken_in_at_a_glance(root: Path) -> None:
    """No folder holds more than 24 modules and rooms."""
    for folder in (root, *(place for place in root.rglob("*") if place.is_dir() and (place / "__init__.py").exists())):
        # the files of trainers are read one at a time
        entries = {entry.name for entry in folder.iterdir() if entry.suffix != ".yaml"} - UNCOUNTED
        assert len(entries) <= MAX_IN_A_FOLDER, f"{folder} holds {sorted(entries)}"


def test_only_the_command_line_prints_or_exits() -> None:
    """Nothing outside cli/ and the commands of tools prints, exits or reads the environment; trackers set libraries."""
    outside = [path for path in modules() if not is_command_line(path) and path.parent.name != "trackers"]
    assert not [where for path in outside for where in prints_or_exits(path)]


def is_command_line(path: Path) -> bool:
    """Whether a module belongs to the command line."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] in ("cli", "__main__.py") or (parts[0] == "tools" and path.stem == "command")


def prints_or_exits(path: Path) -> Iterator[str]:
    """Yield where a module prints, exits or reads the environment."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("print", "exit", "quit", "input"):
                yield f"{path}:{node.lineno} {node.func.id}"
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.exit", "os.environ", "os.getenv"):
            yield f"{path}:{node.lineno} {ast.unparse(node)}"


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], [*HEAVY, *(f"stabtree.{room}" for room in ROOMS), *COMMAND_MODULES]),
        (["diagnose", "--help"], [*HEAVY, "stabtree.diagnosis", "stabtree.measures", "stabtree.tools.fleet.command"]),
        (["explain", "Q2.3"], ["pandas", "numpy", "pydantic"]),
        (
            ["diagnose", HEALTHY, "--checkpoint-every", "50"],
            ["pandas", "pydantic", "numpy.ma", "stabtree.tools.fleet", "stabtree.tools.ci.baseline"],
        ),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], absent: list[str]) -> None:
    """Help imports no heavy library, nothing that reads or judges, no command; a small log no pandas, nor a scan."""
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
        "import sys\nfrom stabtree.cli import main\nmain()\n"
        f"sys.stderr.write(' '.join(m for m in {absent!r} if m in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert done.stdout
    return done.stderr
