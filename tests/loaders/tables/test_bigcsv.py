"""The fast way through a large CSV gives what the slow way gives, or leaves the file to it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.loaders import load_run
from stabtree.loaders.source import open_source
from stabtree.loaders.tables import bigcsv
from stabtree.loaders.tables.layout import find_layout
from stabtree.metrics.names import Names
from tests.loaders.make import points, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stabtree.run import Run

HEAD = "step,loss,grad_norm,lr,batch_id,fps\n"


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


def with_(place: int, texts: list[str]) -> Callable[[list[str], int], None]:
    """Puts a text into every hundredth cell of a column, from row 3000 on."""

    def change(row: list[str], i: int) -> None:
        if i >= 3000 and i % 100 == 0:
            row[place] = texts[i // 100 % len(texts)]

    return change


def integers(row: list[str], i: int) -> None:
    """All cells of the loss are integers."""
    row[1] = str(i % 7)


def nothing(row: list[str], i: int) -> None:
    """The row as it is."""


VARIANTS: dict[str, Callable[[list[str], int], None]] = {
    "plain": nothing,
    "integers": integers,
    "nan": with_(1, ["nan", "NaN", "-nan"]),
    "inf": with_(1, ["inf", "-inf", "Infinity", "1e400"]),
    "empty": with_(1, [""]),
    "nan and empty": with_(1, ["nan", ""]),
    "null": with_(2, ["null", "n/a", "None"]),
    "true": with_(2, ["True"]),
    "empty steps": with_(0, [""]),
    "huge integers": with_(1, ["1" + "0" * 30, "9" * 19]),
    "padded": with_(1, [" 1.5", "2.5 "]),
    "numbers as labels": with_(4, ["20052005", "1e500000"]),
    "empty labels": with_(4, [""]),
    "text": with_(1, ["oops"]),
    "quotes": with_(1, ['"1.5"']),
}


def content(change: Callable[[list[str], int], None], rows: int = 6000) -> str:
    """A file with one kind of odd cell."""
    rng = np.random.default_rng(1)
    lines = []
    for i in range(rows):
        row = cells(rng, i)
        change(row, i)
        lines.append(",".join(row))
    return HEAD + "\n".join(lines) + "\n"


def both(file: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Run]:
    """The run read the slow way, then the fast way if that takes it."""
    slow = load_run(file)
    monkeypatch.setattr(bigcsv, "MIN_BYTES", 0)
    return slow, load_run(file)


def takes(file: Path) -> bool:
    """Whether the fast way takes the file."""
    source = open_source(file)
    layout = find_layout(source.head)
    assert layout is not None
    return bigcsv.read_big(source, layout, Names()) is not None


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_ways_one_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str) -> None:
    """Whatever a cell holds, both ways read it alike."""
    file = write(tmp_path, content(VARIANTS[variant]))
    slow, fast = both(file, monkeypatch)
    assert points(slow) == points(fast)
    assert slow.sources == fast.sources
    assert slow.notes == fast.notes


@pytest.mark.parametrize("variant", ["plain", "integers", "nan", "inf", "empty", "nan and empty", "numbers as labels"])
def test_the_fast_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str) -> None:
    """What a training run may well log does not cost the speed."""
    monkeypatch.setattr(bigcsv, "MIN_BYTES", 0)
    assert takes(write(tmp_path, content(VARIANTS[variant])))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "6000,0.5",
        lambda text: text[:-30],
        lambda text: text + "6000,0.5,0.5,0.001,ab,9,7\n",
        lambda text: text + HEAD + "6000,0.5,0.5,0.001,ab,9\n",
        lambda text: text.replace("\n5000,", "\n\n5000,"),
        lambda text: text.replace("\n5000,", "\n# resumed\n5000,"),
        lambda text: "# run 5\n" + text,
        lambda text: "banner\n" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n5000,", "\n\0\0\0,"),
        lambda text: text.replace("\n5000,", "\n50é0,"),
        lambda text: text + "\n" * 5,
        lambda text: text.rstrip("\n"),
        lambda text: text.replace(",9\n", ",9,\n"),
    ],
    ids=range(15),
)
def test_odd_lines_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]
) -> None:
    """Cut, long, repeated, blank and foreign lines give the same run and the same report."""
    slow, fast = both(write(tmp_path, change(content(nothing))), monkeypatch)
    assert points(slow) == points(fast)
    assert [source.skipped for source in slow.sources] == [source.skipped for source in fast.sources]


def test_a_mixed_column_of_several_parts(tmp_path: Path) -> None:
    """A type is guessed for each part of a large file: a NaN in the last part changes nothing before."""
    rows = 400_000
    lines = "\n".join(f"{i},{i / 8},0.001" if i < 350_000 else f"{i},nan,0.001" for i in range(rows))
    file = write(tmp_path, f"step,loss,lr\n{lines}\n")
    assert file.stat().st_size > bigcsv.MIN_BYTES
    loss = load_run(file).series["loss"]
    assert len(loss) == rows
    assert np.count_nonzero(np.isnan(loss.values)) == 50_000
    assert loss.values[349_999] == 349_999 / 8


def test_small_files_do_without_pandas(tmp_path: Path) -> None:
    """Importing pandas takes longer than reading a small file."""
    file = write(tmp_path, content(nothing))
    code = f"import sys; from stabtree.loaders import load_run; load_run({str(file)!r})"
    code += "; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
