"""What was found without a setting holds where that setting becomes known; all else is looked for again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stabtree.common.answer import UNKNOWN
from stabtree.context.reads import ALL, NotedSettings, depends
from stabtree.diagnosis.walker import WalkOptions, start
from stabtree.loaders import load_runs
from stabtree.predicates import predicate_named
from stabtree.run import Run, Setting
from stabtree.tree.load import load_trees
from tests.conftest import FIXTURES, facts_of, falling, make_run

NAMES = sorted(path.name for path in (FIXTURES / "phase19").iterdir())


def test_what_did_not_read_a_setting_is_kept() -> None:
    """A spike is the same in any precision, the precision and what it allows are not."""
    run = make_run({"loss": falling(300)}, optimizer="adamw")
    facts = facts_of(run)
    before = {name: facts.get(name) for name in ("spike", "context", "precision", "conditions")}
    other = facts.with_setting(replace(run, config={**run.config, "dtype": Setting("fp16", "test")}), "dtype")
    assert other.get("spike") is before["spike"]
    assert other.get("context") is before["context"]
    assert other.get("precision").value == "fp16"
    assert other.get("conditions").fit({"precision": ("fp16",)})
    assert not before["conditions"].fit({"precision": ("fp16",)})


def test_what_a_fact_read_its_askers_read() -> None:
    """Also where it was found for another one before."""
    facts = facts_of(make_run({"loss": falling(300)}))
    for _ in range(2):
        assert depends(facts.noted(lambda: facts.get("conditions"))[1], "dtype")
        assert not depends(facts.noted(lambda: facts.get("loss_break"))[1], "dtype")


def test_a_configuration_that_is_listed_is_read_whole() -> None:
    """So are its number of settings, and all that is made of them."""
    settings = NotedSettings({"lr": Setting(0.1, "test")})
    for read in (lambda: list(settings), lambda: len(settings), lambda: {**settings}):
        assert depends(settings.noted(read)[1], "dtype"), ALL
    for one in (lambda: "dtype" in settings, lambda: settings.get("dtype")):
        found, reads = settings.noted(one)
        assert not found
        assert (depends(reads, "dtype"), depends(reads, "lr")) == (True, False)


def leaf_of(run: Run, answers: dict[str, str]) -> str:
    """The leaf at which the path of a run ends with answers of a person's."""
    return start(run, load_trees(run), WalkOptions(answers=answers)).walk_path()[1].id


@pytest.mark.parametrize("name", NAMES)
def test_a_supposed_answer_leads_where_the_same_answer_does(name: str) -> None:
    """Whatever was found before it was supposed."""
    for loaded in load_runs(FIXTURES / "phase19" / name):
        run = loaded.run
        assert isinstance(run, Run)
        walk = start(run, load_trees(run), WalkOptions())
        path, _ = walk.walk_path()
        for question in [visit.question for visit in path]:
            predicate = predicate_named(question.test)
            for verdict in question.go if predicate and predicate.sets else ():
                if verdict != UNKNOWN:
                    assert walk.leaf_after(question, verdict).id == leaf_of(run, {question.id: verdict})
