"""The tables of causes and actions: every row names what exists."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from msgspec.structs import replace

from stabtree.common.yaml12 import read
from stabtree.measures.table import MEASURES
from stabtree.tree.load import load_known
from stabtree.tree.shipped import TABLES, trees_folder
from stabtree.tree.tables import CONFIG, CONTEXT, condition, mistakes, tables

CONDITIONS = sorted(
    {text for cause in tables().causes.values() for text in (*cause.evidence, *cause.proof)}
    | {text for action in tables().actions.values() for text in action.never}
)


def test_a_condition_names_what_can_be_observed() -> None:
    """A measure, a question with that answer, a part of the context, or a setting."""
    questions = load_known().questions
    for wanted in map(condition, CONDITIONS):
        if wanted.name in questions:
            assert wanted.value in {*questions[wanted.name].go, "yes", "no", "likely"}, wanted
        elif not wanted.name.startswith((CONTEXT, CONFIG)):
            verdicts = MEASURES[wanted.name].verdicts
            assert not verdicts or wanted.value in {*verdicts, "yes", "no"}, wanted


def test_rows_that_name_nothing_are_mistakes() -> None:
    """A cause that no row has, a condition that is none, and a question without answers."""
    known = tables()
    action = next(iter(known.actions.values()))
    wrong = replace(action, helps={"lr-to-high": 1.0}, ask="Does it?", splits={})
    found = [*mistakes(replace(known, actions={wrong.id: wrong}))]
    assert "'lr-to-high'; did you mean 'lr-too-high'?" in found[0]
    assert "question" in found[1]
    cause = replace(known.causes["lr-too-high"], evidence={"rate_times_usual": 3.0})
    assert any("is no condition" in text for text in mistakes(replace(known, causes={cause.id: cause})))


def test_every_cause_has_something_to_do() -> None:
    """Of those that are faults; a cause of which nothing helps is told for nothing."""
    helped = {name for action in tables().actions.values() for name in action.helps}
    assert {name for name in tables().causes if name not in helped} <= {"none", "cancelled"}


def test_every_row_has_its_place() -> None:
    """No id twice, a source for each cause, a wider row that exists, and no group of what nothing asks for."""
    for name, key in zip(TABLES, ("causes", "actions"), strict=True):
        assert max(Counter(row["id"] for row in read(trees_folder() / name)[key]).values()) == 1
    known = tables()
    assert all(cause.explains and cause.source and cause.wider in known.causes for cause in known.causes.values())
    homes = {leaf.of for leaf in load_known().leaves.values()}
    assert all(action.wider in known.actions and homes.issuperset(action.of) for action in known.actions.values())
    assert {condition(text).name for text in CONDITIONS}.issuperset(chain.from_iterable(known.groups.values()))
    wider = {cause.wider for cause in known.causes.values()}
    assert wider.issuperset(chain.from_iterable(known.families.values()))
