"""Trees from YAML files, checked completely: all mistakes at once, each with its line.

A file holds `name`, `title`, `sections` (id, title, entry), `questions` and `leaves`, or the short form of all three,
`checks`; besides `entries`, and `causes` for leaves of other trees. Their keys are the attributes of the classes in
`stabtree.tree.model`. Further rules: every edge leads to a question or a leaf,
no walk can come back to where it was, every node can be reached, every verdict of a predicate has an
edge (`unknown` may lack one: the walk then goes on along `no`), every parameter exists, has its type and a value,
every leaf has a fix and a source. A tree of a user's own need not state every number: what it leaves out is what the
shipped trees state of the same fact or predicate.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.common.yaml12 import parse
from stabtree.predicates import predicate_named
from stabtree.run import CONFIG
from stabtree.tree.build import Builder
from stabtree.tree.check import check
from stabtree.tree.compose import compose
from stabtree.tree.document import Part
from stabtree.tree.overrides import hoisted
from stabtree.tree.params import Asking, asking, fact_params, merged, resolved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.facts.registry import Param
    from stabtree.run import Run
    from stabtree.tree.model import Tree

LARGEST_BYTES = 1_000_000
MISTAKES_SHOWN = 20
HEAD = 2000
_HEAD = re.compile(r"^(name|title|when): (.*)$", re.MULTILINE)
_TITLED = re.compile(r"\bid: ([\w.-]+)[^\n]*\n(?: +(?!ask|title)[a-z]+: [^\n]*\n){0,4}? +(?:ask|title): ([^\n]+)")
MAIN = "phase19"
DEFAULT = (MAIN, "convergence", "precision", "sft", "grpo", "signatures", "errors")
PREFLIGHT = "preflight"
KNOWN = (*DEFAULT, PREFLIGHT)
"""All that can be explained; a log is walked through the default ones, a configuration through the last."""


def shipped() -> dict[str, Path]:
    """The trees that come with stabtree, by name."""
    package = Path(__file__).parent.parent
    folder = package / "_trees"  # in a wheel; in a checkout the trees stand beside the package
    if not folder.is_dir():
        folder = package.parent / "trees"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def load_trees(run: Run | None = None, folder: str | Path | None = None) -> Tree:
    """The trees that `diagnose` walks unless told otherwise, put together: Phase-19 first, then those beside it.

    Args:
        run: leave out the trees that have nothing to ask of this run.
        folder: a folder with more trees.

    Raises:
        StabtreeError: where a tree of the folder is no tree, or has an id that another one has.
    """
    heads = _heads()
    out = {
        name: head
        for name, head in heads.items()
        if run is not None and head.when and not any(run.has(item) for item in head.when)
    }
    if folder is None:
        return _together(tuple(name for name in heads if name not in out))
    own = [tree for tree in _in_folder(folder) if CONFIG not in tree.when]
    used = {name for tree in own for name in tree.uses}
    out = {name: head for name, head in out.items() if name not in used}
    trees = [load_tree(name) for name in heads if name not in out]
    trees += [_yielding(_without_used(tree), trees[0]) for tree in own]
    return _composed(trees, folder, tuple(out.values()))


def load_preflight(folder: str | Path | None = None) -> Tree:
    """The trees that `check` walks over a configuration: ours, and those of a folder that wait for `config`.

    Raises:
        StabtreeError: where a tree of the folder is no tree, or has an id that another one has.
    """
    ours = load_tree(PREFLIGHT)
    own = [tree for tree in _in_folder(folder) if CONFIG in tree.when] if folder else []
    return _composed([ours, *(_yielding(_without_used(tree), ours) for tree in own)], folder) if own else ours


def _in_folder(folder: str | Path) -> list[Tree]:
    return [load_tree(path) for path in _files(Path(folder))]


def _composed(trees: list[Tree], folder: str | Path | None, left_out: tuple[Part, ...] = ()) -> Tree:
    try:
        return compose(trees, left_out)
    except ValueError as error:
        raise StabtreeError(str(error), where=str(folder), hint="give its nodes ids of their own") from None


@cache
def load_known() -> Tree:
    """All shipped trees put together, for what is explained and not walked."""
    return compose([load_tree(name) for name in KNOWN])


@cache
def _together(names: tuple[str, ...]) -> Tree:
    """Shipped trees put together: the same for all runs that log the same."""
    return compose(
        [load_tree(name) for name in names], tuple(head for name, head in _heads().items() if name not in names)
    )


@cache
def _heads() -> Mapping[str, Part]:
    """What the default trees say of themselves."""
    known = shipped()
    return {name: _head(known[name]) for name in DEFAULT if name in known}


def _without_used(tree: Tree) -> Tree:
    """The tree without what it took from the shipped ones that it uses, which are walked beside it."""
    used = [load_tree(name) for name in tree.uses]
    taken = {id_ for other in used for id_ in (*other.questions, *other.leaves, *other.groups, *other.entries)}
    return replace(
        tree,
        sections=tuple(section for section in tree.sections if not used or section.tree == tree.name),
        questions={id_: node for id_, node in tree.questions.items() if id_ not in taken},
        leaves={id_: node for id_, node in tree.leaves.items() if id_ not in taken},
        groups={id_: node for id_, node in tree.groups.items() if id_ not in taken},
        entries={id_: node for id_, node in tree.entries.items() if id_ not in taken},
        signatures=tuple(item for item in tree.signatures if all(item not in other.signatures for other in used)),
    )


def _yielding(tree: Tree, owner: Tree) -> Tree:
    """The tree, whose facts are those of the tree that it is walked beside."""
    mine, theirs = fact_params(tree), fact_params(owner)
    for name, params in mine.items():
        for key, value in params.items():
            if value != theirs[name][key]:
                raise StabtreeError(
                    f"states {name}.{key} = {value}, where {owner.name} has {theirs[name][key]}: one value for all",
                    where=clean(tree.name, 100),
                    hint=f"leave it out and type --set {name}.{key}={value}",
                )
    return tree


def _files(folder: Path) -> list[Path]:
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError as error:
        raise StabtreeError(
            f"the folder can't be read: {error.strerror}", where=clean(folder, 100), hint="name a folder of YAML trees"
        ) from None
    if not found:
        raise StabtreeError("no YAML file in it", where=clean(folder, 100), hint="name a folder of YAML trees")
    return found


def _head(path: Path) -> Part:
    """What the first lines of a shipped tree say of it, without parsing the rest."""
    text = path.read_text(encoding="utf-8")[:HEAD]
    found = dict(_HEAD.findall(text))
    when = tuple(word.strip() for word in found.get("when", "").strip("[] ").split(",") if word.strip())
    return Part(found["name"], found["title"], when, loaded=False)


def load_defining(word: str) -> Tree | None:
    """The shipped trees that define an id, put together, without parsing the others; None where none does."""
    id_ = re.escape(word.strip())
    mark = re.compile(rf"\bid: [\"']?{id_}[\"']?\s*[,\n}}]|\bleaf: {id_}\s*[,\n]|\bof: \[[^]]*\b{id_}\b")
    known = shipped()
    texts = {name: known[name].read_text(encoding="utf-8") for name in KNOWN if name in known}
    trees = [load_tree(name) for name, text in texts.items() if word.strip() in text and mark.search(text)]
    return compose(trees, (Part("others", "", loaded=False),)) if trees else None


@cache
def shipped_titles() -> Mapping[str, str]:
    """What the nodes of all shipped trees are called, by id, found without parsing them."""
    texts = (path.read_text(encoding="utf-8") for path in shipped().values())
    return {id_: title.strip("\"' ") for text in texts for id_, title in _TITLED.findall(text)}


def load_tree(name: str | Path = "phase19") -> Tree:
    """Load a tree by the name of a shipped one, or from a YAML file.

    Raises:
        StabtreeError: with the mistakes in the file as `file:line: what`, or where there is no such tree.
    """
    known = shipped()
    if str(name) in known:
        return _shipped_tree(str(name))
    path = Path(name)
    if not _is_file(path):
        near = difflib.get_close_matches(str(name), known, 1)
        hint = (
            f"did you mean {near[0]}?" if near else "`stabtree tree list` names the shipped trees; or give a YAML file"
        )
        raise StabtreeError("no such tree", where=clean(name, 100), hint=hint)
    return build(_text(path), str(name))


@cache
def _shipped_tree(name: str) -> Tree:
    path = shipped()[name]
    return replace(build(_text(path), path.name, shipped_name=name), version=__version__)


def _text(path: Path) -> str:
    where = clean(path, 100)
    try:
        raw = path.read_bytes()
        if len(raw) > LARGEST_BYTES:
            raise StabtreeError(
                f"a file of {len(raw):,} bytes is too large for a tree", where=where, hint="the limit is 1 MB"
            )
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StabtreeError("the file is not UTF-8 text", where=where, hint="save the tree as UTF-8") from None
    except OSError as error:
        raise StabtreeError(f"it can't be read: {error.strerror}", where=where, hint="check its permissions") from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False  # a name too long, or one with a NUL


def build(text: str, where: str, *, shipped_name: str = "") -> Tree:
    """Build a tree from YAML text; `where` names it in messages, `shipped_name` is that of a shipped one.

    Raises:
        StabtreeError: with the mistakes, the first ones and how many more there are.
    """
    document = parse(text, where)
    builder = Builder(document)
    tree = builder.tree()
    wrong = [*document.mistakes, *builder.mistakes]
    if tree is not None:
        tree, strange = (tree, []) if shipped_name else hoisted(tree)
        tree, missing = _with_used(tree)
        strange += missing
        if not shipped_name:
            tree = _completed(tree)
        if shipped_name != MAIN:
            tree = _inheriting(tree)
        found = strange or check(tree, builder.places, whole=not wrong)
        wrong += [(line, text) for line, text in found if line not in builder.broken]
    if wrong or tree is None:
        lines = [f"{where}:{line}: {what}" for line, what in sorted(set(wrong))]
        count = f"{len(lines):,} mistake{'s' if len(lines) != 1 else ''} in the tree"
        more = [f"and {len(lines) - MISTAKES_SHOWN:,} more"] if len(lines) > MISTAKES_SHOWN else []
        raise StabtreeError(
            "\n  ".join([count, *lines[:MISTAKES_SHOWN], *more]),
            where=where,
            hint="correct them, then `stabtree tree check FILE`",
        )
    return tree


def _inheriting(tree: Tree) -> Tree:
    """The tree with what the main one states of facts, where it is silent."""
    return replace(tree, facts=merged(tree.facts, load_tree(MAIN).facts))


def _completed(tree: Tree) -> Tree:
    """The tree with every parameter that a node leaves out as the shipped trees state it."""

    def full(node: Asking) -> dict[str, Any]:
        lacking = _lacking(tree, node)
        stated = stated_for(node.test) if lacking else {}
        return {**{key: stated[key] for key in lacking & set(stated)}, **node.params}

    leaves = {
        id_: replace(leaf, causes=tuple(replace(cause, params=full(cause)) for cause in leaf.causes))
        for id_, leaf in tree.leaves.items()
    }
    return replace(
        tree,
        questions={id_: replace(node, params=full(node)) for id_, node in tree.questions.items()},
        leaves=leaves,
        signatures=tuple(replace(item, params=full(item)) for item in tree.signatures),
    )


def _lacking(tree: Tree, node: Asking) -> set[str]:
    """The parameters that a node leaves out; none where it is like what can't be asked: the check says so."""
    predicate = predicate_named(node.test)
    if predicate is None:
        return set()
    try:
        return set(predicate.params) - set(resolved(tree, node))
    except (KeyError, RecursionError):
        return set()


@cache
def stated_for(test: str) -> Mapping[str, Param]:
    """What the shipped trees state for a predicate: the parameters of the first node that asks it."""
    mark = re.compile(rf"\btest: {re.escape(test)}\b")
    for name in KNOWN:
        if mark.search(shipped()[name].read_text(encoding="utf-8")):
            tree = load_tree(name)
            node = next((node for node in asking(tree) if node.test == test), None)
            if node is not None:
                return resolved(tree, node)
    return {}


def _with_used(tree: Tree) -> tuple[Tree, list[tuple[int, str]]]:
    """The tree put together with those that it uses, and what stands in the way of it."""
    if not tree.uses:
        return tree, []
    known = shipped()
    missing = [name for name in tree.uses if name not in known]
    if missing:
        return tree, [(1, f"uses {missing[0]!r}, which is not a shipped tree; those are {', '.join(known)}")]
    try:
        return compose([tree, *(load_tree(name) for name in tree.uses)]), []
    except ValueError as error:
        return tree, [(1, str(error))]
