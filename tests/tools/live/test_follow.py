"""What comes to logs: that they grow, what their new text shows, and what happens to their files between two looks."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from stabtree.tools.live.events import LOOKS
from stabtree.tools.live.watch import LISTED_EVERY, SMALL_BYTES, Follower
from tests.tools.live.growing import falling, following, lines

if TYPE_CHECKING:
    from stabtree.tools.live.watch import Growth


def append(path: Path, text: str | bytes) -> None:
    """Write to the end of a file."""
    with path.open("ab") as stream:
        stream.write(text.encode() if isinstance(text, str) else text)


def later(follower: Follower) -> Growth:
    """Look until folders are searched again, and return what the last look brought."""
    return [follower.look() for _ in range(LISTED_EVERY + 1)][-1]


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """Nothing is there, without a note, until the file is."""
    path = tmp_path / "later" / "run.csv"
    follower = following(path)
    assert follower.look() == (0, False, ())
    path.parent.mkdir()
    path.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    assert follower.look() == (16, False, ())


@pytest.mark.parametrize("text", ["5,nan\n", "loss: -inf\n", '{"loss": NaN}\n', "5,Infinity\n"])
def test_text_that_is_not_finite_is_a_sign(tmp_path: Path, text: str) -> None:
    """Also behind a long log; ordinary rows, and words that contain the letters, are none."""
    path = tmp_path / "run.log"
    path.write_text("".join(lines("csv", falling(10_000))), encoding="utf-8")
    follower = following(path)
    for ordinary in ("", "1,2.5\n", "info: finance banana\n"):
        append(path, ordinary)
        assert not follower.look().sign
    append(path, text)
    assert [follower.look().sign for _ in range(LOOKS + 2)] == [True] * LOOKS + [False] * 2


@pytest.mark.parametrize("how", ["truncated", "rotated"])
def test_a_log_that_is_written_anew_is_noted(tmp_path: Path, how: str) -> None:
    """Once; its size is that of the new log, and never the same as before."""
    path = tmp_path / "run.csv"
    path.write_text("".join(lines("csv", falling(50))), encoding="utf-8")
    follower = following(path)
    before = follower.look().size
    if how == "rotated":
        path.rename(tmp_path / "run.csv.1")
    path.write_text("".join(lines("csv", falling(5))), encoding="utf-8")
    after, again = follower.look(), follower.look()
    assert after.size < before
    assert (len(after.notes), len(again.notes), again.size) == (1, 0, after.size)


def test_what_is_written_over_and_stays_as_long_counts_as_written(tmp_path: Path) -> None:
    """By its time."""
    path = tmp_path / "trainer_state.json"
    path.write_text("[1]", encoding="utf-8")
    follower = following(path)
    before = follower.look().size
    path.write_text("[2]", encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert follower.look().size == before + 1


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE])
def test_a_disk_that_fails_for_a_while_is_survived(tmp_path: Path, number: int) -> None:
    """It is noted once, without the escapes of a name, and the log goes on afterwards."""
    path = tmp_path / "run\x1b[31m.csv"
    path.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    follower = following(path)
    size = follower.look().size
    with mock.patch.object(Path, "stat", side_effect=OSError(number, os.strerror(number))):
        notes = [note for _ in range(3) for note in follower.look().notes]
    assert len(notes) == 1
    assert "\x1b" not in notes[0]
    append(path, "2,2.25\n")
    assert follower.look() == (size + 7, False, ())


def test_a_database_grows_in_the_file_beside_it(tmp_path: Path) -> None:
    """SQLite writes to its log first."""
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as database:
        database.execute("pragma journal_mode=wal")
        database.execute("create table a (b)")
        follower = following(path)
        before = follower.look().size
        database.execute("insert into a values (1)")
        database.commit()
        assert follower.look().size > before
    database.close()


def test_a_folder_is_followed_by_its_logs(tmp_path: Path) -> None:
    """New files are found, weights and hidden files are not; what a judgement did not read counts while small."""
    log, other = tmp_path / "a" / "run.csv", tmp_path / "data.txt"
    log.parent.mkdir()
    append(log, "step,loss\n")
    append(tmp_path / "model.safetensors", bytes(1000))
    append(tmp_path / ".hidden", bytes(1000))
    follower = Follower([str(tmp_path)])
    assert follower.look().size == 10
    append(other, bytes(SMALL_BYTES + 1))
    assert later(follower).size == 10 + SMALL_BYTES + 1
    follower.judged([str(log)])
    assert later(follower).size == 10
    append(log, "1,2.5\n")
    assert follower.look().size == 16


def test_what_a_judgement_read_elsewhere_is_followed(tmp_path: Path) -> None:
    """As the file that a manifest names."""
    manifest, log = tmp_path / "manifest.json", tmp_path / "elsewhere.csv"
    append(manifest, "{}")
    append(log, "step,loss\n")
    follower = following(manifest)
    assert follower.look().size == 2
    follower.judged([str(manifest), str(log)])
    assert follower.look().size == 12
