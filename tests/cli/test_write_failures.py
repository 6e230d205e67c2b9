"""An output is whole, or the exit code says that it is not: whichever write fails, and however."""

from __future__ import annotations

import errno
import io
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.cli import main
from stabtree.cli.output import write
from stabtree.common.errors import StabtreeError
from tests.cli.command import environment, run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

NAN, GOOD = (str(FIXTURES / name) for name in ("phase19/nan-forward", "healthy/noisy"))
COMMANDS = (
    ["diagnose", NAN],
    ["diagnose", NAN, "--json"],
    ["diagnose", NAN, GOOD, "--json"],
    ["inspect", NAN, "--json"],
    ["explain", "Q2.1"],
    ["tree", "schema"],
)
WRITES = 2  # that an output takes
WHOLE = 1 << 30


class Pipe(io.RawIOBase):
    """Takes `size` bytes at a time, and fails at one write with an error of the system.

    With `EAGAIN` every other write takes nothing, as a full pipe that does not block.
    """

    def __init__(self, size: int = WHOLE, failing: int = 0, code: int = 0) -> None:
        super().__init__()
        self.held = b""
        self._size, self._failing, self._code = size, failing, code
        self._writes = 0
        self._ends = os.pipe()

    def writable(self) -> bool:
        """It takes bytes."""
        return True

    def fileno(self) -> int:
        """A pipe that has room, to wait for."""
        return self._ends[1]

    def close(self) -> None:
        """Close the pipe that has room as well."""
        if not self.closed:
            for end in self._ends:
                os.close(end)
        super().close()

    def write(self, data: Any, /) -> int | None:
        """Take some bytes.

        Raises:
            OSError: where this write is to fail.
        """
        self._writes += 1
        if self._code == errno.EAGAIN and self._writes % 2:
            return None
        if self._writes == self._failing:
            raise OSError(self._code, os.strerror(self._code))
        part = bytes(data)[: self._size]
        self.held += part
        return len(part)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", environment())


def printed(words: list[str], pipe: Pipe) -> tuple[int, bytes]:
    """The exit code of a command, and what of its output arrived."""
    before, sys.stdout = sys.stdout, io.TextIOWrapper(pipe, "utf-8")
    try:
        code = main(words)
        return code, pipe.held
    finally:
        sys.stdout.detach()
        sys.stdout = before
        pipe.close()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_whichever_write_fails_the_exit_code_says_so(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A full disk ends in 2 and an error, a reader that has gone in 141: never in the verdict's."""
    code, whole = printed(words, Pipe())
    assert code in (0, 1)
    size = -(-len(whole) // WRITES)
    for failing in range(1, WRITES + 1):
        for why, expected in ((errno.ENOSPC, 2), (errno.EPIPE, 141)):
            code, held = printed(words, Pipe(size, failing, why))
            assert code == expected
            assert held.startswith(whole[: size * (failing - 1)])
            assert not held.startswith(whole)
            assert ("can't be written" in capsys.readouterr().err) == (expected == 2)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_stream_that_takes_little_at_a_time_gets_all_of_it(words: list[str]) -> None:
    """A short write is gone on with, and so is one that took nothing."""
    whole = printed(words, Pipe())
    for size in (1 + len(whole[1]) // 7, len(whole[1])):
        assert printed(words, Pipe(size)) == whole
        assert printed(words, Pipe(size, code=errno.EAGAIN)) == whole


@pytest.mark.parametrize("why", [errno.ENOSPC, errno.EPIPE])
def test_an_error_that_can_not_be_told_keeps_its_exit_code(why: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the JSON of an error can't be written either, its two lines and its exit code are left."""
    code, held = printed(["diagnose", "no-such-file", "--json"], Pipe(failing=1, code=why))
    assert (code, held) == (2, b"")
    assert capsys.readouterr().err.startswith("error: no-such-file: there is no such file\n next: ")


def with_room(size: int, words: list[str]) -> int:
    """The exit code of a command whose files can grow to so many bytes and no further, as on a disk that is full."""
    if sys.platform == "win32":
        pytest.skip("limits the size of files")
    import resource  # of Unix alone

    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:  # what it prints is kept in memory: the limit would hold for pytest's own files, too
        return run(*words).returncode
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
@pytest.mark.parametrize("name", ["screen", "json"])
@pytest.mark.parametrize("paths", [[NAN], [NAN, GOOD]], ids=["one run", "several"])
def test_a_file_is_written_whole_or_left_as_it_was(name: str, paths: list[str], tmp_path: Path) -> None:
    """Wherever the disk is full, the exit code is 2, the old file stands, and nothing lies beside it."""
    file = tmp_path / "out"
    words = ["diagnose", *paths, "--output", f"{name}={file}"]
    assert main(words) == 1
    size = file.stat().st_size
    file.write_text("old", encoding="utf-8")
    for room in (0, size // 2, size - 1):
        assert with_room(room, words) == 2
        assert file.read_text(encoding="utf-8") == "old"
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert with_room(size, words) == 1
    assert file.stat().st_size == size


@contextmanager
def another_user() -> Iterator[None]:
    """Root may write anywhere: act as one who may not."""
    if sys.platform == "win32" or os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can get at."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o777)
        yield path


def test_a_file_that_may_not_be_written_is_left_as_it_was(folder: Path) -> None:
    """Taking its place would ask for the folder's rights alone: it is refused, and nothing lies beside it."""
    file = folder / "report.html"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o444)
    with another_user(), pytest.raises(StabtreeError, match="it can't be written: Permission denied"):
        write(file, "new")
    assert (file.read_text(encoding="utf-8"), [path.name for path in folder.iterdir()]) == ("old", [file.name])


@pytest.mark.skipif(sys.platform == "win32", reason="a folder of Windows has no such bit")
def test_a_folder_that_may_not_be_written_to_is_an_error(folder: Path) -> None:
    """It says which file, and where one could be written."""
    folder.chmod(0o555)
    with another_user(), pytest.raises(StabtreeError, match="it can't be written: Permission denied") as caught:
        write(folder / "report.html", "new")
    assert "report.html" in caught.value.where
    folder.chmod(0o777)


@pytest.mark.skipif(sys.platform == "win32", reason="links and bits as POSIX has them")
def test_what_takes_a_file_s_place_keeps_its_links_and_its_rights(tmp_path: Path) -> None:
    """A link still leads to the file that it led to, and who could not read that can't read it now."""
    file, link = tmp_path / "report.html", tmp_path / "latest.html"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o600)
    link.symlink_to(file)
    assert main(["diagnose", NAN, "--output", f"html={link}"]) == 1
    assert link.is_symlink()
    assert file.read_text(encoding="utf-8").startswith("<!")
    assert file.stat().st_mode & 0o777 == 0o600
