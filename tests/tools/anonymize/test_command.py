"""The command: what it writes where, and what it says."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
from shlex import quote
from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import source
from tests.cli.command import process, run

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
    """So that it can be piped."""
    done = process("anonymize", str(log))
    assert done.returncode == 0
    assert "gerda" not in done.stdout
    assert "loss: 2.5 frobnication: 3" in done.stdout
    assert "Replaced, each word by the same stand-in throughout: names (1)" in done.stderr
    assert "check that they may be shared: frobnication." in done.stderr
    assert "read the result before you send it" in done.stderr


def test_standard_input_is_read_too(log: Path) -> None:
    """As everywhere."""
    done = process("anonymize", "-", given=LOG)
    assert done.stdout == process("anonymize", str(log)).stdout


def test_the_log_itself_is_never_written_over(log: Path) -> None:
    """Not through a link either."""
    link = log.parent / "link.log"
    link.symlink_to(log)
    for place in (log, link):
        done = run("anonymize", str(log), "-o", str(place))
        assert done.returncode == 2
        assert "is the log itself" in done.stderr
    assert log.read_text(encoding="utf-8") == LOG


@pytest.mark.parametrize("line", ["- -o {0} < {0}", "{0} >> {0}", "- < {0} >> {0}", "{0} -o {0}"])
def test_nor_where_the_shell_reads_or_writes_it(line: str, log: Path) -> None:
    """By redirection, which hides its name."""
    command = f"{quote(sys.executable)} -m stabtree anonymize {line.format(quote(str(log)))}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert done.returncode == 2
    assert "is the log itself" in done.stderr
    assert log.read_text(encoding="utf-8") == LOG


def test_words_to_hide(log: Path) -> None:
    """Those of columns go; a number is refused, since numbers stay."""
    done = run("anonymize", str(log), "--hide", "frobnication")
    assert "frobnication" not in done.stdout + done.stderr
    assert "loss: 2.5" in done.stdout
    done = run("anonymize", str(log), "--hide", "4711")
    assert done.returncode == 2
    assert "is not a word; numbers stay" in done.stderr


def test_numbers_are_not_said_to_be_kept_where_some_were_not() -> None:
    """Those of passwords."""
    assert "All other numbers were kept" in process("anonymize", "-", given="password: 1234\nloss: 2\n").stderr


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_a_compressed_log_stays_compressed(module: object, tmp_path: Path) -> None:
    """By what it was, without a name or a time in its header: the same twice."""
    packed = module.compress(LOG.encode())  # type: ignore[attr-defined]
    file, out = tmp_path / "gerda.log.packed", tmp_path / "out"
    file.write_bytes(packed)
    done = run("anonymize", str(file), "-o", str(out))
    assert done.returncode == 0
    first = out.read_bytes()
    assert b"loss: 2.5" in module.decompress(first)  # type: ignore[attr-defined]
    assert b"gerda" not in module.decompress(first) + first  # type: ignore[attr-defined]
    run("anonymize", str(file), "-o", str(out))
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"\x7fELF" + bytes(range(256)) * 9, "which stabtree does not read"),
        (gzip.compress(b"a" * (4 << 20)), "150 times its size"),
    ],
    ids=["empty", "binary", "bomb"],
)
def test_what_is_no_log_is_an_error_of_two_lines(
    content: bytes, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traceback, whatever is given."""
    monkeypatch.setattr(source, "FREE_BYTES", 1 << 20)
    file = tmp_path / "x"
    file.write_bytes(content)
    done = run("anonymize", str(file), "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert not (tmp_path / "out").exists()


def test_a_text_that_nobody_reads_is_a_text_all_the_same(tmp_path: Path) -> None:
    """It is for logs that can't be read that people are asked for theirs."""
    file = tmp_path / "strange.log"
    file.write_text("gerda says 3 things\nand 4 more\n", encoding="utf-8")
    done = run("anonymize", str(file))
    assert done.returncode == 0
    assert "gerda" not in done.stdout
    assert " 3 " in done.stdout


def test_a_cut_archive_gives_what_it_holds(tmp_path: Path) -> None:
    """And says so."""
    file, out = tmp_path / "run.log.gz", tmp_path / "out.gz"
    whole = gzip.compress("".join(f"step {i} loss: {3 - i / 9e3:.7f}\n" for i in range(9000)).encode())
    file.write_bytes(whole[: len(whole) // 2])
    done = run("anonymize", str(file), "-o", str(out))
    assert done.returncode == 0
    assert "ends inside its compressed data" in done.stderr
    assert b"step 9 loss" in gzip.decompress(out.read_bytes())
