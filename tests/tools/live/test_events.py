"""What is reported of a growing log: each event once, as soon as it has held, and each change of it."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stabtree.common.answer import Evidence
from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.result import CauseState, Diagnosis, JudgedCause
from stabtree.diagnosis.walk import diagnose
from stabtree.judging.verdict import Outcome
from stabtree.loaders import load_run
from stabtree.tools.live.events import HOLD_ROWS, HOLD_SECONDS, MIN_ROWS, WINDOW_ROWS, Announcer, News
from stabtree.tree.load import load_preflight, load_trees
from tests.conftest import FIXTURES, make_run
from tests.tools.live.growing import TestClock, falling, lines, watching

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stabtree.tree.model import Leaf

NAN, BAD, SPIKE, RISE, PASSED, FLAT = (
    "nan-forward",
    "reward-collapse",
    "spike-open",
    "slow-rise",
    "spike-unexplained",
    "flat-from-start",
)


@cache
def template() -> Diagnosis:
    """A diagnosis with one finding, to be told as any other."""
    return diagnose(make_run({"loss": [*np.linspace(3, 2, 40), *[np.nan] * 10]}), load_trees(None))


def leaf(name: str) -> Leaf:
    """A leaf of the shipped trees."""
    return {**load_trees(None).leaves, **load_preflight().leaves}[name]


def found(rows: int, *names: str, onset: int = 0, causes: tuple[JudgedCause, ...] = ()) -> list[Outcome]:
    """A run of so many rows in which these leaves are found."""
    base = template().findings[0]
    bare = replace(base, onset_step=onset, evidence=(), seen_as=(), causes=causes)
    findings = [replace(bare, leaf=leaf(name)) for name in names]
    run = make_run({"loss": np.linspace(3, 2, rows)})
    return [Outcome("run", replace(template(), run=run, findings=tuple(findings)))]


def told(announcer: Announcer, rows: int, *names: str, onset: int = 0) -> list[tuple[str, bool]]:
    """What is told after a judgement of so many rows: each leaf, and whether it is told again."""
    return [(item.finding.leaf.id, item.again) for item in announcer.judged(found(rows, *names, onset=onset))]


def watched() -> Announcer:
    """An announcer that has judged a healthy log of 1,000 rows."""
    announcer = Announcer()
    assert not announcer.judged(found(1000))
    return announcer


def changes(announcer: Announcer, rows: int, *names: str, onset: int = 0, **how: float) -> list[tuple[int, str, str]]:
    """What is reported after a judgement of so many rows: the number of each event, its change, and its leaf."""
    news = announcer.judged(found(rows, *names, onset=onset), **how)  # type: ignore[arg-type]
    return [(item.incident, str(item.change), item.finding.leaf.id) for item in news]


def test_a_later_leaf_of_an_event_renames_it() -> None:
    """An event is opened by the leaf that has held; the next one that holds renames it, in the same incident."""
    announcer, news = watched(), []
    for row in range(1001, 1060):
        name = SPIKE if row < 1003 or row >= 1030 else "spike-persistent"
        news += [(row, *item) for item in changes(announcer, row, name, onset=1000)]
    assert news == [(1001 + MIN_ROWS, 1, "opened", "spike-persistent"), (1036, 1, "renamed", SPIKE)]


def test_a_graver_leaf_makes_an_event_worse() -> None:
    """A warning that becomes critical is one event, and says so as soon as that has held."""
    announcer, news = watched(), []
    for row in range(1001, 1060):
        name = SPIKE if row < 1030 else "grad-norm-rising"
        news += [(row, *item) for item in changes(announcer, row, name, onset=1000)]
    assert [item[1:] for item in news] == [(1, "opened", SPIKE), (1, "worse", "grad-norm-rising")]


def test_what_the_log_no_longer_shows_is_withdrawn() -> None:
    """It is withdrawn once, when it was gone for some rows; and opened again where it comes back for good."""
    announcer, news = watched(), []
    for row in range(1001, 1060):
        names = [] if 1010 <= row < 1030 else [SPIKE]
        news += [(row, *item) for item in changes(announcer, row, *names, onset=1000)]
    assert [item[1:] for item in news] == [(1, change, SPIKE) for change in ("opened", "withdrawn", "opened")]
    assert news[1][0] == 1010 + HOLD_ROWS


def test_what_was_never_reported_is_not_withdrawn() -> None:
    """A finding that is gone before it has held says nothing, at the end neither."""
    announcer = watched()
    assert not changes(announcer, 1001, SPIKE, onset=1000)
    assert not changes(announcer, 1002, final=True)


def test_what_is_only_a_note_by_now_is_closed() -> None:
    """A spike that the loss came back from, and an error that the run survived, end their events."""
    for leaf_, milder in ((SPIKE, "spike-minor"), ("exception", "exception-survived")):
        announcer, news = watched(), list[tuple[int, str, str]]()
        for row in range(1001, 1030):
            name = leaf_ if row < 1010 else milder
            news += changes(announcer, row, name, onset=1000)
        assert news == [(1, "opened", leaf_), (1, "closed", milder)]


def test_what_recovered_is_closed() -> None:
    """A finding that is no longer open closes its event, although its rows stay in the log."""
    announcer, news = watched(), list[News]()
    for row in range(1001, 1030):
        (one,) = found(row, SPIKE, onset=1000)
        assert isinstance(one.found, Diagnosis)
        findings = tuple(replace(item, open=row < 1010) for item in one.found.findings)
        news += announcer.judged([one._replace(found=replace(one.found, findings=findings))])
    assert [str(item.change) for item in news] == ["opened", "closed"]


def test_what_is_open_at_the_end_is_the_last_verdict() -> None:
    """The last judgement takes back what it does not hold, and reports what it does, without waiting."""
    announcer = watched()
    for row in range(1001, 1010):
        changes(announcer, row, SPIKE, onset=1000)
    assert changes(announcer, 1011, BAD, onset=500, final=True) == [(2, "opened", BAD), (1, "withdrawn", SPIKE)]


def test_findings_of_the_same_rows_are_one_event() -> None:
    """Two leaves of different kinds that begin in the same rows are one event; one that began elsewhere is another."""
    announcer, news = watched(), []
    for row in range(1001, 1030):
        names = [SPIKE] if row < 1010 else [BAD, SPIKE]
        news += changes(announcer, row, *names, onset=1000)
    assert news == [(1, "opened", SPIKE), (1, "worse", BAD)]
    assert changes(announcer, 1031, BAD, FLAT, onset=500, final=True)[0][0] == 2


def test_what_one_row_proves_is_reported_at_once() -> None:
    """A loss that is NaN or exactly 0 waits for nothing; a setting that is wrong neither, and is its own event."""
    for name in (NAN, "loss-zero"):
        assert changes(watched(), 1001, name, onset=1000) == [(1, "opened", name)]
    announcer = Announcer()
    (one,) = found(4, "rate-beyond-adam", FLAT, onset=0)
    assert isinstance(one.found, Diagnosis)
    setting, flat = one.found.findings
    findings = (replace(setting, onset_step=None), flat)
    news = announcer.judged([one._replace(found=replace(one.found, findings=findings))])
    assert [item.finding.leaf.id for item in news] == ["rate-beyond-adam"]


def test_after_some_minutes_the_next_row_decides() -> None:
    """Where a row takes an hour a finding is reported in the second row that shows it; never in a row it is not in."""
    announcer = watched()
    assert not changes(announcer, 1001, BAD, onset=1000, now=0.0)
    assert not changes(announcer, 1001, BAD, onset=1000, now=HOLD_SECONDS)
    assert announcer.judge_at(HOLD_SECONDS) == 1002
    assert changes(announcer, 1002, BAD, onset=1000, now=HOLD_SECONDS) == [(1, "opened", BAD)]
    announcer = watched()
    assert not changes(announcer, 1001, BAD, onset=1000, now=0.0)
    assert not changes(announcer, 1002, now=HOLD_SECONDS)


def test_an_error_is_told_when_the_log_is_silent() -> None:
    """What may have ended the process waits for the log to go on or fall silent, and calls for a look at that."""
    announcer = watched()
    assert not told(announcer, 1001, "exception", onset=1000)
    assert announcer.awaits_end
    assert changes(announcer, 1001, "exception", onset=1000, final=True) == [(1, "opened", "exception")]
    announcer = watched()
    assert not told(announcer, 1001, "exception", onset=1000)
    assert not told(announcer, 1002, "exception-survived", onset=1000)
    assert not announcer.awaits_end


def test_a_name_of_another_kind_holds_for_itself() -> None:
    """A critical leaf that shows in two judgements of an event that waits does not name it."""
    announcer, news = watched(), []
    for row in range(1001, 1010):
        names = [SPIKE, BAD] if row in (1004, 1005) else [SPIKE]
        news += changes(announcer, row, *names, onset=1000)
    assert {leaf for _, _, leaf in news} == {SPIKE}


def test_a_finding_is_told_once_when_it_has_held() -> None:
    """A finding is told at the row at which it has held so long, and never again."""
    announcer = watched()
    rows = [row for row in range(1001, 1020) if told(announcer, row, BAD, onset=1000)]
    assert rows == [1001 + HOLD_ROWS]


def test_what_comes_and_goes_is_not_told() -> None:
    """A finding that is there in every other row never holds, and each row is judged for it while it waits."""
    announcer, judged = watched(), []
    for row in range(1001, 1060):
        until = announcer.judge_at(0.0)
        if row == 1001 or (until is not None and row >= until) or row % 20 == 1:
            judged.append(row)
            assert not told(announcer, row, *([BAD] if row % 2 else []), onset=row - 1)
    assert 1002 in judged


def test_what_took_long_to_show_must_hold_for_longer() -> None:
    """A rise that began 500 rows before it was found is told after a fifth of that."""
    announcer = watched()
    rows = [row for row in range(1001, 1200) if told(announcer, row, RISE, onset=500)]
    assert rows == [1001 + 100]


def test_what_has_passed_waits_for_a_window() -> None:
    """A spike that came back, early and with no cause to be seen, is told once the log is a window longer.

    One with a cause that the log bears out at a step is told as anything else, and so is one late in a log; that the
    rate is too high from the start says nothing of a spike in row 20, but of one in row 5.
    """
    young, late, sure, whole = Announcer(), watched(), Announcer(), Announcer()
    young.judged(found(20)), sure.judged(found(20)), whole.judged(found(20))
    cause = JudgedCause(leaf(PASSED).causes[0], CauseState.LIKELY, (Evidence("grad_norm is high", "grad_norm", (20,)),))
    always = replace(cause, evidence=(Evidence("the loss reaches 4× its first value", "loss"),))
    rows = [row for row in range(21, 200) if told(young, row, PASSED, onset=20)]
    assert rows == [21 + WINDOW_ROWS - 20]
    assert [row for row in range(1001, 1200) if told(late, row, PASSED, onset=1000)] == [1001 + HOLD_ROWS]
    held = [row for row in range(21, 200) if sure.judged(found(row, PASSED, onset=20, causes=(cause,)))]
    assert held == [21 + HOLD_ROWS]
    held = [row for row in range(21, 200) if whole.judged(found(row, PASSED, onset=20, causes=(always,)))]
    assert held == rows
    whole = Announcer()
    whole.judged(found(12))
    held = [row for row in range(13, 200) if whole.judged(found(row, PASSED, onset=5, causes=(always,)))]
    assert held == [13 + HOLD_ROWS]


def test_a_new_level_is_told_when_its_rows_are_known() -> None:
    """A loss that stays up is told once it has stood there for a window; one found later is told when it has held."""
    soon, later = watched(), watched()
    lasts = "spike-persistent"
    assert [row for row in range(1001, 1100) if told(soon, row, lasts, onset=1000)] == [1001 + MIN_ROWS]
    assert not told(later, 1008, onset=1000)
    assert [row for row in range(1009, 1100) if told(later, row, lasts, onset=1000)] == [1009 + HOLD_ROWS]


def test_a_log_of_a_few_rows_is_not_warned_of() -> None:
    """A warning that shows in the fourth row is told in the tenth; what is critical is told when it has held."""
    mild, bad = Announcer(), Announcer()
    mild.judged(found(3)), bad.judged(found(3))
    assert [row for row in range(4, 30) if told(mild, row, FLAT, onset=1)] == [10]
    assert [row for row in range(4, 30) if told(bad, row, BAD, onset=3)] == [4 + HOLD_ROWS]


def test_a_log_that_is_watched_late_has_held_what_it_held() -> None:
    """A failure that lies 50 rows back when watching begins is told at the first judgement, one of this row later."""
    assert told(Announcer(), 1000, BAD, onset=950) == [(BAD, False)]
    assert told(Announcer(), 1000, BAD, onset=999) == []


def beside(rows: int, *names: str, file: str, onset: int = 0) -> Outcome:
    """A run as of `found`, in a log of its own."""
    (one,) = found(rows, *names, onset=onset)
    assert isinstance(one.found, Diagnosis)
    source = replace(load_run(FIXTURES / "phase19" / "healthy").sources[0], path=file)
    run = replace(one.found.run, name=file, sources=(source,))
    return Outcome(file, replace(one.found, run=run))


def test_the_rows_of_another_log_make_nothing_hold() -> None:
    """Of four logs that grow alike, what is found in one is told when that one has grown by the rows."""
    announcer, news = Announcer(), []
    for row in range(1000, 1010):
        broken = beside(row, *([BAD] if row > 1000 else []), file="a.csv", onset=1000)
        others = [beside(row, file=f"{name}.csv") for name in "bcd"]
        news += [(item.rows, item.first_rows) for item in announcer.judged([broken, *others])]
        until = announcer.judge_at(0.0)
        assert until is None or announcer.rows < until <= announcer.rows + HOLD_ROWS
    assert news == [(1001 + HOLD_ROWS, 1001)]


def test_a_log_that_is_written_anew_tells_anew() -> None:
    """A second run that overwrites the log of the first, and fails as it did, is told of as well."""
    announcer = watched()
    first = [(row, *news) for row in range(1001, 1010) for news in changes(announcer, row, BAD, onset=1000)]
    second = [
        (row, *news) for row in range(1, 20) for news in changes(announcer, row, *([BAD] if row > 10 else []), onset=10)
    ]
    assert first == [(1001 + HOLD_ROWS, 1, "opened", BAD)]
    assert second == [(1, 1, "withdrawn", BAD), (11 + HOLD_ROWS, 2, "opened", BAD)]


def test_a_log_that_is_half_written_forgets_nothing() -> None:
    """A judgement that could not read the log tells nothing, and what was told before it is not told after it."""
    announcer = watched()
    assert [row for row in range(1001, 1010) if told(announcer, row, BAD, onset=1000)] == [1001 + HOLD_ROWS]
    assert not announcer.judged([Outcome("run", StabtreeError("it is cut"))])
    assert not told(announcer, 1010, BAD, onset=1000)


def grown(path: Path, loss: Sequence[float], *, rewritten: Sequence[float] = ()) -> list[News]:
    """What is reported while a log grows row by row, and at its end; then is written anew, and grows again."""
    clock = TestClock()
    watch, news = watching(path, clock), list[News]()
    for course in (loss, rewritten):
        whole = lines("csv", course)
        for end in range(2, len(whole) + 1):
            path.write_text("".join(whole[:end]), encoding="utf-8")
            news += watch.grown(path.stat().st_size, sign=math.isnan(course[end - 2]))
    news += watch.ended(path.stat().st_size)
    return news


def test_a_level_that_stays_is_one_event_that_becomes_worse(tmp_path: Path) -> None:
    """A jump of the loss that heals but slowly is first a spike, then a lasting one."""
    rows = np.arange(400)
    loss = falling(400) + np.where(rows >= 250, 1.8 * np.exp(-(rows - 250) / 90), 0)
    news = grown(tmp_path / "run.csv", loss.tolist())
    assert [(number, change) for number, change, _ in named(news)] == [(1, "opened"), (1, "worse")]
    assert news[0].rows <= 251 + HOLD_ROWS + 10
    assert news[-1].before == news[0].finding.leaf.id


def test_a_nan_that_the_run_survives_is_reported_at_once_and_renamed(tmp_path: Path) -> None:
    """It is critical in its first row; when the loss has come back it goes by a milder leaf, in the same event."""
    loss = falling(300).tolist()
    loss[200] = math.nan
    news = grown(tmp_path / "run.csv", loss)
    assert (news[0].rows, str(news[0].finding.leaf.severity)) == (201, "critical")
    assert {item.incident for item in news} == {1}
    assert str(news[-1].change) in ("renamed", "closed")
    assert str(news[-1].finding.leaf.severity) != "critical"


def test_what_a_new_log_no_longer_shows_is_withdrawn(tmp_path: Path) -> None:
    """A run that overwrites the log of a failed one takes its event back."""
    failed = [*falling(60).tolist(), *[math.nan] * 5]
    news = grown(tmp_path / "run.csv", failed, rewritten=falling(120, seed=1).tolist())
    assert named(news)[-1][:2] == (1, "withdrawn")
    assert [change for _, change, _ in named(news)].count("opened") == 1


def named(news: Sequence[News]) -> list[tuple[int, str, str]]:
    """Return the number of each event, its change, and its leaf."""
    return [(item.incident, str(item.change), item.finding.leaf.id) for item in news]


def test_a_log_that_grows_no_more_is_reported_while_others_grow() -> None:
    """Its finding does not wait for rows that never come, once it has been silent for some minutes."""
    announcer, news = Announcer(), []
    for row in range(1000, 1012):
        broken = beside(min(row, 1001), *([BAD] if row > 1000 else []), file="a.csv", onset=1000)
        other = beside(row, file="b.csv")
        news += [row for _ in announcer.judged([broken, other], now=60.0 * row)]
    assert news == [1001 + HOLD_SECONDS // 60]
