"""One run in every layout loads to the same run."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from stabtree.loaders import LOADERS, Loader, load_run
from stabtree.loaders.formats import RANKS
from stabtree.loaders.source import Sure
from tests.conftest import ROOT
from tests.loaders.make import ROWS, json_lines, points, text, write

if TYPE_CHECKING:
    from pathlib import Path


def json_value(cell: str) -> object:
    """A cell as a JSON logger writes it."""
    if cell == "":
        return None
    try:
        return float(cell)
    except ValueError:
        return cell


def records() -> list[dict[str, object]]:
    """The rows as a JSON logger writes them: what is not logged is left out, hashes are text."""
    return [
        {key: cell if key == "batch_id" else json_value(cell) for key, cell in row.items() if cell != ""}
        for row in ROWS
    ]


def nested(row: dict[str, object]) -> dict[str, object]:
    """A row with the metrics of training in an object of their own."""
    inner = ("loss", "grad_norm", "lr")
    rest = {key: value for key, value in row.items() if key not in inner}
    return {**rest, "train": {key: row[key] for key in inner if key in row}}


def quoted(rows: list[dict[str, str]]) -> str:
    """CSV with every field in quotes."""
    return "\n".join(
        ",".join(f'"{cell}"' for cell in row) for row in [list(rows[0]), *(list(r.values()) for r in rows)]
    )


def columns() -> dict[str, list[object]]:
    """The rows column by column."""
    return {key: [row.get(key) for row in records()] for key in ROWS[0]}


def decimal_commas() -> str:
    """What a German spreadsheet exports."""
    rows = [{key: cell.replace(".", ",") for key, cell in row.items()} for row in ROWS]
    return text(";", rows)


SPLIT = [
    {key: value for key, value in row.items() if (key == "eval_loss") == wanted or key == "step"}
    for row in records()
    for wanted in (False, True)
    if wanted is False or "eval_loss" in row
]
LAYOUTS: dict[str, tuple[str, bytes]] = {
    "csv": ("a.csv", text().encode()),
    "semicolons": ("a.csv", text(";").encode()),
    "tabs": ("a.tsv", text("\t").encode()),
    "bars": ("a.txt", text("|").encode()),
    "decimal commas": ("a.csv", decimal_commas().encode()),
    "quotes": ("a.csv", quoted(ROWS).encode()),
    "crlf": ("a.csv", text(end="\r\n").encode()),
    "old mac": ("a.csv", text(end="\r").encode()),
    "no final newline": ("a.csv", text().rstrip("\n").encode()),
    "blank lines": ("a.csv", text(end="\n\n").encode()),
    "comments": ("a.csv", ("# made by us\n" + text().replace("\n100,", "\n# halfway\n100,")).encode()),
    "padded": ("a.csv", text(", ").encode()),
    "trailing delimiter": ("a.csv", text().replace("\n", ",\n").encode()),
    "bom": ("a.csv", b"\xef\xbb\xbf" + text().encode()),
    "utf-16": ("a.csv", text().encode("utf-16")),
    "utf-16 without mark": ("a.csv", text().encode("utf-16-le")),
    "utf-16 big endian": ("a.csv", text().encode("utf-16-be")),
    "gzip": ("a.csv", gzip.compress(text().encode())),
    "two gzip members": ("a.csv", gzip.compress(text()[:300].encode()) + gzip.compress(text()[300:].encode())),
    "bzip2": ("a.csv", bz2.compress(text().encode())),
    "xz": ("a.csv", lzma.compress(text().encode())),
    "zstd": ("a.csv", zstandard.ZstdCompressor().compress(text().encode())),
    "jsonl": ("a.jsonl", json_lines(records()).encode()),
    "jsonl, nulls": (
        "a.jsonl",
        json_lines([{"eval_loss": None, **row} for row in records()]).encode(),  # a null in place of a loss is a NaN
    ),
    "jsonl, strings": ("a.jsonl", json_lines([dict(row) for row in ROWS]).encode()),
    "jsonl, bare nan": ("a.jsonl", json_lines(records()).replace("NaN", "nan").replace("Infinity", "inf").encode()),
    "jsonl, nested": ("a.jsonl", json_lines(list(map(nested, records()))).encode()),
    "jsonl, eval apart": ("a.jsonl", json_lines(SPLIT).encode()),
    "jsonl, gzip, utf-16": ("a.gz", gzip.compress(json_lines(records()).encode("utf-16"))),
    "manifest, columns": ("manifest.json", json.dumps({"series": columns()}, indent=1).encode()),
    "manifest, records": ("manifest.json", json.dumps({"metrics": records()}).encode()),
    "manifest, history": ("a.json", json.dumps({"dtype": "bf16", "history": records()}, indent=1).encode()),
    "manifest.jsonl": ("manifest.jsonl", ('{"run_name": "a", "dtype": "bf16"}\n' + json_lines(records())).encode()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_run_in_every_layout(tmp_path: Path, layout: str) -> None:
    """Delimiter, encoding, compression and nesting change nothing of what was logged."""
    expected = load_run(write(tmp_path, text(), "plain.csv"))
    name, content = LAYOUTS[layout]
    found = load_run(write(tmp_path, content, name))
    assert points(found) == points(expected)
    assert [len(found.series[name]) for name in ("loss", "eval_loss")] == [24, 5]


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads standard input, packed or not."""
    expected = points(load_run(write(tmp_path, text())))
    for content in (text().encode(), gzip.compress(text().encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
        assert points(load_run("-")) == expected


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(width=64), st.none() | st.floats(width=64)), min_size=1, max_size=30))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[float, float | None]]
) -> None:
    """Any floats survive CSV and JSON lines alike."""
    folder = tmp_path_factory.mktemp("round")
    csv = "step,loss,lr\n" + "".join(
        f"{i},{loss!r},{'' if lr is None else repr(lr)}\n" for i, (loss, lr) in enumerate(cells)
    )
    rows = [{"step": i, "loss": loss} | ({} if lr is None else {"lr": lr}) for i, (loss, lr) in enumerate(cells)]
    first, second = load_run(write(folder, csv)), load_run(write(folder, json_lines(list(rows)), "a.jsonl"))
    assert points(first) == points(second)
    assert np.array_equal(first.series["loss"].values, np.array([loss for loss, _ in cells]), equal_nan=True)


