"""A file that ends inside a line: what is left of that line counts only where it may be the whole of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run

ROWS = "step,loss,lr\n" + "".join(f"{n},{2 - n / 100:.4f},{7.1234e-5 + n * 1e-7:.5g}\n" for n in range(40))


def left(tmp_path: Path, last: str, rows: str = ROWS) -> Run:
    """A file whose last line has no end."""
    return load_run(write(tmp_path, rows + last))


@pytest.mark.parametrize(
    "last", ["40,1.6,7.1", "40,1.6,7.1234", "40,1.6,7.1234e", "40,1.6,7.1234e-", "40,1.6,", "40,1"]
)
def test_a_number_that_breaks_off_is_not_read(last: str, tmp_path: Path) -> None:
    """Shorter than all above it, or without its exponent: the line is left out and counted."""
    run = left(tmp_path, last)
    assert run.series["lr"].steps[-1] == run.last_step == 39
    assert any("is cut" in note for note in run.notes)


def test_a_digit_of_an_exponent_that_is_lost_shows(tmp_path: Path) -> None:
    """7.1234e-0 stands far above all that was logged as e-05."""
    assert left(tmp_path, "40,1.6,7.1234e-0").last_step == 39


@pytest.mark.parametrize("last", ["40,1.6,7.1234e-05", "40,1.6,nan", '40,1.6,"7.1"', "40,1.6,7.4321e-05\n"])
def test_a_row_that_only_lacks_its_line_end_is_read(last: str, tmp_path: Path) -> None:
    """A last row as whole as those above it, and a NaN, which no cut makes, count."""
    run = left(tmp_path, last)
    assert run.last_step == 40
    assert not any("is cut" in note for note in run.notes)


def test_a_nan_in_a_line_that_is_cut_counts(tmp_path: Path) -> None:
    """Of such a line only its last number is left out."""
    run = left(tmp_path, "40,nan,7.1")
    assert (run.series["loss"].steps[-1], run.series["lr"].steps[-1]) == (40, 39)


def test_what_is_cut_is_told_wherever_a_block_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows above may have been read long ago."""
    from stabtree.loaders.packed import unpack

    for size in (50, 97, 1000):
        monkeypatch.setattr(unpack, "CHUNK_BYTES", size)
        assert left(tmp_path, "40,1.6,7.1234").last_step == 39


def test_too_few_rows_prove_nothing(tmp_path: Path) -> None:
    """A short log of short numbers keeps its last row."""
    assert left(tmp_path, "3,1", "step,loss\n0,2.25\n1,2.5\n2,1.75\n").last_step == 3
