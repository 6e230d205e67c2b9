"""The parameters of nodes and facts: where each is stated or set, its value in a walk, and what a pattern may be."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import near
from stabtree.measures import MEASURES, all_values, measure_named
from stabtree.measures.lines import LINE
from stabtree.tree.model import FactParams, Question, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.measures.registry import Measure, Param, Parameter
    from stabtree.tree.model import Group

Values = dict[str, dict[str, "Param"]]

LARGEST = 10**12  # of a parameter: beyond any number of steps, and harmless to compute with
FORMATS = ("", "g", ".0%")  # what a rule may format a number with; a width could fill the memory


def facts_behind(asked: Measure) -> tuple[str, ...]:
    """Return the values that a measure asks for, and those that they ask for, nearest first."""
    found: dict[str, None] = {}
    waiting = [need.name for need in asked.needs if need.kind == "Measure"]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = None
            waiting += [need.name for need in MEASURES[name].needs if need.kind == "Measure"]
    return tuple(found)


def settable(measure: Measure) -> dict[str, tuple[str, Parameter]]:
    """Return the parameters of a node: name -> the fact that has it (empty: the measure), and its declaration."""
    found: dict[str, tuple[str, Parameter]] = {key: ("", item) for key, item in measure.params.items()}
    for name in facts_behind(measure):
        for key, item in MEASURES[name].params.items():
            found.setdefault(key, (name, item))
    return found


def fact_params(tree: Tree, *, literal: bool = False) -> dict[str, dict[str, Param]]:
    """Return the parameters of all facts that a tree states."""
    found = {}
    for name, stated in tree.facts.items():
        found[name] = {**stated.params, **stated.advanced}
        if literal:
            found[name].update(stated.literal)
    return found


@lru_cache(maxsize=32)
def plain_params(_tree: Tree) -> tuple[Values, Values]:
    """Return where the parameters of questions are kept that nobody set, of a usual walk and of a literal one."""
    return {}, {}


def resolved(
    tree: Tree, node: Question, *, literal: bool = False, facts: Mapping[str, Mapping[str, Param]] | None = None
) -> dict[str, Param]:
    """Return the parameters of a node's own measure: those of the node that it is like, overridden by its own.

    Args:
        tree: the tree.
        node: a node of it.
        literal: whether to add what `--literal` sets.
        facts: the parameters of the facts in this walk; by default those of the tree.
    """
    measure = measure_named(node.test)
    if measure is None:
        return {}
    found = {key: item.default for key, item in measure.params.items() if item.default is not None}
    if node.like:
        found.update(known(tree, tree.questions[node.like], literal=literal, facts=facts))
    found.update({**node.params, **node.advanced})
    if literal:
        found.update(node.literal)
    return {key: found[key] for key in measure.params if key in found}


def known(
    tree: Tree, node: Question, *, literal: bool = False, facts: Mapping[str, Mapping[str, Param]] | None = None
) -> dict[str, Param]:
    """Return all parameters that a node's answer depends on: its own and those of the facts behind it."""
    measure = measure_named(node.test)
    if measure is None:
        return {}
    stated = fact_params(tree, literal=literal) if facts is None else facts
    found: dict[str, Param] = {}
    for name in reversed(facts_behind(measure)):
        found.update({key: item.default for key, item in MEASURES[name].params.items() if item.default is not None})
        found.update(stated.get(name, {}))
    return {**found, **resolved(tree, node, literal=literal, facts=facts)}


def mistakes(declared: Mapping[str, Parameter], owner: str, params: Mapping[str, object]) -> Iterator[str]:
    """Yield what is wrong with values for parameters, one sentence each."""
    for key, value in params.items():
        item = declared.get(key)
        if item is None:
            yield f"sets {key!r}, which {owner} does not have{near(key, declared)}"
        elif not fits(value, item):
            yield f"sets {key!r} to {value!r}; it must be of type {item.kind.__name__}, from {item.minimum} on"
        elif item.pattern:
            problem = pattern_problem(str(value))
            if problem:
                yield f"sets a pattern that {problem}"


