"""A delimited file read in blocks gives what the same file gives line by line, wherever a block ends."""

from __future__ import annotations

import gzip
import lzma
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from stabtree.loaders.packed import unpack
from stabtree.loaders.source import open_source
from stabtree.loaders.tables import arrow, blocks, delimited, linewise
from stabtree.loaders.tables.cells import ColumnBuilder
from stabtree.metrics.names import Names
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stabtree.loaders.table import Table

HEAD = "step,loss,grad_norm,lr,batch_id,fps\n"
WHOLE = 1 << 20


def read(file: Path, block: int, *, by_line: bool = False) -> Table:
    """The table of a file read in blocks of so many bytes, or in one and line by line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpack, "CHUNK_BYTES", WHOLE if by_line else block)
        if by_line:
            patch.setattr(blocks.Body, "_count_regular_rows", lambda _self, _block: 0)
        return delimited.read(open_source(file), Names())


def read_by_arrow(file: Path, block: int) -> Table:
    """The table of a file that pyarrow is given in blocks of so many characters."""
    pytest.importorskip("pyarrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "LARGE", 0)
        patch.setattr(arrow, "BLOCK", block)
        patch.setattr(arrow, "PIECE", max(block // 3, 64))
        patch.setattr(blocks, "PIECE", block // 3)
        return read(file, WHOLE)


def same(one: Table, other: Table) -> None:
    """Assert that two tables hold the same, to the last bit."""
    assert (one.rows, one.format, one.notes) == (other.rows, other.format, other.notes)
    assert (one.skipped, one.skipped_count) == (other.skipped, other.skipped_count)
    assert list(one.columns) == list(other.columns)
    for name, column in one.columns.items():
        twin = other.columns[name]
        if column is None or twin is None:
            assert column is twin
            continue
        logged = np.ones(one.rows, dtype=np.bool_) if column.logged is None else column.logged
        assert (column.logged is None) == (twin.logged is None)
        assert twin.logged is None or np.array_equal(logged, twin.logged)
        assert np.array_equal(column.values[logged], twin.values[logged], equal_nan=True), name
        assert (column.bad, column.bad_example, column.coded) == (twin.bad, twin.bad_example, twin.coded)
        assert column.labels == twin.labels


def cells(rng: np.random.Generator, i: int) -> list[str]:
    """One row of numbers."""
    return [
        str(i),
        repr(float(rng.random()) * 10.0 ** int(rng.integers(-9, 9))),
        f"{rng.random():.6g}",
        "0.001",
        f"{int(rng.integers(2**32)):08x}",
        "9",
    ]


def with_(place: int, texts: list[str], every: int = 10) -> Callable[[list[str], int], None]:
    """Puts a text into every tenth cell of a column, from row 300 on."""

    def change(row: list[str], i: int) -> None:
        if i >= 300 and i % every == 0:
            row[place] = texts[i // every % len(texts)]

    return change


def nothing(row: list[str], i: int) -> None:
    """The row as it is."""


def nan_and_empty_apart(row: list[str], i: int) -> None:
    """One column holds NaN, another one empty cells."""
    with_(1, ["nan"])(row, i)
    with_(2, [""], 3)(row, i)


def empty_ends(row: list[str], i: int) -> None:
    """The first and the last cell may be empty."""
    with_(0, [""])(row, i)
    with_(5, [""], 3)(row, i)


def sparse(row: list[str], i: int) -> None:
    """A loss in every hundredth row only."""
    if i % 100:
        row[1] = ""


def over_two(row: list[str], i: int) -> None:
    """A JSON list that reaches over two cells."""
    if i % 9 == 0:
        row[1:3] = ["[1", "2]"]


def side_by_side(row: list[str], i: int) -> None:
    """Three empty cells in a row."""
    if i % 7 == 3:
        row[1:4] = ["", "", ""]


def huge_steps(row: list[str], i: int) -> None:
    """Steps that a float64 can't tell apart."""
    row[0] = str(2**53 + 3 * i)


def short(row: list[str], i: int) -> None:
    """Some rows lack their end."""
    if i % 50 == 7:
        del row[3:]


def long(row: list[str], i: int) -> None:
    """Some rows have a field too many."""
    if i % 50 == 7:
        row.append("7")


def ragged(row: list[str], i: int) -> None:
    """A row that is too long follows one that is as much too short."""
    if i % 50 == 7:
        row.pop()
    if i % 50 == 8:
        row.append("7")


def dangling(row: list[str], i: int) -> None:
    """Every row ends with a delimiter."""
    row[5] = f"{i},"


