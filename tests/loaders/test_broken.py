"""Files of failed runs are broken files: what can be read is read, what can't is counted and named."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from stabtree.loaders.source import open_source
from stabtree.loaders.tables import delimited
from tests.loaders.make import points, text, write

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "step,loss,lr\n"


def skipped(path: Path) -> list[tuple[int, str]]:
    """The lines that were skipped."""
    return [(skip.line, skip.reason) for skip in load_run(path).sources[0].skipped]


def test_lines_before_the_header_are_skipped(tmp_path: Path) -> None:
    """A banner above the header is named, and settings there are those of the run."""
    file = write(tmp_path, "Starting run 5\n\n# comment\nseed: 7\n" + HEAD + "0,4.5,0.1\n1,4.4,0.1\n")
    run = load_run(file)
    assert "Lines above the header: 2, the first is 'Starting run 5'." in run.notes
    assert run.setting("seed") == 7


@pytest.mark.parametrize("line", ["x" * 5_000_000, '"' + "y" * 5_000_000, "1," * 100_000])
def test_a_giant_line_is_one_bad_line(tmp_path: Path, line: str) -> None:
    """Five megabytes without a line end neither hang nor crash."""
    run = load_run(write(tmp_path, HEAD + "0,4.5,0.1\n" + line + "\n1,4.4,0.1\n"))
    assert set(run.series["loss"].steps.tolist()) >= {0, 1}


def test_broken_json_lines_are_named(tmp_path: Path) -> None:
    """Each line that is no object is skipped with its reason; the others are read."""
    deep = '{"a":' * 100_000
    rows = [
        '{"step": 0, "loss": 4.5}',
        "",
        "not json",
        "[1, 2]",
        "5",
        deep,
        '{"step": 1, "loss": 4.4}',
        '{"step": 2, "lo',
    ]
    file = write(tmp_path, "\n".join(rows), "a.jsonl")
    found = skipped(file)
    assert [line for line, _ in found] == [3, 4, 5, 6, 8]
    assert found[1] == (4, "is no JSON object: '[1, 2]'")
    assert len(load_run(file).series["loss"]) == 2


def test_odd_json_values_are_no_crash(tmp_path: Path) -> None:
    """Lists, long texts, giant integers and repeated keys don't stop the reading."""
    content = (
        '{"step": 0, "loss": 4.5, "x": [1, 2], "y": "' + "z" * 1000 + '"}\n'
        '{"step": 1, "loss": 1' + "0" * 400 + "}\n"
        '{"step": 2, "loss": 9, "loss": 4.3}\n'
        '{"step": 3, "loss": true}\n'
    )
    run = load_run(write(tmp_path, content, "a.jsonl"))
    assert points(run)["loss"] == [(0, 4.5), (2, 4.3)]


def test_bytes_that_are_no_text_are_replaced_and_noted(tmp_path: Path) -> None:
    """One wrong byte does not cost the file."""
    run = load_run(write(tmp_path, b"step,loss,caf\xe9\n0,4.5,1\n1,4.4,1\n"))
    assert len(run.series["loss"]) == 2
    assert "Bytes that are not utf-8 were replaced." in run.notes


def test_a_missing_decompressor_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What packs with zstd is an extra: the error is the command that installs it."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(StabtreeError) as caught:
        load_run(write(tmp_path, b"\x28\xb5\x2f\xfd" + bytes(50)))
    assert caught.value.hint == "pip install 'stabtree[zstd]'"


def test_a_file_that_vanishes_while_it_is_read(tmp_path: Path) -> None:
    """Log rotation between looking and reading is an error like any other."""
    file = write(tmp_path, text())
    source = open_source(file)
    file.unlink()
    with pytest.raises(StabtreeError, match="can't be read: No such file"):
        list(source.lines())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty"),
        (HEAD, "has a header but no rows"),
        ("1,2,3\n2,3,4\n", "has no header line"),
        ("1 2.5 7.5\n2 3.5 7.5\n", "has no header line"),
        ("step,lr\n0,0.1\n", "no column that is known as the training loss"),
        (HEAD + "0,,0.1\n1,,0.1\n", "holds no value in its loss column 'loss'"),
        ("hello world\n", "in no format"),
        ("once upon a time\nthere was a run\nthat went wrong\n", "in no format"),
        ("\0\0\0\0", ""),
        ("{\n", ""),
        ('{"step": 0, "los', "no line of it is a JSON object"),
        ('{"a": 1}\n{"a": 2}\n', "no column that is known as the training loss"),
        (b"PAR1" + bytes(100), "Parquet"),
        (b"PK\x03\x04" + bytes(100), "is a zip archive"),
        (bytes(range(256)) * 20, "is a binary file"),
        (gzip.compress(b"", mtime=0), "is empty once decompressed"),
        (b"\x1f\x8b\x08garbage", "can't be read"),
        ("\n\n\n", ""),
    ],
)
def test_unreadable_files_say_why(tmp_path: Path, content: str | bytes, problem: str) -> None:
    """A problem, a place and a next step; never a traceback."""
    with pytest.raises(StabtreeError) as caught:
        load_run(write(tmp_path, content))
    assert problem in caught.value.problem
    assert caught.value.where.endswith("metrics.csv")
    assert caught.value.hint


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    """A slip of the finger gets the right name back."""
    write(tmp_path, text())
    with pytest.raises(StabtreeError) as caught:
        load_run(tmp_path / "metric.csv")
    assert caught.value.problem == "there is no such file"
    assert caught.value.hint.endswith("metrics.csv?")


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    """A named pipe would be waited for without end."""
    if sys.platform == "win32":
        pytest.skip("there are no such files on Windows")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(StabtreeError, match="is not a regular file"):
            load_run(path)


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root, as Windows, lets everything be read")
def test_a_forbidden_file(tmp_path: Path) -> None:
    """Missing rights are the user's to fix."""
    file = write(tmp_path, text())
    file.chmod(0)
    with pytest.raises(StabtreeError, match="can't be read"):
        load_run(file)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_impossible_names(name: str) -> None:
    """A name that no file can have is an error like any other."""
    with pytest.raises(StabtreeError):
        load_run(name)


