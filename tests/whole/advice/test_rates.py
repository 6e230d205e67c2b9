"""Every rate that is advised is usual for that kind of run, or nearer to what is usual than the one it replaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from stabtree.context.find import context_of
from tests import corpus
from tests.whole.advice import words
from tests.whole.advice.cells import cells
from tests.whole.advice.made import diagnosed
from tests.whole.advice.outputs import Outputs
from tests.whole.advice.test_properties import KNOWN

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.diagnosis.result import Diagnosis

LARGEST = 1000.0  # times: no single change of a rate is larger
SLACK = 1.01  # a rate is printed with three digits


@dataclass(frozen=True, slots=True)
class Usual:
    """The rates that are usual for a kind of run."""

    low: float
    high: float
    words: tuple[tuple[str, str], ...]

    def fits(self, context: Context) -> bool:
        """Return whether a run is of this kind."""
        return all(word in (getattr(context, part).value or "").lower() for part, word in self.words)

    def beside(self, rate: float) -> float:
        """How far a rate lies beside them: the logarithm of the factor, 0 within them."""
        return max(math.log(self.low / rate), math.log(rate / self.high), 0.0)


@cache
def table() -> tuple[Usual, ...]:
    """The table of `rates.yaml`."""
    rows: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("rates.yaml").read_text(encoding="utf-8"))
    return tuple(_usual(row) for row in rows)


def _usual(row: dict[str, Any]) -> Usual:
    kind = tuple((key, str(word).lower()) for key, word in row.items() if key not in ("low", "high", "source"))
    return Usual(float(row["low"]), float(row["high"]), kind)


def unusual(diagnosis: Diagnosis) -> list[str]:
    """What is advised of the rate and would make it worse, a line each."""
    context, found = context_of(diagnosis.run), []
    usual = next(item for item in table() if item.fits(context))
    for text in Outputs(diagnosis).advised:
        for now, wanted in words.changes(text):
            worse = usual.beside(wanted) > usual.beside(now) + math.log(SLACK)
            if worse or not 1 / LARGEST <= wanted / now <= LARGEST:
                found.append(f"{context.task.value} {context.phase.value}: {now:g} to {wanted:g}: {text[:80]}")
    return found


@pytest.mark.parametrize("cell", cells(), ids=str)
def test_a_made_run_is_advised_a_usual_rate(cell: object) -> None:
    """The runs of the matrix."""
    kind, _, failure = str(cell).partition("/")
    assert not unusual(diagnosed(kind, failure))


@pytest.mark.parametrize("case", KNOWN)
def test_a_known_run_is_advised_a_usual_rate(case: str) -> None:
    """The fixtures, the labelled runs and the made ones of the leaves."""
    assert not unusual(corpus.found(case))


def test_the_table_has_a_row_for_every_run() -> None:
    """The last row fits all, and no row is empty."""
    assert not table()[-1].words
    assert all(item.low < item.high for item in table())
