"""The life of an event: opened, worse, renamed, withdrawn, closed, each reported once."""

from __future__ import annotations

from dataclasses import replace

from stabtree.diagnosis.result import Diagnosis
from stabtree.tools.live.hold import HOLD_SECONDS, MIN_ROWS
from stabtree.tools.live.news import HOLD_ROWS, Announcer, News
from tests.tools.live.events.findings import BAD, FLAT, NAN, SPIKE, changes, found, told, watched


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
    assert announcer.waits_until(HOLD_SECONDS) == 1002
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
