"""Loads trees from YAML files and checks them completely: all mistakes at once, each with its line.

A file holds `name`, `title`, `sections` (id, title, entry), `questions` and `leaves`, or the short form of all three,
`checks`; besides `entries`. Their keys are the attributes of the classes in
`stabtree.tree.model`. Further rules: every edge leads to a question or a leaf, no walk goes round in a circle, every
node can be reached, every verdict of a measure has an edge (without one for `unknown` the walk takes `no`), every
parameter exists, has its type and a value, every leaf has a source. A user's tree need not state every
number: what it leaves out is what the shipped trees state of the same fact or measure.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import chain
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError
from stabtree.common.files import Place
from stabtree.common.text import clean, near
from stabtree.common.yaml12 import parse, read, typed
from stabtree.measures import measure_named
from stabtree.run import CONFIG
from stabtree.tree.compose import beside, compose, expand_checks, without
from stabtree.tree.model import (
    LEAF,
    NOTHING,
    Case,
    Check,
    Entry,
    FactParams,
    Group,
    Leaf,
    Part,
    Question,
    Quick,
    Section,
    Severity,
    Take,
    Tree,
    TreeFile,
)
from stabtree.tree.params import lift_fact_params, merge_facts, resolved
from stabtree.tree.shipped import KNOWN, MAIN, PREFLIGHT, heads, names_asking, names_defining, shipped, with_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.common.yaml12 import Document
    from stabtree.common.yaml12 import Path as Path_
    from stabtree.measures.registry import Param
    from stabtree.run import Run
    from stabtree.tree.check import Mistake

LARGEST_BYTES = 1_000_000
MISTAKES_SHOWN = 20
NODES: dict[str, Any] = {
    "sections": Section,
    "questions": Question,
    "leaves": Leaf,
    "groups": Group,
    "entries": Entry,
    "facts": FactParams,
    "checks": Check,
    "tests": Case,
}
_INNER = {"quick": Quick}
_FIELDS = {name: kind.__struct_fields__ for name, kind in {**NODES, **_INNER}.items()}
_SINGULAR = {"leaves": "leaf", "entries": "entry"}
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")  # of where msgspec says that something is, `$.questions[0].go`
_QUOTED = re.compile(r"'([^']+)'")
_WORDS = {
    r"`str` of length <= (\d+)": r"text of at most \1 characters",
    r"`int \| float \| bool \| str`|`.*\|.*`": "a number, a text, true or false",
    "`str`": "text",
    "`array`": "a list",
    "`object`": "a mapping",
    "`bool`": "true or false",
    "`(?:float|int)`": "a number",
    "`null`": "nothing",
}
"""The types that msgspec names, as a person calls them."""


def load_trees(run: Run | None = None, folder: str | Path | None = None) -> Tree:
    """Return the trees that `diagnose` walks by default, composed: Phase-19 first, then those beside it.

    Args:
        run: leave out the trees that have nothing to ask of this run.
        folder: a folder with more trees.

    Raises:
        StabtreeError: if a tree of the folder is no tree, or has an id that another one has.
    """
    idle: Mapping[str, Part] = {}
    if run is not None:
        idle = {name: head for name, head in heads().items() if head.when and not any(map(run.has, head.when))}
    if folder is None:
        return _composed_shipped(tuple(without(heads(), idle)))
    own = [tree for tree in _in_folder(folder) if CONFIG not in tree.when]
    idle = without(idle, {*chain.from_iterable(tree.uses for tree in own)})
    trees = list(map(load_tree, without(heads(), idle)))
    trees += [beside(tree, trees[0], map(load_tree, tree.uses)) for tree in own]
    return _composed(trees, folder, tuple(idle.values()))


def load_preflight(folder: str | Path | None = None) -> Tree:
    """Return the trees that `check` walks over a configuration: ours, and those of a folder that wait for `config`.

    Raises:
        StabtreeError: if a tree of the folder is no tree, or has an id that another one has.
    """
    ours = _shipped_tree(PREFLIGHT)
    if not folder:
        return ours
    own = [beside(tree, ours, map(load_tree, tree.uses)) for tree in _in_folder(folder) if CONFIG in tree.when]
    return _composed([ours, *own], folder) if own else ours


def _in_folder(folder: str | Path) -> list[Tree]:
    where, hint = clean(folder, 100), "name a folder of YAML trees"
    try:
        found = sorted(path for path in Path(folder).iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError as error:
        raise StabtreeError(f"the folder can't be read: {error.strerror}", where=where, hint=hint) from None
    if not found:
        raise StabtreeError("no YAML file in it", where=where, hint=hint)
    return [load_tree(path) for path in found]


def _composed(trees: list[Tree], folder: str | Path | None, left_out: tuple[Part, ...] = ()) -> Tree:
    try:
        return compose(trees, left_out)
    except ValueError as error:
        raise StabtreeError(str(error), where=str(folder), hint="give its nodes ids of their own") from None


@cache
def load_known() -> Tree:
    """Return all shipped trees composed, to be explained and not walked."""
    return compose(list(map(load_tree, KNOWN)))


@cache
def _composed_shipped(names: tuple[str, ...]) -> Tree:
    """Return shipped trees composed, by their names: the same for all runs that log the same."""
    return compose(list(map(load_tree, names)), tuple(without(heads(), names).values()))


def load_defining(word: str) -> Tree | None:
    """Return the shipped trees that define an id, composed, without parsing the others; None if none does."""
    trees = [load_tree(name) for name in names_defining(word.strip())]
    if not trees:
        return None
    return compose(trees, (Part("others", "", loaded=False),))


def load_tree(name: str | Path = "phase19") -> Tree:
    """Load a tree by the name of a shipped one, or from a YAML file.

    Raises:
        StabtreeError: with the mistakes in the file as `file:line: what`, or if there is no such tree.
    """
    known = shipped()
    if str(name) in known:
        return _shipped_tree(str(name))
    path = Path(name)
    if not isfile(path):  # noqa: PTH113 - of pathlib it raises for a name that is too long
        others = "`stabtree tree list` names the shipped trees; or give a file"
        hint = near(str(name), known).removeprefix("; ") or others
        raise StabtreeError("no such tree", where=clean(name, 100), hint=hint)
    return build(_text(path), str(name))


@cache
def _shipped_tree(name: str) -> Tree:
    """Return a shipped tree; that it has no mistake is for a test to show, not for every start."""
    path = shipped()[name]
    file = typed(read(path), TreeFile, path.name)
    tree = with_limits(tree_of(file))
    if tree.uses:
        tree = compose([tree, *map(load_tree, tree.uses)])
    return replace(_with_facts(tree) if name != MAIN else tree, version=__version__)


def _with_facts(tree: Tree) -> Tree:
    """Return a tree with what the main one states of facts, as far as it says nothing else."""
    return replace(tree, facts=merge_facts(tree.facts, load_tree(MAIN).facts))


def _text(path: Path) -> str:
    where = clean(path, 100)
    try:
        raw = path.read_bytes()
        if len(raw) > LARGEST_BYTES:
            problem = f"a file of {len(raw):,} bytes is too large for a tree"
            raise StabtreeError(problem, where=where, hint="the limit is 1 MB")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StabtreeError("the file is not UTF-8 text", where=where, hint="save the tree as UTF-8") from None
    except OSError as error:
        raise StabtreeError(f"it can't be read: {error.strerror}", where=where, hint="check its permissions") from None


def build(text: str, where: str) -> Tree:
    """Build a tree from YAML text that anyone may have written; messages name it by `where`.

    Raises:
        StabtreeError: with the mistakes, the first ones and how many more there are: those of its keys and values, or
            where there are none those between its nodes.
    """
    document = parse(text, where)
    file, mistakes = _file_of(document)
    if file is None or mistakes:
        raise _refusal(mistakes, where, text)
    places = _places(document.value)
    found = _used_twice(document.value)
    tree, misplaced = lift_fact_params(tree_of(file))
    tree, missing = _with_used(tree)
    tree = _with_facts(_with_all_params(tree))
    found += [*(("", "", text) for text in misplaced), *(("", "uses", text) for text in missing)]
    if not missing:
        from stabtree.tree.check import check, check_reach

        found += check(tree)
        found = found or list(check_reach(tree))
    if found:
        lines = ((document.line(*places.get(name, ()), *filter(None, [key])), text) for name, key, text in found)
        raise _refusal(lines, where, text)
    return tree


def _refusal(mistakes: Iterable[tuple[int, str]], where: str, text: str) -> StabtreeError:
    found = sorted(set(mistakes))
    lines = [f"{where}:{line}: {what}" for line, what in found]
    places = enumerate((_place(*one, text) for one in found[:MISTAKES_SHOWN]), 1)
    shown = [f"{len(lines):,} mistake{'s' if len(lines) != 1 else ''} in the tree", *lines[:MISTAKES_SHOWN]]
    if len(lines) > MISTAKES_SHOWN:
        shown.append(f"and {len(lines) - MISTAKES_SHOWN:,} more")
    hint = "correct them, then `stabtree tree check FILE`"
    return StabtreeError("\n  ".join(shown), where=where, hint=hint, places=places)


def _place(number: int, mistake: str, text: str) -> Place:
    """Return the place in a line of the first word that a mistake quotes; without one, of all that the line says."""
    line = (*text.splitlines(), "")[number - 1]
    words = map(re.escape, (*_QUOTED.findall(mistake), line.strip()))
    found = next(filter(None, (re.search(rf"(?<![\w-]){word}(?![\w-])", line) for word in words)))
    return Place(number, line, *found.span())


def _file_of(document: Document) -> tuple[TreeFile | None, list[tuple[int, str]]]:
    """Return what a file holds, and the mistakes in its keys and values, of each node the first; None with any."""
    top, mistakes = document.value, list(document.mistakes)
    if not isinstance(top, dict):
        return None, [(1, "a tree is a mapping with name, title, sections, questions and leaves")]
    nodes = {key: value for key, value in top.items() if key in NODES and isinstance(value, list)}
    parts: list[tuple[Path_, Any, Any]] = [((), {**top, **dict.fromkeys(nodes, ())}, TreeFile)]
    parts += [((key, index), item, NODES[key]) for key, items in nodes.items() for index, item in enumerate(items)]
    for path, value, kind in parts:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            mistakes.append(_mistake(document, path, str(error)))
    return (None if mistakes else msgspec.convert(top, TreeFile)), mistakes


def _mistake(document: Document, path: Path_, error: str) -> tuple[int, str]:
    """Return the line of what msgspec refuses, and in words what is wrong."""
    problem, _, place = error.partition(" - at ")
    path = (*path, *(int(index) if index else key for key, index in _STEP.findall(place)))
    what, fields, key, value = "tree", TreeFile.__struct_fields__, "", document.value
    for step in path:
        value = value[step]
        key = step if isinstance(step, str) else key
        if isinstance(value, dict) and key in _FIELDS and (step != key or key not in NODES):
            what = f"{_SINGULAR.get(key, key.removesuffix('s'))} {value.get('id', '')}".strip()
            fields = _FIELDS[key]
    line = document.line(*path)
    if unknown := re.search(r"unknown field `(.*)`", problem):
        return document.line(*path, unknown[1]), f"{what} has no key {unknown[1]!r}{near(unknown[1], fields)}"
    if missing := re.search(r"missing required field `(.*)`", problem):
        return line, f"{what} lacks the key {missing[1]!r}"
    subject = f"{key!r} of {what}" if path and isinstance(path[-1], str) else f"each of {key!r} of {what}"
    if problem.startswith("Invalid enum"):
        return line, f"{subject} must be one of {', '.join(Take if key == 'take' else Severity)}"
    expected, _, given = problem.removeprefix("Expected ").partition(", got ")
    for word, plain in _WORDS.items():
        expected, given = re.sub(word, plain, expected), re.sub(word, plain, given)
    return line, f"{subject} must be {expected}" + (f", not {given}" if given else "")


def _places(top: dict[str, Any]) -> dict[str, Path_]:
    """Return where each node is: `§1` a section, `fact spike`, `test 0`, and the others by their ids."""
    found: dict[str, Path_] = {}
    for key in NODES:
        prefix = {"sections": "§", "facts": "fact ", "tests": "test "}.get(key, "")
        for index, raw in enumerate(top.get(key, ())):
            found[f"{prefix}{raw.get('id', index)}"] = (key, index)
            if key == "checks":
                found[f"§{raw['id']}"] = (key, index)
                found.setdefault(raw["leaf"], (key, index))
    return found


def _used_twice(top: dict[str, Any]) -> list[Mistake]:
    """Return a mistake for each id that two nodes have; sections and facts may have the id of a node."""
    walked = [raw["id"] for key in ("questions", "checks", "leaves", "groups", "entries") for raw in top.get(key, ())]
    walked += [raw["leaf"] for raw in top.get("checks", ())]
    stated = [raw["id"] for raw in top.get("facts", ())]
    twice = [(id_, id_) for id_, count in Counter(walked).items() if count > 1]
    twice += [(f"fact {id_}", id_) for id_, count in Counter(stated).items() if count > 1]
    return [(name, "", f"the id {id_} is used twice") for name, id_ in twice]


def tree_of(file: TreeFile) -> Tree:
    """Return the tree of a file, with its checks expanded and the address of each leaf's page."""
    sections, questions, leaves = expand_checks(file.name, file.checks)
    paged: dict[str, Leaf] = {}
    for leaf in (*file.leaves, *leaves):  # one that the file spells out stands for that of a check's verdict
        own = leaf.page or leaf.title == NOTHING or not file.pages
        paged.setdefault(leaf.id, leaf if own else replace(leaf, page=file.pages.replace(LEAF, file_of(leaf.id))))
    plain = ("name", "title", "about", "source", "see", "when", "uses", "tests", "pages", "version")
    return Tree(
        **{name: getattr(file, name) for name in plain},
        sections=(*file.sections, *sections),
        questions=_by_id((*file.questions, *questions)),
        leaves=paged,
        groups=_by_id(file.groups),
        entries=_by_id(file.entries),
        facts=_by_id(file.facts),
    )


