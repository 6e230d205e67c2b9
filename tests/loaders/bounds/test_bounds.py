"""What is packed, endless or deep stays within time and memory, and what was cut is noted."""

from __future__ import annotations

import gzip
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest
import zstandard

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAD = "step,loss,lr\n"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_bomb_is_told_by_what_it_grows_to(tmp_path: Path, pack: object) -> None:
    """Long before the absolute limit."""
    assert callable(pack)
    file = write(tmp_path, pack((HEAD + "0,1,").encode() + b"0" * (200 << 20)), "a.csv.gz")
    start = time.perf_counter()
    with pytest.raises(StabtreeError, match="grows to more than 150 times its size"):
        load_run(file)
    assert time.perf_counter() - start < 5


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small archive of a giant text stops at the limit."""
    monkeypatch.setattr("stabtree.loaders.source.MAX_BYTES", 1_000_000)
    file = write(tmp_path, gzip.compress((HEAD + "0,1,2\n" * 400_000).encode()), "a.csv.gz")
    with pytest.raises(StabtreeError, match="which is not a metrics file"):
        load_run(file)


def test_a_dense_piece_of_zstd_is_taken_in_parts(tmp_path: Path) -> None:
    """What grows 30,000 times holds no more memory on its way than any other file."""
    packed = zstandard.compress((HEAD + "0,1,").encode() + b"0" * (200 << 20))
    assert len(packed) < 10_000
    file = write(tmp_path, packed, "a.csv.zst")
    tracemalloc.start()
    with pytest.raises(StabtreeError, match="more than 150 times"):
        load_run(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


def test_a_zstd_window_beyond_bounds_is_refused(tmp_path: Path) -> None:
    """A header may ask for 2 GiB before a byte is read."""
    wide = zstandard.ZstdCompressionParameters(window_log=30, write_content_size=False)
    stream = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    packed = stream.compress((HEAD + "0,1.0,1\n" * 50).encode()) + stream.flush()
    with pytest.raises(StabtreeError):
        load_run(write(tmp_path, packed, "a.csv.zst"))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_cut_packed_file_is_noted(tmp_path: Path, pack: Callable[[bytes], bytes], share: float) -> None:
    """What stands before the cut is read: the archive of a killed process ends early."""
    rows = "".join(f"{i},{(i * 7919) % 1000 / 1000},{(i * 104729) % 997 / 997}\n" for i in range(100_000))
    packed = pack((HEAD + rows).encode())
    run = load_run(write(tmp_path, packed[: int(len(packed) * share)], "a.csv.packed"))
    assert 1000 < len(run.series["loss"]) < 100_000
    assert diagnose(run).misread.startswith("the file ends inside its compressed data (of ")


ENDLESS = {
    "jsonl": ('{"step": 0, "loss": 1}\n{"step": 1, "loss": "', "0" * 1000, '\n{"step": 2, "loss": 1}\n'),
    "csv": ("step,loss\n0,1\n", "1," * 500, "\n2,1\n"),
    "words": ("step,loss\n0,1\n", "a," * 500, "\n2,1\n"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_line_is_bounded_in_memory(tmp_path: Path, kind: str) -> None:
    """A line of 200 MB is cut and skipped; its neighbours are read."""
    before, piece, after = ENDLESS[kind]
    file = tmp_path / "run.log"
    with file.open("w", encoding="utf-8") as stream:
        stream.write(before)
        for _ in range(200):
            stream.write(piece * 1000)
        stream.write(after)
    tracemalloc.start()
    run = load_run(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert run.series["loss"].steps.tolist() == [0, 2]
    assert "A line longer than 16 MiB was cut." in run.notes
    assert peak < 250 << 20


def test_escape_codes_never_reach_over_a_line_end(tmp_path: Path) -> None:
    """Cells keep their numbers, and no row is lost to a code that is never closed."""
    run = load_run(
        write(tmp_path, HEAD + "0,\x1b[31m4.5\x1b[0m,\x1b1\n\x1b]1,4.4,0.1\n2,\x1b[1;3,0.1\n3,4.2,0.1\x1b\n4,4,0.1\n")
    )
    assert run.series["loss"].values.tolist()[0] == 4.5
    assert {3, 4} <= set(run.series["loss"].steps.tolist())
    assert "Terminal escape codes were removed." in run.notes


def test_a_text_of_several_lines_in_each_row(tmp_path: Path) -> None:
    """Samples that a logger quotes, in every row of the file."""
    rows = "".join(f'{i},"once\nupon, a time\n",{4 - i / 50}\n' for i in range(100))
    run = load_run(write(tmp_path, "step,sample,loss\n" + rows))
    assert len(run.series["loss"]) == 100
    assert not run.sources[0].skipped_count


@pytest.mark.parametrize("mark", [",", ";", "\t", " "])
def test_comments_in_a_small_log_are_a_note(tmp_path: Path, mark: str) -> None:
    """However many, they are counted, and no lines that could not be read."""
    comments = ("# saved a checkpoint", "#", "# eval, lr changed to 0.1", "#\tepoch 10 done")
    rows = [f"{step},{3 - step / 50:.4f},0.1\n{comments[step % 4]}\n" for step in range(60)]
    file = write(tmp_path, (HEAD + "".join(rows)).replace(",", mark))
    run = load_run(file)
    assert len(run.series["loss"]) == 60
    assert not run.sources[0].skipped_count
    assert "Comment lines, which begin with #: 60, skipped; the first is line 3." in run.notes
    assert not diagnose(run).misread