def fits(value: object, parameter: Parameter) -> bool:
    """Return whether a value is of a parameter's type and within its bounds; an int will do for a float."""
    kind = parameter.kind
    if kind is bool or isinstance(value, bool):
        return isinstance(value, bool) and kind is bool
    if kind is str:
        return isinstance(value, str)
    wanted = (int, float) if kind is float else int
    return isinstance(value, wanted) and parameter.minimum <= value <= LARGEST


def like_problem(tree: Tree, node: Question) -> str:
    """Return what is wrong with the nodes that a node takes its parameters from; empty if nothing is."""
    seen = [node.id]
    while node.like:
        if node.like in seen:
            return f"is like itself: {' → '.join([*seen, node.like])}"
        if node.like not in tree.questions:
            return f"is like {node.like!r}, which is no question{near(node.like, tree.questions)}"
        node = tree.questions[node.like]
        seen.append(node.id)
    return ""


def rule_problems(question: Question, measure: Measure) -> Iterator[str]:
    """Yield what is wrong with the parameters that a question's rule and quick reference name."""
    names = settable(measure)
    quick = (question.quick.threshold, question.quick.letter) if question.quick else ()
    for text in (question.rule, *quick):
        try:
            parts = list(string.Formatter().parse(text))
        except ValueError:
            yield f"has braces that don't close in {text!r}"
            continue
        for _, name, form, conversion in parts:
            if name is None:
                continue
            if name not in names:
                yield f"names {{{name}}} in its rule, which {measure.name} does not have{near(name, names)}"
            elif form not in FORMATS or conversion:
                yield f"formats {{{name}}} as {form!r}; leave it out or use one of {', '.join(filter(None, FORMATS))}"


def group_problems(tree: Tree, group: Group) -> Iterator[str]:
    """Yield what is wrong with the numbers that a group's rule takes from facts, as in `{spike[sigma]}`."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(group.rule) if name is not None]
        group.rule.format_map(fact_params(tree))
    except (ValueError, KeyError, IndexError, AttributeError, TypeError):
        yield f"has a rule that names no parameter of a fact: {group.rule!r}"
        return
    for name in names:
        if not re.fullmatch(r"\w+\[\w+\]", name):
            yield f"names {{{name}}} in its rule; a parameter of a fact is named as {{spike[sigma]}}"


def fine(tree: Tree, node: Question) -> set[str]:
    """Return a node's own parameters that only fine-tune a guard, those that it takes over included."""
    taken = fine(tree, tree.questions[node.like]) if node.like else set()
    return (taken - set(node.params)) | set(node.advanced)


def stated(tree: Tree) -> dict[tuple[str, str], Param]:
    """Return every parameter that a tree states, once: (fact or node, name) -> value."""
    found: dict[tuple[str, str], Param] = {}
    items: list[FactParams | Question] = [*tree.facts.values(), *tree.questions.values()]
    for item in items:
        for key, value in {**item.params, **item.advanced}.items():
            found[item.id, key] = value
    return found


def merge_facts(owner: Mapping[str, FactParams], other: Mapping[str, FactParams]) -> dict[str, FactParams]:
    """Merge what two trees state of facts; what the first one states overrides the other."""
    found = {**other, **owner}
    for name in owner.keys() & other.keys():
        own, rest = owner[name], other[name]
        taken = own.params.keys() | own.advanced.keys()
        left = {}
        for part in ("params", "advanced", "literal"):
            kept = {key: value for key, value in getattr(rest, part).items() if key not in taken}
            left[part] = {**kept, **getattr(own, part)}
        found[name] = FactParams(name, **left)
    return found


def declared(tree: Tree, id_: str) -> dict[str, tuple[str, Parameter]]:
    """Return the parameters of a question or a fact: name -> the fact that has it (empty: the node), its kind.

    Raises:
        StabtreeError: if there is no such id.
    """
    if id_ in tree.questions:
        return _settable(tree.questions[id_])
    if id_ in all_values():
        return {key: (id_, item) for key, item in MEASURES[id_].params.items()}
    raise StabtreeError(
        f"there is no question {id_!r}{near(id_, [*tree.questions, *all_values()])}",
        where="--set",
        hint=f"type --set Q2.1.sigma=4; ids: `stabtree tree show {tree.name}`",
    )


