"""Skipped steps, as a counter from the beginning on and as a flag of each row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.answer import NO, YES
from tests.conftest import ask, falling, make_run

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ROWS = 200


def answer(skipped: ArrayLike, name: str = "skips_rise", steps: ArrayLike | None = None) -> tuple[str, str]:
    """The verdict of a healthy run with these skips, and its evidence."""
    found = ask(name, make_run({"loss": falling(ROWS), "skipped_steps": skipped}, steps=steps))
    return found.verdict, found.evidence[0].text


def flags(*rows: int) -> list[float]:
    """A flag that is 1 in these rows."""
    return [float(row in rows) for row in range(ROWS)]


@pytest.mark.parametrize("row", [0, 1, 99, 100, 101, 150, 198, 199])
@pytest.mark.parametrize("name", ["skips_rise", "all_skipped"])
def test_one_skipped_step_is_one_as_a_counter_and_as_a_flag(row: int, name: str) -> None:
    """A count that stays at 1 to the end is one skipped step; in the last row both are the same."""
    once = np.cumsum(flags(row))
    assert answer(once, name)[0] == answer(flags(row), name)[0] == NO
    if name == "skips_rise" and row >= ROWS // 2:
        assert answer(once)[1] == answer(flags(row))[1]
        assert answer(once)[1].startswith("1 steps skipped in the second half of the log (1.0% of them), 0 in")


def test_a_flag_goes_back_to_zero() -> None:
    """Skips in every second row of the second half are many, counted or flagged."""
    often = flags(*range(ROWS // 2, ROWS, 2))
    assert answer(often)[0] == answer(np.cumsum(often))[0] == YES


@pytest.mark.parametrize("scale", [1, 3, 1000])
@pytest.mark.parametrize("each", [1, 10])
def test_no_share_is_above_all(scale: int, each: int) -> None:
    """However much a counter counts, at most all steps were skipped."""
    for skipped in (np.arange(ROWS) * scale, np.resize([0, scale], ROWS), flags(*range(101, ROWS))):
        text = answer(skipped, steps=np.arange(ROWS) * each)[1]
        (share,) = re.findall(r"\(([\d.]+)% of them\)", text)
        assert float(share) <= 100
