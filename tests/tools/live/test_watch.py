"""What comes to logs that grow, and a watch from its first look to its end, with a clock that a test moves on."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from stabtree.tools.live.events import LOOKS
from stabtree.tools.live.watch import DEAD_SECONDS, LISTED_EVERY, SILENT_SECONDS, SMALL_BYTES, End, Growth, Session
from tests.tools.live.growing import TestClock, broken, falling, following, judged, lines, watching

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.judging.verdict import Outcome
    from stabtree.tools.live.events import News
    from stabtree.tools.live.watch import Round


def append(path: Path, text: str | bytes) -> None:
    """Write to the end of a file."""
    with path.open("ab") as stream:
        stream.write(text.encode() if isinstance(text, str) else text)


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """Nothing is there, without a note, until the file is."""
    path = tmp_path / "later" / "run.csv"
    follower = following(path)
    assert follower.look() == Growth(0)
    path.parent.mkdir()
    append(path, "step,loss\n1,2.5\n")
    assert follower.look() == Growth(16)


@pytest.mark.parametrize("text", ["5,nan\n", "loss: -inf\n", '{"loss": NaN}\n', "5,Infinity\n"])
def test_text_that_is_not_finite_is_a_sign(tmp_path: Path, text: str) -> None:
    """Ordinary rows, and words that contain the letters, are none."""
    path = tmp_path / "run.log"
    append(path, "".join(lines("csv", falling(100))))
    follower = following(path)
    for ordinary in ("", "1,2.5\n", "info: finance banana\n"):
        append(path, ordinary)
        assert not follower.look().sign
    append(path, text)
    assert [follower.look().sign for _ in range(LOOKS + 2)] == [True] * LOOKS + [False] * 2


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE])
def test_a_disk_that_fails_for_a_while_is_survived(tmp_path: Path, number: int) -> None:
    """It is noted once, without the escapes of a name, and the log goes on afterwards."""
    path = tmp_path / "run\x1b[31m.csv"
    append(path, "step,loss\n1,2.5\n")
    follower = following(path)
    size = follower.look().size
    with mock.patch.object(Path, "stat", side_effect=OSError(number, os.strerror(number))):
        notes = [note for _ in range(3) for note in follower.look().notes]
    assert len(notes) == 1
    assert "\x1b" not in notes[0]
    append(path, "2,2.25\n")
    assert follower.look() == Growth(size + 7)


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
    log, other, elsewhere = tmp_path / "runs" / "a" / "run.csv", tmp_path / "runs" / "data.txt", tmp_path / "else.csv"
    log.parent.mkdir(parents=True)
    append(log, "step,loss\n")
    append(tmp_path / "runs" / "model.safetensors", bytes(1000))
    append(tmp_path / "runs" / ".hidden", bytes(1000))
    append(elsewhere, "step,loss\n")
    follower = following(tmp_path / "runs")
    assert follower.look().size == 10
    append(other, bytes(SMALL_BYTES + 1))
    assert [follower.look().size for _ in range(LISTED_EVERY + 1)][-1] == 10 + SMALL_BYTES + 1
    follower.judged([str(log), str(elsewhere)])  # as the one that a manifest names
    assert follower.look().size == 20
    append(log, "1,2.5\n")
    assert follower.look().size == 26


def written(path: Path, pieces: Sequence[str]) -> list[Callable[[], object]]:
    """What writes the pieces one after the other to the end of a log."""
    return [lambda piece=piece: append(path, piece) for piece in pieces]  # type: ignore[misc]


def watched(path: Path, wakes: Sequence[Callable[[], object]], **options: Any) -> tuple[Session, list[Round]]:
    """A watch that lasts until the log has grown by all pieces, or something ends it."""
    clock = TestClock(wakes)
    stopped = options.pop("stopped", lambda: clock.now > len(wakes) + 1)
    follower = following(path)
    session = Session(follower, watching(path, clock, follower), sleep=clock.sleep, stopped=stopped, **options)
    return session, list(session.rounds())


def said(outcomes: Sequence[Outcome]) -> list[tuple[str, list[str]]]:
    """The verdicts of runs, with what was found."""
    return [(item.verdict, [finding.leaf.id for finding in getattr(item.found, "findings", ())]) for item in outcomes]


def state_file(path: Path, loss: Floats) -> None:
    """Write what a Trainer writes anew at each step."""
    rows = [{"step": step + 1, "loss": float(value), "learning_rate": 0.001} for step, value in enumerate(loss)]
    beside = path.with_name("beside")
    beside.write_text(json.dumps({"global_step": len(rows), "max_steps": 1000, "log_history": rows}), encoding="utf-8")
    beside.replace(path)


def test_a_trainers_folder_is_judged_as_diagnose_does(tmp_path: Path) -> None:
    """A folder that fills with checkpoints, of which old ones are removed, has at the end the verdict of diagnose."""
    loss = broken(120, 70)

    def save(count: int) -> None:
        folder = tmp_path / "out" / f"checkpoint-{count}"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(bytes(1000) + bytes([count]) * 5000)
        state_file(folder / "trainer_state.json", loss[:count])
        old = tmp_path / "out" / f"checkpoint-{count - 40}"
        for file in (old / "model.safetensors", old / "trainer_state.json"):
            file.unlink(missing_ok=True)

    saves = [lambda count=count: save(count) for count in range(20, 121, 20)]
    wakes = [wake for one in saves for wake in (one, *[lambda: None] * 10)]
    session, rounds = watched(tmp_path / "out", wakes)
    assert said(session.outcomes) == said(judged(tmp_path / "out")())
    assert session.outcomes[0].verdict == "critical"
    assert [news.finding.leaf.severity for round_ in rounds[:-1] for news in round_.news][:1] == ["critical"]


def test_until_ends_at_the_first_finding_that_counts(tmp_path: Path) -> None:
    """With `until` the watch ends where it tells the first finding, in the row that shows it."""
    path = tmp_path / "run.csv"
    first, *others = lines("csv", broken(100, 94))
    pieces = [first + "".join(others[:90]), *others[90:]]

    def critical(news: News) -> bool:
        return news.finding.leaf.severity == "critical"

    session, rounds = watched(path, written(path, pieces), until=critical)
    (news,) = [news for round_ in rounds for news in round_.news]
    assert (session.end, news.rows) == (End.FOUND, 95)


ERROR = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nRuntimeError: it broke\n'


@pytest.mark.parametrize(
    ("last", "further", "silence"),
    [
        ("step 96 | loss 6.5\nstep 97 | loss 6.6\nstep 98 | loss 6.5\n", "", SILENT_SECONDS),
        (ERROR, "", DEAD_SECONDS),  # what a process died of
        (ERROR, "".join(lines("text", falling(140))[97:]), None),  # what it survived
    ],
)
def test_what_waits_for_rows_is_told_when_none_follows(
    tmp_path: Path, last: str, further: str, silence: float | None
) -> None:
    """Once the log has long been silent, or the process is dead."""
    path = tmp_path / "run.log"
    pieces = ["".join(lines("text", falling(96))), last, further]
    _, rounds = watched(path, [*written(path, pieces), *[lambda: None] * 400])
    told = [round_.quiet_seconds for round_ in rounds if round_.news]
    assert told == ([] if silence is None else [pytest.approx(silence, abs=1)])


@pytest.mark.parametrize(
    ("last", "end"),
    [
        ("", End.STALLED),
        ("`Trainer.fit` stopped: `max_steps=60` reached.\n", End.COMPLETE),
        ("{'train_runtime': 12.5, 'train_loss': 1.5}\n", End.COMPLETE),
        ("Training completed.\n", End.COMPLETE),
        ("epoch 3: 100%|###|\rTraining has finished\n", End.COMPLETE),
        ("Epoch 1: training finished, validating\n", End.STALLED),
    ],
)
def test_silence_is_a_stall_unless_the_run_is_complete(tmp_path: Path, last: str, end: End) -> None:
    """After so long without a byte the watch ends; what the trainer wrote last says whether that is a stall."""
    path = tmp_path / "run.log"
    wakes = written(path, ["".join(lines("text", falling(60))), last])
    session, rounds = watched(path, wakes, stall=30.0, stopped=lambda: False)
    assert session.end is end
    assert 31 <= len(rounds) <= 35


@pytest.mark.parametrize(("every", "seconds"), [(1.0, 60.0), (25.0, 75.0), (100.0, 200.0)])
def test_a_complete_run_is_watched_for_a_minute_more(tmp_path: Path, every: float, seconds: float) -> None:
    """The watch ends by itself after a minute of silence, and after two looks at the least."""
    path = tmp_path / "trainer_state.json"
    state_file(path, falling(1000))
    session, _ = watched(path, [], every=every, stopped=lambda: False)
    assert (session.end, session.silence) == (End.COMPLETE, seconds)


def test_a_run_that_is_not_known_to_be_complete_is_watched_on(tmp_path: Path) -> None:
    """Without `stall`, no silence ends the watch of a run that is not known to be complete, beside one that is."""
    for name, rows in (("a", 1000), ("b", 500)):
        (tmp_path / name).mkdir()
        state_file(tmp_path / name / "trainer_state.json", falling(rows))
    session, rounds = watched(tmp_path, [lambda: None] * 300)
    assert session.end is End.ASKED
    assert len(rounds) > 300


def begin_anew(path: Path, how: str, text: str) -> None:
    """Write a text to a log that is rotated, written over or begun anew first."""
    if how == "renamed":
        path.rename(f"{path}.1")
    elif how in ("copied", "emptied"):
        if how == "copied":
            shutil.copy(path, f"{path}.1")
        os.truncate(path, 0)
    elif how == "replaced":
        path.with_name("beside").touch()
        path.with_name("beside").replace(path)
    append(path, text)


@pytest.mark.parametrize("how", ["renamed", "copied", "replaced", "emptied"])
@pytest.mark.parametrize("told", [True, False])
def test_what_was_read_of_a_log_that_is_begun_anew_stays_read(tmp_path: Path, how: str, told: bool) -> None:
    """The rows before it count, also those that no look saw, if the file or a copy of it still holds them."""
    path = tmp_path / "run.csv"
    loss = falling(150)
    loss[90:] += 5
    head, *rows = lines("csv", loss)
    seen = 120 if told else 101

    def rotate() -> None:
        append(path, "".join(rows[seen:120]))
        begin_anew(path, how, head + "".join(rows[120:130]))

    pieces = [head + "".join(rows[:100]), *rows[100:seen]]
    session, rounds = watched(path, [*written(path, pieces), rotate, *written(path, rows[130:])])
    changes = [(news.incident, news.change.is_finding) for round_ in rounds for news in round_.news]
    assert set(changes) == {(1, True)}
    assert session.outcomes[-1].verdict in ("warning", "critical")
    assert len(session.outcomes) == 1
    assert sum("written anew" in note for round_ in rounds for note in round_.notes) == 1


def test_a_log_that_is_written_over_as_a_whole_is_one_log(tmp_path: Path) -> None:
    """As by each epoch: its rows are those of the last file."""
    path, rows = tmp_path / "run.csv", lines("csv", falling(60))

    def write_over(count: int) -> None:
        path.with_name("beside").write_text("".join(rows[:count]), encoding="utf-8")
        path.with_name("beside").replace(path)

    session, rounds = watched(path, [partial(write_over, count) for count in (20, 30, 40, 60)])
    assert said(session.outcomes) == said(judged(path)())
    assert not any(round_.notes for round_ in rounds)


def test_a_log_is_looked_at_often_while_a_finding_waits_for_rows(tmp_path: Path) -> None:
    """Where ten rows come a second, the three that a finding must hold are there long before the next second."""
    path = tmp_path / "run.csv"
    loss = falling(180)
    loss[125:] += 5
    head, *rows = lines("csv", loss)
    append(path, head + "".join(rows[:100]))
    clock = TestClock()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        path.write_text(head + "".join(rows[: 100 + round(10 * clock.now)]), encoding="utf-8")

    session = Session(following(path), watching(path, clock), sleep=sleep, stopped=lambda: clock.now > 7)
    news = next(news for round_ in session.rounds() for news in round_.news)
    assert news.rows <= news.first_rows + 5
