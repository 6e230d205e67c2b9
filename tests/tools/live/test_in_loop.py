"""A Recorder that judges its log: when it tells what, how it stops a run, and that no fault of ours ends one."""

from __future__ import annotations

import math
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stabtree import Recorder, StabtreeError, TrainingStoppedError
from stabtree.tools.live.judge import Ranks
from tests.conftest import falling
from tests.tools.live.growing import broken

if TYPE_CHECKING:
    from stabtree.tools.live.events import News


def train(path: Path, loss: Any, **options: Any) -> Recorder:
    """A loop that logs these losses until it is to stop."""
    with Recorder(path, **options) as rec:
        for step, value in enumerate(loss):
            rec.log(step, loss=value, grad_norm=1.0 + 0.1 * math.sin(step))
            if rec.should_stop:
                break
    return rec


def test_nan_stops_the_run_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`warn` logs one line that names the finding, its step, and what to type; `should_stop` ends the loop there."""
    path = tmp_path / "run.jsonl"
    rec = train(path, broken(300, 200), on_finding="warn")
    assert rec.should_stop is rec.news[0]
    assert (rec.news[0].finding.onset_step, rec.news[0].rows) == (200, 201)
    lines = [record.getMessage() for record in caplog.records if "stabtree diagnose" in record.getMessage()]
    assert len(lines) == 1
    assert {rec.news[0].finding.leaf.id, "200:", str(path)} <= {*lines[0].split()}


def test_raise_raises_out_of_the_log_that_shows_it(tmp_path: Path) -> None:
    """With the row written; what the loop logs on its way out is written as well."""
    path = tmp_path / "run.jsonl"
    with Recorder(path, on_finding="raise") as rec:
        for step, value in enumerate(falling(100)):
            rec.log(step, loss=value)
        with pytest.raises(TrainingStoppedError, match="stabtree diagnose") as raised:
            rec.log(100, loss=math.nan)
        rec.log(101, loss=math.nan)
    assert raised.value.news is rec.should_stop
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + 102


@pytest.mark.parametrize(("fail_on", "called"), [("critical", 0), (["warning"], 1), ("never", 0)])
def test_a_function_is_called_from_a_level_on(tmp_path: Path, fail_on: Any, called: int) -> None:
    """With each finding at or above `fail_on`; a milder one is news alone."""
    loss = falling(400)
    loss[300] = 40.0
    seen: list[News] = []
    rec = train(tmp_path / "run.jsonl", loss, on_finding=seen.append, fail_on=fail_on)
    assert [str(item.finding.leaf.severity) for item in rec.news] == ["warning"]
    assert len(seen) == called
    assert (rec.should_stop is not None) is bool(called)


def test_a_fault_of_ours_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What goes wrong while the log is judged is a warning, once; the next judging point tries again."""
    calls = []

    def fault(*_: object, **__: object) -> None:
        calls.append(1)
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("stabtree.loaders.load_runs", fault)
    path = tmp_path / "run.jsonl"
    loss = falling(100)
    loss[::10] = math.nan
    train(path, loss, on_finding="raise")
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + 100
    assert caplog.text.count("ZeroDivisionError: ours") == 1
    assert 1 < len(calls) < 60  # at judging points alone, not at every row


