"""Load the labelled logs that limits are fitted to, once, and keep them in a folder of pickles."""

from __future__ import annotations

import csv
import json
import pickle
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import stabtree
from faultbench.scoring import CALM, DONE, NO_RATE
from stabtree.loaders import load_runs
from tests.whole.test_false_alarms import healthy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.run import Run

WORKERS = 2
FOLDS = 5
HEALTHY = "healthy"
WILD, TRAINERS, FAULTBENCH, SIMULATED = "wild", "trainers", "faultbench", "simulated"
SIMULATED_RUNS = 400
SHORT, LONG = (5, 100), (100, 5000)
"""Rows of simulated runs: half of them are short."""


@dataclass(frozen=True, slots=True)
class Log:
    """A labelled log.

    Attributes:
        source: the collection that it is from.
        name: its path or id there.
        group: what it is related to: logs of one group are held out together.
        label: `healthy`, a kind of failure, or a word of `NO_RATE`.
        kinds: what its failure may be called, as `benchmarks.kinds` spells it.
        leaves: the same in the words of faultbench.
        onset: the step at which the failure begins, if anybody knows.
        weight: its share in its group, so that a repository counts once.
        runs: the runs in it; none where it can't be read.
    """

    source: str
    name: str
    group: str
    label: str
    kinds: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    onset: int | None = None
    weight: float = 1.0
    runs: tuple[Run, ...] = ()

    @property
    def counts(self) -> bool:
        """Return whether its label is in the rates."""
        return self.label not in NO_RATE

    @property
    def failed(self) -> bool:
        """Return whether it is a failure."""
        return self.counts and self.label != HEALTHY

    @property
    def fold(self) -> int:
        """Return the fold in which it is held out."""
        return zlib.crc32(f"{self.source} {self.group}".encode()) % FOLDS


def logs_of(shared: Path, cache: Path | None) -> list[Log]:
    """Return all labelled logs below a folder, and the simulated runs, from the cache where it holds them."""
    found = []
    for source, index in ((WILD, _wild), (TRAINERS, _trainers), (FAULTBENCH, _faultbench)):
        if (shared / source).is_dir():
            found += _cached(source, index(shared / source), cache)
    return _weighted(found) + _simulated()


def _cached(source: str, index: Iterator[tuple[Log, Path]], cache: Path | None) -> list[Log]:
    held = cache / f"{source}.pkl" if cache else None
    if held and held.is_file():
        found: list[Log] = pickle.loads(held.read_bytes())  # noqa: S301 - it was written here
        return found
    with ProcessPoolExecutor(WORKERS) as pool:
        found = list(pool.map(_read, index, chunksize=8))
    if held:
        held.parent.mkdir(parents=True, exist_ok=True)
        held.write_bytes(pickle.dumps(found))
    return found


def _read(item: tuple[Log, Path]) -> Log:
    log, path = item
    try:
        loaded = [item.run for item in load_runs(path)]
    except stabtree.StabtreeError:
        return log
    return replace(log, runs=tuple(run for run in loaded if not isinstance(run, stabtree.StabtreeError)))


def _wild(folder: Path) -> Iterator[tuple[Log, Path]]:
    with (folder / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            label, onset = row["label"], row["onset"].strip()
            kinds = () if label == HEALTHY else (label,)
            step = int(onset) if onset.isdigit() else None
            yield Log(WILD, row["file"], row["repo"], label, kinds, onset=step), folder / row["file"]


def _trainers(folder: Path) -> Iterator[tuple[Log, Path]]:
    for id_, truth in _truths(folder):
        label = "unclear"
        if truth["healthy"]:
            label = HEALTHY
        elif truth["visible"] == "yes":
            label = truth["fault"]
        group = f"{truth['family']} {truth['fault']}"
        log = Log(TRAINERS, id_, group, label, tuple(truth["kinds"]), onset=truth.get("fault_step"))
        yield log, folder / truth["targets"][0]["path"]


def _faultbench(folder: Path) -> Iterator[tuple[Log, Path]]:
    for id_, truth in _truths(folder / "dev"):
        label = truth["fault"]
        if label in CALM:
            label = HEALTHY
        elif label == DONE:
            label = "unclear"
        leaves = tuple(truth["acceptable_leaves"])
        group = f"{truth['family']} {truth['fault']}"
        yield Log(FAULTBENCH, id_, group, label, (), leaves, truth["onset_step"]), folder / "dev" / "runs" / id_


def _truths(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted((folder / "truth").glob("*.json")):
        yield file.stem, json.loads(file.read_text(encoding="utf-8"))


def _weighted(logs: list[Log]) -> list[Log]:
    """Return logs of which each group counts once, whatever the number of its logs."""
    sizes: dict[tuple[str, str], int] = {}
    for log in logs:
        if log.counts:
            sizes[log.source, log.group] = sizes.get((log.source, log.group), 0) + 1
    return [replace(log, weight=1 / sizes.get((log.source, log.group), 1)) for log in logs]


def _simulated() -> list[Log]:
    with ProcessPoolExecutor(WORKERS) as pool:
        runs = pool.map(partial(_made), range(SIMULATED_RUNS), chunksize=50)
    return [Log(SIMULATED, f"{seed}", "", HEALTHY, runs=(run,)) for seed, run in enumerate(runs)]


def _made(seed: int) -> Run:
    return healthy(seed, *(SHORT if seed % 2 else LONG))