VARIANTS: dict[str, Callable[[list[str], int], None]] = {
    "plain": nothing,
    "integers": with_(1, ["4", "-7", "0"], 1),
    "nan": with_(1, ["nan"]),
    "NaN": with_(1, ["NaN"]),
    "nan spelled six ways": with_(1, ["nan", "NaN", "-nan", "NAN", "1.#QNAN", "nan (skipped)"]),
    "inf": with_(1, ["inf", "-inf", "Infinity", "1e400"]),
    "empty": with_(1, [""]),
    "nan and empty": with_(1, ["nan", ""]),
    "nan and null": with_(1, ["nan", "null"]),
    "nan in one column, empty in another": nan_and_empty_apart,
    "a loss at every hundredth row": sparse,
    "empty at both ends": empty_ends,
    "empty side by side": side_by_side,
    "blank": with_(1, [" "]),
    "null": with_(2, ["null", "n/a", "None"]),
    "truth": with_(2, ["True", "true", "false"]),
    "empty steps": with_(0, [""]),
    "huge integers": with_(1, ["1" + "0" * 30, "9" * 19, "9" * 400, "18446744073709551617"]),
    "huge steps": huge_steps,
    "padded": with_(1, [" 1.5", "2.5 ", "\t3"]),
    "no JSON numbers": with_(1, ["1.", ".5", "+1", "007", "1_000", "1E5", "٣"]),
    "zeros": with_(1, ["-0", "-0.0", "0", "1e-0"]),
    "thousands in quotes": with_(1, ['"1,234.5"']),
    "brackets": with_(1, ["[1]", "{}", "[", "[1;2]"]),
    "a list over two cells": over_two,
    "numbers as labels": with_(4, ["20052005", "1e500000"]),
    "all labels numbers": with_(4, ["0", "1", "2"], 1),
    "empty labels": with_(4, [""]),
    "text": with_(1, ["oops"]),
    "text in a column that nobody wants": with_(5, ["eval"]),
    "quotes": with_(1, ['"1.5"']),
    "text of several lines": with_(5, ['"two\nlines, one cell"']),
    "an open quote": with_(5, ['"never closed']),
    "short rows": short,
    "long rows": long,
    "a long row after a short one": ragged,
    "a delimiter at each end": dangling,
    "the name of a column as text": with_(5, ["step"]),
}
ODD_LINES: dict[str, Callable[[str], str]] = {
    "cut": lambda text: text + "600,0.5",
    "cut in the last field": lambda text: text[:-1],
    "cut in the middle": lambda text: text[:-30],
    "cut below a short row": lambda text: text + "600,0.5\n# note",
    "a long last row": lambda text: text + "600,0.5,0.5,0.001,ab,9,7\n",
    "the header again": lambda text: text + HEAD + "600,0.5,0.5,0.001,ab,9\n",
    "the header again, in quotes": lambda text: text + '"step",loss,grad_norm,lr,batch_id,fps\n600,1,1,1,ab,9\n',
    "the header again, in another order": lambda text: (
        text + "loss,step,lr,fps,grad_norm,batch_id\n" + "".join(f"0.5,{i},0.001,9,0.25,ab\n" for i in range(600, 700))
    ),
    "the header again, of other columns": lambda text: (
        text + "epoch,step,loss\n" + "".join(f"7,{i},nan\n" for i in range(600, 700)) + HEAD + "700,1,1,1,ab,9\n"
    ),
    "the header again, as wide, of other columns": lambda text: (
        text + "epoch,step,loss,val_loss,lr,fps\n" + "".join(f"7,{i},1.5,2.5,0.001,9\n" for i in range(600, 700))
    ),
    "quotes that are never closed": lambda text: text.replace(",9\n", ',"nine\n'),
    "quotes that are never closed, first": lambda text: text.replace("\n4", '\n"4').replace("\n5", '\n"5'),
    "a blank line": lambda text: text.replace("\n500,", "\n\n500,"),
    "lines of blanks and delimiters": lambda text: text.replace("\n500,", "\n  \n,,,,,\n500,"),
    "a comment": lambda text: text.replace("\n500,", "\n# resumed\n500,"),
    "a comment with delimiters": lambda text: text.replace("\n500,", "\n#1,2,3,4,5,6\n500,"),
    "a comment first": lambda text: "# run 5\n" + text,
    "a banner": lambda text: "banner\n" + text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "NUL bytes": lambda text: text.replace("\n500,", "\n\0\0\0,"),
    "NUL bytes in a whole row": lambda text: text.replace("\n500,", "\n50\x000,"),
    "a letter in a number": lambda text: text.replace("\n500,", "\n50é0,"),
    "an escape code": lambda text: text.replace("\n500,", "\n\x1b[0m500,"),
    "blank lines at the end": lambda text: text + "\n" * 5,
    "no line end": lambda text: text.rstrip("\n"),
    "semicolons": lambda text: text.replace(",", ";"),
    "semicolons and decimal commas": lambda text: text.replace(",", ";").replace(".", ","),
    "semicolons and thousands": lambda text: text.replace(",", ";").replace(";0.001;", ";1,234.5;"),
    "tabs": lambda text: text.replace(",", "\t"),
    "tabs, a line of them, and a short one": lambda text: text.replace(",", "\t") + "\t\t\t\t\t\n\t\n",
    "bars": lambda text: text.replace(",", "|"),
    "blanks": lambda text: text.replace(",", " "),
    "several blanks": lambda text: text.replace(",", "  "),
}


