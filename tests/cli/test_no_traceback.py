"""Inputs and surroundings that once ended in a traceback: each gets an answer, or an error of two lines."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run
from tests.cli.command import COMMAND, environment, process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOG = "Epoch 1 [1/10] loss: 2.0\n"


@pytest.mark.parametrize("words", [["tree", "measures", "loss_spikes"], ["explain", "lr-too-high"]])
def test_python_without_docstrings_works(words: list[str]) -> None:
    """`PYTHONOPTIMIZE=2` leaves out what help texts are made of."""
    without = process(*words, PYTHONOPTIMIZE="2")
    assert (without.returncode, without.stderr) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_a_file_that_asks_for_more_memory_than_there_is_is_an_error(tmp_path: Path) -> None:
    """A header of .xz may claim a dictionary of 4 GB, and get none of it."""
    file = tmp_path / "log.csv.xz"
    file.write_bytes(claiming_4_gb(lzma.compress(LOG.encode() * 100)))
    limited = ["/bin/sh", "-c", 'ulimit -v 1500000; exec "$@"', "sh", *COMMAND, "diagnose", str(file)]
    done = subprocess.run(limited, capture_output=True, text=True, encoding="utf-8", env=environment(), check=False)
    assert done.returncode == 2
    assert "takes more memory to unpack than there is" in done.stderr


def claiming_4_gb(packed: bytes) -> bytes:
    """An .xz file whose header claims the largest dictionary: byte 40, in a header that a checksum closes."""
    length = 4 * (packed[12] + 1)
    header = packed[12 : 12 + length - 4].replace(b"\x21\x01\x16", b"\x21\x01\x28")
    return packed[:12] + header + zlib.crc32(header).to_bytes(4, "little") + packed[12 + length :]


def test_a_folder_that_may_not_be_looked_at_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system refuses to list a folder, the refusal is the error."""
    from stabtree.common.errors import StabtreeError

    def refuse(_: str) -> Iterator[os.DirEntry[str]]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StabtreeError, match="Permission denied"):
        load_run(tmp_path)
