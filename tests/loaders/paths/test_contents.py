"""A failed log added to any folder is judged, merged or named, whoever looks: it never lowers the exit code."""

from __future__ import annotations

import gzip
import json
import os
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stabtree import StabtreeError
from stabtree.loaders import find_runs, load_runs
from tests.cli.command import run
from tests.loaders.make import write
from tests.loaders.paths.make import KINDS, LAYOUTS, failing, healthy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RANK = {0: 0, 3: 1, 2: 2, 4: 3, 1: 4}
"""Exit codes from the best to the worst."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose folders are filled by one example each."""
    return iter(tmp_path_factory.mktemp(f"layout{number}") for number in range(10_000))


def outcome(command: str, folder: Path) -> tuple[int, list[tuple[str, str]]]:
    """Return the exit code of a command for a folder, with the verdict of each run; one alone is called by its log."""
    done = run(command, str(folder), "--output", "jsonl", "-j", "1")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    runs = sorted((row.get("source", ""), row.get("verdict", "unread")) for row in rows)
    return done.returncode, runs if len(runs) > 1 else [("", verdict) for _, verdict in runs]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    layout=st.sampled_from(sorted(LAYOUTS)),
    kind=st.sampled_from(sorted(KINDS)),
    folder=st.sampled_from(["", "sub", "lightning_logs/version_7", "a/b/c", "output", "checkpoint-50", "runs"]),
    packed=st.booleans(),
)
def test_a_failed_log_never_lowers_the_exit_code(
    places: Iterator[Path], layout: str, kind: str, folder: str, packed: bool
) -> None:
    """Whatever lies in the folder, wherever the log is put, and whichever command looks."""
    top = next(places)
    LAYOUTS[layout](top)
    before, _ = outcome("diagnose", top)
    name, text = KINDS[kind](failing())
    file = top / folder / (f"{name}.gz" if packed and name != "trainer_state.json" else name)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        return
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    code, runs = outcome("diagnose", top)
    assert RANK[code] >= RANK[before]
    assert code == 1, "a log with a NaN for a third of its rows is a failure"
    assert outcome("scan", top) == (code, runs)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_diagnose_and_scan_find_the_same(tmp_path: Path, layout: str) -> None:
    """The same runs by the same names, with the same verdicts, and what can't be read."""
    LAYOUTS[layout](tmp_path)
    found = outcome("diagnose", tmp_path)
    assert found == outcome("scan", tmp_path)
    assert found[0] == 0
    assert found[1]


def test_every_file_with_numbers_is_judged_merged_or_named(tmp_path: Path) -> None:
    """Of a folder with a log of each kind and files that hold none, nothing is without a line."""
    for seed, (kind, write_kind) in enumerate(sorted(KINDS.items())):
        name, text = write_kind(healthy(seed))
        place = tmp_path / kind
        place.mkdir()
        write(place, text, name)
    harmless = {
        "requirements.txt": "torch==2.1.0\nnumpy==1.26\n",
        "README": "Trained for 5 epochs.\n",
        "pip.log": "".join(f"Collecting torch=={n}.0.1\n" for n in range(9)),
        "results.txt": "Test accuracy: 0.91\nTest loss: 0.4\n",
        "config.json": '{"lr": 0.1}',
    }
    unread = {
        "gpu.csv": "timestamp,index,util\n" + "".join(f"{1.7e9 + n},0,{n}\n" for n in range(30)),
        "disk.log": "".join(f"disk sda read {3 * n} MB written {2 * n} MB\n" for n in range(30)),
        "cut.parquet": "PAR1" + "x" * 100,
        "empty.csv": "",
    }
    for name, text in {**harmless, **unread}.items():
        write(tmp_path, text, name)
    found = find_runs(tmp_path)
    errors = {os.path.relpath(item.path, tmp_path) for item in found.loaded if isinstance(item.run, StabtreeError)}
    assert errors == set(unread)
    assert {os.path.relpath(item.path, tmp_path) for item in found.ignored} == set(harmless)
    assert len(found.loaded) == len(KINDS) + len(unread)


def test_odd_files_neither_hang_nor_hide_a_log(tmp_path: Path) -> None:
    """Pipes are named, links in a circle end, and large weights are not opened."""
    if sys.platform == "win32":
        pytest.skip("there are no pipes and few links on Windows")
    write(tmp_path, KINDS["csv"](failing())[1])
    os.mkfifo(tmp_path / "train.log")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    with (tmp_path / "optimizer.pt").open("wb") as hole:
        hole.truncate(1 << 40)
    named = [item.path for item in load_runs(tmp_path) if isinstance(item.run, StabtreeError)]
    assert named == [str(tmp_path / "train.log")]


def test_a_folder_of_hundreds_of_logs_and_texts_loses_none(tmp_path: Path) -> None:
    """It is read in parts; the one log among many texts is found."""
    for number in range(400):
        write(tmp_path, f"a short text, number {number}\n", f"{number}.txt")
    for number in range(100):
        write(tmp_path, KINDS["csv"](healthy(number))[1], f"run{number}.csv")
    write(tmp_path, KINDS["text"](failing())[1], "zz.txt")
    found = find_runs(tmp_path)
    assert len(found.loaded) == 101
    assert len(found.ignored) == 400