def content(change: Callable[[list[str], int], None] = nothing, rows: int = 600) -> str:
    """A file with one kind of odd cell."""
    rng = np.random.default_rng(1)
    lines = []
    for i in range(rows):
        row = cells(rng, i)
        change(row, i)
        lines.append(",".join(row))
    return HEAD + "\n".join(lines) + "\n"


@pytest.mark.parametrize("variant", VARIANTS)
def test_cells_mean_the_same_in_blocks(tmp_path: Path, variant: str) -> None:
    """Whatever a cell holds, it is read in a block as it is in a line."""
    file = write(tmp_path, content(VARIANTS[variant]))
    slow = read(file, WHOLE, by_line=True)
    for block in (200, 3000, WHOLE):
        same(read(file, block), slow)


@pytest.mark.parametrize("variant", [*VARIANTS, *ODD_LINES])
def test_pyarrow_reads_the_same(tmp_path: Path, variant: str) -> None:
    """Whatever a cell or a line holds, a column of labels or none."""
    text = content(VARIANTS.get(variant, nothing))
    text = ODD_LINES.get(variant, str)(text)
    for label in ("batch_id", "hash"):
        file = write(tmp_path, text.replace("batch_id", label))
        slow = read(file, WHOLE, by_line=True)
        for block in (300, 3000):
            same(read_by_arrow(file, block), slow)


def test_pyarrow_is_asked_for_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And for no small or wide one."""
    pytest.importorskip("pyarrow")
    sizes: list[int] = []
    columns = arrow.columns

    def counted(block: str, *others: Any) -> list[Any] | None:
        sizes.append(len(block))
        return columns(block, *others)

    monkeypatch.setattr(arrow, "columns", counted)
    file = write(tmp_path, content().replace("batch_id", "hash"))
    read(file, WHOLE)
    assert not sizes
    read_by_arrow(file, 3000)
    assert sizes
    sizes.clear()
    monkeypatch.setattr(arrow, "COLUMNS", 5)
    read_by_arrow(file, 3000)
    assert not sizes


@pytest.mark.parametrize("variant", ODD_LINES)
def test_lines_mean_the_same_in_blocks(tmp_path: Path, variant: str) -> None:
    """Cut, long, repeated, blank and foreign lines are read, or skipped by number, as they are line by line."""
    file = write(tmp_path, ODD_LINES[variant](content()))
    slow = read(file, WHOLE, by_line=True)
    for block in (200, 3000, WHOLE):
        same(read(file, block), slow)


SMALL = (
    "# a note\nbanner\n" + HEAD + "0,1.5,,0.1,ab,9\n1,nan,2,0.1,007,9\n\n2,0.5,2,0.1,ab,say\n# pause\n"
    '3,0.5,"1,234",0.1,"a\nb",9\n4,1\n5,1,1,1,1,1,1\n6,"1,1,1,1,9\n7,é,1,1,1,9\n' + HEAD + "8,-inf,1,1,x,9\n9,1,1,1,x"
)


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_block_may_end_anywhere(tmp_path: Path, coding: str) -> None:
    """Blocks of every size, and so an end of one at every byte, give the same rows, numbers of lines and notes."""
    file = write(tmp_path, SMALL.encode(coding))
    slow = read(file, WHOLE, by_line=True)
    assert slow.rows == 8
    assert [skip.line for skip in slow.skipped] == [2, 12, 15, 17]
    assert "Comment lines, which begin with #: 1, skipped; the first is line 8." in slow.notes
    for block in range(1, len(SMALL)):
        same(read(file, block), slow)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_a_packed_file_is_read_in_blocks_too(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Decompressed in pieces, it holds what the plain file holds."""
    plain = read(write(tmp_path, SMALL), WHOLE, by_line=True)
    packed = write(tmp_path, pack(SMALL.encode()), "packed")
    for block in (1, 7, 100):
        table = read(packed, block)
        assert (table.rows, table.skipped) == (plain.rows, plain.skipped)


