"""The smallest step of numbers as printed or stored."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.profile import profile_of
from tests.profile.series import noise, series


@pytest.mark.parametrize("digits", [0, 1, 2, 4, 6])
def test_printed_digits(digits: int) -> None:
    """Numbers with so many decimals are multiples of a power of ten."""
    values = np.round(5 + noise(500), digits)
    assert profile_of(series(values)).quantum == pytest.approx(10.0**-digits)


def as_bf16(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The values cut to the 16 upper bits of a float32."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(np.float64)


def test_bf16() -> None:
    """A loss of 9.6 that is stored in bf16 moves by 0.0625, and such a step is no spike."""
    found = profile_of(series(as_bf16(9.6 + 0.03 * noise(500))))
    assert found.quantum == 0.0625
    assert not found.spikes.count


def test_float32() -> None:
    """What an event file stores has a step of one part in eight million at the most."""
    values = (2.0 + 0.1 * noise(500)).astype(np.float32).astype(np.float64)
    assert 0 < profile_of(series(values)).quantum <= 2.0 / 2**22


def test_none() -> None:
    """A float64 that was computed has none that anybody would see."""
    assert profile_of(series(noise(500))).quantum == 0


def test_a_single_step_of_a_coarse_series_is_no_spike() -> None:
    """A count that is 1 now and then."""
    values = np.zeros(500)
    values[::97] = 1.0
    found = profile_of(series(values, "skips"))
    assert found.quantum == 1.0
    assert not found.spikes.count
