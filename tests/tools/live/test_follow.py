"""What comes to a log: every row once, whatever happens to its file between two looks."""

from __future__ import annotations

import errno
import gzip
import json
import os
import sqlite3
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabtree.loaders import load_run
from stabtree.tools.live.watch.follow import LISTED_EVERY, Follower
from stabtree.tools.live.watch.growing import LOOKS_AFTER, MAX_NEW
from tests.tools.live.growing import falling, following, lines, values

if TYPE_CHECKING:
    from collections.abc import Mapping


KINDS = ("csv", "jsonl", "text")
BEGINNINGS = (b"", b"step,loss\n", b'{"loss": 1}\n')


def append(path: Path, text: str | bytes) -> None:
    """Write to the end of a file."""
    with path.open("ab") as stream:
        stream.write(text.encode() if isinstance(text, str) else text)


def looks(follower: Follower, count: int = 1) -> list[Mapping[str, float]]:
    """The rows of some looks."""
    return [row for _ in range(count) for row in follower.look().rows]


@settings(max_examples=30, deadline=None)
@given(kind=st.sampled_from(KINDS), cuts=st.lists(st.integers(0, 6000), max_size=12), odd=st.floats(allow_nan=True))
def test_rows_are_those_that_the_loader_reads(
    tmp_path_factory: pytest.TempPathFactory, kind: str, cuts: list[int], odd: float
) -> None:
    """Cut anywhere, the rows that come are those that the loader reads from the whole file, each once and in order."""
    path = tmp_path_factory.mktemp("log") / "run.log"
    loss = [*falling(60), odd if abs(odd) < 1e15 and (not odd or abs(odd) > 1e-3) else float("inf"), 1.25, 1.5]
    data = "".join(lines(kind, loss)).encode()
    follower, rows = following(path), []
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for begin, end in pairwise(places):
        append(path, data[begin:end])
        rows += looks(follower)
    run = load_run(path)
    for metric in ("loss", "lr"):
        series = run.series[metric]
        assert json.dumps(values(rows, metric)) == json.dumps(series.values.tolist())
        assert [row["step"] for row in rows if metric in row] == series.steps.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_to_a_long_log_is_read(tmp_path: Path, kind: str) -> None:
    """Behind ten thousand rows a new one is given alone, with its own step."""
    path = tmp_path / "run.log"
    path.write_text("".join(lines(kind, falling(10_000))), encoding="utf-8")
    follower = following(path)
    looks(follower)
    append(path, lines(kind, [0.5], first=10_000)[-1])
    (row,) = looks(follower)
    assert row == {"step": 10_000.0, "loss": 0.5, "lr": 0.001}


def test_a_look_costs_what_is_new(tmp_path: Path) -> None:
    """However long the log, a look reads no more bytes than are new, and some hundred that are compared."""
    path = tmp_path / "run.csv"
    path.write_text("".join(lines("csv", falling(20_000))), encoding="utf-8")
    follower = following(path)
    looks(follower)
    append(path, "20000,0.5,0.001\n")
    read: list[int] = []
    opened = Path.open

    def counting(self: Path, *args: object, **kwargs: object) -> object:
        stream = opened(self, *args, **kwargs)  # type: ignore[call-overload]

        def spy(size: int) -> bytes:
            data: bytes = stream.read(size)
            read.append(len(data))
            return data

        spied = mock.MagicMock(wraps=stream, read=spy)
        spied.__enter__.side_effect = lambda: spied
        spied.__exit__.side_effect = lambda *_: stream.close()
        return spied

    with mock.patch.object(Path, "open", counting):
        assert len(looks(follower)) == 1
    assert 16 <= sum(read) < 2000
    looks(follower, LOOKS_AFTER)
    with mock.patch.object(Path, "open", side_effect=AssertionError):
        looks(follower, LOOKS_AFTER)


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """Nothing is there, without a word, until the file is; then its first row comes."""
    path = tmp_path / "later" / "run.csv"
    follower = following(path)
    growth = follower.look()
    assert not growth.there
    assert not growth.notes
    path.parent.mkdir()
    path.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    growth = follower.look()
    assert growth.there
    assert growth.rows == ({"step": 1.0, "loss": 2.5},)


def test_half_a_line_is_no_row(tmp_path: Path) -> None:
    """A line that is not yet written to its end gives no row, and then a whole one."""
    path = tmp_path / "run.jsonl"
    follower = following(path)
    append(path, '{"step": 1, "loss": 2.5}\n{"step": 2, "lo')
    assert values(looks(follower), "loss") == [2.5]
    append(path, 'ss": 2.25}\n')
    assert values(looks(follower), "loss") == [2.25]


