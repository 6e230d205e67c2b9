"""The NaN monitor run over a log: what it would have done, on screen and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.measures.batches import Replay, monitor
from stabtree.report.json import to_dict
from stabtree.report.outputs import RenderOptions
from stabtree.report.screen import full
from stabtree.tools.live.monitor import NaNMonitor
from tests.conftest import FIXTURES, falling, make_run, series

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from stabtree.run import Run


def broken(start: int, rows: int = 400, end: int | None = None) -> NDArray[np.float64]:
    """A healthy loss that is NaN from one row on, up to another or to the end."""
    values = falling(rows)
    values[start:end] = np.nan
    return values


def replayed(run: Run, max_consecutive: int = 10) -> Replay:
    """The replay of a run that has something to replay."""
    found = monitor.func(run, max_consecutive=max_consecutive)
    assert isinstance(found, Replay)
    return found


def ranked(starts: dict[str, int | None]) -> Run:
    """A run of several ranks, each with the row at which its loss goes NaN."""
    losses = {rank: falling(400) if at is None else broken(at) for rank, at in starts.items()}
    ranks = {rank: {"loss": series("loss", values)} for rank, values in losses.items()}
    return make_run({"loss": np.mean(list(losses.values()), axis=0)}, ranks=ranks)


def shown(run: Run, width: int = 400) -> str:
    """The block on the screen, empty where there is none."""
    text = full(diagnose(run), RenderOptions(width=width))
    return text.partition("NaN monitor\n")[2].partition("\n\n")[0]


@pytest.mark.parametrize(
    ("leaf", "first", "total", "stop", "vain"),
    [
        ("nan-forward", 412, 30, 421, 20),
        ("nan-backward", 440, 30, 449, 20),
        ("nan-unlocated", 633, 30, 642, 20),
        ("fp16-overflow", 730, 60, 739, 50),
        ("nan-skipped", 240, 3, None, 0),
    ],
)
def test_the_fixtures_that_went_nan_are_stopped(leaf: str, first: int, total: int, stop: int | None, vain: int) -> None:
    """The tenth bad row stops the run; what came after it was in vain."""
    found = replayed(load_run(FIXTURES / "phase19" / leaf))
    assert (found.loss.first_step, found.loss.total, found.loss.stop_step) == (first, total, stop)
    assert found.steps_in_vain == vain
    assert found.loss.last_good_step == (first - 1 if stop else 799)


@pytest.mark.parametrize("folder", [FIXTURES / "phase19" / "healthy", FIXTURES / "phase19" / "normal-backoff"])
def test_a_finite_loss_has_no_replay(folder: Path) -> None:
    """No block and no object, also where a scaler skipped gradients that overflowed."""
    found = diagnose(load_run(folder))
    assert found.monitor is None
    assert to_dict(found)["monitor"] is None
    assert "NaN monitor" not in full(found)


@settings(max_examples=200)
@given(
    losses=st.lists(st.sampled_from([1.0, 2.0, np.nan, np.inf, -np.inf]), min_size=1, max_size=40),
    most=st.integers(1, 6),
)
def test_the_replay_does_what_the_monitor_does(losses: list[float], most: int) -> None:
    """Stopped at the same row, with the same last good loss, as a monitor in the loop."""
    watching, stop = NaNMonitor("skip", most), None
    for step, loss in enumerate(losses):
        watching.check_loss(loss, step)
        if watching.should_rollback:
            stop = step
            break
    found = monitor.func(make_run({"loss": losses}), max_consecutive=most)
    if not isinstance(found, Replay):
        assert watching.state.total == 0
        return
    assert found.loss.stop_step == stop
    assert (found.loss.last_good, found.loss.last_good_step) == (
        watching.state.last_good_loss,
        watching.state.last_good_step,
    )
    assert found.loss.total == int((~np.isfinite(losses)).sum())
    dead = stop is not None and not np.isfinite(losses[-1])
    assert found.steps_in_vain == (len(losses) - 1 - (stop or 0) if dead else 0)


def test_gradients_stop_the_run_earlier() -> None:
    """Where grad_norm breaks first, check_gradients would have saved more."""
    grad_norm = np.where(np.arange(400) < 250, 1.0, np.inf)
    run = make_run({"loss": broken(300), "grad_norm": grad_norm})
    found = replayed(run)
    assert found.grad_norm is not None
    assert (found.loss.stop_step, found.grad_norm.stop_step) == (309, 259)
    assert "check_gradients would have stopped the run at step 259" in shown(run)
    assert replayed(make_run({"loss": broken(300), "grad_norm": np.ones(400)})).grad_norm is None


def test_rows_are_not_steps() -> None:
    """A run logged every 50 steps is judged by rows, and the report says so."""
    run = make_run({"loss": broken(300)}, steps=np.arange(400) * 50)
    found = replayed(run)
    assert (found.every, found.loss.stop_step, found.steps_in_vain) == (50, 15450, 4500)
    assert "counted in rows, logged every 50 steps" in shown(run)
    assert "counted in rows" not in shown(make_run({"loss": broken(300)}))


def test_the_rank_that_broke_first_is_named() -> None:
    """The others are those whose log would say that it was another rank."""
    run = ranked({"0": 320, "1": 300, "2": None})
    found = replayed(run)
    assert (found.first_ranks, found.first_rank_step, found.other_ranks) == (("1",), 300, ("0", "2"))
    assert found.loss.stop_step == 309


def test_a_log_that_is_nan_throughout_and_one_that_ends_at_the_stop() -> None:
    """No good loss is said in words; a log that ends with the tenth bad row lost nothing."""
    assert "no row was good before" in shown(make_run({"loss": [np.nan] * 30}))
    run = make_run({"loss": broken(390)})
    assert replayed(run).steps_in_vain == 0
    assert "the log ends there" in shown(run)
    assert "1 row without a finite loss" in shown(make_run({"loss": broken(399)}))


def test_the_rows_that_stop_a_run_can_be_set() -> None:
    """`--set monitor.max_consecutive=3` stops at the third row; unset it is the default of the monitor itself."""
    run = make_run({"loss": broken(300)})
    usual, soon = diagnose(run).monitor, diagnose(run, overrides={"monitor": {"max_consecutive": 3}}).monitor
    assert usual
    assert soon
    assert usual.max_consecutive == NaNMonitor().max_consecutive
    assert soon.loss.stop_step == soon.loss.first_step + 2