@pytest.mark.parametrize("loader", LOADERS, ids=lambda loader: loader.name)
def test_whatever_a_format_says_has_a_rank(loader: Loader) -> None:
    """Each degree that a format's sniff can give stands in the table of ranks, once, and no other."""
    text = (ROOT / "stabtree" / "loaders" / f"{loader.module.replace('.', '/')}.py").read_text(encoding="utf-8")
    if loader.begins and "def sniff(" not in text:
        return  # its first bytes alone tell
    said = {Sure[name] for name in re.findall(r"Sure\.([A-Z]+)", text)} - {Sure.NO}
    assert sorted(sure for name, sure in RANKS if name == loader.name) == sorted(said)


def test_ranks_name_no_other_format() -> None:
    """The table of ranks and the table of loaders hold the same formats."""
    assert {name for name, _ in RANKS} == {loader.name for loader in LOADERS}


def test_a_configuration_above_a_log_is_no_table(tmp_path: Path) -> None:
    above = "".join(f"|- name_{index}\t{index if index % 3 else 'adam'}\n" for index in range(60))
    rows = "".join(f"iteration {step} loss {5 - step / 10:.2f}\n" for step in range(30))
    (tmp_path / "train.log").write_text(f"ROOT\t./data\n{above}{rows}", encoding="utf-8")
    assert len(load_run(tmp_path / "train.log").series["loss"]) == 30
