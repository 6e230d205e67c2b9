"""Many runs made of a few, for outputs that only look at what became of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.judging.outcome import ORDER, Outcome
from stabtree.loaders import load_run
from stabtree.tools.fleet.outputs.records import record
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tools.fleet.record import Record

NAMES = ("fp16-overflow", "nan-forward", "spike-minor", "healthy", "plateau")
HOSTILE = """</script><script>alert(1)</script><img src=x onerror='alert(1)'>"&|`\u2028\u202e\x1b[31m\n@all"""


@cache
def judged() -> tuple[Record, ...]:
    """A run of each verdict, worst first."""
    runs = {name: load_run(FIXTURES / "phase19" / name) for name in NAMES}
    found = [Outcome(name, Judging().diagnosed(run)) for name, run in runs.items()]
    found.append(Outcome("broken.csv", StabtreeError("no loss in it", where="broken.csv")))
    return tuple(sorted((record(one, one.name) for one in found), key=lambda one: ORDER.index(one.badge)))


def many(count: int, healthy: int) -> Iterator[Record]:
    """So many runs that are not healthy, the worst first, then so many that are; each its own name and onset."""
    calling = [one for one in judged() if one.badge != "ok"]
    rest = [one for one in judged() if one.badge == "ok"]
    for number in range(count):
        one = calling[number * len(calling) // count]
        onset = None if one.onset_step is None else one.onset_step + number
        yield replace(one, path=f"runs/sweep-{number % 3}/seed{number:05}.csv", onset_step=onset)
    for number in range(healthy):
        yield replace(rest[number % len(rest)], path=f"runs/good/seed{number:05}.csv")


def hostile() -> Record:
    """A run all of whose texts are markup, formulas and escape codes."""
    one = judged()[0]
    return replace(
        one, path=f"=cmd|{HOSTILE}", run=HOSTILE, title=HOSTILE, leaf=HOSTILE, first=HOSTILE, notes=(HOSTILE,)
    )
