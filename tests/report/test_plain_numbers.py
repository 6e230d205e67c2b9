"""Numbers are written as people write them."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.common.figures import against, as_factor, as_share, deviations, figure
from tests.whole.advice.properties import NOBODY_WRITES


def test_every_size_has_a_plain_form() -> None:
    """Of each function: what it writes reads as the number, to the digits that it keeps."""
    for value in np.outer((1.0, 1.0648, 9.9996, -3.35), 10.0 ** np.arange(-12, 40, 4)).ravel().tolist():
        assert float(figure(value, 4).replace(",", "")) == pytest.approx(value, rel=1e-3)
        for text in (figure(value), as_factor(value), as_share(value), deviations(value), against(value, 5.0, ".2g")):
            assert not [form.pattern for form in NOBODY_WRITES if form.search(text)], text
