"""Where the epochs of a log of steps end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.loaders import load_run

if TYPE_CHECKING:
    from pathlib import Path


def ends(tmp_path: Path, epochs: list[float], steps: range) -> dict[int, int]:
    """The ends of epochs in a log with so many rows."""
    rows = [f"{step},{epoch},{3 - step / 1000}" for step, epoch in zip(steps, epochs, strict=True)]
    file = tmp_path / "metrics.csv"
    file.write_text("step,epoch,loss\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return dict(load_run(file).epoch_ends)


def test_an_epoch_ends_at_its_last_row(tmp_path: Path) -> None:
    """The one that the log ends in may go on, and has no end."""
    assert ends(tmp_path, [0, 0, 0, 1, 1, 1, 2, 2], range(10, 90, 10)) == {30: 0, 60: 1}


def test_shares_of_an_epoch_count_what_was_done(tmp_path: Path) -> None:
    """The first epoch is over at 1.0."""
    assert ends(tmp_path, [0.25, 0.5, 0.75, 1.0, 1.25, 1.5], range(10, 70, 10)) == {40: 1}
