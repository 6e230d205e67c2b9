"""The reader of delimited files against a slow one that shares no code with it: the same rows, or a counted note.

`python -m tests.loaders.tables.test_reference 100` compares so many mutations of every file.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.mutations import mutate
from stabtree.common.errors import StabtreeError
from stabtree.loaders.source import Sure, open_source
from stabtree.loaders.tables import delimited
from stabtree.metrics.names import Names
from tests.conftest import FIXTURES, ROOT
from tests.loaders.make import write
from tests.loaders.tables import reference

if TYPE_CHECKING:
    from collections.abc import Iterator

REAL = [ROOT.parent / "shared" / name for name in ("logs", "wild")]
MUTATED = 20_000  # bytes of a file that is changed


def files(*folders: Path) -> list[Path]:
    """All that may be delimited text in some folders."""
    found = [path for folder in folders for path in sorted(folder.rglob("*"))]
    return [path for path in found if path.suffix in (".csv", ".tsv", ".txt") and path.stat().st_size < 3_000_000]


def compared(data: bytes, folder: Path) -> list[str] | None:
    """What differs between the two readers; None for what is no delimited file."""
    if not data:
        return None
    file = write(folder, data)
    try:
        source = open_source(file)
        if delimited.sniff(source, Names()) < Sure.MAYBE:
            return None
        table = delimited.read(source, Names())
    except StabtreeError:
        return None
    slow = reference.read(file)
    return None if slow is None else list(reference.differences(slow, table))


def mutations(file: Path, count: int) -> Iterator[bytes]:
    """Changes of the beginning of a file, the same at every call."""
    data = file.read_bytes()[:MUTATED]
    for seed in range(count):
        yield mutate(data, data, random.Random(seed))  # noqa: S311 - mutations, no secrets


def test_every_row_of_the_fixtures_is_read_as_the_slow_reader_does(tmp_path: Path) -> None:
    """Each cell of each file, and of files that are cut, spliced and scrambled what is left of them."""
    metrics = sorted(FIXTURES.glob("*/*/metrics.csv"))
    assert [compared(file.read_bytes(), tmp_path) for file in metrics] == [[]] * len(metrics)
    found = [compared(data, tmp_path) for file in metrics[::2] for data in mutations(file, 4)]
    assert sum(item is not None for item in found) > len(metrics)
    assert [item for item in found if item] == []


@pytest.mark.skipif(not any(map(Path.exists, REAL)), reason="needs the real logs")
def test_every_row_of_real_logs_is_read_as_the_slow_reader_does(tmp_path: Path) -> None:
    """Whoever wrote them, with quotes, blanks, empty cells and headers that come again."""
    found = {file: compared(file.read_bytes(), tmp_path) for file in files(*REAL)}
    assert sum(item is not None for item in found.values()) > 50
    assert {file: item for file, item in found.items() if item} == {}


def test_a_row_that_is_lost_shows(tmp_path: Path) -> None:
    """The comparison tells a row, a cell and a note that are missing."""
    file = write(tmp_path, "step,loss\n" + "".join(f"{n},{n / 8}\n" for n in range(9)))
    slow = reference.read(file)
    assert slow
    for text in ("0,1\n", "8,7\n"):
        other = write(
            tmp_path, file.read_text(encoding="utf-8")[: -len("8,1.0\n")] + text * (text != "0,1\n"), "other.csv"
        )
        assert list(reference.differences(slow, delimited.read(open_source(other), Names())))


def main() -> None:
    """Print what differs between the readers over all files, each with so many mutations."""
    count, differing = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files(FIXTURES, *REAL):
            for place, data in enumerate((file.read_bytes(), *mutations(file, int(sys.argv[1])))):
                found = compared(data, Path(folder))
                count += found is not None
                if found:
                    differing += 1
                    sys.stdout.write(f"{file}, mutation {place}: {found[:3]}\n")
    sys.stdout.write(f"{count:,} files compared, {differing} differ\n")


if __name__ == "__main__":
    main()