CELLS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text("0123456789.,-+enaif \t[]{}\"'#;_", max_size=6),
    st.sampled_from(["", "nan", "NaN", "null", "true", "-0", "1e400", "step", "loss", '"', "\0", "é", "٣"]),
)


@given(
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=5), max_size=30),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    block=st.integers(1, 200),
    ended=st.booleans(),
)
def test_any_file_reads_the_same_in_blocks(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str, block: int, ended: bool
) -> None:
    """Random cells, ragged rows and broken quotes, in blocks of any size."""
    sure = [delimiter.join(("step", "loss", "batch_id")), *(delimiter.join(("1", "0.5", "x")) for _ in range(3))]
    text = "\n".join([*sure, *(delimiter.join(row) for row in rows)]) + ("\n" if ended else "")
    file = write(tmp_path_factory.mktemp("any"), text)
    try:
        slow = read(file, WHOLE, by_line=True)
    except StabtreeError as error:
        with pytest.raises(StabtreeError, match=re.escape(error.problem)):
            read(file, block)
        return
    same(read(file, block), slow)
    same(read_by_arrow(file, 3 * block), slow)


def rows_by_line(text: str, tmp_path: Path) -> int:
    """How many rows of a file are read line by line."""
    counts: list[int] = []

    def counted(*arguments: Any, **options: Any) -> tuple[list[linewise.Below], str]:
        found = linewise.records(*arguments, **options)
        counts.append(sum(len(part.rows) for part in found[0]))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "records", counted)
        read(write(tmp_path, text), 3000)
    return sum(counts)


@pytest.mark.parametrize(
    "variant",
    ["plain", "integers", "nan spelled six ways", "inf", "empty", "nan and empty", "text", "numbers as labels"],
)
def test_what_a_run_may_well_log_is_read_in_blocks(tmp_path: Path, variant: str) -> None:
    """None of its lines is read on its own."""
    assert rows_by_line(content(VARIANTS[variant]), tmp_path) == 0


def test_an_odd_line_costs_one_block(tmp_path: Path) -> None:
    """After a comment, a quote or a short row the file goes on in blocks; the shortest row has 30 characters."""
    text = content().replace("\n300,", "\n# resumed\n300,", 1)
    assert 1 <= rows_by_line(text, tmp_path) <= 3060 // 30


@pytest.mark.parametrize("odd", ["nothing", "text", "labels", "nan beside empty cells"])
def test_numbers_are_taken_over_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    """Neither NaN nor empty cells, nor text in a column beside, make a column of numbers be read cell by cell.

    Text under a name that nobody knows is given up after the first block.
    """
    slow: list[str] = []
    add = ColumnBuilder.add

    def counted(builder: ColumnBuilder, cells: list[str], lines: range) -> None:
        slow.extend(cells)
        add(builder, cells, lines)

    monkeypatch.setattr(ColumnBuilder, "add", counted)
    beside = {"text": ("vram", "eval"), "labels": ("batch_id", "ab")}.get(odd, ("lr", "0.5"))
    empty = "" if odd == "nan beside empty cells" else "1.5"
    rows = "".join(f"{i},{'nan' if i > 500 else 0.5},{empty},{beside[1]}\n" for i in range(1000))
    read(write(tmp_path, f"step,loss,eval_loss,{beside[0]}\n{rows}"), 1300)
    assert set(slow) == {"labels": {"ab"}, "text": {"eval"}}.get(odd, set())
    assert odd != "text" or len(slow) < 200


def test_steps_beyond_the_whole_numbers_of_a_float(tmp_path: Path) -> None:
    """They are no steps in a large file as in a small one, and the run says so."""
    rows = "".join(f"{2**53 + 2 * i if i > 20 else i},{1 / (i + 1)}\n" for i in range(40))
    run = load_run(write(tmp_path, f"step,loss\n{rows}"))
    assert any("impossible step" in note for note in run.notes)


def table(folder: Path, *lines: str) -> Table:
    """The table of a file of some lines."""
    return read(write(folder, "\n".join(lines) + "\n"), WHOLE)


