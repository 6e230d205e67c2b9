"""After calibrating no given run alarms, nothing moved further than it had to, and what that costs is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.loaders import Loaded, load_run
from stabtree.tools.tune.calibrate.calibrating import calibrate
from stabtree.tools.tune.calibrate.faults import faults_of, load_faults
from stabtree.tools.tune.calibrate.knobs import Tunable
from stabtree.tools.tune.calibrate.walks import Walks
from tests.conftest import FIXTURES, falling, make_run
from tests.tools.tune.calibrate.houses import HOUSE, KEY, LEVEL, alarms, calibrated, house, steady, with_set

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run


@pytest.fixture(scope="module")
def judging(tmp_path_factory: pytest.TempPathFactory) -> Judging:
    return house(tmp_path_factory.mktemp("house"))


def named(runs: list[Run]) -> dict[str, Run]:
    """Runs by names of their own."""
    return {f"run-{place}": run for place, run in enumerate(runs)}


@settings(max_examples=15)
@given(
    st.lists(st.floats(1.0, 40.0).filter(lambda level: abs(level - LEVEL) > 0.1), min_size=1, max_size=5),
    st.lists(st.floats(6.0, 90.0), max_size=3),
)
def test_no_given_run_alarms_and_nothing_moves_too_far(
    judging: Judging, healthy: list[float], ill: list[float]
) -> None:
    """As settings it silences all runs, with less one alarms, and the faults told as missed are those missed."""
    runs, faults = named([steady(level) for level in healthy]), {str(n): steady(level) for n, level in enumerate(ill)}
    found = calibrated(judging, runs, faults)
    then = with_set(judging, found.settings)
    assert not any(alarms(then, run) for run in runs.values())
    loud = [name for name, run in runs.items() if alarms(judging, run)]
    assert found.alarmed.count == len(loud)
    assert bool(found.changes) == bool(loud)
    for change in found.changes:
        assert (change.knob.key, change.knob.base) == (KEY, LEVEL)
        assert list(change.runs) == loud
        assert max(healthy) < change.needed < 1.01 * max(healthy)
        assert change.value >= change.needed
        less = with_set(judging, found.settings | {KEY: change.needed * 0.99})
        assert alarms(less, runs[change.extreme])
    assert {miss.name for miss in found.missed} == {name for name, run in faults.items() if not alarms(then, run)}


def test_the_margin_is_what_leaving_a_run_out_tells(judging: Judging) -> None:
    """A run in three stands above the others by a third: a third of that is added; where two stand as high, nothing."""
    runs = named([steady(level) for level in (9.0, 12.0, 1.0)])
    (change,) = calibrated(judging, runs).changes
    assert change.value == pytest.approx(12 * (12 / 9) ** (1 / 3), rel=0.01)
    assert change.margin == pytest.approx((12 / 9) ** (1 / 3) - 1, abs=0.01)
    (even,) = calibrated(judging, named([steady(12.0), steady(12.0), steady(1.0)])).changes
    assert even.value == pytest.approx(12, rel=0.01)


def test_false_alarms_are_counted_with_each_run_left_out(judging: Judging) -> None:
    """The run that stands above all others would have alarmed, had it not been given; the others not."""
    alone = calibrated(judging, named([steady(level) for level in (9.0, 20.0, 1.0, 1.0)])).expected
    assert (alone.count, alone.of) == (1, 4)
    close = calibrated(judging, named([steady(level) for level in (9.0, 9.0, 1.0, 1.0)])).expected
    assert (close.count, close.of) == (0, 4)


def test_what_is_set_before_is_where_it_starts(judging: Judging) -> None:
    """It counts as in force, beside what the tree states, and is replaced."""
    before = with_set(judging, {KEY: 8.0})
    assert not calibrated(before, named([steady(7.0)])).changes
    (change,) = calibrated(before, named([steady(9.0)])).changes
    assert (change.knob.shipped, change.knob.base) == (5.0, 8.0)
    assert 9 < change.value < 10.5


def test_a_run_that_looks_broken_teaches_nothing() -> None:
    """It is left out and named; vouched for, its NaN is told all the same and no number is set for it."""
    runs = {"bad": load_run(FIXTURES / "phase19" / "nan-forward"), "good": load_run(FIXTURES / "healthy" / "smooth")}
    found = calibrated(Judging(), runs)
    assert (found.runs, found.excluded) == (("good",), (("bad", "looks broken: nan-forward"),))
    trusted = calibrated(Judging(), runs, trust=True)
    assert not trusted.changes
    assert [(left.leaf, left.runs, left.never) for left in trusted.left] == [("nan-forward", ("bad",), True)]
    assert trusted.expected.count == 1


def test_beside_what_is_taught_a_nan_stays(judging: Judging) -> None:
    """Of a run that a person vouches for, the gradients are calibrated and the NaN of its loss is told all the same."""
    loss = falling(200)
    loss[150:] = np.nan
    run = make_run({"loss": loss, "grad_norm": np.full(200, 9.0), "lr": np.full(200, 1e-3)}, dtype="fp32")
    broken = alarms(judging, run) - {"too-large"}
    assert broken
    found = calibrated(judging, {"run": run}, trust=True)
    assert list(found.settings) == [KEY]
    assert alarms(with_set(judging, found.settings), run) == broken
    assert {left.leaf for left in found.left if left.never} == broken


@pytest.mark.parametrize(("event", "moved"), [("nan", False), ("rise", True)])
def test_a_threshold_that_would_hide_a_nan_is_not_moved(tmp_path: Path, event: str, moved: bool) -> None:
    """Rather no change than one by which the NaN of a labelled fault is missed; another fault may be given up."""
    second = """leaves:
  - id: gone
    of: H2
    title: The gradients took the loss with them
    severity: warning
    events: [EVENT]
    why: Ours keep below.
    fixes: [Lower the learning rate.]
    source: the house
