"""When a growing log is judged, and what is reported of it: each event once it has held, and each change of it."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.common.answer import Evidence
from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.result import CauseState, Diagnosis, JudgedCause
from stabtree.diagnosis.walk import diagnose
from stabtree.judging.verdict import Outcome
from stabtree.loaders import load_run
from stabtree.tools.live.events import (
    GROWTH,
    HOLD_ROWS,
    HOLD_SECONDS,
    LOOKS,
    MAX_READS,
    MIN_ROWS,
    WINDOW_ROWS,
    Announcer,
    News,
    Signs,
    Watching,
)
from stabtree.tree.load import load_preflight, load_trees
from stabtree.tree.tables import tables
from tests.conftest import FIXTURES, make_run
from tests.tools.live.growing import TestClock, falling, lines, watching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stabtree.tree.model import Leaf

NAN, BAD, SPIKE, RISE, FLAT = "nan-forward", "reward-collapse", "spike-open", "slow-rise", "flat-from-start"
PASSED, LASTS, GRAVE = "spike-unexplained", "spike-persistent", "grad-norm-rising"


@cache
def template() -> Diagnosis:
    """A diagnosis with one finding, to be told as any other."""
    return diagnose(make_run({"loss": [*np.linspace(3, 2, 40), *[np.nan] * 10]}), load_trees(None))


@cache
def leaf(name: str) -> Leaf:
    """A leaf of the shipped trees."""
    return {**load_trees(None).leaves, **load_preflight().leaves}[name]


def found(rows: int, names: str = "", *, onset: int | None = 0, file: str = "", **how: Any) -> list[Outcome]:
    """A run of so many rows in which the leaves of these names are found."""
    bare = replace(template().findings[0], onset_step=onset, evidence=(), seen_as=(), **how)
    run = make_run({"loss": np.linspace(3, 2, rows)})
    if file:
        source = replace(load_run(FIXTURES / "phase19" / "healthy").sources[0], path=file)
        run = replace(run, name=file, sources=(source,))
    findings = tuple(replace(bare, leaf=leaf(name)) for name in names.split())
    return [Outcome("run", replace(template(), run=run, findings=findings))]


def watched(rows: int = 1000) -> Announcer:
    """An announcer that has judged a healthy log of so many rows."""
    announcer = Announcer()
    assert not announcer.judged(found(rows))
    return announcer


def reported(news: Sequence[News]) -> list[tuple[int, int, str, str]]:
    """The rows at which something was reported, the number of its event, its change, and its leaf."""
    return [(item.rows, item.incident, str(item.change), item.finding.leaf.id) for item in news]


def course(
    announcer: Announcer, names: Mapping[int, str], end: int = 0, *, onset: int = 1000, **how: Any
) -> list[tuple[int, int, str, str]]:
    """What is reported while a log grows by a row at a time, in which from each of these rows on other leaves are."""
    news: list[News] = []
    for row in range(min(names), end or min(names) + 130):
        now = names[max(begin for begin in names if begin <= row)]
        news += announcer.judged(found(row, now, onset=onset, **how))
    return reported(news)


@pytest.mark.parametrize(
    ("names", "news"),
    [
        ({1001: BAD}, [(1001 + HOLD_ROWS, 1, "opened", BAD)]),
        # What a single row proves waits for nothing.
        ({1001: NAN}, [(1001, 1, "opened", NAN)]),
        ({1001: "loss-zero"}, [(1001, 1, "opened", "loss-zero")]),
        # A loss that stays up must be up for a window, or must have held.
        ({1001: LASTS}, [(1001 + MIN_ROWS, 1, "opened", LASTS)]),
        ({1008: "", 1009: LASTS}, [(1009 + HOLD_ROWS, 1, "opened", LASTS)]),
        # A later leaf of an event renames it, a graver one makes it worse.
        ({1001: SPIKE, 1003: LASTS, 1030: SPIKE}, [(1001 + MIN_ROWS, 1, "opened", LASTS), (1036, 1, "renamed", SPIKE)]),
        ({1001: SPIKE, 1030: GRAVE}, [(1004, 1, "opened", SPIKE), (1036, 1, "worse", GRAVE)]),
        # What the log no longer shows is withdrawn; what was never reported is not.
        (
            {1001: SPIKE, 1010: "", 1030: SPIKE},
            [(1004, 1, "opened", SPIKE), (1013, 1, "withdrawn", SPIKE), (1042, 1, "opened", SPIKE)],
        ),
        ({1001: SPIKE, 1002: ""}, []),
        # What is only a note by now is closed.
        ({1001: SPIKE, 1010: "spike-minor"}, [(1004, 1, "opened", SPIKE), (1013, 1, "closed", "spike-minor")]),
        (
            {1001: "exception", 1010: "exception-survived"},
            [(1004, 1, "opened", "exception"), (1013, 1, "closed", "exception-survived")],
        ),
        # Findings of the same rows are one event; one of another kind that shows for a moment does not name it.
        ({1001: SPIKE, 1010: f"{BAD} {SPIKE}"}, [(1004, 1, "opened", SPIKE), (1013, 1, "worse", BAD)]),
        ({1001: SPIKE, 1004: f"{SPIKE} {BAD}", 1006: SPIKE}, [(1009, 1, "opened", SPIKE)]),
    ],
)
def test_an_event_is_reported_once_it_has_held_and_so_is_each_change(names: dict[int, str], news: list[Any]) -> None:
    assert course(watched(), names) == news


@pytest.mark.parametrize(
    ("before", "name", "onset", "row"),
    [
        (1000, RISE, 500, 1001 + 100),  # a fifth of what it took to show
        (1000, PASSED, 1000, 1001 + HOLD_ROWS),
        (20, PASSED, 20, 21 + WINDOW_ROWS - 20),  # early, and without a cause to be seen
        (3, FLAT, 1, MIN_ROWS),  # a warning of a short log
        (3, BAD, 3, 4 + HOLD_ROWS),
    ],
)
def test_how_long_it_must_hold(before: int, name: str, onset: int, row: int) -> None:
    assert course(watched(before), {before + 1: name}, onset=onset) == [(row, 1, "opened", name)]


@pytest.mark.parametrize(
    ("before", "onset", "steps", "row"),
    [(20, 20, (20,), 21 + HOLD_ROWS), (20, 20, (), 21 + WINDOW_ROWS - 20), (12, 5, (), 13 + HOLD_ROWS)],
)
def test_a_cause_bears_out_what_begins_where_it_does(before: int, onset: int, steps: tuple[int, ...], row: int) -> None:
    """One that names no step holds from the start."""
    cause = JudgedCause(
        tables().causes["lr-too-high"], CauseState.LIKELY, (Evidence("it is high", "grad_norm", steps),)
    )
    assert course(watched(before), {before + 1: PASSED}, onset=onset, causes=(cause,))[0][0] == row


def test_a_log_that_is_watched_late_has_held_what_it_held() -> None:
    """A failure that lies 50 rows back when watching begins is told at the first judgement, one of this row later."""
    assert course(Announcer(), {1000: BAD}, 1001, onset=950)
    assert not course(Announcer(), {1000: BAD}, 1001, onset=999)


def test_a_wrong_setting_is_reported_at_once_and_is_an_event_of_its_own() -> None:
    (outcome,) = found(4, f"rate-beyond-adam {FLAT}", onset=0)
    assert isinstance(outcome.found, Diagnosis)
    setting, flat = outcome.found.findings
    findings = (replace(setting, onset_step=None), flat)
    news = Announcer().judged([outcome._replace(found=replace(outcome.found, findings=findings))])
    assert [item.finding.leaf.id for item in news] == ["rate-beyond-adam"]


def test_what_recovered_is_closed() -> None:
    """A finding that is no longer open closes its event, although its rows stay in the log."""
    announcer = watched()
    assert course(announcer, {1001: SPIKE}, 1010) == [(1004, 1, "opened", SPIKE)]
    assert course(announcer, {1010: SPIKE}, 1030, open=False) == [(1013, 1, "closed", SPIKE)]


def test_what_is_open_at_the_end_is_the_last_verdict() -> None:
    """The last judgement takes back what it does not hold, and reports what it does, without waiting."""
    announcer = watched()
    course(announcer, {1001: SPIKE}, 1010)
    news = announcer.judged(found(1011, BAD, onset=500), final=True)
    assert reported(news) == [(1011, 2, "opened", BAD), (1011, 1, "withdrawn", SPIKE)]


def test_after_some_minutes_the_next_row_decides() -> None:
    """Where a row takes an hour a finding is reported in the second row that shows it; never in a row it is not in."""
    announcer, other = watched(), watched()
    assert not announcer.judged(found(1001, BAD, onset=1000), now=0.0)
    assert not announcer.judged(found(1001, BAD, onset=1000), now=HOLD_SECONDS)
    assert announcer.judge_at(HOLD_SECONDS) == 1002
    assert announcer.judged(found(1002, BAD, onset=1000), now=HOLD_SECONDS)
    assert not other.judged(found(1001, BAD, onset=1000), now=0.0)
    assert not other.judged(found(1002), now=HOLD_SECONDS)


def test_an_error_is_told_when_the_log_is_silent() -> None:
    """What may have ended the process waits for the log to go on or fall silent, and calls for a look at that."""
    announcer = watched()
    assert not announcer.judged(found(1001, "exception", onset=1000))
    assert announcer.awaits_end
    assert announcer.judged(found(1001, "exception", onset=1000), final=True)


def test_what_comes_and_goes_is_not_told() -> None:
    """A finding that is there in every other row never holds, and each row is judged for it while it waits."""
    announcer, judged = watched(), []
    for row in range(1001, 1060):
        until = announcer.judge_at(0.0)
        if row == 1001 or (until is not None and row >= until) or row % 20 == 1:
            judged.append(row)
            assert not announcer.judged(found(row, BAD if row % 2 else "", onset=row - 1))
    assert 1002 in judged


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_the_rows_of_another_log_make_nothing_hold(seconds: float) -> None:
    """What is found in one log is told when that one has grown by the rows; or grows no more, after some minutes."""
    announcer, news = Announcer(), []
    last = 1001 if seconds else 10_000
    for row in range(1000, 1012):
        broken = found(min(row, last), BAD if row > 1000 else "", file="a.csv", onset=1000)
        others = [item for name in "bcd" for item in found(row, file=f"{name}.csv")]
        news += [row for _ in announcer.judged([*broken, *others], now=seconds * row)]
    assert news == [1001 + (HOLD_SECONDS // 60 if seconds else HOLD_ROWS)]


def test_a_log_that_is_written_anew_tells_anew() -> None:
    """A second run that overwrites the log of the first, and fails as it did, is told of as well."""
    announcer = watched()
    assert course(announcer, {1001: BAD}, 1010) == [(1001 + HOLD_ROWS, 1, "opened", BAD)]
    second = course(announcer, {1: "", 11: BAD}, 20, onset=10)
    assert second == [(1, 1, "closed", BAD), (11 + HOLD_ROWS, 2, "opened", BAD)]


def test_a_log_that_is_half_written_forgets_nothing() -> None:
    """A judgement that could not read the log tells nothing, and what was told before it is not told after it."""
    announcer = watched()
    assert course(announcer, {1001: BAD}, 1010)
    assert not announcer.judged([Outcome("run", StabtreeError("it is cut"))])
    assert not course(announcer, {1010: BAD}, 1012)


def grown(path: Path, *courses: Sequence[float]) -> list[News]:
    """What is reported while a log grows row by row from a third on, is written anew, grows again, and ends."""
    watch, news = watching(path, TestClock()), list[News]()
    for losses in courses:
        whole = lines("csv", losses)
        for end in range(len(whole) // 3, len(whole) + 1):
            path.write_text("".join(whole[:end]), encoding="utf-8")
            news += watch.grown(path.stat().st_size, sign=math.isnan(losses[end - 2]))
    news += watch.ended(path.stat().st_size)
    return news


def test_a_level_that_stays_is_one_event_that_becomes_worse(tmp_path: Path) -> None:
    """A jump of the loss that heals but slowly is first a spike, then a lasting one."""
    rows = np.arange(260)
    loss = falling(260) + np.where(rows >= 150, 1.8 * np.exp(-(rows - 150) / 90), 0)
    news = grown(tmp_path / "run.csv", loss.tolist())
    assert [item[1:3] for item in reported(news)] == [(1, "opened"), (1, "worse")]
    assert news[0].rows <= 151 + HOLD_ROWS + 10
    assert news[-1].before == news[0].finding.leaf.id
    assert [item.is_update for item in news] == [False, True]


def test_a_nan_is_reported_at_once_and_renamed_or_closed(tmp_path: Path) -> None:
    """In its first row; when the loss has come back it goes by a milder leaf, in a new run it is over."""
    loss = falling(150).tolist()
    loss[60] = math.nan
    news = grown(tmp_path / "run.csv", loss, falling(36, seed=1).tolist())
    assert (news[0].rows, str(news[0].finding.leaf.severity)) == (61, "critical")
    assert {item.incident for item in news} == {1}
    assert [str(item.change) for item in news][1:-1] in (["renamed"], ["closed"])
    assert str(news[-1].change) == "closed"


@pytest.mark.parametrize(
    ("metric", "value"), [("loss", math.nan), ("loss", 0.0), ("aux", math.inf), ("grad_norm", 0.0), ("loss_scale", 0.5)]
)
def test_a_sign_calls_for_a_look_at_it_and_at_what_follows(metric: str, value: float) -> None:
    """NaN, inf, an exact zero and a scale below 1 call for some rows, then no more."""
    signs = Signs()
    calm: dict[str, object] = {"loss": 2.0, "grad_norm": 1.0, "loss_scale": 1.0, "phase": "a"}
    assert not any(signs.in_row(calm) for _ in range(50))
    assert [signs.in_row({**calm, metric: value}) for _ in range(20)] == [True] * LOOKS + [False] * (20 - LOOKS)


@pytest.mark.parametrize(("sign", "times"), [(False, 1.1 / GROWTH), (True, MAX_READS + 1 / GROWTH)])
def test_all_judgements_together_read_a_log_some_times(sign: bool, times: float) -> None:
    """However long it grows, and where every row is a sign."""
    read: list[int] = []
    watch = Watching(lambda: read.append(size) or [], Announcer(), clock=lambda: 0.0)  # type: ignore[func-returns-value]
    for size in range(1, 20_000):
        watch.grown(size, sign=sign)
    assert 0 < sum(read) <= times * size
    assert np.diff(read).max() <= GROWTH * size + 2


def test_inside_a_loop_judging_takes_a_small_share_of_the_time() -> None:
    """A step that takes 10 ms is judged at most once a second, and 1% of the time after the first seconds."""
    clock, judged = TestClock(), []

    def judge() -> list[Any]:
        judged.append(clock.now)
        clock.now += 0.5
        return []

    watch = Watching(judge, Announcer(), in_loop=True, clock=clock)
    for size in range(1, 60_000):
        clock.now += 0.01
        watch.grown(100 * size)
    assert np.diff(judged).min() >= 1.0
    assert 4 <= len(judged) <= (2 + 0.01 * clock.now) / 0.5 + 2
