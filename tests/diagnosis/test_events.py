"""One event is one finding: what is put together, where it begins, and what stays apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.judged import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.full import full
from stabtree.report.json import to_dict
from stabtree.tree.load import build, load_trees
from stabtree.tree.model import EVENTS
from tests.conftest import FIXTURES, make_run
from tests.facts.chains import CHAINS
from tests.leaves.make import AT, healthy, nan_from, noisy

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run

TREES = load_trees()
JUMPED = healthy()["loss"] + np.where(AT >= 411, 1.0, 0.0)
CLIMBS = healthy()["loss"] + np.where(AT >= 150, (AT - 150) * 0.01, 0.0) + np.where(AT >= 411, 3.0, 0.0)


def events(found: Diagnosis) -> list[list[str]]:
    """The leaves of each event, its finding's first."""
    return [[part.leaf.id for part in finding.parts] for finding in found.findings]


def with_eval(run: Run, values: np.ndarray, every: int) -> Run:
    """The run with evaluations."""
    logged = make_run({"eval_loss": values[::every]}, steps=AT[::every])
    return type(run)(name=run.name, series={**run.series, **logged.series})


def test_a_jump_that_lasts_is_one_event_with_the_rise_that_it_makes() -> None:
    """It begins at the jump, which is known to the row, and not at the lowest level before it; it is told as one."""
    found = diagnose(make_run(healthy(loss=JUMPED)), TREES)
    assert events(found) == [["spike-persistent", "slow-rise"]]
    finding = found.findings[0]
    assert finding.onset_step == 411
    assert finding.also[0].onset_step == 411
    assert [cause.cause.id for cause in finding.causes] == list(dict.fromkeys(c.cause.id for c in finding.causes))
    assert len(set(finding.fixes)) == len(finding.fixes)
    assert {c.cause.id for part in finding.parts for c in part.causes} == {c.cause.id for c in finding.causes}


def test_a_jump_is_not_dated_by_the_best_evaluation_before_it() -> None:
    """Evaluations stay near their best up to the jump: neither the event nor its part begins at the best one."""
    run = make_run(healthy(loss=JUMPED))
    quality = np.where(AT >= 411, 0.1, 0.9) + np.where(AT == 150, 0.01, 0.0)
    logged = make_run({"eval_quality": quality[::50]}, steps=AT[::50])
    found = diagnose(type(run)(name=run.name, series={**run.series, **logged.series}), TREES)
    event = found.findings[0]
    assert (event.last_good_step, event.onset_step) == (410, 411)
    part = next(part for part in event.parts if part.leaf.id == "quality-collapsed")
    assert (part.last_good_step, part.onset_step) == (400, 450)


def test_a_loss_that_rose_before_it_jumped_begins_at_its_low() -> None:
    """Where the rise would have been found had the log ended before the jump, the jump is not its beginning."""
    finding = diagnose(make_run(healthy(loss=CLIMBS), checkpoint_every=50), TREES).findings[0]
    assert finding.leaf.id == "spike-persistent"
    assert finding.onset_step is not None
    assert finding.onset_step < 200
    assert finding.own_onset_step is not None
    assert finding.own_onset_step > 300
    assert finding.restart is not None
    assert finding.restart.checkpoint_step is not None
    assert finding.restart.checkpoint_step < finding.own_onset_step


def test_what_speaks_of_the_same_highest_row_is_one_event() -> None:
    """A loss that is far above its start since a hump, and highest in the jump after it, is told once; at the jump.

    A hump that is the highest itself is an event of its own.
    """
    hump = 5 * np.exp(-(((AT - 60) / 20) ** 2))
    for height, one in ((20.0, True), (3.0, False)):
        loss = 1.0 + hump + np.where(AT >= 411, height, 0.0) + 0.02 * np.sin(AT * 1.7)
        found = diagnose(make_run(healthy(loss=loss)), TREES)
        first = next(leaves for leaves in events(found) if "spike-persistent" in leaves)
        assert ("climbs-far" in first) == one
        assert found.findings[0].onset_step == 411


def test_a_nan_keeps_its_own_onset_beside_a_rise() -> None:
    """A loss that rose before it went NaN is a finding of its own, and the NaN is dated to where it began."""
    climbs = healthy()["loss"] + np.where(AT >= 200, (AT - 200) * 0.02, 0.0)
    found = diagnose(make_run(healthy(loss=nan_from(450, climbs)), checkpoint_every=50), TREES)
    by_leaf = {finding.leaf.id: finding for finding in found.findings}
    assert by_leaf["nan-logged"].onset_step == 450
    assert by_leaf["slow-rise"].onset_step is not None
    assert by_leaf["slow-rise"].onset_step < 260


