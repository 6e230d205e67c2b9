"""Delimited files: a text, and the table that is read of it."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.loaders.source import open_source
from stabtree.loaders.tables import delimited
from stabtree.metrics.names import Names
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.table import Table

NAN = float("nan")
SAMPLE = '"He said ""4, 5"",\nand then\n7, 8, ""ok"""'


def table(folder: Path, content: str | bytes) -> Table:
    """The table of a file."""
    [found] = delimited.read(open_source(write(folder, content)), Names())
    return found


def cells(found: Table, name: str) -> list[float | None]:
    """The cells of a column, None where nothing was logged."""
    column = found.columns[name]
    assert column
    return [value if logged else None for value, logged in zip(column.values.tolist(), column.mask, strict=True)]


@pytest.mark.parametrize(
    ("content", "name", "values", "note"),
    [
        ("step,loss\n0,2.5\n1,\n2,nan\n3,inf\n4,n/a\n", "loss", [2.5, None, NAN, float("inf"), None], ""),
        ("step;loss\n0;2,5\n1;1.234,5\n2;,5\n", "loss", [2.5, 1234.5, 0.5], ""),
        ("Datum;step;loss\n03.12.2024;0;3,007\n03.12.2024;1;2,970\n", "loss", [3.007, 2.97], ""),
        ("step\tloss\n0\t1,234.5\n1\t12,345,678.5\n", "loss", [1234.5, 12345678.5], "separators (line 2: '1,234.5')"),
        ("step|loss\n0|2.5\n1|2.25\n", "loss", [2.5, 2.25], ""),
        ("step  loss\n0     2.5\n1  2.25\n", "loss", [2.5, 2.25], ""),
        ("step,loss,step\n0,2.5,9\n1,2.25,9\n", "step", [0, 1], "same name as one before them are not read: step"),
        ("step,loss,lr\n0,2.5,1\n1,2.25\n2,2.125,1\n", "lr", [1, None, 1], "Rows with fewer fields"),
        ("step,loss\n0,2.5,\n1,2.25,\n", "loss", [2.5, 2.25], ""),
        ("# step loss\n0 2.5\n1 2.25\n", "loss", [2.5, 2.25], ""),
        (",step,loss\n0,7,2.5\n1,8,2.25\n", "step", [7, 8], ""),
        ("step,loss,lr\n0,2.5,1\nstep,lr,loss\n2,1,7.5\n", "loss", [2.5, 7.5], "in another order: 1 (line 3)"),
        (
            "step,loss\n" + "0,2.5\n" * 3 + "step,g,loss\n1,9,7.5\nstep,loss\n2,1.5\n",
            "g",
            [*[None] * 3, 9, None],
            "(line 5, 7)",
        ),
        (f"step,loss,a\n0,2.5,x\n1,2.25,{SAMPLE}\n2,2.125,{SAMPLE}\n3,2,y\n", "loss", [2.5, 2.25, 2.125, 2], ""),
        ("# step  loss\n# nan where nothing was measured\n0 2.5\n1 2.25\n", "loss", [2.5, 2.25], "Comment lines"),
        ("# step, loss, eval_loss\n0 2.5 3\n1 2.25 3\n", "eval_loss", [3, 3], ""),
        ("step loss [eV]\n0 2.5\n1 2.25\n", "loss", [2.5, 2.25], ""),
        ("step  train loss  lr\n0     2.5         0.1\n1     2.25        0.1\n", "train loss", [2.5, 2.25], ""),
        ("step,loss\n0,tensor(2.5, device='cuda:0')\n1,tensor(nan)\n", "loss", [2.5, NAN], ""),
        ("step,loss\n0,np.float64(2.5)\n1,'2.25'\n2,2|0.5\n", "loss", [2.5, 2.25, 2], ""),
        ("step,loss\n" + "".join(f"{2**53 + 2 * i},1\n" for i in range(3)), "step", [2**53 + i for i in (0, 2, 4)], ""),
    ],
)
def test_a_file_gives_these_cells(
    tmp_path: Path, content: str, name: str, values: list[float | None], note: str
) -> None:
    """Whatever separates the cells, a NaN is a value, an empty cell is nothing, and oddities are noted."""
    found = table(tmp_path, content)
    assert cells(found, name) == pytest.approx(values, nan_ok=True)
    assert any(note in line for line in found.notes) if note else not found.notes
    assert found.skipped_count == content.count("Saving")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("5,5.5,1,1", "has 4 fields where the header has 3"),
        ("5,\0\0,1", "holds NUL bytes"),
        ("step,loss,lr", "repeats the header"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str, reason: str) -> None:
    """It costs no other row, and its line is counted."""
    lines = [f"{i},{i}.5,0.1" for i in range(9)]
    found = table(tmp_path, "\n".join(["step,loss,lr", *lines[:5], line, *lines[6:]]) + "\n")
    assert cells(found, "step") == [0, 1, 2, 3, 4, 6, 7, 8]
    assert [(skip.line, skip.reason) for skip in found.skipped] == [(7, reason)]


