"""Forerunners of a divergence, and runs that never held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import make_run
from tests.leaves.make import healthy, with_rerun
from tests.leaves.precision import leading, never_held

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis

TREE = load_trees()


def test_a_rise_of_the_norm_before_a_spike_is_shown_with_its_lead() -> None:
    """The precursor is confirmed under the spike's leaf, with its lead in steps; a spike without one rules it out."""
    cause = next(c for f in diagnose(leading(), TREE).findings for c in f.causes if c.cause.id == "P12.lead")
    assert cause.state is CauseState.CONFIRMED
    assert "a lead of 8 steps" in cause.evidence[0].text
    sudden = make_run(healthy(loss=leading().series["loss"].values))
    cause = next(c for f in diagnose(sudden, TREE).findings for c in f.causes if c.cause.id == "P12.lead")
    assert cause.state is CauseState.RULED_OUT


def test_a_run_that_never_holds_needs_another_rate_to_tell() -> None:
    """P17 is confirmed by a rerun at another learning rate and not checkable without one."""

    def state(found: Diagnosis) -> CauseState:
        return next(c.state for f in found.findings for c in f.causes if c.cause.id == "P17.init")

    assert state(diagnose(never_held(1e-3), TREE)) is CauseState.NOT_CHECKABLE
    assert state(diagnose(with_rerun(never_held(1e-3), never_held(1e-4)), TREE)) is CauseState.CONFIRMED
