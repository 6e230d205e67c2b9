"""What is told of a growing log: each event once, as soon as it has held."""

from __future__ import annotations

from dataclasses import replace

from stabtree.common.answer import Evidence
from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.judged import CauseState, JudgedCause
from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.outcome import Outcome
from stabtree.loaders import load_run
from stabtree.tools.live.hold import MIN_ROWS, WINDOW_ROWS
from stabtree.tools.live.news import HOLD_ROWS, Announcer
from tests.conftest import FIXTURES
from tests.tools.live.events.findings import BAD, FLAT, PASSED, RISE, changes, found, leaf, told, watched


def test_a_finding_is_told_once_when_it_has_held() -> None:
    """A finding is told at the row at which it has held so long, and never again."""
    announcer = watched()
    rows = [row for row in range(1001, 1020) if told(announcer, row, BAD, onset=1000)]
    assert rows == [1001 + HOLD_ROWS]


def test_what_comes_and_goes_is_not_told() -> None:
    """A finding that is there in every other row never holds, and each row is judged for it while it waits."""
    announcer, judged = watched(), []
    for row in range(1001, 1060):
        until = announcer.waits_until()
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


def test_the_last_judgement_waits_for_nothing() -> None:
    """What was found a moment ago is told when the log is over."""
    announcer = watched()
    assert not announcer.judged(found(1001, BAD, onset=1000))
    assert len(announcer.judged(found(1001, BAD, onset=1000), final=True)) == 1


def test_a_log_that_is_watched_late_has_held_what_it_held() -> None:
    """A failure that lies 50 rows back when watching begins is told at the first judgement, one of this row later."""
    assert told(Announcer(), 1000, BAD, onset=950) == [(BAD, False)]
    assert told(Announcer(), 1000, BAD, onset=999) == []


def test_a_run_that_another_one_follows_in_its_log_is_told() -> None:
    """Of two runs in one file the first grows no more: the rows of the second make its finding hold."""
    announcer, (first,) = watched(), found(1001, BAD, onset=1000)
    news = []
    for row in range(1, 10):
        (second,) = found(row)
        news += [row for _ in announcer.judged([first, second._replace(name="second")])]
    assert news == [1 + HOLD_ROWS]


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
        until = announcer.waits_until()
        assert until is None or announcer.rows < until <= announcer.rows + HOLD_ROWS
    assert news == [(1001 + HOLD_ROWS, 1001)]


def test_a_log_that_has_fallen_silent_is_told_while_others_grow() -> None:
    """Once each of the others got the rows that it lacks."""
    announcer, news = Announcer(), []
    for row in range(1000, 1012):
        broken = beside(min(row, 1001), *([BAD] if row > 1000 else []), file="a.csv", onset=1000)
        others = [beside(row, file=f"{name}.csv") for name in "bc"]
        news += [row for _ in announcer.judged([broken, *others])]
    assert news == [1001 + HOLD_ROWS * 3 // 2 + 1]


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


def test_a_run_that_is_called_otherwise_is_the_same() -> None:
    """A second log in its folder gives a run another name: what was told of it is not told again."""
    (one,) = found(1000, BAD)
    assert isinstance(one.found, Diagnosis)

    def called(name: str, file: str) -> Outcome:
        assert isinstance(one.found, Diagnosis)
        run = replace(
            one.found.run, sources=(replace(load_run(FIXTURES / "phase19" / "healthy").sources[0], path=file),)
        )
        return Outcome(name, replace(one.found, run=run))

    announcer = Announcer(hold_rows=0)
    assert [item.run for item in announcer.judged([called("runs", "runs/a.csv")])] == ["runs"]
    both = [called("runs/a.csv", "runs/a.csv"), called("runs/b.csv", "runs/b.csv")]
    assert [item.run for item in announcer.judged(both, final=True)] == ["runs/b.csv"]
    assert not announcer.judged([called("runs", "runs/a.csv")], final=True)
