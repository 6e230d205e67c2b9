"""Severities and precisions have one home; what repeats their words repeats all of them."""

from __future__ import annotations

import pytest

from stabtree.common.answer import UNKNOWN
from stabtree.judging.verdict import UNREAD, fails, levels_of
from stabtree.loaders.config import _DTYPE_SPELLINGS
from stabtree.report.page import BADGES
from stabtree.run import PRECISIONS, REDUCED, UNSCALED, WIDE
from stabtree.tree.model import Severity


def test_every_verdict_has_looks() -> None:
    """Each severity, and a run that could not be judged or read, has a word and a style of its own."""
    assert set(BADGES) == {*Severity, UNKNOWN, UNREAD}
    for place in range(2):
        assert len({look[place] for look in BADGES.values()}) == len(BADGES)


@pytest.mark.parametrize("level", [level for level in Severity if level is not Severity.OK])
def test_a_level_stops_at_its_own_severity_and_above(level: Severity) -> None:
    """Each severity but ok is a level of --fail-on; an unknown verdict is below and above none."""
    levels = levels_of([level])
    assert [verdict for verdict in Severity if fails(verdict, levels)] == list(Severity)[level.rank :]
    assert not fails(UNKNOWN, levels)


def test_precisions_are_known_by_their_names() -> None:
    """Each has its spellings, and every narrower list is a part of them."""
    assert set(_DTYPE_SPELLINGS) == set(PRECISIONS)
    assert {*REDUCED, *UNSCALED, *WIDE} <= set(PRECISIONS)
