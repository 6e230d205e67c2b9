"""Text that is safe, and numbers that tell what they are said to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree.common.figures import against

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@pytest.mark.parametrize(
    ("value", "limit", "form", "shown"),
    [
        (29.996, 30.0, ".3g", "29.996"),
        (30.0, 30.0, ".3g", "30"),
        (30.01, 30.0, ".3g", "30.01"),
        (12.345, 30.0, ".3g", "12.3"),
        (0.995, 1.0, ".0%", "99.5%"),
        (2.331, 2.33, ".1f", "2.331"),
        (3.96, 4.04, ".2g", "3.96"),
        (float("inf"), 30.0, ".3g", "inf"),
    ],
)
def test_a_number_never_rounds_to_the_limit_that_it_did_not_reach(
    value: float, limit: float, form: str, shown: str
) -> None:
    """It has the digits asked for, and more only where these would hide on which side of the limit it lies."""
    assert against(value, limit, form) == shown


@given(NUMBERS, NUMBERS)
def test_what_is_shown_lies_where_the_number_does(value: float, limit: float) -> None:
    """Read back, it is above, at or below the limit as the number is."""
    read = float(against(value, limit).replace(",", ""))
    assert (read > limit, read < limit) == (value > limit, value < limit)
