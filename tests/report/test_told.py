"""What a watch shows: the status line at every width, and a finding as it is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.judging.verdict import Outcome
from stabtree.loaders import load_run
from stabtree.report.outputs import RenderOptions
from stabtree.tools.live.events import News
from stabtree.tools.live.messages import closing, finding_line, finding_text, status_line
from stabtree.tools.live.watch import Round
from tests.conftest import FIXTURES

TIME = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
EVIL = "run\x1b[31m\n::error::x\r$(id)"


@pytest.fixture(scope="module")
def found() -> Outcome:
    """A run that diverged after a checkpoint."""
    return Outcome("run.csv", Judging().diagnosed(load_run(FIXTURES / "phase19" / "spike-persistent")))


@pytest.fixture(scope="module")
def pulse(found: Outcome) -> Round:
    """How a watch over it goes."""
    return Round((), (), there=True, outcomes=(found,), quiet_seconds=3.2)


def news(outcome: Outcome, run: str = "run.csv", *, again: bool = False) -> News:
    """The worst that was found, as it is told."""
    assert not isinstance(outcome.found, StabtreeError)
    return News(run, outcome.found.findings[0], outcome.found, 40, 37, again)


def test_the_line_says_where_the_run_is(pulse: Round) -> None:
    """It holds the verdict, the step, and the time since the last row."""
    line = status_line(pulse, "run.csv", RenderOptions(width=119))
    assert re.fullmatch(r"CRITICAL  step [0-9,]+  last row 3s ago", line)


@pytest.mark.parametrize("width", [20, 27, 40, 80])
@pytest.mark.parametrize("ascii_", [False, True])
def test_the_line_fits(pulse: Round, found: Outcome, width: int, ascii_: bool) -> None:
    """At any width it is one line that fits, of several runs too, whatever their names hold."""
    unread = Outcome(EVIL, StabtreeError("is empty"))
    several = pulse._replace(outcomes=(unread, found._replace(name=EVIL), found))
    for status in (pulse, several, Round((), (), quiet_seconds=75)):
        line = status_line(status, EVIL, RenderOptions(width=width, ascii=ascii_))
        assert len(line) <= width
        assert line.isprintable()
    assert "1 NOT READ, 2 CRITICAL".startswith(status_line(several, "", RenderOptions(width=width))[:20])


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_finding_fits_and_says_what_to_do(found: Outcome, width: int) -> None:
    """A finding as it is told holds time, step, title, leaf, the first thing to do and the checkpoint, in the width."""
    text = finding_text(news(found, again=True), TIME, RenderOptions(width=width), named=True)
    whole = " ".join(text.split())
    assert text.startswith("2030-01-02 03:04:05  step ")
    for part in (
        "CRITICAL",
        "again",
        "run.csv",
        "spike-persistent",
        "First ",
        "Then Restart from the checkpoint of step",
    ):
        assert part in whole
    assert max(map(len, text.splitlines())) <= width


def test_nothing_of_a_name_reaches_the_screen_raw(found: Outcome) -> None:
    """Escape sequences, line ends and commands to a CI service in a run's name are made harmless."""
    hostile = news(found, EVIL)
    ends = closing(
        [Outcome(EVIL, found.found), Outcome(EVIL, StabtreeError(EVIL))], "stopped", RenderOptions(exit_code=1)
    )
    for text in (
        finding_text(hostile, TIME, RenderOptions(), named=True),
        finding_line(hostile, TIME, RenderOptions()),
        ends,
    ):
        assert "\x1b" not in text
        assert "\r" not in text
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    assert "\n" not in finding_line(hostile, TIME, RenderOptions())
