"""One event, one answer: the finding, its causes, the evidence and the restart speak of the same spike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree import StabtreeError, diagnose, load_tree, load_trees
from stabtree.tree.shipped import DEFAULT
from tests.conftest import falling, make_run

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run

HOUSE = """
name: house
title: ours
uses: [phase19]
sections: [{id: first, title: ours, entry: H1}]
questions:
  - id: H1
    section: first
    ask: Does the loss jump?
    test: spike
    params: {window_steps: 30}
    literal: {chance: 1.0}
    go: {yes: ours, no: Q2.1}
    source: ours
leaves:
  - id: ours
    of: H1
    title: a spike
    severity: warning
    causes: [{id: H1.lead, text: a rise before, test: grad_norm_leads}]
    fixes: [none]
    restart: true
    source: ours
"""


def two_spikes() -> Run:
    """A spike at step 70 that grad_norm leads by 9 rows, which only a window of 30 steps sees, and one at 500."""
    loss, norm = falling(800, noise=0.01), 1 + 0.02 * np.random.default_rng(1).normal(size=800)
    loss[70:73] += 5
    norm[61:70] *= 8
    loss[500:503] += 3
    return make_run({"loss": loss, "grad_norm": norm, "lr": np.full(800, 1e-3)})


def steps_told(found: Diagnosis) -> set[int]:
    """The steps of spikes that the finding, its causes and its restart speak of."""
    told = set()
    for finding in found.findings:
        told.add(finding.onset_step)
        for cause in finding.causes:
            told |= {step for item in cause.evidence for step in item.steps[:1] if "spike" in item.text}
    return {70 if step <= 75 else 500 for step in told if step is not None}


@pytest.mark.parametrize(
    ("options", "step"),
    [
        ({}, 500),
        ({"literal": True}, 500),
        ({"overrides": {"Q2.1": {"window_steps": 30}}}, 70),
        ({"overrides": {"Q2.3": {"window_steps": 30}}}, 70),
        ({"overrides": {"spike": {"window_steps": 30}}}, 70),
        ({"overrides": {"P12.lead": {"window_steps": 30}}}, 70),
        ({"overrides": {"Q2.1": {"window_steps": 30}}, "literal": True}, 70),
    ],
)
def test_all_that_is_said_is_said_of_one_spike(options: dict[str, Any], step: int) -> None:
    """Whatever is set, and wherever, the onset, the evidence of each cause and the restart are those of one step."""
    found = diagnose(two_spikes(), load_trees(), **options)
    assert found.findings
    assert steps_told(found) == {step}
    lead = next(c for c in found.findings[0].causes if c.cause.id == "P12.lead")
    assert lead.state == ("confirmed" if step == 70 else "not confirmed")


@pytest.mark.parametrize("name", DEFAULT)
def test_each_shipped_tree_alone_speaks_of_one_spike(name: str) -> None:
    """A tree that is walked alone takes over what the main tree states."""
    tree = load_tree(name)
    if tree.sections:
        assert steps_told(diagnose(two_spikes(), tree)) <= {500}


def test_a_user_s_tree_has_one_spike_as_well(tmp_path: Path) -> None:
    """What its question sets of the spike holds for its causes, and for the questions that it leads to."""
    path = tmp_path / "house.yaml"
    path.write_text(HOUSE, encoding="utf-8")
    tree = load_tree(path)
    assert (tree.facts["spike"].params["window_steps"], tree.facts["spike"].params["sigma"]) == (30, 3.0)
    found = diagnose(two_spikes(), tree)
    assert found.findings[0].leaf.id == "ours"
    assert steps_told(found) == {70}


def test_trees_beside_the_shipped_ones_have_their_facts(tmp_path: Path) -> None:
    """A folder of trees can't give one walk two spikes: the error says what to type instead."""
    (tmp_path / "house.yaml").write_text(
        HOUSE.replace("uses: [phase19]\n", "").replace("no: Q2.1", "no: ours"), encoding="utf-8"
    )
    with pytest.raises(StabtreeError, match=r"states spike.window_steps = 30, where phase19 has 100") as error:
        load_trees(folder=tmp_path)
    assert error.value.hint == "leave it out and type --set spike.window_steps=30"


def test_two_values_of_one_fact_are_refused() -> None:
    """Neither wins in silence."""
    overrides = {"Q2.1": {"sigma": 4.0}, "Q2.3": {"sigma": 5.0}}
    with pytest.raises(StabtreeError, match=r"Q2.1 sets spike.sigma to 4.0, Q2.3 to 5.0: it has one value in a walk"):
        diagnose(two_spikes(), load_trees(), overrides=overrides)


def test_a_tree_that_says_two_things_of_one_fact_is_refused(tmp_path: Path) -> None:
    """A question and a cause of it can't mean different spikes."""
    path = tmp_path / "house.yaml"
    path.write_text(HOUSE.replace("grad_norm_leads}", "grad_norm_leads, params: {window_steps: 50}}"), encoding="utf-8")
    with pytest.raises(StabtreeError, match=r"H1.lead sets spike.window_steps to 50, H1 to 30"):
        load_tree(path)
