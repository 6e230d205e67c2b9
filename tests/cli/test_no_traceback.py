"""Inputs and surroundings that once ended in a traceback: each gets an answer, or an error of two lines."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run
from tests.cli.command import COMMAND, environment, failed, process, run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

NAN = str(FIXTURES / "phase19" / "nan-forward")
LOG = "Epoch 1 [1/10] loss: 2.0\n"
FULL = Path("/dev/full")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "text",
    [
        LOG + "Epoch 1e308 [2/1000] loss: 2.0\n",
        "".join(f"epoch {1 + n * 1e307} step {n % 7 + 1e15:.0f} loss 2.0\n" for n in range(15)),
    ],
)
def test_an_epoch_beyond_counting_is_read(text: str, tmp_path: Path) -> None:
    """A number of an epoch that no run reaches raises neither an error nor a warning."""
    file = tmp_path / "log.txt"
    file.write_text(text, encoding="utf-8")
    assert "loss" in load_run(file).series


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--version > /dev/full", 2),
        ("--version >&-", 2),
        ("--help > /dev/full", 2),
        ("diagnose no-such-file 2> /dev/full", 2),
        ("diagnose - <&-", 2),
    ],
)
def test_closed_and_full_streams_end_in_an_error(command: str, code: int) -> None:
    """Where nothing can be read or written the exit code says so, without a traceback."""
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m stabtree {command}"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["explain", "--all"], ["tree", "--help"], ["diagnose", NAN]], ids=" ".join)
def test_python_without_docstrings_says_the_same(words: list[str]) -> None:
    """`PYTHONOPTIMIZE=2` leaves docstrings out; what stands in them is printed all the same."""
    without, usual = process(*words, PYTHONOPTIMIZE="2"), run(*words)
    assert (without.returncode, without.stdout, without.stderr) == (usual.returncode, usual.stdout, usual.stderr)


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="needs Linux's /proc")
def test_what_the_kernel_makes_up_is_an_error_at_once() -> None:
    """A file of the kernel that waits for what comes is not read, and of /proc not what other processes hold."""
    words = [*COMMAND, "diagnose", "/proc/kmsg"]
    done = subprocess.run(
        words, capture_output=True, text=True, encoding="utf-8", env=environment(), timeout=60, check=False
    )
    assert (done.returncode, done.stderr.split("\n")[0]) == (2, "error: /proc/kmsg: is empty")
    assert "error: /proc: is made up by the kernel" in failed("diagnose", "/proc")


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
