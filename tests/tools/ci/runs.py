"""Outcomes to tell of."""

from __future__ import annotations

from functools import cache

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.judging.verdict import Outcome
from stabtree.loaders import load_runs
from tests.conftest import FIXTURES, make_run

UNREADABLE = Outcome("runs/b.csv", StabtreeError("there is nothing in it", where="runs/b.csv", hint="log something"))


@cache
def outcome(name: str, *, ignore: tuple[str, ...] = ()) -> Outcome:
    """What becomes of a fixture."""
    (loaded,) = load_runs(str(FIXTURES / "phase19" / name))
    return Judging(ignore=ignore).outcome(loaded)


def short() -> Outcome:
    """A run that is too short to be judged."""
    return Outcome("runs/short.csv", Judging().diagnosed(make_run({"loss": [2.0, 1.9]})))
