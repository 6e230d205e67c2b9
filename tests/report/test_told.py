"""What a watch shows: the status line at every width, and a finding as it is told."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.judging.outcome import Outcome
from stabtree.loaders import load_run
from stabtree.report.options import RenderOptions
from stabtree.tools.live.news import News
from stabtree.tools.live.session import RunStatus
from stabtree.tools.live.watch.messages import closing, duration, finding_line, finding_text, status
from tests.conftest import FIXTURES

TIME = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
EVIL = "run\x1b[31m\n::error::x\r$(id)"


@pytest.fixture(scope="module")
def found() -> Outcome:
    """A run that diverged after a checkpoint."""
    return Outcome("run.csv", Judging().diagnosed(load_run(FIXTURES / "phase19" / "spike-persistent")))


@pytest.fixture(scope="module")
def pulse(found: Outcome) -> RunStatus:
    """How a watch over it goes."""
    return RunStatus(
        there=True,
        step=1240,
        loss=2.31449,
        losses=(9.0, 4.0, 3.0, 2.5, 2.4, 2.35, 2.32, 2.31),
        outcomes=(found,),
        rate=12.34,
        quiet_seconds=3.2,
    )


def news(outcome: Outcome, run: str = "run.csv", *, again: bool = False) -> News:
    """The worst that was found, as it is told."""
    assert not isinstance(outcome.found, StabtreeError)
    return News(run, outcome.found.findings[0], outcome.found, 40, 37, again)


def test_the_line_says_where_the_run_is(pulse: RunStatus) -> None:
    """With room for it all the line holds step, loss with its shape, sections, rate and the time since the last row."""
    line = status(pulse, "run.csv", RenderOptions(width=119))
    assert line == "step 1,240  loss 2.314  █▃▂▁▁▁▁▁  §1 ✓ §2 ✗ §3 ✓ §4 ✗  12.3 rows/s  last row 3s ago"


@pytest.mark.parametrize("width", [*range(20, 120, 7), 59, 79])
@pytest.mark.parametrize("ascii_", [False, True])
def test_the_line_fits(pulse: RunStatus, width: int, ascii_: bool) -> None:
    """At any width the line is one line that fits, and never without the loss."""
    line = status(pulse, "run.csv", RenderOptions(width=width, ascii=ascii_))
    assert len(line) <= width
    assert "\n" not in line
    assert "loss 2.314" in line
    assert line.isascii() or not ascii_
    assert ("x" if ascii_ else "✗") in line or width < 40


def test_without_colour_nothing_but_text(pulse: RunStatus) -> None:
    """A line without colour holds no escape sequence, one with colour does."""
    assert "\x1b" not in status(pulse, "run.csv", RenderOptions(width=79))
    assert "\x1b[" in status(pulse, "run.csv", RenderOptions(width=79, color=True))


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_says_so(loss: float) -> None:
    """A NaN is told in words, and its shape is drawn as crosses."""
    line = status(RunStatus(True, 5, loss, (1.0, None, None, None)), "a", RenderOptions(width=79))
    assert "loss not finite" in line
    assert "×" in line


def test_a_log_that_is_not_there_is_waited_for() -> None:
    """The line says what is waited for, and since when, whatever its name holds."""
    line = status(RunStatus(quiet_seconds=75), EVIL, RenderOptions(width=79))
    assert line.startswith("waiting for run")
    assert line.endswith("1m 15s")
    assert line.isprintable()


@pytest.mark.parametrize("width", [30, 40, 60, 80, 119])
def test_several_runs_are_counted(found: Outcome, pulse: RunStatus, width: int) -> None:
    """Of several runs the line says how many are how; a step or a loss stands there with the name of its run only."""
    unread = Outcome("b.csv", StabtreeError("is empty"))
    of_several = replace(pulse, outcomes=(unread, found._replace(name="runs/7/" * 9 + EVIL), found))
    line = status(of_several, "a", RenderOptions(width=width))
    assert line.startswith("3 runs: 2 critical, 1 not read")
    assert "loss 2.314" in line or width < 80
    assert ("…" in line and "$(id): step 1,240  loss" in line) or "loss" not in line
    assert line.isprintable()


def test_the_last_lines_are_wrapped_unless_each_is_for_a_program(found: Outcome) -> None:
    """Beside why the watch ended a long verdict takes two lines of a narrow terminal; alone it is one."""
    look = RenderOptions(width=60, exit_code=1)
    outcomes = [found._replace(name="runs/" * 10 + "run.csv")] * 2
    assert max(map(len, closing(outcomes, "stopped", look).splitlines())) <= 60
    assert len(closing(outcomes, "", look).splitlines()) == 2


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


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.9, "59s"), (60, "1m 0s"), (3725, "1h 2m"), (90_000, "1d 1h"), (-1, "0s")]
)
def test_durations(seconds: float, text: str) -> None:
    """A time is told in its two largest units."""
    assert duration(seconds) == text