@pytest.mark.skipif(sys.platform == "win32", reason="there a log that is written to can't be moved")
def test_a_loop_may_change_its_directory_and_lose_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that was named from where the loop began is begun anew there, and is judged."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Recorder("run.jsonl", on_finding="warn") as rec:
        monkeypatch.chdir(tmp_path / "elsewhere")
        for step, value in enumerate(broken(300, 200)):
            if step == 50:
                (tmp_path / "run.jsonl").unlink()
            if step == 100:
                monkeypatch.setattr("stabtree.tools.live.writer.LOOK_SECONDS", 0.0)
            rec.log(step, loss=value)
    assert [item.finding.leaf.id for item in rec.news] == ["nan-unlocated"]
    assert len((tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()) == 1 + 200
    assert not [*Path().iterdir()]


def test_a_fault_in_the_last_rows_is_told_at_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A log that ends is judged whole, though nothing could hold; `close` raises nothing."""
    loss = falling(200)
    loss[197:] = 40.0
    rec = train(tmp_path / "run.jsonl", loss, on_finding="raise", fail_on="warning")
    assert [item.finding.onset_step for item in rec.news] == [197]
    assert rec.news[0].finding.leaf.id in caplog.text


def test_the_settings_of_the_project_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the working directory, as for `diagnose`: a column of the project's, a leaf that it ignores."""
    monkeypatch.chdir(tmp_path)
    told = []
    for settings in ('column = {loss = "mine"}\n', 'column = {loss = "mine"}\nignore = ["nan-unlocated"]\n'):
        Path("stabtree.toml").write_text(settings, encoding="utf-8")
        Path("run.jsonl").unlink(missing_ok=True)
        with Recorder("run.jsonl", on_finding="warn") as rec:
            for step, value in enumerate(broken(120, 100)):
                rec.log(step, mine=value, other_loss=1.0)
        told.append([item.finding.leaf.id for item in rec.news])
    assert told == [["nan-unlocated"], []]


def test_what_makes_no_sense_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the training begins: a way to report, a level, a rule in the settings."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StabtreeError, match=r"^Recorder: on_finding: "):
        Recorder("run.jsonl", on_finding="stop")
    with pytest.raises(StabtreeError, match=r"^Recorder: fail_on: "):
        Recorder("run.jsonl", on_finding="warn", fail_on="bad")
    Path("stabtree.toml").write_text('ignore = ["no-such-leaf"]\n', encoding="utf-8")
    with pytest.raises(StabtreeError, match="no-such-leaf"):
        Recorder("run.jsonl", on_finding="warn")


def test_a_setting_that_check_warns_of_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And stops nothing."""
    with Recorder(tmp_path / "run.jsonl", on_finding="raise", fail_on="warning") as rec:
        rec.config(optimizer="AdamW", lr=0.06, max_steps=400)
        for step, value in enumerate(falling(100)):
            rec.log(step, loss=value)
    assert caplog.text.count("too high for Adam") == 1
    assert not rec.news


SIZE, FOUND = 3, 20


class Store:
    """What torch.distributed keeps for all ranks."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.set, self.get = self.values.__setitem__, self.values.__getitem__

    def check(self, keys: list[str]) -> bool:
        """Return whether all of them are there."""
        return all(key in self.values for key in keys)


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> News:
    """A finding that stops a run."""
    stop = train(tmp_path_factory.mktemp("run") / "run.jsonl", broken(100, 50), on_finding="warn").should_stop
    assert stop is not None
    return stop


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("every", "beside"), [(1, False), (10, False), (10, True)])
def test_all_ranks_stop_at_the_same_step(news: News, every: int, beside: bool, seed: int) -> None:
    """A few rows after it was found: three that wait for each other at each step, whichever of them is ahead."""
    store, barrier = Store(), threading.Barrier(SIZE)

    def loop(rank: int) -> tuple[int, str]:
        chance = random.Random(seed * SIZE + rank)  # noqa: S311
        ranks = Ranks(store, rank, "run")
        for step in range(0, 100 * every, every):
            barrier.wait(20)
            time.sleep(chance.random() / 1000)
            found = news if not rank and step >= FOUND * every else None
            stop = ranks.stops(step, found)
            if beside and not rank and stop is None:
                stop = ranks.stops(step, found)  # as for a row that rank 0 alone logs
            if stop is not None:
                return step, stop.finding.leaf.id
        raise AssertionError("it was not stopped")

    with ThreadPoolExecutor(SIZE) as pool:
        (first, leaf), *others = pool.map(loop, range(SIZE))
    assert others == [(first, leaf)] * (SIZE - 1)
    assert FOUND < first / every <= FOUND + 4
    assert leaf == news.finding.leaf.id


def test_ranks_are_not_waited_for(news: News) -> None:
    """While nothing is found nothing is set or asked for; where the others log nothing, rank 0 stops alone."""
    store = Store()
    other, first = Ranks(store, 1, "run"), Ranks(store, 0, "run")
    assert [other.stops(step, None) for step in range(50)] == [None] * 50
    assert not store.values
    assert [first.stops(step, news) is None for step in range(4)] == [True, True, False, False]
