"""A watch from its first look to its end, with a clock that a test moves on."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from stabtree.tools.live.watch import DEAD_SECONDS, End, Session
from tests.tools.live.growing import TestClock, broken, falling, following, judged, lines, watching

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from stabtree.common.lazy import Floats
    from stabtree.judging.verdict import Outcome
    from stabtree.tools.live.events import News
    from stabtree.tools.live.watch import Round


def written(path: Path, pieces: Sequence[str]) -> list[Callable[[], object]]:
    """What writes the pieces one after the other to the end of a log."""

    def write(piece: str) -> None:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(piece)

    return [lambda piece=piece: write(piece) for piece in pieces]  # type: ignore[misc]


def watched(path: Path, wakes: Sequence[Callable[[], object]], **options: object) -> tuple[Session, list[Round]]:
    """A watch that lasts until the log has grown by all pieces, or something ends it."""
    clock = TestClock(wakes)
    stopped = options.pop("stopped", lambda: clock.now > len(wakes) + 1)
    session = Session(
        following(path),
        watching(path, clock),
        sleep=clock.sleep,
        stopped=stopped,  # type: ignore[arg-type]
        **options,  # type: ignore[arg-type]
    )
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


def test_a_finding_is_told_once(tmp_path: Path) -> None:
    """A loss that turns NaN is told within some rows, once."""
    path = tmp_path / "run.csv"
    first, *others = lines("csv", broken(130, 100))
    _, rounds = watched(path, written(path, [first + "".join(others[:90]), *others[90:]]))
    told = [news for round_ in rounds for news in round_.news]
    assert len({news.finding.leaf.id for news in told}) == len(told) > 0
    assert 100 <= told[0].rows <= 106


def test_the_last_rows_of_a_run_that_died_are_told(tmp_path: Path) -> None:
    """What waits for further rows is told though none follows, once the log has long been silent."""
    path = tmp_path / "run.csv"
    loss = falling(100)
    loss[96:] += 5
    first, *others = lines("csv", loss)
    wakes = [*written(path, [first + "".join(others[:95]), "".join(others[95:])]), *[lambda: None] * 700]
    _, rounds = watched(path, wakes)
    (at,) = [place for place, round_ in enumerate(rounds) if round_.news]
    assert 290 <= rounds[at].quiet_seconds <= 310
    assert not any(round_.news for round_ in rounds[at + 1 :])


def test_an_error_is_told_when_the_process_is_dead(tmp_path: Path) -> None:
    """What a process died of is told seconds after its last line; what it survived is not."""
    before = "".join(lines("text", falling(100)))
    after = "".join(lines("text", falling(140))[101:])
    error = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nRuntimeError: it broke\n'
    dead, alive = tmp_path / "dead.log", tmp_path / "alive.log"
    _, rounds = watched(dead, [*written(dead, [before, error]), *[lambda: None] * 40])
    told = [(place, news.finding.leaf.id) for place, round_ in enumerate(rounds) for news in round_.news]
    assert [leaf for _, leaf in told] == ["exception"]
    assert rounds[told[0][0]].quiet_seconds <= 1 + DEAD_SECONDS
    _, rounds = watched(alive, [*written(alive, [before, error, after]), *[lambda: None] * 40])
    assert not any(round_.news for round_ in rounds)


def test_until_ends_at_the_first_finding_that_counts(tmp_path: Path) -> None:
    """With `until` the watch ends where it tells the first finding, long before the log does."""
    path = tmp_path / "run.csv"
    pieces = ["".join(lines("csv", broken(90, 100))), *lines("csv", broken(90, 10), first=90)[1:]]
    wakes = written(path, pieces)

    def critical(news: News) -> bool:
        return news.finding.leaf.severity == "critical"

    session, rounds = watched(path, wakes, until=critical)
    assert session.end is End.FOUND
    assert len(rounds) < 25


@pytest.mark.parametrize(
    ("last", "end"),
    [
        ("", End.STALLED),
        ("`Trainer.fit` stopped: `max_steps=60` reached.\n", End.COMPLETE),
        ("{'train_runtime': 12.5, 'train_loss': 1.5}\n", End.COMPLETE),
        ("Training completed.\n", End.COMPLETE),
        ("epoch 3: 100%|###|\rTraining has finished\n", End.COMPLETE),
        ("Training done right: a guide\n", End.STALLED),
        ("Epoch 1: training finished, validating\n", End.STALLED),
    ],
)
def test_silence_is_a_stall_unless_the_run_is_complete(tmp_path: Path, last: str, end: End) -> None:
    """After so long without a byte the watch ends; what the trainer wrote last says whether that is a stall."""
    path = tmp_path / "run.log"
    session, rounds = watched(
        path, written(path, ["".join(lines("text", falling(60))), last]), stall=30.0, stopped=lambda: False
    )
    assert session.end is end
    assert 31 <= len(rounds) <= 35


@pytest.mark.parametrize(("every", "seconds"), [(1.0, 60.0), (25.0, 75.0), (100.0, 200.0)])
def test_a_complete_run_is_watched_for_a_minute_more(tmp_path: Path, every: float, seconds: float) -> None:
    """The watch ends by itself after a minute of silence, and after two looks at the least."""
    path = tmp_path / "trainer_state.json"
    state_file(path, falling(1000))
    session, _ = watched(path, [], every=every, stopped=lambda: False)
    assert session.end is End.COMPLETE
    assert session.silence == seconds


def test_a_log_that_does_not_say_so_is_watched_on(tmp_path: Path) -> None:
    """Without `stall`, no silence ends the watch of a run that is not known to be complete, beside one that is."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    state_file(tmp_path / "a" / "trainer_state.json", falling(1000))
    state_file(tmp_path / "b" / "trainer_state.json", falling(500))
    session, rounds = watched(tmp_path, [lambda: None] * 300)
    assert session.end is End.ASKED
    assert len(rounds) > 300


def test_rotation_is_survived(tmp_path: Path) -> None:
    """A log that is moved away while it is watched, and begun anew, is judged as the new one in the end."""
    path = tmp_path / "run.csv"
    wakes = [
        *written(path, ["".join(lines("csv", broken(80, 40)))]),
        lambda: os.replace(path, tmp_path / "run.csv.1"),  # noqa: PTH105 - as logrotate does
        *written(path, "".join(lines("csv", falling(60, seed=1))).splitlines(keepends=True)[:30]),
    ]
    session, rounds = watched(path, wakes)
    assert said(session.outcomes) == said(judged(path)())
    assert any("written anew" in note for round_ in rounds for note in round_.notes)


def test_a_log_is_looked_at_often_while_a_finding_waits_for_rows(tmp_path: Path) -> None:
    """Where ten rows come a second, the three that a finding must hold are there long before the next second."""
    path = tmp_path / "run.csv"
    loss = falling(180)
    loss[125:] += 5
    head, *rows = lines("csv", loss)
    path.write_text(head + "".join(rows[:100]), encoding="utf-8")
    clock = TestClock()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        path.write_text(head + "".join(rows[: 100 + round(10 * clock.now)]), encoding="utf-8")

    session = Session(following(path), watching(path, clock), sleep=sleep, stopped=lambda: clock.now > 7)
    news = next(news for round_ in session.rounds() for news in round_.news)
    assert news.rows <= news.first_rows + 5
