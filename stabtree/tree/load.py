"""Loads trees from YAML files and checks them completely: all mistakes at once, each with its line.

A file holds `name`, `title`, `sections` (id, title, entry), `questions` and `leaves`, or the short form of all three,
`checks`; besides `entries`, and `causes` for leaves of other trees. Their keys are the attributes of the classes in
`stabtree.tree.model`. Further rules: every edge leads to a question or a leaf, no walk goes round in a circle, every
node can be reached, every verdict of a predicate has an edge (without one for `unknown` the walk takes `no`), every
parameter exists, has its type and a value, every leaf has a fix and a source. A user's tree need not state every
number: what it leaves out is what the shipped trees state of the same fact or predicate.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near
from stabtree.common.yaml12 import parse, read, typed
from stabtree.predicates import predicate_named
from stabtree.run import CONFIG
from stabtree.tree.build import TreeReader, tree_of
from stabtree.tree.calibration import with_limits
from stabtree.tree.compose import beside, compose, without
from stabtree.tree.model import Cause, Part, Question, TreeFile
from stabtree.tree.overrides import lift_fact_params
from stabtree.tree.params import asking, merge_facts, resolved
from stabtree.tree.shipped import KNOWN, MAIN, PREFLIGHT, heads, names_asking, names_defining, shipped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.facts.registry import Param
    from stabtree.run import Run
    from stabtree.tree.model import Tree

Node = TypeVar("Node", bound=Question | Cause)

LARGEST_BYTES = 1_000_000
MISTAKES_SHOWN = 20


def load_trees(run: Run | None = None, folder: str | Path | None = None) -> Tree:
    """Return the trees that `diagnose` walks by default, composed: Phase-19 first, then those beside it.

    Args:
        run: leave out the trees that have nothing to ask of this run.
        folder: a folder with more trees.

    Raises:
        StabtreeError: if a tree of the folder is no tree, or has an id that another one has.
    """
    idle = _idle(run)
    if folder is None:
        return _composed_shipped(tuple(without(heads(), idle)), configured=run is None or bool(run.config))
    own = [tree for tree in _in_folder(folder) if CONFIG not in tree.when]
    idle = without(idle, {*chain.from_iterable(tree.uses for tree in own)})
    trees = list(map(load_tree, without(heads(), idle)))
    trees += [beside(tree, trees[0], map(load_tree, tree.uses)) for tree in own]
    trees[0] = _with_setting_causes(trees[0])
    return _composed(trees, folder, tuple(idle.values()))


def _idle(run: Run | None) -> dict[str, Part]:
    """Return the default trees that have nothing to ask of a run."""
    if run is None:
        return {}
    return {name: head for name, head in heads().items() if head.when and not any(map(run.has, head.when))}


def load_preflight(folder: str | Path | None = None) -> Tree:
    """Return the trees that `check` walks over a configuration: ours, and those of a folder that wait for `config`.

    Raises:
        StabtreeError: if a tree of the folder is no tree, or has an id that another one has.
    """
    ours = _shipped_tree(PREFLIGHT)
    if not folder:
        return ours
    own = [beside(tree, ours, map(load_tree, tree.uses)) for tree in _in_folder(folder) if CONFIG in tree.when]
    return _composed([replace(ours, signatures=()), *own], folder) if own else ours


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
def _composed_shipped(names: tuple[str, ...], *, configured: bool) -> Tree:
    """Return shipped trees composed: the same for all runs that log the same.

    Args:
        names: their names.
        configured: whether the run has a configuration, which may be the cause.
    """
    trees = list(map(load_tree, names))
    if configured:
        trees[0] = _with_setting_causes(trees[0])
    return compose(trees, tuple(without(heads(), names).values()))


def _with_setting_causes(tree: Tree) -> Tree:
    """Return a tree with the settings that explain a failure as causes, each with the parameters of its rule."""
    rules = load_tree(PREFLIGHT)
    causes = (replace(cause, params=resolved(rules, cause), like="") for cause in rules.signatures)
    return replace(tree, signatures=(*tree.signatures, *causes))


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
    if not _is_file(path):
        hint = (
            near(str(name), known).removeprefix("; ") or "`stabtree tree list` names the shipped trees; or give a file"
        )
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


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False  # a name too long, or one with a NUL


def build(text: str, where: str) -> Tree:
    """Build a tree from YAML text that anyone may have written.

    Args:
        text: the text.
        where: what messages name it by.

    Raises:
        StabtreeError: with the mistakes, the first ones and how many more there are.
    """
    from stabtree.tree.check import check

    reader = TreeReader(parse(text, where))
    tree = reader.tree()
    if tree is not None:
        tree, misplaced = lift_fact_params(tree)
        tree, missing = _with_used(tree)
        tree = _with_facts(_with_all_params(tree))
        whole = not (reader.mistakes or misplaced or missing)
        reader.add([*(("", "", text) for text in misplaced), *(("", "uses", text) for text in missing)])
        if not missing:
            reader.add(check(tree, whole=whole))
    if reader.mistakes or tree is None:
        raise _refusal(reader.mistakes, where)
    return tree


def _refusal(mistakes: list[tuple[int, str]], where: str) -> StabtreeError:
    lines = [f"{where}:{line}: {what}" for line, what in sorted(set(mistakes))]
    shown = [f"{len(lines):,} mistake{'s' if len(lines) != 1 else ''} in the tree", *lines[:MISTAKES_SHOWN]]
    if len(lines) > MISTAKES_SHOWN:
        shown.append(f"and {len(lines) - MISTAKES_SHOWN:,} more")
    return StabtreeError("\n  ".join(shown), where=where, hint="correct them, then `stabtree tree check FILE`")


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

    def full(node: Node) -> Node:
        return replace(node, params={**_left_out(tree, node), **node.params})

    return replace(
        tree,
        questions={id_: full(node) for id_, node in tree.questions.items()},
        leaves={id_: replace(leaf, causes=tuple(map(full, leaf.causes))) for id_, leaf in tree.leaves.items()},
        signatures=tuple(map(full, tree.signatures)),
    )


def _left_out(tree: Tree, node: Question | Cause) -> dict[str, Param]:
    """Return the parameters that a node leaves out; none if it is like what can't be asked, which the check reports."""
    predicate = predicate_named(node.test)
    if predicate is None:
        return {}
    try:
        lacking = predicate.params.keys() - resolved(tree, node).keys()
    except (KeyError, RecursionError):
        return {}
    if not lacking:
        return {}
    return {key: value for key, value in stated_for(node.test).items() if key in lacking}


@cache
def stated_for(test: str) -> Mapping[str, Param]:
    """Return what the shipped trees state for a predicate: the parameters of the first node that asks it."""
    for name in names_asking(test):
        tree = load_tree(name)
        node = next((node for node in asking(tree) if node.test == test), None)
        if node is not None:
            return resolved(tree, node)
    return {}
