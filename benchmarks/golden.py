"""The golden records: what `--json` says of every run that is at hand, as a hash and a short verdict.

    python -m benchmarks.golden [--shared DIR] [--record] [--group GROUP ...] [--every N] [--keep DIR]

A record is a line a run: its name, the hash of its JSON, its verdict with each finding and the step where it begins.
Without `--record` the runs are judged again, every difference from the records is printed, and the exit code is 1 where
there is one. A group whose files are missing (those outside the repository) is skipped with a note.
`--keep DIR` writes each JSON into a folder, so that two versions can be compared with `diff -r`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import json
import os
import re
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import stabtree
from stabtree.loaders import load_runs
from stabtree.tree.load import load_trees
from tests import corpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"
SHARED = ROOT.parent / "shared"
HASH_LENGTH = 16
TEMPORARY = re.compile(re.escape(tempfile.gettempdir()) + r"/[^/\"]+")


class Unit(NamedTuple):
    """One run to judge: the folder to stand in, and the path from there, which is its name too.

    Without a folder it is a case of `tests.corpus`.
    """

    folder: Path | None
    path: str


class Golden(NamedTuple):
    """What is recorded of one unit: the hash of all that `--json` says, and the verdict of each run in it."""

    hash: str
    verdict: str


def units(group: str, shared: Path) -> list[Unit]:
    """List the paths of a group, sorted; empty where its files are missing."""
    if group == "corpus":  # made runs have no file
        return [Unit(None, case) for case in sorted(corpus.cases()) if not case.startswith("fixtures/")]
    if group == "fixtures":
        folder = ROOT / "fixtures"
        return [Unit(folder, path) for path in _parents(folder, "*/*/manifest.json")]
    if group == "trainers":
        folder = shared / "trainers"
        truth = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("truth/*.json"))]
        paths = {target["path"] for run in truth for target in run["targets"]}
    else:
        folder = shared / group
        paths = set(_indexed(folder / "INDEX.csv"))
    return [Unit(folder, path) for path in sorted(paths)]


def _parents(folder: Path, pattern: str) -> list[str]:
    return sorted(path.parent.relative_to(folder).as_posix() for path in folder.glob(pattern))


def _indexed(index: Path) -> Iterator[str]:
    if index.exists():
        with index.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                yield row["file"]


def judge(unit: Unit) -> list[dict[str, Any]]:
    """Return what `--json` says of each run that a path holds, or the error of what can't be read."""
    if unit.folder is None:
        return [_data(unit.path, corpus.found(unit.path))]
    with contextlib.chdir(unit.folder):
        try:
            loaded = load_runs(unit.path)
            return [_judged(item.name, item.run) for item in loaded]
        except stabtree.StabtreeError as error:
            return [_refused(unit.path, error)]


def _judged(name: str, run: stabtree.Run | stabtree.StabtreeError) -> dict[str, Any]:
    if isinstance(run, stabtree.StabtreeError):
        return _refused(name, run)
    return _data(name, stabtree.diagnose(run, load_trees(run)))


def _data(name: str, diagnosis: stabtree.Diagnosis) -> dict[str, Any]:
    data = diagnosis.to_dict()
    del data["tool"], data["rules"]  # the version, and a hash of the trees' texts, are no verdict
    return {"name": name, **data}


def _refused(name: str, error: stabtree.StabtreeError) -> dict[str, Any]:
    return {"name": name, "verdict": "refused", "error": str(error)}


def verdict(data: dict[str, Any]) -> str:
    """Return the verdict of a run with its findings: `critical diverged@1200 spike@40`."""
    findings = [f"{finding['id']}@{finding['onset_step']}" for finding in data.get("findings", ())]
    return " ".join([data["verdict"], *findings])


def record(unit: Unit, keep: Path | None = None) -> Golden:
    """Judge a path and return its record."""
    found = judge(unit)
    text = json.dumps(found, sort_keys=True, indent=1, default=str)
    text = TEMPORARY.sub("TEMPORARY", text)  # made runs of logs lie in folders of random names
    if keep:
        file = keep / f"{unit.path.replace('/', '__')}.json"
        file.write_text(text, encoding="utf-8")
    short = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    return Golden(short, "; ".join(map(verdict, found)))


def records(these: Iterable[Unit], keep: Path | None = None) -> dict[str, Golden]:
    """Judge paths on all processors and return their records by name."""
    listed = list(these)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(record, listed, [keep] * len(listed), chunksize=4)
        return dict(zip((unit.path for unit in listed), found, strict=True))


def read(group: str, folder: Path = RECORDS) -> dict[str, Golden]:
    """Return the records of a group, by the path of each run.

    Raises:
        OSError: where the group was never recorded.
    """
    lines = (folder / f"{group}.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return {name: Golden(*rest) for name, *rest in rows}


def write(group: str, found: dict[str, Golden], folder: Path = RECORDS) -> None:
    """Write the records of a group."""
    folder.mkdir(exist_ok=True)
    lines = ["\t".join((name, *golden)) for name, golden in sorted(found.items())]
    (folder / f"{group}.tsv").write_text("\n".join([*lines, ""]), encoding="utf-8")


def differences(old: dict[str, Golden], new: dict[str, Golden]) -> Iterator[str]:
    """Yield a line for each run whose record differs; one with the same verdict says something in other words."""
    for name, golden in new.items():
        if name not in old:
            yield f"{name}: not recorded"
        elif golden.verdict != old[name].verdict:
            yield f"{name}: {old[name].verdict} -> {golden.verdict}"
        elif golden.hash != old[name].hash:
            yield f"{name}: other words or numbers, same verdict ({golden.verdict})"


GROUPS = ("fixtures", "corpus", "trainers", "logs", "wild")


def main() -> int:
    """Compare with the records, or write them."""
    parser = argparse.ArgumentParser(description="Golden records of all runs that are at hand.")
    parser.add_argument("--shared", type=Path, default=SHARED, help="the folder of wild, trainers and logs")
    parser.add_argument("--record", action="store_true", help="write the records instead of comparing with them")
    parser.add_argument("--group", action="append", choices=GROUPS, help="only this group")
    parser.add_argument("--every", type=int, default=1, help="only every Nth run, for a quick look")
    parser.add_argument("--keep", type=Path, help="a folder to write each JSON to")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    changed = 0
    for group in asked.group or GROUPS:
        these = units(group, asked.shared)[:: asked.every]
        if not these:
            print(f"{group}: skipped, its files are not here")
            continue
        if asked.keep:
            (asked.keep / group).mkdir(parents=True, exist_ok=True)
        found = records(these, asked.keep / group if asked.keep else None)
        if asked.record:
            write(group, found)
            print(f"{group}: {len(found):,} recorded")
            continue
        lines = [*differences(read(group), found)]
        changed += len(lines)
        print(f"{group}: {len(found):,} judged, {len(lines):,} changed", *lines, sep="\n  ")
    return 1 if changed else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_CACHE_HOME"] = home  # no cache of ours may answer instead
        raise SystemExit(main())