def _settable(node: Question) -> dict[str, tuple[str, Parameter]]:
    measure = measure_named(node.test)
    return settable(measure) if measure else {}


def apply_overrides(
    tree: Tree, overrides: Mapping[str, Mapping[str, Param]], *, literal: bool = False
) -> tuple[Values, Values]:
    """Return what is set of nodes, by their ids, and the parameters of all facts with what is set of them.

    Raises:
        StabtreeError: for an unknown id, parameter or type, and for two values of one parameter of a fact.
    """
    own: Values = {}
    facts = fact_params(tree, literal=literal)
    setters: dict[tuple[str, str], tuple[str, Param]] = {}
    for id_, given in overrides.items():
        params = _plain(id_, given)
        known = declared(tree, id_)
        wrong = next(mistakes({key: item for key, (_, item) in known.items()}, id_, params), "")
        if wrong:
            hint = f"`stabtree explain {id_} --full` shows what can be set"
            raise StabtreeError(f"{id_} {wrong}", where="--set", hint=hint)
        for key, value in params.items():
            fact = known[key][0]
            if not fact:
                own.setdefault(id_, {})[key] = value
                continue
            before, other = setters.setdefault((fact, key), (id_, value))
            if other != value:
                problem = f"{before} sets {fact}.{key} to {other}, {id_} to {value}: it has one value in a walk"
                raise StabtreeError(problem, where="--set", hint=f"type --set {fact}.{key}={value} alone")
            facts.setdefault(fact, {})[key] = value
    return own, facts


def _plain(id_: object, given: object) -> dict[str, Param]:
    """Return given parameters with plain numbers: what was computed is often a number of numpy's.

    Raises:
        StabtreeError: if they are no mapping of names to values.
    """
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in (id_, *given)):
        problem = f"{id_!r} must map names of parameters to values"
        raise StabtreeError(problem, where="overrides", hint='give {"Q2.1": {"sigma": 4.0}}')
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in given.items()}


def lift_fact_params(tree: Tree) -> tuple[Tree, list[str]]:
    """Return the tree with what its nodes set of facts stated of the facts, and the mistakes: two values for one."""
    stated = fact_params(tree)
    literal: Values = {name: dict(item.literal) for name, item in tree.facts.items()}
    setters: dict[tuple[str, str], str] = {}
    wrong: list[str] = []

    def lift(node: Question) -> Question:
        known, left = _settable(node), {}
        for part in ("params", "advanced", "literal"):
            values, own = literal if part == "literal" else stated, {}
            for key, value in getattr(node, part).items():
                fact, item = known.get(key, ("", None))
                if not fact or item is None or not fits(value, item):
                    own[key] = value
                    continue
                of_fact = values.setdefault(fact, {})
                if of_fact.setdefault(key, value) != value:
                    before = setters.get((fact, key), "'facts'")
                    text = f"{node.id} sets {fact}.{key} to {value}, {before} to {of_fact[key]}: it has one value"
                    wrong.append(text)
                setters[fact, key] = node.id
            left[part] = own
        return replace(node, **left)

    bare = replace(tree, questions={id_: lift(node) for id_, node in tree.questions.items()})
    facts = {}
    for name in {**stated, **literal}:
        advanced = tree.facts[name].advanced if name in tree.facts else {}
        params = {key: value for key, value in stated.get(name, {}).items() if key not in advanced}
        facts[name] = FactParams(name, params, advanced, literal.get(name, {}))
    return replace(bare, facts=facts), wrong


MAX_WAYS = 1_000_000
_TOO_MANY = float(2 * MAX_WAYS)

Chars = frozenset[str]