def test_open_quotes_glue_no_rows(tmp_path: Path) -> None:
    """A sample text that is cut behind its opening quote costs no row, and neither does a stray quote."""
    last = table(tmp_path, "step,loss,sample\n" + "".join(f'{i},{i}.5,"a sample, cut\n' for i in range(60)))
    lines = [f"{i},{i}.5,0.1" for i in range(60)]
    lines[3], lines[12] = '3,"3.5,0.1', '12,12.5",0.1'
    stray = table(tmp_path, "\n".join(["step,loss,lr", *lines, ""]))
    for found in (last, stray):
        assert cells(found, "step") == list(range(60))
    assert "Lines with a quote that is never closed: 60, each read as a row by itself." in last.notes


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("odd", ["", "nan", "1_000", "text", "step", '"7"'])
def test_blocks_and_single_lines_give_the_same(tmp_path: Path, coding: str, odd: str) -> None:
    """The files are large enough for several blocks; an odd line is in one of them, or a comment in each."""
    lines = [f"{i},{i % 7}.25,{'' if i % 3 else 'nan'},x{i}" for i in range(9_000)]
    lines[6_000] = f"6000,{odd},1,x"
    head = "step,loss,lr,name\n"
    whole = table(tmp_path, gzip.compress((head + "\n".join(lines) + "\n").encode(coding)))
    single = table(tmp_path, (head + "\n# words\n".join(lines) + "\n").encode(coding))
    assert whole.rows == single.rows == 9_000
    for name in ("step", "loss", "lr"):
        one, other = whole.columns[name], single.columns[name]
        assert one
        assert other
        assert one.bad == other.bad
        assert np.array_equal(one.mask, other.mask)
        assert np.array_equal(one.held, other.held, equal_nan=True)


ROWS = "step,loss,lr\n" + "".join(f"{i},{2.5 - i / 99:.4f},{7.1234 - i / 99:.4f}e-05\n" for i in range(40))


@pytest.mark.parametrize(
    ("last", "lost", "rows"),
    [
        ("40,1", True, 40),
        ("40,1.6,7.1", True, 41),
        ("40,1.6,7.1234e-", True, 41),
        ("40,1.6,7.1234e-05", False, 41),
        ("40,1.6,nan", False, 41),
        ('40,1.6,"7.1"', False, 41),
    ],
)
def test_what_breaks_off_at_the_end_is_not_read(tmp_path: Path, last: str, lost: bool, rows: int) -> None:
    """A last number that is shorter than all above it, or lacks its exponent, is left out; those before it count."""
    found = table(tmp_path, ROWS + last)
    assert (found.rows, found.skipped_count) == (rows, int(lost))
    if lost:
        assert found.skipped[0].reason == delimited.CUT
        assert cells(found, "lr")[40:] in ([], [None])