def test_a_letter_that_is_cut_is_read_whole(tmp_path: Path) -> None:
    """Bytes of one letter that come in two looks are one letter, in UTF-16 too."""
    path = tmp_path / "run.csv"
    data = "\ufeffstep,loss\n1,2.5\n2,2.25\n".encode("utf-16-le")
    follower, rows = following(path), []
    for place in range(0, len(data), 7):
        append(path, data[place : place + 7])
        rows += looks(follower)
    assert values(rows, "loss") == [2.5, 2.25]


@pytest.mark.parametrize("how", ["truncated", "rotated", "rotated to a longer one", "written over in place"])
def test_a_log_that_is_written_anew_is_followed_from_its_beginning(tmp_path: Path, how: str) -> None:
    """After rotation and truncation all rows of the new log come, and a note says so."""
    path = tmp_path / "run.csv"
    old, new = lines("csv", falling(50)), lines("csv", falling(80 if "longer" in how else 5, seed=1))
    new = lines("csv", falling(50, seed=1)) if "place" in how else new
    path.write_text("".join(old), encoding="utf-8")
    follower = following(path)
    looks(follower)
    if "rotated" in how:
        path.rename(tmp_path / "run.csv.1")
        path.write_text("".join(new), encoding="utf-8")
    else:
        with path.open("r+", encoding="utf-8") as stream:
            stream.truncate(0)
            stream.write("".join(new))
    growth = follower.look()
    assert len(growth.rows) == len(new) - 1
    assert "written anew" in growth.notes[0]
    assert not follower.look().notes


def test_a_log_that_is_replaced_by_a_longer_copy_of_itself_goes_on(tmp_path: Path) -> None:
    """What writes its log to a new file at each step, and moves that into its place, gives each row once."""
    path = tmp_path / "run.csv"
    follower = following(path)
    rows: list[Mapping[str, float]] = []
    notes: list[str] = []
    written = lines("csv", falling(30))
    for count in range(1, len(written) + 1):
        beside = tmp_path / "new"
        beside.write_text("".join(written[:count]), encoding="utf-8")
        beside.replace(path)
        growth = follower.look()
        rows += growth.rows
        notes += growth.notes
    assert len(rows) == 30
    assert not notes


def test_what_was_written_over_in_the_same_moment_is_seen(tmp_path: Path) -> None:
    """A disk that keeps times to two seconds hides neither a size nor an inode: the bytes are compared all the same."""
    path = tmp_path / "run.csv"
    path.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    follower = following(path)
    looks(follower)
    before = path.stat()
    with path.open("r+", encoding="utf-8") as stream:
        stream.write("step,loss\n1,9.5\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert values(looks(follower), "loss") == [9.5]


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EACCES, errno.ENOENT, errno.EIO])
def test_a_disk_that_fails_for_a_while_is_survived(tmp_path: Path, number: int) -> None:
    """An error of the disk is one note; the size stays, and afterwards each row has come once."""
    path = tmp_path / "run.csv"
    path.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    follower = following(path)
    assert len(looks(follower)) == 1
    size = follower.look().size
    with mock.patch.object(Path, "stat", side_effect=OSError(number, os.strerror(number))):
        growths = [follower.look() for _ in range(3)]
    assert [len(growth.notes) for growth in growths] == [1, 0, 0]
    assert os.strerror(number) in growths[0].notes[0]
    assert {growth.size for growth in growths} == {size}
    append(path, "2,2.25\n")
    assert values(looks(follower), "loss") == [2.25]


def test_what_is_no_rows_a_line_only_grows(tmp_path: Path) -> None:
    """Compressed files, databases and JSON that is written over give no rows and no notes, and are not read."""
    gz, db, state = tmp_path / "a.csv.gz", tmp_path / "b.db", tmp_path / "trainer_state.json"
    for path in (gz, db, state):
        follower = following(path)
        sizes = []
        for count in range(1, 4):
            if path is gz:
                append(gz, gzip.compress(f"step,loss\n{count},1\n".encode()))
            elif path is db:
                with sqlite3.connect(db) as connection:
                    connection.execute(f"create table t{count} (a text)")
                connection.close()
            else:
                rows = [{"step": step, "loss": 1.0} for step in range(count)]
                state.write_text(json.dumps({"global_step": count, "log_history": rows}), encoding="utf-8")
            growth = follower.look()
            assert not growth.rows
            assert not growth.notes
            sizes.append(growth.size)
        assert sizes == sorted(set(sizes))


