"""Scan folders: find runs, have them examined in parallel, keep what was found, show it worst first."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.dataclass import dataclass
from stabtree.judging.judge import Judging
from stabtree.tools.fleet import read
from stabtree.tools.fleet.engine import usable_cores
from stabtree.tools.fleet.examine import TIMEOUT_SECONDS, Examiner, fault
from stabtree.tools.fleet.loop import Loop, Progress
from stabtree.tools.fleet.options import check_judging, check_paths, check_reading, check_work
from stabtree.tools.fleet.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from stabtree.loaders.paths.stretch import Ends
    from stabtree.tools.fleet.record import Record

GROUP = 3  # runs that stand for a group


@dataclass(slots=True)
class Fleet:
    """The runs that a scan found, in a file: they are read one by one, however many there are.

    Attributes:
        store: where they are.
        faults: how many of them failed by faults of stabtree's own.
        stopped: whether the scan was interrupted.
        notes: what is to be said about the scan itself.
    """

    store: Store
    faults: int = 0
    stopped: bool = False
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Record]:
        """Return the runs, worst first."""
        return self.records()

    def __len__(self) -> int:
        return sum(self.counts().values())

    def _repr_html_(self) -> str:
        """Return the page of `scan --output html` in a frame of its own, as a notebook shows it."""
        from stabtree.report.html.frame import framed
        from stabtree.report.outputs import HTML, RECORDS, output

        return framed("".join(output(RECORDS, HTML)(self.records())))

    def records(self, *, worst_first: bool = True) -> Iterator[Record]:
        """Return the runs, worst first, those of one leaf together; else by their paths."""
        return self.store.records(worst_first=worst_first)

    def counts(self) -> dict[str, int]:
        """Return how many runs there are of each badge, worst first."""
        return self.store.counts()

    def verdicts(self, *, accept_partial: bool = False) -> list[str]:
        """Return the verdicts that there are, for the exit code."""
        verdicts = self.store.verdicts()
        if accept_partial:
            return ["ok" if partial else verdict for verdict, partial in verdicts]
        return [verdict for verdict, _ in verdicts]

    def groups(self, by: str = "leaf", most: int = GROUP) -> Iterator[tuple[str, str, int, list[Record]]]:
        """Groups of runs as (badge, leaf or folder, how many, the first of them), the worst group first.

        Args:
            by: `leaf`, `folder` or `verdict`.
            most: how many runs of a group are given.
        """
        return self.store.groups(by, most)

    def to_frame(self) -> pd.DataFrame:
        """Return a row a run as a pandas DataFrame, worst first."""
        from stabtree.tools.fleet.outputs.frame import frame

        return frame(self.records())

    def close(self) -> None:
        """Let go of the file."""
        self.store.close()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def scan(
    *paths: str | Path,
    judging: Judging | None = None,
    ends: Ends | None = None,
    jobs: int | None = None,
    engine: str = "processes",
    address: str = "",
    timeout: float | None = None,
    cache: str | Path | None = None,
    tell: Callable[[Progress], None] | None = None,
    **how: Any,
) -> Fleet:
    """Find and judge every run below folders.

    >>> fleet = stabtree.scan("runs")  # doctest: +SKIP
    >>> [(run.path, run.verdict, run.leaf) for run in fleet]  # doctest: +SKIP

    Args:
        paths: folders, files, patterns.
        judging: how runs are judged; as `diagnose` does where not given.
        ends: the first and the last step that are judged.
        jobs: processes; as many as there are cores where not given.
        engine: what does the work: `processes`, `serial`, or what `stabtree.tools.fleet.engine.ENGINES` names besides.
        address: of what is running already, where the engine is of that kind.
        timeout: seconds that one log, or one folder of a run, may take; 120 where not given. Workers of a cluster
            can't be stopped so.
        cache: a file that keeps what was found, so that the next scan need not look again; none where not given.
        tell: called with the progress, now and then.
        how: how logs are read: options of `load_run`.

    Returns:
        The runs. A log that can't be read, or takes too long, is one of them, with its reason.

    Raises:
        StabtreeError: where an argument is wrong.
    """
    check_paths(paths)
    check_work(engine=engine, address=address, jobs=jobs, timeout=timeout, cache=cache)
    check_reading(how)
    check_judging(judging, ends)
    units = read.units([str(path) for path in paths])
    roots = tuple(os.path.realpath(unit.folder) for unit in units if not unit.files)
    examiner = Examiner(judging or Judging(), how, roots, ends, timeout or TIMEOUT_SECONDS)
    store = Store(None if cache is None else Path(cache))
    try:
        loop = Loop(examiner, store, rules_of(examiner), jobs or usable_cores(), tell)
        loop.waiting.extend(units)
        loop.run(engine, address)
    except BaseException:
        store.close()
        raise
    return Fleet(store, loop.faults, loop.stopped, tuple(store.notes))


def rules_of(examiner: Examiner) -> str:
    """Return a hash of all that decides what is found in a log: options, settings, trees, version."""
    digest = hashlib.sha256(__version__.encode())
    judging = examiner.judging
    said = {
        "how": sorted((key, str(value)) for key, value in examiner.how.items() if value is not None and value != {}),
        "judging": repr(replace(judging, answers=dict(judging.answers))),
        "ends": examiner.ends,
    }
    digest.update(repr(said).encode("utf-8", "surrogateescape"))
    for file in _rule_files(judging):
        try:
            digest.update(file.read_bytes())
        except OSError as error:
            digest.update(fault(error).problem.encode())
    return digest.hexdigest()


def _rule_files(judging: Judging) -> list[Path]:
    from stabtree.tree.shipped import shipped

    files = list(shipped().values())
    for rule in filter(None, judging.rules):
        path = Path(rule)
        if path.is_dir():
            files += sorted(path.glob("*.y*ml"))
        else:
            files.append(path)
    return files
