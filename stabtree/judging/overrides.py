"""`--set ID.PARAM=VALUE`, and what the settings of a project set: parameters of a tree, each by its type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.facts.registry import Param, Parameter
    from stabtree.judging.settings import Settings
    from stabtree.tree.model import Tree

Overrides = dict[str, dict[str, "Param"]]


def pairs(items: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """Split `KEY=VALUE` options.

    Raises:
        StabtreeError: where the equals sign or the key is missing.
    """
    found: dict[str, str] = {}
    for item in items or []:
        key, equals, value = item.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise StabtreeError(f"{item!r} is not of the form KEY=VALUE", where=option, hint=f"type {option} {example}")
        if key.strip() in found:
            raise StabtreeError(f"{key.strip()!r} is given twice", where=option, hint="leave one of them out")
        found[key.strip()] = value.strip()
    return found


def overrides(tree: Tree, items: Sequence[str], settings: Settings) -> Overrides:
    """What is set of a tree; the walk checks what the command line says.

    Raises:
        StabtreeError: for a value of another type, and whatever is wrong with the project's own.
    """
    from stabtree.tree.overrides import overridden

    said = _typed(tree, items)
    theirs: Overrides = {}
    for key, value in settings.set.items():
        id_, _, name = key.rpartition(".")
        with settings.blamed(f"set.{key}", hint=f"`stabtree explain {id_ or 'Q2.1'}` shows what can be set"):
            if not id_:
                raise StabtreeError("names no parameter")
            overridden(tree, {id_: {name: value}})
        theirs.setdefault(id_, {})[name] = value
    taken = {_home(tree, id_, name) for id_, params in said.items() for name in params}
    for id_, params in theirs.items():
        left = {name: value for name, value in params.items() if _home(tree, id_, name) not in taken}
        if left:
            said[id_] = {**left, **said.get(id_, {})}
    return said


def _home(tree: Tree, id_: str, name: str) -> tuple[str, str]:
    """What a parameter is of: `spike` for `Q2.1.sigma`."""
    from stabtree.tree.overrides import declared

    known = declared(tree, id_)
    return (known[name][0] if name in known else "") or id_, name


def _typed(tree: Tree, items: Sequence[str]) -> Overrides:
    """Parse `Q2.1.sigma=4`, each value by the type of its parameter."""
    from stabtree.tree.overrides import declared

    found: Overrides = {}
    for key, text in pairs(items, "--set", "Q2.1.sigma=4").items():
        id_, _, name = key.rpartition(".")
        if not id_ or key in tree.questions:
            raise StabtreeError(f"{key!r} names no parameter", where="--set", hint=_written(tree, key, text))
        known = declared(tree, id_)
        found.setdefault(id_, {})[name] = _parsed(text, known[name][1], key) if name in known else text
    return found


def _written(tree: Tree, key: str, text: str) -> str:
    """How a parameter is set of what was named alone."""
    from stabtree.tree.overrides import declared

    names = list(declared(tree, key)) if key in tree.questions else ["sigma"]
    if not names:
        return f"{key} has no parameters; `stabtree explain {key}` shows what it asks"
    more = f"; `stabtree explain {key}` lists its parameters" if key in tree.questions else ""
    return f"type --set {key or 'Q2.1'}.{names[0]}={text}{more}"


def _parsed(text: str, parameter: Parameter, key: str) -> Param:
    from stabtree.tree.params import LARGEST, fits

    kind = parameter.kind
    try:
        value = {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        wanted = {"bool": "true or false", "int": "a whole number", "float": "a number"}[kind.__name__]
        raise StabtreeError(f"{text!r} is not {wanted}", where=f"--set {key}", hint=f"give {wanted}") from None
    if not fits(value, parameter):
        hint = f"give a number from {parameter.least} to {LARGEST:,}"
        raise StabtreeError(f"{text!r} makes no sense here", where=f"--set {key}", hint=hint)
    return value