def test_what_is_written_over_and_stays_as_long_counts_as_written(tmp_path: Path) -> None:
    """A file of one length that is written over again and again is no silent one."""
    path = tmp_path / "trainer_state.json"
    follower = following(path)
    sizes = []
    for step in range(10, 15):
        path.write_text(
            json.dumps({"global_step": step, "log_history": [{"step": step, "loss": 1.0}]}), encoding="utf-8"
        )
        os.utime(path, ns=(step, step))
        sizes.append(follower.look().size)
    assert sizes == sorted(set(sizes))
    assert follower.look().size == sizes[-1]


def test_a_database_grows_in_the_file_beside_it(tmp_path: Path) -> None:
    """What SQLite keeps beside a database until it writes it there counts as the database's."""
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as connection:
        connection.execute("pragma journal_mode=wal")
        connection.execute("create table t (a text)")
        connection.commit()
        follower = following(path)
        before = follower.look().size
        connection.execute("insert into t values ('a')")
        connection.commit()
        assert follower.look().size > before
    connection.close()


def test_a_first_line_of_settings_is_no_manifest(tmp_path: Path) -> None:
    """A log of JSON lines that begins with its configuration gives its rows as they come."""
    path = tmp_path / "run.jsonl"
    follower, rows = following(path), []
    for line in ('{"config": {"lr": 0.001, "dtype": "bf16"}}\n', *lines("jsonl", falling(5))):
        append(path, line)
        rows += looks(follower)
    assert len(values(rows, "loss")) == 5


def test_metrics_below_a_long_preamble_are_found(tmp_path: Path) -> None:
    """A text log that begins with more chatter than is kept of it gives its rows all the same."""
    path = tmp_path / "run.log"
    follower = following(path)
    for _ in range(40):
        append(path, "Loading the model: layers, tokenizer, weights\n" * 40)
        looks(follower)
    rows = []
    for line in lines("text", falling(20))[1:]:
        append(path, line)
        rows += looks(follower)
    assert len(values(rows, "loss")) >= 17  # the first ones are too few to tell a log by


