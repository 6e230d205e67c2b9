"""What a cell means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree.loaders.tables.cells import ColumnBuilder, number


@pytest.mark.parametrize("text", ["", " ", "null", "None", "n/a", "N/A", "-", "NA", "<NA>", '""', "' '"])
def test_nothing_was_logged(text: str) -> None:
    """An empty cell, in whatever words, is not a value."""
    assert number(text) is None


SPELLED = {
    math.inf: ("inf", "+Inf", "Infinity", "1e400", "1.#INF", "inf (overflow)", "tensor(inf, device='cuda:0')"),
    -math.inf: ("-INF", "-infinity", "-1e400", "-1.#INF00"),
    1.5: ("1.5", " 1.5 ", "'1.5'", "np.float64(1.5)", "[1.5]", "1.5|0.2", "1.5 ± 0.2", "1.5%", "1.5 ms", "+1.5"),
    1.0: ("true",),
    0.0: ("False",),
    76631.0: ("76,631",),
    -1234.5: ("-1,234.5",),
    1.2e-4: ("1.2e-4",),
}


@pytest.mark.parametrize(("text", "value"), [(text, value) for value, texts in SPELLED.items() for text in texts])
def test_numbers_in_their_spellings(text: str, value: float) -> None:
    """Every spelling seen in a log reads as its number."""
    assert number(text) == value


@pytest.mark.parametrize(("text", "value"), [("0,5", 0.5), ("-1.234,5", -1234.5), ("1,2e-3", 1.2e-3), ("1.5", 1.5)])
def test_decimal_commas(text: str, value: float) -> None:
    """Where a comma is the decimal point, a point between thousands is dropped."""
    assert number(text, "decimal") == value


@pytest.mark.parametrize(
    "text", ["oops", "1.2.3", "1,23", "12 apples", "0x1f", "nano", "info", "--5", "[1, 2]", "tensor([1., 2.])"]
)
def test_text_is_no_number(text: str) -> None:
    """Anything else is a mistake, never a silent zero."""
    with pytest.raises(ValueError, match=r".*"):
        number(text)


@pytest.mark.parametrize("other", ["3fb6d286", "1e500001", "12345678901234567890"])
def test_hashes_stay_distinct(other: str) -> None:
    """Hex hashes that look like numbers are labels, each with a code of its own."""
    builder = ColumnBuilder(labels=True)
    builder.add(["20052005", "1e500000", other, "20052005", "12345678901234567891"], [1, 2, 3, 4, 5])
    column = builder.column()
    assert column.coded
    assert np.isfinite(column.values).all()
    assert column.values[0] == column.values[3]
    assert len(set(column.values.tolist())) == 4


@given(st.lists(st.floats() | st.none(), min_size=1))
def test_written_numbers_come_back(cells: list[float | None]) -> None:
    """What repr writes is read as the same float64, an empty cell as nothing."""
    builder = ColumnBuilder()
    builder.add(["" if cell is None else repr(cell) for cell in cells], range(len(cells)))
    column = builder.column()
    logged = np.ones(len(cells), dtype=bool) if column.logged is None else column.logged
    assert logged.tolist() == [cell is not None for cell in cells]
    expected = [cell for cell in cells if cell is not None]
    assert np.array_equal(column.values[logged], np.array(expected, dtype=float), equal_nan=True)


@given(st.text())
def test_any_text_is_a_number_nothing_or_an_error(text: str) -> None:
    """No cell makes the reader fall over."""
    try:
        value = number(text)
    except ValueError:
        return
    assert value is None or isinstance(value, float)