def column(table: Table, name: str) -> list[float | None]:
    """The cells of a column, None where nothing was logged."""
    found = table.columns[name]
    assert found
    return [value if logged else None for value, logged in zip(found.values.tolist(), found.mask, strict=True)]


def test_a_header_in_another_order_is_read_anew(tmp_path: Path) -> None:
    """The rows below a header that comes again are read in its order, and a note says where it stands."""
    found = table(tmp_path, "step,loss,lr", "0,2.5,0.1", "1,2.25,0.1", "step,lr,loss", "2,0.1,7.5")
    assert column(found, "loss") == [2.5, 2.25, 7.5]
    assert found.notes == (
        "Headers with other columns, or in another order: 1 (line 4), the rows below were read by them.",
    )


def test_a_header_of_other_columns_is_read_anew(tmp_path: Path) -> None:
    """A column that only a later header has is empty above it, and one that it lacks is empty below."""
    found = table(tmp_path, "step,loss", "0,2.5", "1,2.25", "step,grad_norm,loss", "2,9,7.5", "step,loss", "3,1.5")
    assert column(found, "loss") == [2.5, 2.25, 7.5, 1.5]
    assert column(found, "grad_norm") == [None, None, 9.0, None]


def test_no_row_is_glued_to_another_by_open_quotes(tmp_path: Path) -> None:
    """A sample text that is cut behind its opening quote costs no row, first column or last, and is counted."""
    rows = [f'{i},{2.5 + i},"a sample, cut' for i in range(9)]
    found = table(tmp_path, "step,loss,sample", *rows)
    assert column(found, "loss") == [2.5 + i for i in range(9)]
    assert found.notes == ("Lines with a quote that is never closed: 9, each read as a row by itself.",)
    first = table(tmp_path, "sample,step,loss", *[f'"a sample,{i},{2.5 + i}' for i in range(9)])
    assert column(first, "loss") == [2.5 + i for i in range(9)]


def test_two_stray_quotes_swallow_no_rows(tmp_path: Path) -> None:
    """Where one opens a field and another could close it far below, the rows between are rows."""
    rows = [f"{i},{i}.5,0.1" for i in range(20)]
    rows[3], rows[12] = '3,"3.5,0.1', '12,12.5",0.1'
    assert column(table(tmp_path, "step,loss,lr", *rows), "step") == list(range(20))


def test_a_text_of_several_lines_stays_one_cell(tmp_path: Path) -> None:
    """A quoted text may hold line ends, commas and doubled quotes, and then no line of it is a row."""
    text = '"He said ""4, 5"",\nand then\n7, 8, ""ok"""'
    found = table(tmp_path, "step,loss,sample", "0,2.5,x", f"1,2.25,{text}", f"2,2.125,{text}", "3,2.0,y")
    assert column(found, "loss") == [2.5, 2.25, 2.125, 2.0]
    assert not found.notes


@pytest.mark.parametrize("end", ["", ","], ids=["short", "empty"])
def test_rows_that_shift_midway_are_not_read(tmp_path: Path, end: str) -> None:
    """A loss that is no longer written, under the same header, makes no loss of the gradient's norm."""
    whole = [f"{i},2.5{i},0.7{i},0.001" for i in range(50)]
    found = table(tmp_path, "step,loss,grad_norm,lr", *whole, *[f"{i},0.7{i},0.001{end}" for i in range(50, 80)])
    assert found.rows == 50
    assert max(value or 0.0 for value in column(found, "grad_norm")) < 1
    assert (found.skipped_count, found.skipped[0].line) == (30, 52)


def test_a_column_that_ends_is_no_shift(tmp_path: Path) -> None:
    """Where the rate is no longer logged, the others go on as they were."""
    whole = [f"{i},2.5{i},0.7{i},0.001" for i in range(50)]
    found = table(tmp_path, "step,loss,grad_norm,lr", *whole, *[f"{i},2.5{i},0.7{i}," for i in range(50, 80)])
    assert found.rows == 80


def test_rows_that_shift_before_other_columns_are_not_read(tmp_path: Path) -> None:
    """Two columns that go on as their right neighbours did prove it, whatever stands at the end of the row."""
    head = "step,loss,grad_norm,lr,weight_norm/a,batch_id"
    whole = [f"{i},2.5{i},0.7{i},0.001,42.5,ab{i}" for i in range(50)]
    found = table(tmp_path, head, *whole, *[f"{i},0.7{i},0.001,42.5,ab{i}," for i in range(50, 80)])
    assert found.rows == 50
