"""What says how runs are judged is plain data, the same for one run and for those of other processes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.judge import Judging
from stabtree.judging.settings import Settings
from stabtree.judging.verdict import Acceptance
from stabtree.loaders import Loaded, load_runs
from tests.conftest import FIXTURES, make_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.tree.model import Question, Tree

NAN = str(FIXTURES / "phase19" / "nan-forward")
JUDGING = Judging(
    Settings("stabtree.toml", Path(), set={"Q2.1.sigma": 4.0}, ignore=("spike-minor",)),
    literal=True,
    set=("Q2.1.window_steps=50",),
    answers={"Q1.2": "fp16"},
)


def carried(thing: Any) -> Any:
    """A thing as another process gets it."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own


def test_another_process_judges_as_this_one() -> None:
    """A judging that went through pickle finds the same, and so does its outcome on the way back."""
    (loaded,) = load_runs(NAN)
    here = JUDGING.outcome(loaded)
    there: Judging = carried(JUDGING)
    assert there == JUDGING
    back = carried(there.outcome(carried(loaded)))
    assert (back.name, back.verdict) == (here.name, here.verdict)
    assert isinstance(here.found, Diagnosis)
    assert back.found.path == here.found.path


def test_a_log_that_can_not_be_read_stays_what_is_wrong_with_it() -> None:
    """Its error is the outcome, word for word, whatever process it came from; it does not stop the others."""
    wrong = StabtreeError("there is nothing in it", where="a.csv", hint="log something")
    found = carried(Judging().outcome(Loaded("a.csv", wrong))).found
    assert (found.problem, found.where, found.hint, str(found)) == (wrong.problem, wrong.where, wrong.hint, str(wrong))


def test_a_person_is_asked_but_once() -> None:
    """However often a run is walked since something of it is accepted."""
    asked: list[str] = []

    def asker(_tree: Tree) -> Callable[[Question], str | None]:
        return lambda question: asked.append(question.id)

    run = make_run({"loss": [3.0 / (1 + step / 50) if step < 200 else float("nan") for step in range(300)]})
    plain = Judging().diagnosed(run)
    accept = tuple(Acceptance(finding.leaf.id, "known") for finding in plain.findings)
    told = Judging(Settings("stabtree.toml", accept=accept)).diagnosed(run, asker)
    assert told.ignored
    assert asked
    assert len(asked) == len(set(asked))