"""
    question = """  - id: H2
    section: first
    ask: Does it stay above 40?
    short: above 40?
    why: None came back.
    rule: "grad_norm at or above {level:g}"
    test: stays_above
    like: H1
    params: {level: 40.0}
    go: {yes: gone, no: too-large}
    source: the house
"""
    text = HOUSE.replace("leaves:\n", question + second.replace("EVENT", event))
    file = tmp_path / "two.yaml"
    file.write_text(text.replace("yes: too-large, no: Q1.1", "yes: H2, no: Q1.1"), encoding="utf-8")
    judging = Judging(tree=str(file))
    assert alarms(judging, steady(45.0)) == {"gone"}
    found = calibrated(judging, {"run": steady(30.0)}, {"fault": steady(45.0)})
    assert bool(found.changes) == moved
    assert [left.leaf for left in found.left] == ([] if moved else ["too-large"])
    assert [miss.name for miss in found.missed] == (["fault"] if moved else [])


def test_a_log_that_can_not_be_read_is_left_out_with_its_reason() -> None:
    """So is one that holds too little to be judged."""
    walks = Walks(Judging())
    short = make_run({"loss": np.ones(2)})
    wrong = StabtreeError("there is nothing in it", where="a.csv")
    found = calibrate([Loaded("a", wrong), Loaded("b", short)], walks, faults_of((), walks))
    assert found.runs == ()
    assert [name for name, _ in found.excluded] == ["a", "b"]
    assert "there is nothing in it" in found.excluded[0][1]


def test_where_no_number_decides_it_is_said(tmp_path: Path) -> None:
    """A line of the log raises the alarm: nothing is set, and what ignoring it would miss is told."""
    log = tmp_path / "train.log"
    rows = [f"step {step} loss {loss:.4f} lr 0.001" for step, loss in enumerate(falling(100))]
    log.write_text("\n".join([*rows, "ConnectionError: the tracker did not answer", ""]), encoding="utf-8")
    run = load_run(log)
    told = alarms(Judging(), run)
    assert len(told) == 1
    found = calibrated(Judging(), {"run": run}, {"fault": run}, trust=True)
    assert not found.changes
    (left,) = found.left
    assert ({left.leaf}, left.missed, left.never) == (told, ("fault",), False)
    assert not found.missed


def test_a_spike_that_is_usual_here_is_taught() -> None:
    """A shipped threshold moves: the runs are silent afterwards, as the settings have it."""
    runs = {}
    for seed in range(3):
        loss = falling(600, seed=seed)
        loss[300 + 20 * seed] += 2.6
        runs[f"run-{seed}"] = make_run({"loss": loss, "lr": np.full(600, 1e-3)}, dtype="fp32")
    assert any(alarms(Judging(), run) for run in runs.values())
    found = calibrated(Judging(), runs)
    assert found.changes
    assert not found.left
    assert not any(alarms(with_set(Judging(), found.settings), run) for run in runs.values())


def test_every_fault_that_comes_with_it_is_caught() -> None:
    """Each of the labelled faults alarms as things stand, so that one that is missed is one that is given up."""
    walks = Walks(Judging())
    faults = faults_of(load_faults(None, {}), walks)
    assert len(faults.runs) >= 29
    assert set(faults.caught()) == set(faults.runs)


def test_a_count_is_not_tried_at_none() -> None:
    """A whole number ends at 1, below which it would be refused."""
    assert Tunable("O14.repeat.values_most", 5.0, 5.0, whole=True, question="O14.repeat").min_value == 1
    assert Tunable("spike.sigma", 5.0, 5.0, whole=False, question="Q2.1").min_value == 0.5
