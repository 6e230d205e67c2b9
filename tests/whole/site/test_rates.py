"""The measured rates on the pages: the intervals are Wilson's, and few runs give no share."""

from __future__ import annotations

import pytest

from docs.site import predicates, rates
from docs.site.markup import known
from faultbench.rates import Rate
from stabtree.predicates import PREDICATES


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (1, 100, 0.0018, 0.0545)],
)
def test_intervals_are_wilsons(count: int, total: int, low: float, high: float) -> None:
    """Against the published formula, reckoned by hand."""
    assert Rate(count, total).interval() == pytest.approx((low, high), abs=1e-4)


def test_nothing_is_known_of_no_runs() -> None:
    """The interval is all there is."""
    assert Rate(0, 0).interval() == (0.0, 1.0)


def test_of_few_runs_no_share_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four runs say nothing, five do."""
    counts = {"healthy": {"asked": 4, "alarms": 1}, "failed": {"asked": 5, "right": 3, "elsewhere": 1}, "answers": {}}
    recorded = {"version": "1", "samples": {}, "questions": {"Q2.1": counts}, "predicates": {"spike": counts}}
    monkeypatch.setattr(rates, "figures", lambda: recorded)
    told = rates.of_question("Q2.1")
    assert "| 4 healthy runs | a false alarm | asked of too few labelled runs to say |" in told
    assert "| 5 failed runs of its kind | a right finding | 3 times, 60% | 23% to 88% |" in told
    assert "4 times, 80%" in told
    assert rates.in_short("spike") == ("", "3 of 5, 1 by others")


def test_why_something_was_not_measured_is_told() -> None:
    """A configuration is no log, and the labels say too little of causes."""
    pages = predicates.pages()
    assert "asked of configurations" in str(pages["predicates/starts_at_peak.md"])
    assert "Only causes of findings" in str(pages["predicates/lr_jumps_at_spike.md"])


def test_what_was_recorded_is_of_questions_and_predicates_that_there_are() -> None:
    """And no count is larger than what it is of."""
    found = rates.figures()
    assert found["questions"].keys() <= known().questions.keys()
    assert found["predicates"].keys() <= PREDICATES.keys()
    healthy = sum(sample["healthy"] for sample in found["samples"].values())
    failed = sum(sample["failed"] for sample in found["samples"].values())
    for counts in (*found["questions"].values(), *found["predicates"].values()):
        assert counts["healthy"]["alarms"] <= counts["healthy"]["asked"] <= healthy
        assert counts["failed"]["right"] + counts["failed"]["elsewhere"] <= counts["failed"]["asked"] <= failed
