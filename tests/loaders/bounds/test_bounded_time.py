"""What a file costs grows with its size and no faster, whatever stands in it; what is too much is refused at once."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from time import process_time
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run, load_runs
from stabtree.metrics.names import Names
from stabtree.metrics.table import match
from stabtree.run import Run
from tests.loaders.make import write
from tests.loaders.make_binary import BINARIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(60))
TIMES = 8
LARGE = 0.3  # seconds, below which the machine's noise would be measured
STEEPEST = 1.3

# Some lines of n characters each in a text log, which takes 20,000 of a line for metrics.
LINES: dict[str, Callable[[int], str]] = {
    "a table's rule that is none": lambda n: "||" + "-" * (n // 2) + " " * (n // 2) + "x|",
    "bars": lambda n: "|" * n + "x",
    "thousands that never end": lambda n: "loss 1" + ",234" * (n // 4) + ",",
    "settings that are not closed": lambda n: "Arguments(" + "a=<," * (n // 4),
    "digits in a bar": lambda n: "1/2 loss: 3 " + "1" * n,
    "open brackets": lambda n: "[" * n + " loss: 2",
    "words of an error": lambda n: "error " * (n // 6),
    "a ruler that never ends": lambda n: "x" * 50 + "|" + "-" * n + "x",
    "names of columns": lambda n: "Epoch " + "box_loss " * (n // 9) + "1",
    "cells of a table": lambda n: "Epoch box_loss cls_loss\n" + "1 " * (n // 2) + "x",
    "counts": lambda n: "1/2 " * (n // 4) + "loss 2",
    "a loss by its kind": lambda n: "step 70 " + "cross_" * (n // 6) + "x: 2",
    "slashes": lambda n: "step 70 " + "a/" * (n // 2) + "loss 2",
}
FILES: dict[str, Callable[[int], str]] = {
    "blank lines": lambda n: "\n" * n + ROWS,
    "names below rulers": lambda n: "".join(f"-----\nIteration: {k}\nloss: 2.5\n" for k in range(n // 10)),
    "text in JSON without line ends": lambda n: '{"stream": "stdout", "log": "loss 2"}\n' * (n // 10) + ROWS,
    "epochs and batches": lambda n: "".join(f"[{k // 9}/900] batch {k % 9} loss 2.5\n" for k in range(n // 10)),
    "csv": lambda n: "step,loss\n" + "".join(f"{k},{1 / (k + 1)}\n" for k in range(n)),
    "csv with an open quote in each row": lambda n: (
        "step,loss,text\n" + "".join(f'{k},{1 / (k + 1)},"a\n' for k in range(n))
    ),
    "a long name": lambda n: "step,loss," + "a/" * n + "\n" + "".join(f"{k},2,3\n" for k in range(20)),
    "json lines": lambda n: "".join(f'{{"step": {k}, "loss": 2.5}}\n' for k in range(n)),
    "json lines with a new key each": lambda n: "".join(
        f'{{"step": {k}, "loss": 2.5, "k{k}": 1}}\n' for k in range(n // 5)
    ),
    "json lines that are broken": lambda n: ROWS + "".join(f'{{"step": {k}, "loss": 2.5\n' for k in range(n)),
}


def cost(make: Callable[[int], str | bytes], size: int, folder: Path) -> float:
    """The CPU seconds of loading, the lesser of two; of one where it is too short to matter."""
    file = write(folder, make(size), "log.txt")

    def once() -> float:
        begin = process_time()
        with suppress(StabtreeError):  # a refusal costs time as well
            load_run(file)
        return process_time() - begin

    first = once()
    return min(first, once()) if first > LARGE else first


@pytest.mark.parametrize(
    ("make", "size"),
    [pytest.param(lambda n, line=line: ROWS + f"{line(n)}\n" * 10, 2300, id=name) for name, line in LINES.items()]
    + [pytest.param(make, 1200, id=name) for name, make in {**FILES, **BINARIES}.items()],
)
def test_time_grows_with_size_and_no_faster(make: Callable[[int], str | bytes], size: int, tmp_path: Path) -> None:
    """Eight times as much of anything costs at most 8^1.3 times as much CPU, in one of three tries."""
    powers = []
    for _ in range(3):
        larger = cost(make, TIMES * size, tmp_path)
        powers.append(0.0 if larger <= LARGE else math.log(larger / cost(make, size, tmp_path), TIMES))
        if powers[-1] < STEEPEST:
            return
    pytest.fail(f"the cost grows with the size to the power of {min(powers):.2f}")


def test_a_long_name_of_a_column_costs_no_more_than_a_short_one() -> None:
    """Names of any length are told within a millisecond; what is no name means nothing, and known ones still do."""
    begin = process_time()
    for parts in range(1, 1000):
        assert match("a/" * parts) is None
    assert process_time() - begin < 1.0
    assert Names().match("grad_norm/" + "layer/" * 20 + "weight").role.startswith("grad_norm/layer.layer.")
    assert Names().match("model/" * 20 + "grad_norm").role.startswith("grad_norm/model.model.")


@pytest.mark.parametrize(("name", "make"), BINARIES.items(), ids=BINARIES)
def test_a_large_binary_file_is_read_at_all(name: str, make: Callable[[int], bytes], tmp_path: Path) -> None:
    """What the growth is measured of is a run, not a refusal."""
    run = load_runs(write(tmp_path, make(100), "log.bin"))[0].run
    assert isinstance(run, Run), name
    assert "loss" in run.series, name


@pytest.mark.parametrize("kind", ["one row", "a new key a row", "records", "columns", "series"])
def test_more_columns_than_any_logger_writes_are_refused(kind: str, tmp_path: Path) -> None:
    """24,000 names end in an error that says so, within seconds."""
    names = [f"k{n}" for n in range(24_000)]
    row = {"step": 1, "loss": 2.0}
    wide = {**row, **dict.fromkeys(names, 1)}
    series = {"step": [1, 2], "loss": [2.0, 1.0], **{name: [1, 2] for name in names}}
    text = {
        "one row": lambda: json.dumps(wide) + "\n" + json.dumps(row) + "\n",
        "a new key a row": lambda: "".join(f'{{"step": {n}, "loss": 2.0, "k{n}": 1}}\n' for n in range(21_000)),
        "records": lambda: json.dumps([wide, row]),
        "columns": lambda: json.dumps(series),
        "series": lambda: json.dumps({"series": series}),
    }[kind]()
    file = tmp_path / ("log.jsonl" if "row" in kind else "log.json")
    file.write_text(text, encoding="utf-8")
    begin = process_time()
    with pytest.raises(StabtreeError, match=r"has more than 20,000 columns"):
        load_run(file)
    assert process_time() - begin < 4.0


def test_a_file_that_a_manifest_names_often_is_read_once(tmp_path: Path) -> None:
    """A name given 100,000 times is one file; too many different names are refused."""
    (tmp_path / "a.csv").write_text("step,loss\n" + "".join(f"{n},2\n" for n in range(50)), encoding="utf-8")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"metrics_files": ["a.csv"] * 99_999 + ["./a.csv"]}), encoding="utf-8")
    run = load_run(manifest)
    assert len(run.sources) == 1
    manifest.write_text(json.dumps({"metrics_files": [f"{n}.csv" for n in range(2000)]}), encoding="utf-8")
    with pytest.raises(StabtreeError, match=r"names 2,000 files"):
        load_run(manifest)


def test_a_folder_of_many_files_is_told_within_seconds(tmp_path: Path) -> None:
    """Of 2,000 metrics files as many are read as runs are held in memory at once, which is no count of all of them."""
    for n in range(2000):
        (tmp_path / f"{n}.csv").write_text("step,loss\n1,2\n2,2\n3,2\n" if n % 2 else "", encoding="utf-8")
    begin = process_time()
    with pytest.raises(StabtreeError, match=r"holds at least \d+ runs: 1\.csv"):
        load_run(tmp_path)
    assert process_time() - begin < 6.0
