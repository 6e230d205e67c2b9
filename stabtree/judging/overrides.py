"""Parameters of a tree, set by `--set ID.PARAM=VALUE` and by a project's settings, each checked by its type."""

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
        StabtreeError: if the equals sign, the key or the value is missing, or a key is given twice.
    """
    found: dict[str, str] = {}
    for item in items or []:
        key, _, value = map(str.strip, item.partition("="))
        if not key or not value:
            raise StabtreeError(f"{item!r} is not of the form KEY=VALUE", where=option, hint=f"type {option} {example}")
        if key in found:
            raise StabtreeError(f"{key!r} is given twice", where=option, hint="leave one of them out")
        found[key] = value
    return found


def overrides(tree: Tree, items: Sequence[str], settings: Settings) -> Overrides:
    """Return the parameters to set in a tree; the command line overrides the project's settings.

    Raises:
        StabtreeError: for a value of the wrong type, and for any mistake in the project's settings. Unknown parameters
            of the command line are left to the walk.
    """
    from stabtree.tree.overrides import apply_overrides

    given = _typed(tree, items)
    project: Overrides = {}
    for key, value in settings.set.items():
        id_, name = _split(key)
        with settings.blamed(f"set.{key}", hint=f"`stabtree explain {id_ or 'Q2.1'}` shows what can be set"):
            if not id_:
                raise StabtreeError("names no parameter")
            apply_overrides(tree, {id_: {name: value}})
        project.setdefault(id_, {})[name] = value
    taken: set[tuple[str, str]] = set()
    for id_, params in given.items():
        taken.update(_owner(tree, id_, name) for name in params)
    for id_, params in project.items():
        left = {name: value for name, value in params.items() if _owner(tree, id_, name) not in taken}
        if left:
            given[id_] = {**left, **given.get(id_, {})}
    return given


def _split(key: str) -> tuple[str, str]:
    """Return the id and the parameter of `Q2.1.sigma`; the id is empty if there is but one word."""
    id_, _, name = key.rpartition(".")
    return id_, name


def _owner(tree: Tree, id_: str, name: str) -> tuple[str, str]:
    """Return what a parameter belongs to, as `spike` for `Q2.1.sigma`, and its name."""
    from stabtree.tree.overrides import declared

    known = declared(tree, id_)
    if name in known:
        return known[name][0] or id_, name
    return id_, name


def _typed(tree: Tree, items: Sequence[str]) -> Overrides:
    """Parse `Q2.1.sigma=4`, each value by the type of its parameter."""
    from stabtree.tree.overrides import declared

    found: Overrides = {}
    for key, text in pairs(items, "--set", "Q2.1.sigma=4").items():
        id_, name = _split(key)
        if not id_ or key in tree.questions:
            raise StabtreeError(f"{key!r} names no parameter", where="--set", hint=_set_hint(tree, key, text))
        known = declared(tree, id_)
        value: Param = text
        if name in known:
            value = _parse(text, known[name][1], key)
        found.setdefault(id_, {})[name] = value
    return found


def _set_hint(tree: Tree, key: str, text: str) -> str:
    """Return what to type if only a node was named, without a parameter."""
    from stabtree.tree.overrides import declared

    if key not in tree.questions:
        return f"type --set {key or 'Q2.1'}.sigma={text}"
    names = list(declared(tree, key))
    if not names:
        return f"{key} has no parameters; `stabtree explain {key}` shows what it asks"
    return f"type --set {key}.{names[0]}={text}; `stabtree explain {key}` lists its parameters"


def _parse(text: str, parameter: Parameter, key: str) -> Param:
    """Convert a text to the type of its parameter.

    Raises:
        StabtreeError: if it is of another type or out of range.
    """
    from stabtree.tree.params import LARGEST, fits

    kind = parameter.kind
    try:
        value = {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        wanted = {"bool": "true or false", "int": "a whole number", "float": "a number"}[kind.__name__]
        raise StabtreeError(f"{text!r} is not {wanted}", where=f"--set {key}", hint=f"give {wanted}") from None
    if not fits(value, parameter):
        hint = f"give a number from {parameter.minimum} to {LARGEST:,}"
        raise StabtreeError(f"{text!r} is out of range", where=f"--set {key}", hint=hint)
    return value
