"""Limits are fitted to strengths, by repositories, and never where too little is known."""

from __future__ import annotations

import numpy as np

from benchmarks.fit.estimates import Case, Main, fit
from benchmarks.fit.judged import is_alarm, leaf_behind
from benchmarks.fit.logistic import best, losses
from benchmarks.fit.logs import HEALTHY, WILD, Log
from benchmarks.fit.report import yaml_of
from stabtree.common.yaml12 import parse

LEVEL = 0.75
MAIN = {"O27": Main("rise", 0.1, -1.0)}


def cases(middle: float, failures: int = 60) -> list[Case]:
    """Logs of as many repositories, of which those above a strength are failures."""
    strengths = np.random.default_rng(0).normal(middle, 1.0, 2 * failures)
    return [Case(float(s), bool(s > middle), 1.0, f"repo {n}", simulated=False) for n, s in enumerate(strengths)]


def test_the_limit_moves_to_where_failures_begin() -> None:
    """Up where healthy runs are above it, down where failures are below it, each seen in the parameter."""
    for middle, low, high in ((1.0, 0.15, 0.25), (-1.0, 0.04, 0.07)):
        found = fit({"O27": cases(middle)}, MAIN, LEVEL).questions["O27"]
        assert low < float(found.limit["rise"]) < high
        assert found.slope > 2
        assert not found.family


def test_a_limit_stays_where_little_is_known() -> None:
    """Seven failures fit nothing, and neither do as many as one likes of one repository; the slope is the family's."""
    for few in (cases(1.0, 4), [case._replace(group="one") for case in cases(1.0)]):
        found = fit({"O27": few}, MAIN, LEVEL).questions["O27"]
        assert not found.limit
        assert found.family == "overfit"


def test_simulated_healthy_runs_raise_a_limit_that_little_is_known_of() -> None:
    """But for one in 200 of them, which may be above it."""
    calm = [Case(-3.0, False, 1.0, f"{n}", simulated=True) for n in range(400)]
    for above, raised in ((2, False), (3, True)):
        loud = [case._replace(strength=1.0) for case in calm[:above]]
        found = fit({"O27": [*loud, *calm[above:]]}, MAIN, LEVEL).questions["O27"]
        assert bool(found.limit) == raised


def test_a_wrong_label_moves_nothing() -> None:
    """A failure far below the limit, or a healthy log far above it, is worth as much as a mistaken label may be."""
    some = cases(0.0)
    wrong = [*some, Case(-2.5, True, 1.0, "odd", simulated=False), Case(9.0, False, 1.0, "odd", simulated=False)]
    for given in (some, wrong):
        strengths = np.array([case.strength for case in given])
        positive = np.array([float(case.positive) for case in given])
        assert abs(best(losses(strengths, positive, np.ones(len(given)), 0.5), 2.0).shift) < 0.3


def test_an_answer_is_fitted_where_it_is_an_alarm_by_itself() -> None:
    """A spike may yet turn out to be small; a loss that left its start does not alarm."""
    assert is_alarm("O27", "yes")
    assert leaf_behind("O27", "yes") == "overfitting"
    assert not is_alarm("Q2.1", "yes")
    assert not is_alarm("O27", "no")


def test_logs_of_a_repository_are_held_out_together() -> None:
    """Whatever they are called."""
    assert len({Log(WILD, f"{n}.csv", "somebody/something", HEALTHY).fold for n in range(9)}) == 1


def test_the_file_holds_what_was_fitted() -> None:
    """As YAML that the tool reads."""
    fits = fit({"O27": cases(1.0)}, MAIN, LEVEL)
    data = parse(yaml_of(fits, LEVEL, 0.3, {}), "calibration.yaml").value
    assert data["questions"]["O27"]["limit"] == dict(fits.questions["O27"].limit)
    assert data["levels"] == {"alarm": 0.75, "near": 0.3}
    assert set(data["families"]) == {"default", "overfit"}