def test_a_spike_and_a_nan_long_after_it_are_two_events() -> None:
    """A loss that came back is not the beginning of a NaN."""
    loss = nan_from(480, healthy()["loss"] + np.where((AT >= 200) & (AT < 204), 5.0, 0.0))
    found = diagnose(make_run(healthy(loss=loss)), TREES)
    assert all(
        len(set(leaves) & {"nan-forward", "spike-unexplained", "spike-bad-batch"}) <= 1 for leaves in events(found)
    )
    assert len(found.findings) > 1


def test_a_nan_in_the_loss_and_in_the_evaluation_after_it_is_one_event() -> None:
    """The evaluation says nothing new, and begins no trouble of its own."""
    run = with_eval(make_run(healthy(loss=nan_from(411, healthy()["loss"]))), nan_from(411, healthy()["loss"]), 50)
    leaves = events(diagnose(run, TREES))[0]
    assert leaves[0].startswith("nan-")
    assert "eval-nonfinite" in leaves


@pytest.mark.parametrize(("later", "one"), [(3, True), (150, False)])
def test_a_rate_that_rises_is_one_event_with_a_jump_at_the_same_time_only(later: int, *, one: bool) -> None:
    """Within one level of the loss both begin at once; long after it the loss has its own trouble."""
    loss = healthy()["loss"] + np.where(later <= AT - 340, 1.0, 0.0)
    run = make_run(healthy(loss=loss, lr=np.where(AT >= 340, 1e-2, 1e-3)))
    leaves = next(leaves for leaves in events(diagnose(run, TREES)) if "spike-persistent" in leaves)
    assert ("lr-rises-late" in leaves) == one


def test_what_else_was_seen_is_told_in_one_line_and_listed() -> None:
    """The screen has no finding of its own for it, and the JSON has its id, title, severity and onset.

    What saw the same rise in the same series is not repeated.
    """
    found = diagnose(make_run(healthy(loss=JUMPED)), TREES)
    told = full(found)
    assert "Also seen as" not in told
    assert "Also found" not in told
    run = with_eval(make_run(healthy(loss=nan_from(411, healthy()["loss"]))), nan_from(411, healthy()["loss"]), 50)
    assert "Also seen as: eval-nonfinite at step 450." in full(diagnose(run, TREES))
    also = to_dict(found)["findings"][0]["also"]
    assert [sorted(item) for item in also] == [["id", "onset_step", "severity", "title"]]


def test_an_event_that_is_none_is_a_mistake() -> None:
    """`tree check` names the word, and a leaf that lasts but has no event."""
    text = (
        "name: own\ntitle: Own\nsections: [{id: '1', title: One, entry: Q, when: [loss]}]\n"
        "questions: [{id: Q, section: '1', ask: Is it?, test: nonfinite_loss, source: us,"
        " go: {yes: bad, skipped: bad, stops: bad, no: bad}}]\n"
        "leaves: [{id: bad, of: Q, title: Bad, severity: warning, KEY, fixes: [Mend it.], source: us}]\n"
    )
    with pytest.raises(StabtreeError, match="did you mean 'rise'"):
        build(text.replace("KEY", "events: [ries]"), "own.yaml")
    with pytest.raises(StabtreeError, match="has no event"):
        build(text.replace("KEY", "lasting: true"), "own.yaml")
    told = {event for leaf in TREES.leaves.values() for event in leaf.events}
    assert told == set(EVENTS)


@pytest.mark.parametrize("name", [name for name, chain in CHAINS.items() if chain.leader.startswith("weight_norm")])
def test_weights_that_moved_first_are_the_first_cause(name: str) -> None:
    """The headline's first cause names the series, its step and its growth."""
    made = CHAINS[name].make(np.random.default_rng(1))
    finding = diagnose(make_run(made) if isinstance(made, dict) else made, TREES).findings[0]
    first = finding.causes[0]
    assert (first.cause.id, first.state) == ("T53", CauseState.LIKELY)
    assert first.evidence[0].metric == CHAINS[name].leader


def test_the_overflow_of_the_fixture_is_laid_to_the_layer_whose_weights_grew() -> None:
    """Its first cause and the reason of its first fix name the layer."""
    finding = diagnose(load_run(FIXTURES / "phase19" / "fp16-overflow"), TREES).findings[0]
    assert finding.causes[0].cause.moves == "weight_norm"
    assert "weight_norm/blocks" in finding.first_fixes[0].reason


def test_weights_that_moved_after_the_break_are_no_cause() -> None:
    """What followed is not told, though it was logged."""
    weights = np.where(AT >= 430, 14.0 * 1.1 ** np.clip(AT - 430.0, 0, 200), 14.0) * noisy(1.0, sigma=0.001)
    run = make_run({**healthy(loss=JUMPED), "weight_norm/blocks": weights})
    causes = {judged.cause.id for judged in diagnose(run, TREES).findings[0].causes}
    assert "T53" not in causes
