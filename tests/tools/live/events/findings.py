"""Runs in which some leaves are found, as a judgement of a growing log would find them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from stabtree.diagnosis.walk import diagnose
from stabtree.judging.outcome import Outcome
from stabtree.tools.live.news import Announcer
from stabtree.tree.load import load_preflight, load_trees
from tests.conftest import make_run

if TYPE_CHECKING:
    from stabtree.diagnosis.judged import JudgedCause
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tree.model import Leaf

NAN, BAD, SPIKE, RISE, PASSED, FLAT = (
    "nan-forward",
    "reward-collapse",
    "spike-open",
    "slow-rise",
    "spike-unexplained",
    "flat-from-start",
)


@cache
def template() -> Diagnosis:
    """A diagnosis with one finding, to be told as any other."""
    return diagnose(make_run({"loss": [*np.linspace(3, 2, 40), *[np.nan] * 10]}), load_trees(None))


def leaf(name: str) -> Leaf:
    """A leaf of the shipped trees."""
    return {**load_trees(None).leaves, **load_preflight().leaves}[name]


def found(rows: int, *names: str, onset: int = 0, causes: tuple[JudgedCause, ...] = ()) -> list[Outcome]:
    """A run of so many rows in which these leaves are found."""
    base = template().findings[0]
    bare = replace(base, onset_step=onset, evidence=(), seen_as=(), causes=causes)
    findings = [replace(bare, leaf=leaf(name)) for name in names]
    run = make_run({"loss": np.linspace(3, 2, rows)})
    return [Outcome("run", replace(template(), run=run, findings=tuple(findings)))]


def told(announcer: Announcer, rows: int, *names: str, onset: int = 0) -> list[tuple[str, bool]]:
    """What is told after a judgement of so many rows: each leaf, and whether it is told again."""
    return [(item.finding.leaf.id, item.again) for item in announcer.judged(found(rows, *names, onset=onset))]


def watched() -> Announcer:
    """An announcer that has judged a healthy log of 1,000 rows."""
    announcer = Announcer()
    assert not announcer.judged(found(1000))
    return announcer


def changes(announcer: Announcer, rows: int, *names: str, onset: int = 0, **how: float) -> list[tuple[int, str, str]]:
    """What is reported after a judgement of so many rows: the number of each event, its change, and its leaf."""
    news = announcer.judged(found(rows, *names, onset=onset), **how)  # type: ignore[arg-type]
    return [(item.incident, str(item.change), item.finding.leaf.id) for item in news]
