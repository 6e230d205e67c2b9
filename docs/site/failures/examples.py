"""A run for each failure that has a page: its fixture, else a made run of the tests, a text log, a configuration."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from msgspec.structs import replace

from docs.site.markup import known
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tools.check.judge import checked
from stabtree.tools.check.load import load_config
from stabtree.tree.load import load_trees
from stabtree.tree.model import NOTHING
from tests.leaves import NEAR, RUNS, errors
from tests.tools.check.preflights import FILES, GOOD, SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.diagnosis.result import Diagnosis, Incident, JudgedCause, Visit
    from stabtree.run import Run
    from stabtree.tree.model import Leaf
    from tests.leaves.make import Maker

ROOT = Path(__file__).resolve().parents[3]
APPLIED = {"nan-structural": ("Q1.4",)}  # it is what is left once the fixes of the others were applied
CONFIG = "run.yaml"
# Settings that no file spells as stabtree calls them.
SPELLED = {"epsilon": "adam_epsilon", "logs": "report_to"}
SCALED = {"static": 128}


class Kind(StrEnum):
    """Where a run comes from."""

    FIXTURE = "fixture"
    MADE = "made"
    LOG = "log"
    CONFIG = "config"


@dataclass(frozen=True, slots=True)
class Example:
    """A run that ends at a failure.

    Attributes:
        leaf: the failure.
        kind: where the run comes from.
        found: what is found in it.
        folder: where a fixture lies, from the top of the repository; else empty.
        command: what prints the same; empty where the run is in no file.
        settings: what its configuration says, where it is nothing else.
        told: what a person answered, by question.
    """

    leaf: Leaf
    kind: Kind
    found: Diagnosis
    folder: str = ""
    command: str = ""
    settings: Mapping[str, Any] | None = None
    told: Mapping[str, str] | None = None

    @property
    def finding(self) -> Incident | None:
        """What tells of the failure, also where it is told as a part of another one; None where all is well."""
        parts = (part for item in self.found.findings for part in item.parts)
        return next((part for part in parts if part.leaf.id == self.leaf.id), None)

    @property
    def main(self) -> Incident | None:
        """The finding under which a report tells it."""
        held = (item for item in self.found.findings if any(part.leaf.id == self.leaf.id for part in item.parts))
        return next(held, None)

    @property
    def visits(self) -> tuple[Visit, ...]:
        """The walk that ends there; the path where none does, as after fixes that did not help."""
        walks = (self.found.path, *self.found.further)
        return next((visits for visits in walks if after(visits[-1]) == self.leaf.id), self.found.path)

    def broken(self, series: str) -> bool:
        """Whether NaN or inf stands in a series."""
        held = self.found.run.series.get(series)
        return held is not None and not np.isfinite(held.values).all()

    @property
    def causes(self) -> Mapping[str, JudgedCause]:
        """What the run says of each cause, by id."""
        return {judged.cause.id: judged for judged in self.finding.causes} if self.finding else {}


@dataclass(frozen=True, slots=True)
class Near:
    """A run that lacks one thing of a failure.

    Attributes:
        bar: what it lacks.
        found: what is found in it instead.
        visit: the question that decided, with its answer; None where it was not asked.
    """

    bar: str
    found: Diagnosis
    visit: Visit | None

    @property
    def ends(self) -> str:
        """The id of what that answer leads to; empty where the question was not asked."""
        return after(self.visit) if self.visit else ""


def after(visit: Visit) -> str:
    """The id of what an answer leads to."""
    return visit.target


def failures() -> Iterator[Leaf]:
    """Every leaf that has a page, in the order of the trees."""
    return (leaf for leaf in known().leaves.values() if leaf.title != NOTHING)


@cache
def examples() -> Mapping[str, Example]:
    """The run of every failure, by its id."""
    folders = {path.parent.name: path.parent for path in sorted((ROOT / "fixtures").glob("*/*/manifest.json"))}
    return {leaf.id: _example(leaf, folders) for leaf in failures()}


def _example(leaf: Leaf, folders: Mapping[str, Path]) -> Example:
    if leaf.id in folders and leaf.id not in RUNS:
        return _fixture(leaf, folders[leaf.id])
    if leaf.id in RUNS:
        kind = Kind.LOG if leaf.id in errors.RUNS else Kind.MADE
        run, told = _made(RUNS[leaf.id])
        found = _diagnosed(replace(run, name="train" if kind is Kind.LOG else leaf.id), told)
        return Example(leaf, kind, found, told=told.get("answers", {}))
    return _configuration(leaf)


def _fixture(leaf: Leaf, folder: Path) -> Example:
    shown = folder.relative_to(ROOT).as_posix()
    applied = APPLIED.get(leaf.id, ())
    run = load_run(folder)
    found = diagnose(run, load_trees(run), applied=applied)
    options = "".join(f" --applied {id_}" for id_ in applied)
    return Example(leaf, Kind.FIXTURE, found, folder=shown, command=f"stabtree diagnose {shown}{options}")


def _made(maker: Maker) -> tuple[Run, dict[str, Any]]:
    made = maker()
    return made if isinstance(made, tuple) else (made, {})


def _diagnosed(run: Run, told: dict[str, Any]) -> Diagnosis:
    return diagnose(run, load_trees(run), **told)


def _configuration(leaf: Leaf) -> Example:
    """The first configuration of the tests that ends there, as it is read of a file."""
    settings = FILES.get(leaf.id) or _settings(leaf)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(CONFIG).write_text(as_yaml(settings), encoding="utf-8")
        found = checked(load_config(CONFIG))
    return Example(leaf, Kind.CONFIG, found, command=f"stabtree check {CONFIG}", settings=settings)


def _settings(leaf: Leaf) -> dict[str, Any]:
    """The settings of the good configuration with what ends at a leaf, as a file spells them."""
    sides = next(sides for name, sides in SIDES.items() if name.partition(" ")[0] == leaf.id)
    said = {SPELLED.get(key, key): value for key, value in {**GOOD, **sides.base, **sides.yes}.items()}
    return {key: SCALED.get(value, value) for key, value in said.items() if value is not None}


def as_yaml(settings: Mapping[str, Any]) -> str:
    """Settings as a file, a line each."""
    written: str = yaml.safe_dump(dict(settings), sort_keys=False, width=1000)
    return written


@cache
def near(leaf: str) -> tuple[Near, ...]:
    """The runs that lack one thing of a failure, by what they lack."""
    return tuple(_near(name, maker) for name, maker in NEAR.items() if name.partition(":")[0] == leaf)


def _near(name: str, maker: Maker) -> Near:
    leaf, _, bar = name.partition(": ")
    run, told = _made(maker)
    found = _diagnosed(run, told)
    leading = {question.id for question in found.tree.questions.values() if leaf in question.go.values()}
    visits = (visit for walk in (found.path, *found.further) for visit in walk)
    return Near(bar, found, next((visit for visit in visits if visit.question.id in leading), None))
