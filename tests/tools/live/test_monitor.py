"""The NaN monitor in a training loop: what it counts, logs and raises, alone and on several ranks."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest

import stabtree
from stabtree.common.errors import StabtreeError
from stabtree.tools.live.monitor import NaNMonitor, NonFiniteError

NAN, INF = math.nan, math.inf


class Tensor:
    """Like a tensor of one element: good for `float()` and little else."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value


def fed(losses: list[float], **options: Any) -> NaNMonitor:
    """A monitor that has seen these losses at steps 0, 1, 2, ..."""
    monitor = NaNMonitor(**options)
    for step, loss in enumerate(losses):
        monitor.check_loss(loss, step)
    return monitor


def seen(monitor: NaNMonitor) -> tuple[int, int, list[int], float | None, int | None]:
    """What a monitor has seen."""
    state = monitor.state
    return state.consecutive, state.total, state.nan_steps, state.last_good_loss, state.last_good_step


@pytest.mark.parametrize("bad", [NAN, -INF, Tensor(INF), np.array([NAN])])
@pytest.mark.parametrize("action", ["warn", "count"])
def test_a_bad_loss_is_false_and_a_good_one_true(action: Any, bad: Any) -> None:
    """The checks tell whether to take the update; the state tells what was seen."""
    monitor = NaNMonitor(action)
    assert monitor.check_loss(Tensor(2.5), 6)
    assert not monitor.check_loss(bad, 7)
    assert seen(monitor) == (1, 1, [7], 2.5, 6)
    assert not monitor.should_rollback


def test_a_good_step_ends_the_row_but_not_the_total() -> None:
    """Only bad steps in a row ask for a rollback."""
    monitor = fed([1.0, NAN, NAN, 0.9, INF], max_consecutive=3)
    assert seen(monitor) == (1, 3, [1, 2, 4], 0.9, 3)
    assert [fed([NAN] * count).should_rollback for count in (9, 10)] == [False, True]
    assert not monitor.should_rollback


def test_warn_logs_each_bad_step_and_skip_the_first_of_a_row(caplog: pytest.LogCaptureFixture) -> None:
    """Both say once, as an error, that it is time to stop, and from where to go on."""
    losses = [2.0, NAN, NAN, NAN, NAN, 1.5, NAN]
    fed(losses, max_consecutive=3)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3 + ["ERROR"] + ["WARNING"] * 2
    assert caplog.messages[0] == "step 1: the loss is nan; leave this update out (1 in a row)"
    assert caplog.messages[3] == (
        "step 3: 3 bad steps in a row: stop, and restart from a checkpoint from well before; "
        "the last good loss was 2, at step 0"
    )
    caplog.clear()
    fed(losses, action="skip", max_consecutive=3)
    told = [(record.levelno, message[:6]) for record, message in zip(caplog.records, caplog.messages, strict=True)]
    assert told == [(logging.WARNING, "step 1"), (logging.ERROR, "step 3"), (logging.WARNING, "step 6")]


def test_raise_stops_at_the_first_bad_step() -> None:
    """The error names the step, the value and the last good loss; the state is kept all the same."""
    monitor = fed([2.0, 1.75], action="raise")
    pattern = r"^step 2: the loss is inf; the last good loss was 1\.75, at step 1; go back"
    with pytest.raises(NonFiniteError, match=pattern) as caught:
        monitor.check_loss(INF, 2)
    assert monitor.state.nan_steps == [2]
    assert "checkpoint" in caught.value.hint
    with pytest.raises(stabtree.NonFiniteError, match="no step was good before"):
        NaNMonitor("raise").check_loss(NAN, 0)


@pytest.mark.parametrize("action", ["warn", "raise"])
def test_a_nan_on_one_rank_stops_all(action: Any, caplog: pytest.LogCaptureFixture) -> None:
    """With `sync`, a rank that is well gives the same answer as the one that is not, and says whose NaN it is."""
    told: list[bool] = []
    monitor = NaNMonitor(action, max_consecutive=1, sync=lambda bad: told.append(bad) or True)  # type: ignore[func-returns-value]
    if action == "raise":
        with pytest.raises(NonFiniteError, match="another rank"):
            monitor.check_loss(2.5, 7)
    else:
        assert not monitor.check_loss(2.5, 7)
        assert caplog.messages[0].startswith("step 7: not finite on another rank; the loss is finite here, 2.5;")
    assert told == [False]
    assert monitor.should_rollback
    assert monitor.state.last_good_loss is None


def test_gradients_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """The first gradient that is not finite is named, the others are counted."""
    monitor = NaNMonitor()
    assert monitor.check_gradients({"a": 1.0, "b": Tensor(3.0)}, 0)
    assert not monitor.check_gradients({"a": 1.0, "b": Tensor(INF), "c": np.array([[NAN]]), "d": 2.0}, 1)
    assert "the gradient of b is inf, and 1 more" in caplog.text
    assert (monitor.state.total, monitor.state.last_good_step) == (1, None)


@pytest.mark.parametrize("loss_first", [True, False])
def test_a_step_counts_once(loss_first: bool) -> None:
    """A step is bad when one of its checks fails, in either order, and is one step however many fail."""
    monitor = NaNMonitor(max_consecutive=3)
    monitor.check_loss(2.0, 0)
    for step in range(1, 4):
        if loss_first:
            assert monitor.check_loss(1.0, step)
        assert not monitor.check_gradients({"w": NAN}, step)
        if not loss_first:
            assert monitor.check_loss(1.0, step)
        assert monitor.state.consecutive == step
        assert (monitor.state.last_good_loss, monitor.state.last_good_step) == (2.0, 0)
    assert monitor.should_rollback
    assert not monitor.check_loss(NAN, 4)
    assert not monitor.check_gradients({"w": NAN}, 4)
    assert monitor.state.total == 4
    monitor.check_loss(0.5, 5)
    monitor.check_gradients({"w": 1.0}, 5)
    assert seen(monitor) == (0, 4, [1, 2, 3, 4], 0.5, 5)


@pytest.mark.parametrize(
    ("options", "text"), [({"action": "wran"}, "'wran' is not an action"), ({"max_consecutive": 0}, "below 1")]
)
def test_wrong_options_are_refused(options: dict[str, Any], text: str) -> None:
    """A misspelt action would otherwise be a monitor that does nothing."""
    with pytest.raises(StabtreeError, match=text) as caught:
        NaNMonitor(**options)
    assert caught.value.hint
