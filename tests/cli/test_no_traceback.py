"""Inputs and surroundings that once ended in a traceback: each gets an answer, or an error of two lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stabtree.loaders import load_run

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
        ["/bin/sh", "-c", f"'{sys.executable}' -m stabtree {command}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_folder_that_may_not_be_looked_at_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system refuses to say whether a file is there, the refusal is told; Python raises it as its own."""
    from stabtree.errors import StabtreeError

    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(StabtreeError, match="Permission denied"):
        load_run(tmp_path)