JUNK = b'\0|"|nan|\n|\r|,|\xff\xfe|{|[|1e999|-1|\x1b[31m|#|;|999999999999999999999999999999'.split(b"|")
SOUND = {
    "a.csv": text().encode(),
    "b.csv": text(";").encode("utf-16"),
    "c.jsonl": "".join(
        json.dumps({"step": i, "loss": 4 - i / 50, "batch_id": f"{i:x}"}) + "\n" for i in range(60)
    ).encode(),
    "d.csv.gz": gzip.compress(text().encode()),
    "manifest.json": json.dumps(
        {"run_name": "x", "optimizer": {"name": "sgd"}, "series": {"step": list(range(60)), "loss": [1.5] * 60}},
        indent=1,
    ).encode(),
}


def garbled(content: bytes, rng: np.random.Generator) -> bytes:
    """The content after one to six accidents."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 7))):
        place = int(rng.integers(len(data) + 1))
        accident = int(rng.integers(4))
        if accident == 0:
            del data[place : place + int(rng.choice([20, 10_000]))]
        elif accident == 1:
            data[place:place] = JUNK[int(rng.integers(len(JUNK)))] * int(rng.choice([1, 1, 30]))
        elif accident == 2:
            data[place:place] = data[place : place + 300]
        elif data:
            data[place % len(data)] = int(rng.integers(256))
    return bytes(data)


@pytest.mark.parametrize("name", SOUND)
def test_garbled_files_load_or_are_refused(tmp_path: Path, name: str) -> None:
    """Whatever happened to a file, only a StabtreeError may come of it, and what loads is sound."""
    rng = np.random.default_rng(list(name.encode()))
    refusals: list[str] = []
    for _ in range(60):
        file = write(tmp_path, garbled(SOUND[name], rng), name)
        try:
            run = load_run(file)
        except StabtreeError as error:
            refusals.append(str(error))
            continue
        for series in run.series.values():
            assert len(series) == len(series.values) > 0
            assert (series.steps[1:] > series.steps[:-1]).all()
        assert all(note.isprintable() for note in run.notes)
    assert all(text.isprintable() for text in refusals)


def test_a_header_of_any_length_is_read(tmp_path: Path) -> None:
    """Six thousand columns with long names make a header of 280 KiB, below which the rows are read."""
    head = "step,loss," + ",".join(f"a_column_with_quite_a_long_name_of_layer_{i}" for i in range(6000))
    run = load_run(write(tmp_path, head + "\n" + "".join(f"{i},2" + ",1" * 6000 + "\n" for i in range(3))))
    assert run.series["loss"].steps.tolist() == [0, 1, 2]


@pytest.mark.parametrize("columns", [40_000, 600_000])
def test_too_many_columns_are_named(tmp_path: Path, columns: int) -> None:
    """A file that can't be read for the length of its lines is refused for what it is."""
    row = ",".join("1" * columns) + "\n"
    head = "step,loss," + ",".join(f"a{i:06d}" for i in range(columns - 2))
    with pytest.raises(StabtreeError, match="has more than 20,000 columns"):
        load_run(write(tmp_path, f"{head}\n{row}{row}"))


def test_a_huge_first_line_is_no_header(tmp_path: Path) -> None:
    """What stands below a line of 400 KB is read, and the line is told."""
    for junk in ("# " + "x" * 400_000, "a,b," * 100_000):
        run = load_run(write(tmp_path, junk + "\n" + HEAD + "7,4.5,0.1\n8,4.4,0.1\n"))
        assert run.series["loss"].steps.tolist() == [7, 8]


def test_a_byte_order_mark_in_the_middle(tmp_path: Path) -> None:
    """The header of a second writer is the same header, mark or no mark."""
    rows = "".join(f"{i},2.5,0.1\n" for i in range(9))
    run = load_run(write(tmp_path, HEAD + rows + "\ufeff" + HEAD + rows.replace(",2.5", "0,2.5")))
    assert len(run.series["loss"]) == 17


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_cut_archive_is_called_cut(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Whether nothing of it comes out, or too little to tell a format by."""
    packed = pack((HEAD + "".join(f"{i},4.5,0.1\n" for i in range(50))).encode())
    for keep in (len(packed) // 4, len(packed) // 2):
        try:
            told = " ".join(load_run(write(tmp_path, packed[:keep], "a.csv.packed")).notes)
        except StabtreeError as error:
            told = error.problem
        assert "is cut" in told


@pytest.mark.faulty
@pytest.mark.parametrize("function", ["sniff", "read"])
def test_a_reader_that_fails_costs_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """A fault of our own in one file is named, and the other files of the folder are read."""

    def fail(*_: object) -> None:
        raise csv.Error("field larger than field limit (131072)")

    write(tmp_path, "".join(f'{{"step": {i}, "loss": {3 - i / 9}}}\n' for i in range(9)), "good.jsonl")
    write(tmp_path, "step,loss\n1,2.5\n", "bad.csv")
    monkeypatch.setattr(delimited, function, fail)
    run = load_run(tmp_path)
    assert len(run.series["loss"]) == 9
    assert any("bad.csv" in note for note in run.notes)