def pattern_problem(pattern: str) -> str:
    r"""Return what is wrong with a pattern; empty if it may be tried on lines of a log, which anyone may have written.

    Python's engine goes back wherever it could have matched in another way, so that what matters is in how many ways a
    pattern can match a line. A repeat has one way where what follows can't begin with what it repeats (`\S+\s`), and
    else as many as it has lengths; the ways of items in a row multiply, and a repeat of something with two ways doubles
    them each time. `(a+)+$` has more ways than a line has letters, by far; `.*` has as many as there are letters.
    """
    try:
        re.compile(pattern)
        parsed = import_module("re._parser").parse(pattern)
        ways = _Counter(pattern, parsed.state).sequence(list(parsed), frozenset())[0]
    except (re.error, RecursionError, OverflowError) as error:
        return f"is not a regular expression: {error}"
    if ways <= MAX_WAYS:
        return ""
    return "could take forever on a long line: put no repeat into a repeat, and bound them, such as .{0,80} for .*"


class _Counter:
    """Counts in how many ways parts of a pattern match, with how a match may begin and whether it may be empty.

    Args:
        pattern: the pattern; its own letters and the first few hundred show whether two classes overlap.
        state: what the parser of `re` knows of it.
    """

    def __init__(self, pattern: str, state: Any) -> None:
        self._letters = frozenset(map(chr, range(0x250))).union(pattern, pattern.lower(), pattern.upper())
        self._state = state

    def sequence(self, items: list[Any], after: Chars) -> tuple[float, Chars, bool]:
        """Count the ways of items in a row, after which a text may begin with some letters."""
        ways, begin, empty = 1.0, after, True
        for operator, argument in reversed(items):
            own, first, nothing = self._item(operator, argument, begin)
            ways = min(_TOO_MANY, ways * own)
            begin = first | begin if nothing else first
            empty = empty and nothing
        return ways, begin, empty

    def _item(self, operator: Any, argument: Any, after: Chars) -> tuple[float, Chars, bool]:
        name = str(operator)
        if name.endswith("_REPEAT"):
            return self._repeat(name, argument, after)
        if name in ("SUBPATTERN", "ATOMIC_GROUP"):
            return self.sequence(list(argument[-1] if name == "SUBPATTERN" else argument), after)
        if name == "BRANCH":
            return self._branch(argument[1], after)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return 1.0, self._chars(operator, argument), False
        if name in ("ASSERT", "ASSERT_NOT"):
            return self.sequence(list(argument[1]), self._letters)[0], self._letters, True
        # Anchors and references to groups: whatever comes before may be asked for another way.
        return 1.0 if name == "AT" else float(LINE), self._letters, True

    def _repeat(self, name: str, argument: Any, after: Chars) -> tuple[float, Chars, bool]:
        fewest, most, body = argument
        begin = self.sequence(list(body), frozenset())[1]
        ways, _, empty = self.sequence(list(body), begin | after)
        most = min(int(most), LINE)
        if name.startswith("POSSESSIVE"):
            return ways, begin, fewest == 0 or empty
        lengths = 1.0 if begin.isdisjoint(after) and not empty else max(1.0, most - int(fewest) + 1.0)
        inside = _TOO_MANY if ways > 1.0 and most > 50 else ways**most
        return min(_TOO_MANY, lengths * inside), begin, fewest == 0 or empty

    def _branch(self, choices: list[Any], after: Chars) -> tuple[float, Chars, bool]:
        """Add up the ways of choices that begin alike; of others only one is left after a letter."""
        found = [self.sequence(list(items), after) for items in choices]
        begin = frozenset[str]().union(*(first for _, first, _ in found))
        ways = [sum(own for own, first, _ in found if char in first) for char in begin]
        return min(_TOO_MANY, max(ways, default=1.0)), begin, any(empty for _, _, empty in found)

    def _chars(self, operator: Any, argument: Any) -> Chars:
        """Return the letters that one item matches, in either case, since lines are searched without regard to it."""
        item = import_module("re._parser").SubPattern(self._state, [(operator, argument)])
        match = import_module("re._compiler").compile(item, re.IGNORECASE | re.DOTALL).fullmatch
        return frozenset(filter(match, self._letters))
