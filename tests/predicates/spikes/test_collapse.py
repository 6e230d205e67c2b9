"""A loss that is gone at once: its falls part by part against those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.common.passes import PART
from stabtree.predicates.spikes.collapse import Stretches


def _plain(values: np.ndarray, settled: int, within: int, low: int) -> np.ndarray:
    """Return the lowest of each settled stretch over the lowest that the highest of the low rows after it reach."""
    windows = np.lib.stride_tricks.sliding_window_view
    after = windows(values, low).max(axis=1)[settled:]
    reached = windows(np.append(after, np.full(within - 1, np.inf)), within).min(axis=1)
    before = windows(values, settled).min(axis=1)[:-low]
    return np.where(reached > 0, before / np.maximum(reached, 1e-300), 0.0)


@pytest.mark.parametrize("rows", [40, PART - 1, PART + 29, PART + 30, 2 * PART + 100])
@pytest.mark.parametrize(("settled", "within", "low"), [(20, 20, 10), (2, 1, 1), (7, 3, 5)])
def test_falls_are_those_of_the_whole(rows: int, settled: int, within: int, low: int) -> None:
    """Also of the rows at the end, behind which there is nothing, and of those beside the end of a part."""
    values = np.exp(np.random.default_rng(rows).normal(size=rows))
    values[rows // 3 : rows // 3 + 40] /= 50
    values[rows // 2] = 0.0
    fall = _plain(values, settled, within, low)
    at, far, falls = Stretches(values, settled, within, low).steepest(3.0)
    assert at == np.argmax(fall)
    assert far.tolist() == np.flatnonzero(fall > 3).tolist()
    assert falls.tolist() == fall[fall > 3].tolist()