def test_of_a_flood_only_the_end_is_read(tmp_path: Path) -> None:
    """More than is worth reading twice at once gives its last rows, under the names of the header."""
    path = tmp_path / "run.csv"
    path.write_text(
        "step,loss,text\n" + "".join(f"{step},1.5,{'x' * 200}\n" for step in range(MAX_NEW // 180)), encoding="utf-8"
    )
    follower = following(path)
    rows = looks(follower)
    assert 10 < len(rows) < 1000
    assert rows[-1]["step"] == MAX_NEW // 180 - 1
    append(path, "7,0.5,x\n")
    assert values(looks(follower), "loss") == [0.5]


def test_a_folder_is_followed_by_its_logs(tmp_path: Path) -> None:
    """Of a folder the logs count, those that come later too; weights and settings that lie about do not."""
    folder = tmp_path / "run"
    follower = following(folder)
    assert not follower.look().there
    folder.mkdir()
    (folder / "args.json").write_text('{"lr": 0.1}', encoding="utf-8")
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 100)
    log = folder / "metrics.csv"
    log.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    growth = follower.look()
    assert growth.size == log.stat().st_size
    assert values(growth.rows, "loss") == [2.5]
    (folder / "checkpoint-5").mkdir()
    state = folder / "checkpoint-5" / "trainer_state.json"
    state.write_text(json.dumps({"global_step": 1, "log_history": [{"step": 1, "loss": 2.5}]}), encoding="utf-8")
    looks(follower, LISTED_EVERY)
    assert follower.look().size == log.stat().st_size + state.stat().st_size


def test_a_folder_that_can_not_be_listed_for_a_while_keeps_its_logs(tmp_path: Path) -> None:
    """An error of the disk while a folder is searched loses no log and gives no row twice; what is gone is dropped."""
    log, other = tmp_path / "a.csv", tmp_path / "b.csv"
    for path in (log, other):
        path.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    follower = following(tmp_path)
    assert len(looks(follower)) == 2
    with (
        mock.patch("os.scandir", side_effect=OSError(errno.ESTALE, "Stale file handle")),
        mock.patch.object(Path, "lstat", side_effect=OSError(errno.ESTALE, "Stale file handle")),
    ):
        assert not looks(follower, LISTED_EVERY + 1)
    other.unlink()
    assert not looks(follower, LISTED_EVERY + 1)
    assert follower.look().size == log.stat().st_size


def test_a_log_under_two_names_is_one(tmp_path: Path) -> None:
    """A link to a log, or its name in other words, gives no row twice."""
    log = tmp_path / "run.csv"
    log.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    (tmp_path / "latest.csv").symlink_to(log)
    follower = Follower([str(tmp_path / "latest.csv"), str(log), f"{tmp_path}/./run.csv"], columns={})
    assert len(looks(follower)) == 1


def test_a_format_that_was_named_is_taken(tmp_path: Path) -> None:
    """The user's word on the format decides how lines are read, and that some are not read at all."""
    path = tmp_path / "run.csv"
    path.write_text("step,loss\n1,2.5\n2,2.5\n", encoding="utf-8")
    rows = {
        name: looks(Follower([str(path)], columns={}, format=name)) for name in ("csv", "tfevents", "json", "mlflow")
    }
    assert {name: len(found) for name, found in rows.items()} == {"csv": 2, "tfevents": 0, "json": 0, "mlflow": 0}


def test_what_a_judgement_read_is_followed(tmp_path: Path) -> None:
    """The file that a manifest names is followed from the first judgement on."""
    manifest, log = tmp_path / "manifest.json", tmp_path / "rows.csv"
    manifest.write_text('{"name": "a", "metrics_file": "rows.csv"}', encoding="utf-8")
    log.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    follower = following(manifest)
    looks(follower)
    follower.reads([str(log)])
    looks(follower)
    append(log, "2,2.25\n")
    assert values(looks(follower), "loss") == [2.25]


def test_an_inode_that_is_another_one_each_time_is_no_change(tmp_path: Path) -> None:
    """A network disk that numbers its files anew at each look gives no row twice and seems to write nothing."""
    path = tmp_path / "run.csv"
    path.write_text("step,loss\n1,2.5\n", encoding="utf-8")
    follower = following(path)
    first = follower.look()
    real, numbers = Path.stat, iter(range(10_000, 20_000))

    def unsteady(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        found = real(self, follow_symlinks=follow_symlinks)
        return os.stat_result((found[0], next(numbers), *found[2:]), {"st_mtime_ns": found.st_mtime_ns})

    with mock.patch.object(Path, "stat", unsteady):
        growths = [follower.look() for _ in range(5)]
    assert [(growth.rows, growth.size, growth.notes) for growth in growths] == [((), first.size, ())] * 5


def test_what_is_no_log_at_all_is_survived(tmp_path: Path) -> None:
    """A pipe that nobody writes to, a link in a loop, a line without end and noise give no rows and no crash."""
    if sys.platform == "win32":
        pytest.skip("there are no such files on Windows")
    pipe, loop, endless, noise = (tmp_path / name for name in ("pipe", "loop", "endless.csv", "noise.csv"))
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    follower = Follower([*map(str, (pipe, loop, endless, noise, tmp_path, "a\0b"))], columns={})
    for _ in range(4):
        append(endless, b"step,loss," * 50_000)
        append(noise, bytes(range(256)) * 50)
        assert not looks(follower)
    assert follower.look().size > 0


def test_a_name_full_of_escapes_is_told_plainly(tmp_path: Path) -> None:
    """What a file is called reaches no terminal as it is."""
    path = tmp_path / "a\x1b[31m\n.csv"
    path.write_text("step,loss\n1,2.5\n2,2.5\n", encoding="utf-8")
    follower = following(path)
    looks(follower)
    path.write_text("step,loss\n1,9.5\n", encoding="utf-8")
    (note,) = follower.look().notes
    assert note.isprintable()


@settings(max_examples=40, deadline=None)
@given(pieces=st.lists(st.binary(max_size=300), max_size=6), begin=st.sampled_from(BEGINNINGS))
def test_any_bytes_are_survived(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], begin: bytes) -> None:
    """Whatever is written, a look neither fails nor gives anything but numbers."""
    path = tmp_path_factory.mktemp("log") / "run.log"
    follower = following(path)
    for piece in (begin, *pieces, b"\n"):
        append(path, piece)
        assert all(isinstance(value, float) for row in looks(follower) for value in row.values())


def test_each_row_is_told_with_its_file(tmp_path: Path) -> None:
    """Of several logs it is known which one a row came to."""
    for name, loss in (("a", 1.0), ("b", 2.0)):
        (tmp_path / f"{name}.csv").write_text("".join(lines("csv", [loss] * 3)), encoding="utf-8")
    growth = following(tmp_path).look()
    assert {(file[-5:], row["loss"]) for file, row in zip(growth.files, growth.rows, strict=True)} == {
        ("a.csv", 1.0),
        ("b.csv", 2.0),
    }
