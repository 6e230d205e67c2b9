"""The command: what it writes where, and what it says."""

from __future__ import annotations

import gzip
import subprocess
import sys
from shlex import quote
from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import source
from tests.cli.command import run

if TYPE_CHECKING:
    from pathlib import Path

LOG = "host: gerda-17\nstep 1 loss: 2.5 frobnication: 3\nstep 2 loss: 2.4 frobnication: 4\nsaved to /home/gerda/out\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A text log with a name in it."""
    file = tmp_path / "run.log"
    file.write_bytes(LOG.encode())
    return file


def test_it_goes_to_standard_output_and_what_is_to_be_looked_at_to_the_other(log: Path) -> None:
    """So that it can be piped; standard input is read too."""
    done = run("anonymize", str(log))
    assert done.returncode == 0
    assert "gerda" not in done.stdout
    assert "loss: 2.5 frobnication: 3" in done.stdout
    assert "Replaced, each word by the same stand-in throughout: names (1)" in done.stderr
    assert "check that they may be shared: frobnication." in done.stderr
    assert "read the result before you send it" in done.stderr
    assert run("anonymize", "-", given=LOG).stdout == done.stdout


def test_the_log_itself_is_never_written_over(log: Path) -> None:
    """Not through a link either, nor by redirection, which hides its name."""
    link = log.parent / "link.log"
    link.symlink_to(log)
    for place in (log, link):
        done = run("anonymize", str(log), "-o", str(place))
        assert (done.returncode, "is the log itself" in done.stderr) == (2, True)
    for line in ("{0} >> {0}", "- -o {0} < {0}"):
        command = f"{quote(sys.executable)} -m stabtree anonymize {line.format(quote(str(log)))}"
        shell = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
        assert (shell.returncode, "is the log itself" in shell.stderr) == (2, True)
    assert log.read_text(encoding="utf-8") == LOG


def test_words_to_hide(log: Path) -> None:
    """Those of columns go; a number is refused, since numbers stay."""
    done = run("anonymize", str(log), "--hide", "frobnication")
    assert "frobnication" not in done.stdout + done.stderr
    assert "loss: 2.5" in done.stdout
    done = run("anonymize", str(log), "--hide", "4711")
    assert (done.returncode, "is not a word; numbers stay" in done.stderr) == (2, True)


def test_a_compressed_log_is_unpacked_and_a_cut_one_gives_what_it_holds(tmp_path: Path) -> None:
    """And says so."""
    file, out = tmp_path / "run.log.gz", tmp_path / "out.log"
    whole = gzip.compress("".join(f"step {i} loss: {3 - i / 9e3:.7f}\n" for i in range(9000)).encode())
    file.write_bytes(whole[: len(whole) // 2])
    done = run("anonymize", str(file), "-o", str(out))
    assert done.returncode == 0
    assert "ends inside its compressed data" in done.stderr
    assert "step 9 loss" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x7fELF" + bytes(range(256)) * 9, "which stabtree does not read"),
        (gzip.compress(b"a" * (4 << 20)), "150 times its size"),
    ],
    ids=["empty", "binary", "bomb"],
)
def test_what_is_no_log_is_an_error_of_two_lines(
    content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traceback, whatever is given."""
    monkeypatch.setattr(source, "FREE_BYTES", 1 << 20)
    file = tmp_path / "x"
    file.write_bytes(content)
    done = run("anonymize", str(file), "-o", str(tmp_path / "out"))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 2)
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_text_that_nobody_reads_is_a_text_all_the_same() -> None:
    """It is for logs that can't be read that people are asked for theirs."""
    done = run("anonymize", "-", given="gerda says 3 things\nand 4 more\n")
    assert (done.returncode, "gerda" in done.stdout, " 3 " in done.stdout) == (0, False, True)
