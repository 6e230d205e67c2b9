"""What to do now: its order, and nothing twice."""

from __future__ import annotations

from msgspec.structs import replace

from stabtree.diagnosis.result import CauseState, Decision, Fix, Incident, JudgedCause
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.advice import do_now
from stabtree.tree.load import load_trees
from stabtree.tree.model import Cause
from tests.conftest import FIXTURES


def found(*fixes: str | Fix, decision: Decision | None = None, restart: bool = False) -> Incident:
    """A finding that advises these fixes."""
    run = load_run(FIXTURES / "phase19" / "fp16-overflow")
    finding = diagnose(run, load_trees(run)).findings[0]
    assert finding.restart is not None
    advice = tuple(fix if isinstance(fix, Fix) else Fix(fix) for fix in fixes)
    return replace(finding, advice=advice, decision=decision, restart=finding.restart if restart else None)


def texts(finding: Incident) -> list[str]:
    """What to do about it."""
    return [action.text for action in do_now(finding)]


def test_the_restart_comes_last_unless_it_is_all_there_is() -> None:
    """The cause is fixed before the run goes on."""
    actions = do_now(found("Fix the schedule.", "Clip the gradient.", "Shuffle the data.", restart=True))
    assert [action.fix for action in actions] == ["Fix the schedule.", "Clip the gradient.", ""]
    assert actions[-1].text.startswith("Restart from")
    assert [action.strong for action in do_now(found(restart=True))] == [actions[-1].strong]


def test_what_decides_comes_first_and_its_branches_are_not_repeated() -> None:
    """A fix that a branch has is not a further action."""
    branches = (("yes", "Train in bf16 instead of fp16."), ("no", "Skip the batch of step 278."))
    decision = Decision("Does the run use float16?", branches)
    actions = do_now(found("Train in bf16 instead of fp16.", "Clip the gradient by norm.", decision=decision))
    assert [action.text for action in actions] == ["Does the run use float16?", "Clip the gradient by norm."]
    assert actions[0].branches == branches


def test_what_only_helps_in_one_case_waits_for_the_case() -> None:
    """The fix of a merely possible cause is no first action beside one that is sure."""
    maybe = Fix("If the cause is a bad shard: drop it.", conditional=True)
    assert texts(found(maybe, "Plot the schedule.")) == ["Plot the schedule."]
    assert texts(found(maybe)) == [maybe.text]


def test_a_fix_of_the_first_cause_comes_before_those_of_the_leaf() -> None:
    """Even where it is merely possible, since it is named first; stopping the run can't wait for it."""
    cause = Cause("X.shard", "a bad shard", fixes=("Drop the shard.",))
    maybe = Fix("If the cause is a bad shard: drop the shard.", conditional=True, cause=cause.id)
    finding = found(Fix("Stop the run."), Fix("Plot the schedule."), maybe)
    finding = replace(finding, causes=(JudgedCause(cause, CauseState.POSSIBLE),))
    assert texts(finding) == ["Stop the run.", maybe.text, "Plot the schedule."]
    branches = (("yes", "The shard: drop the shard and go on."), ("no", "Plot the schedule."))
    decided = replace(finding, decision=Decision("Is it the shard?", branches, (cause.id,)))
    assert texts(decided) == ["Is it the shard?", "Stop the run."]


def test_nothing_is_said_twice_in_other_words() -> None:
    """Nor the same words about something else."""
    once = "Compute log_softmax(logits) in one call, never log(softmax(x))."
    again = "Compute log_softmax(logits) or cross_entropy in one call, never log(softmax(x)), and in fp32."
    assert texts(found(once, again, "Use bf16.")) == [once, "Use bf16."]
