"""Causes are weighed by what was observed, and by nothing that was not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.weigh import Observations, judged, weigh
from stabtree.measures.observed import Seen
from stabtree.tree.tables import condition, tables

if TYPE_CHECKING:
    from stabtree.tree.model import Kind

KINDS: tuple[Kind, ...] = ("nan", "divergence", "overfit", "plateau-from-start", "rl-collapse")


class Found(Observations):
    """What a test says was observed."""

    def __init__(self, **found: str | float) -> None:
        self.found = found

    def get(self, name: str) -> Seen | None:
        """Return one of them."""
        return Seen(self.found[name], f"{name} is {self.found[name]}") if name in self.found else None


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_not_logged_changes_nothing(kind: Kind) -> None:
    """Then a cause is as likely as it is in any finding of the kind, and none is called likely."""
    weighed = weigh(kind, Found())
    assert all(math.isclose(one.p, one.prior) for one in weighed)
    assert {one.state for one in judged(weighed)} == {CauseState.POSSIBLE}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_seen_moves_a_cause_as_its_factor_says(kind: Kind) -> None:
    """Against a rival that says nothing of it, and by the factor alone."""
    before = {one.cause.id: one.p for one in weigh(kind, Found())}
    for cause in (row for row in tables().causes.values() if kind in row.explains):
        for text, factor in cause.evidence.items():
            wanted = condition(text)
            same = [other for other in cause.evidence if condition(other).name == wanted.name]
            if wanted.compare != "=" or len(same) > 1:
                continue
            after = {one.cause.id: one for one in weigh(kind, Found(**{wanted.name: wanted.value}))}
            rival = next(one for one in after.values() if not one.found and one.proof is None)
            moved = (after[cause.id].p / rival.p) / (before[cause.id] / before[rival.cause.id])
            assert math.isclose(moved, factor * (math.exp(3) if after[cause.id].proof else 1)), (cause.id, text)


def test_of_a_group_only_the_strongest_counts() -> None:
    """Two observations that tell the same are no two witnesses."""
    seen = Found(norm_times=20.0, gradient_first="yes", norm_level=1.0, rise_form="jump")
    one = next(one for one in weigh("nan", seen) if one.cause.id == "no-clipping")
    assert [(factor, found.text) for factor, found in one.found] == [
        (3.0, "norm_times is 20.0"),
        (2.0, "rise_form is jump"),
    ]


def test_a_proof_confirms() -> None:
    """Whatever else was seen; and it is the first of the evidence."""
    first = judged(weigh("collapse", Found(critic_loss_level=0.0001)))[0]
    assert (first.cause.id, first.state) == ("gan-imbalance", CauseState.CONFIRMED)
    assert first.evidence[0].text == "critic_loss_level is 0.0001"


def test_a_symptom_adds_nothing() -> None:
    """What no cause of the kind rests on moves none of them."""
    assert weigh("nan", Found(gap_at_end=9.0, train_since_best="rises")) == weigh("nan", Found())
