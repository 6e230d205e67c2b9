"""What evidence says of a series: a single row is one of the log, and a level is called a level."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.figures import figure
from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import ask_node, falling, make_run
from tests.leaves import convergence, diagnosed, phase19

if TYPE_CHECKING:
    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.result import Diagnosis

TREES = load_trees()
RUNS = {**phase19.EDGE, **phase19.NEAR, **convergence.RUNS}
# "peaks at 4.2 at step 1,000", "at step 7, up to 3.5 at 12,": a value, and the step at which it is said to stand.
ROWS = (
    re.compile(r"(?:peaks at|its best,) (\S+) at step ([\d,]+)"),
    re.compile(r"(?:σ|noise) at step [\d,]+, up to (\S+) at ([\d,]+),"),
)


@cache
def told(leaf: str) -> Diagnosis:
    """What is said of the run of a leaf."""
    return diagnosed(RUNS[leaf], TREES)


def evidence(found: Diagnosis) -> list[Evidence]:
    """All evidence of a diagnosis."""
    return [item for finding in found.findings for item in finding.evidence]


@pytest.mark.parametrize("leaf", sorted(RUNS))
def test_what_is_said_to_stand_at_a_step_stands_there(leaf: str) -> None:
    """The highest and the lowest value that evidence names are rows of the log, at the step that it names."""
    found = told(leaf)
    for item in evidence(found):
        for value, step in (match for pattern in ROWS for match in pattern.findall(item.text)):
            series = found.run.series[item.metric]
            there = series.values[series.steps == int(step.replace(",", ""))]
            assert [figure(row, 4) for row in there] == [value], item.text


def test_extremes_are_told_with_their_steps() -> None:
    """The test above looks at something: spikes, climbs and evaluations all name a row."""
    named = [item.metric for leaf in RUNS for item in evidence(told(leaf)) if any(p.search(item.text) for p in ROWS)]
    assert {"loss", "eval_loss"} <= set(named)
    assert len(named) > 5


def test_a_loss_that_climbs_tells_its_highest_row_and_the_level_that_decides() -> None:
    """One row of 90 above seven of 30 is the peak; the median of five rows is what is compared."""
    loss = falling(600)
    loss[300:307] = 30.0
    loss[303] = 90.0
    answer = ask_node(TREES.questions["O22.peak"], make_run({"loss": loss}))
    text = answer.evidence[0].text
    assert answer.verdict == "yes"
    assert "peaks at 90 at step 303" in text
    assert "the median of 5 rows reaches 7× its start (limit 3×)" in text


def test_a_single_row_is_no_level() -> None:
    """One row of 90 is told as the peak, and is no climb."""
    loss = falling(600)
    loss[303] = 90.0
    answer = ask_node(TREES.questions["O22.peak"], make_run({"loss": loss}))
    assert answer.verdict == "no"
    assert "peaks at 90 at step 303" in answer.evidence[0].text


def test_the_ends_of_a_rise_are_levels() -> None:
    """A last row far above the others is not what the evidence names as the end."""
    loss = falling(1000)
    loss[500:] += np.linspace(0, 2, 500)
    loss[-1] = 7.0
    found = diagnose(make_run({"loss": loss}), TREES)
    rising = next(item.text for item in evidence(found) if item.text.startswith("the loss rises from"))
    ends = re.search(r"from (\S+) around step [\d,]+ to (\S+) at the end, \d+% of its range", rising)
    assert ends
    assert float(ends[1]) < float(ends[2]) < 7.0


def test_a_gradient_that_is_lost_for_good_is_told_once() -> None:
    """In fp32 rows that are not finite up to the end are one event; those that come and go are the other leaf's."""
    for leaf, other in (("grad-never-finite", "grad-nonfinite-fp32"), ("grad-nonfinite-fp32", "grad-never-finite")):
        ids = {finding.leaf.id for finding in told(leaf).findings}
        assert leaf in ids
        assert other not in ids


def test_few_values_are_counted_and_many_are_not() -> None:
    """A log of three values says which they are; of one of hundreds the longest stretch is told."""
    few = np.tile([0.7312, 0.7313, 0.7314], 100)
    many = falling(600)
    texts = {
        name: ask_node(TREES.questions["O14.repeat"], make_run({"loss": loss}))
        for name, loss in (("few", few), ("many", many))
    }
    assert texts["few"].verdict == "yes"
    assert "all 300 rows of the loss hold 3 different values" in texts["few"].evidence[0].text
    assert texts["many"].verdict == "no"
    assert "the longest stretch of one value is 1 rows" in texts["many"].evidence[0].text
