"""The types that the public functions take and give, found by their hints.

Modules import what only their hints name under `if TYPE_CHECKING`, which is not run; here it is, aside.
"""

from __future__ import annotations

import ast
import inspect
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import stabtree
from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

PACKAGE = stabtree.__name__


def checking_names() -> dict[str, dict[str, Any]]:
    """For each module of the package that is loaded, the names that it has for a type checker alone."""
    found: dict[str, dict[str, Any]] = {}
    while True:
        new = [name for name in sorted(sys.modules) if name.partition(".")[0] == PACKAGE and name not in found]
        if not new:
            return found
        for name in new:
            found[name] = {}
            for statement in _checked_only(sys.modules[name]):
                _run(statement, name, found)


def public() -> dict[str, Any]:
    """Return the classes and functions that `stabtree` exports, by name; not its constants, which are texts."""
    found = {name: getattr(stabtree, name) for name in stabtree.__all__}
    return {name: thing for name, thing in found.items() if not isinstance(thing, str)}


def types() -> list[type]:
    """The classes of the package that can come back from what is public, or be asked for by it; nearest first."""
    waiting, found = [*public().values()], dict[type, None]()
    for thing in waiting:
        import_module(thing.__module__)
    names = checking_names()
    for thing in waiting:  # which grows on the way
        for kind in _named(thing, names):
            if kind not in found and kind not in public().values():
                found[kind] = None
                waiting.append(kind)
    return list(found)


def _checked_only(module: ModuleType) -> Iterator[ast.stmt]:
    source = inspect.getsource(module) if getattr(module, "__file__", None) else ""
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from node.body


def _run(statement: ast.stmt, module: str, found: dict[str, dict[str, Any]]) -> None:
    """Run a statement as its module would, and keep what it names."""
    if isinstance(statement, ast.ImportFrom) and (statement.module or "").partition(".")[0] == PACKAGE:
        for alias in statement.names:
            with suppress(AttributeError, ImportError, StabtreeError):  # of what needs a package that is not installed
                held = getattr(import_module(str(statement.module)), alias.name)
                found[module][alias.asname or alias.name] = held
        return
    names = {**vars(sys.modules[module]), **found[module]}
    with suppress(ImportError, StabtreeError):
        exec(compile(ast.Module([statement], []), module, "exec"), names)  # noqa: S102 - our own source
        found[module] |= {key: held for key, held in names.items() if key not in vars(sys.modules[module])}
        found[module].pop("__builtins__", None)


def _named(thing: Any, names: dict[str, dict[str, Any]]) -> Iterator[type]:
    """The classes that the hints of a function name, or those of a class's fields, properties and methods."""
    members = [thing]
    if inspect.isclass(thing):
        held = {name: member for name, member in vars(thing).items() if not name.startswith("_")}
        members += [member.fget if isinstance(member, property) else member for member in held.values()]
        members.append(vars(thing).get("__init__"))
    for member in members:
        if inspect.isclass(member) or inspect.isfunction(member):
            hints = get_type_hints(member, localns=_local_names(member.__module__, names))
            for name, hint in hints.items():
                if not name.startswith("_"):
                    yield from _classes(hint)


def _local_names(module: str, names: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a module's names for a type checker, and those of others that an imported alias may hold as text."""
    own = vars(sys.modules[module])
    others = {name: thing for held in names.values() for name, thing in held.items() if name not in own}
    return {**others, **names.get(module, {})}


def _classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and hint.__module__.partition(".")[0] == PACKAGE:
        yield hint
    for part in hint if isinstance(hint, list) else get_args(hint):  # a list: what a function takes
        yield from _classes(part)