def _by_id(nodes: Iterable[Any]) -> dict[str, Any]:
    return {node.id: node for node in nodes}


def file_of(id_: str) -> str:
    """Return an id as the name of a file, which is part of an address too, in characters that are safe anywhere."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", id_)


def schema(tests: Iterable[str]) -> dict[str, Any]:
    """Return the JSON Schema of tree files, for editors; what relates nodes is checked by `stabtree tree check` alone.

    Args:
        tests: the names of measures that a `test` may have.
    """
    made = msgspec.json.schema(TreeFile)
    kinds = made["$defs"]
    for shape in kinds.values():
        shape["description"] = shape.get("description", "").partition("\n\n")[0]
    for kind in ("Question", "Check"):
        kinds[kind]["properties"]["test"] = {"enum": sorted(tests)}
    top = kinds.pop("TreeFile") | {"title": "A decision tree of stabtree"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": kinds}


def _with_used(tree: Tree) -> tuple[Tree, list[str]]:
    """Return the tree composed with those that it uses, and what prevents that."""
    known = shipped()
    missing = [name for name in tree.uses if name not in known]
    if missing:
        return tree, [f"uses {missing[0]!r}, which is not a shipped tree; those are {', '.join(known)}"]
    if not tree.uses:
        return tree, []
    try:
        return compose([tree, *map(load_tree, tree.uses)]), []
    except ValueError as error:
        return tree, [str(error)]


def _with_all_params(tree: Tree) -> Tree:
    """Return the tree with every parameter that a node leaves out as the shipped trees state it."""

    def full(node: Question) -> Question:
        measure = measure_named(node.test)
        if measure is None:
            return node
        try:
            lacking = measure.params.keys() - resolved(tree, node).keys()
        except (KeyError, RecursionError):  # it is like what can't be asked, which the check reports
            return node
        stated = {key: value for key, value in stated_for(node.test).items() if key in lacking} if lacking else {}
        return replace(node, params={**stated, **node.params})

    return replace(tree, questions={id_: full(node) for id_, node in tree.questions.items()})


@cache
def stated_for(test: str) -> Mapping[str, Param]:
    """Return what the shipped trees state for a measure: the parameters of the first node that asks it."""
    for name in names_asking(test):
        tree = load_tree(name)
        node = next((node for node in tree.questions.values() if node.test == test), None)
        if node is not None:
            return resolved(tree, node)
    return {}
