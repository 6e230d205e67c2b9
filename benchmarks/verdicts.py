"""What each yardstick run is told, recorded for each release, and what a release tells otherwise than the one before.

    python -m benchmarks.verdicts [--shared DIR] [--record VERSION]

Prints what changed against the last record as Markdown for the release's notes; with `--record` it writes the record of
a version. A record holds verdicts and leaves by ids alone. Runs that are not in the repository are left out where they
are not here: a group that one of two records lacks is not compared, and told so.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.wild import judge
from tests import corpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stabtree.diagnosis.result import Diagnosis

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "verdicts"
SHARED = ROOT.parent / "shared"
NONE = "-"  # instead of a leaf, where nothing was found
MAX_NAMED = 6  # runs that are named of those that changed alike
IN_REPOSITORY = ("fixtures", "leaves", "labelled")


@dataclass(frozen=True, slots=True)
class Record:
    """What the runs of each group are told by one version.

    Attributes:
        version: the version.
        groups: by group and run, the verdict and the leaf that it rests on: `critical fp16-overflow`, `ok -`.
    """

    version: str
    groups: Mapping[str, Mapping[str, str]]


def taken(version: str, shared: Path = SHARED) -> Record:
    """What this code says of every yardstick run that is here."""
    groups: dict[str, dict[str, str]] = {name: {} for name in IN_REPOSITORY}
    for case in corpus.cases():
        group, _, run = case.partition("/")
        if group in groups and not run.endswith(" by the letter"):
            groups[group][run] = _said(corpus.found(case))
    for name, paths in (("trainers", _trainers(shared / "trainers")), ("wild", _wild(shared / "wild"))):
        found = {run: _judged(path) for run, path in paths}
        if found:
            groups[name] = found
    return Record(version, groups)


def _said(diagnosis: Diagnosis) -> str:
    leaf = diagnosis.findings[0].leaf.id if diagnosis.findings else NONE
    return f"{diagnosis.verdict} {leaf}"


def _judged(path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict, alarms, _ = judge(path)
    return f"{verdict} {alarms[0][0] if alarms else NONE}"


def _trainers(folder: Path) -> Iterator[tuple[str, Path]]:
    """The logs of real trainers, by run and log."""
    for file in sorted((folder / "truth").glob("*.json")):
        truth = json.loads(file.read_text(encoding="utf-8"))
        for target in truth["targets"]:
            yield f"{truth['id']} {target['name']}", folder / target["path"]


def _wild(folder: Path) -> Iterator[tuple[str, Path]]:
    """Public logs; an id is made of repository and path, so that a record names neither."""
    index = folder / "INDEX.csv"
    for row in csv.DictReader(index.read_text(encoding="utf-8").splitlines()) if index.is_file() else ():
        if row["label"] != "not-a-log":
            yield hashlib.sha256(f"{row['repo']}:{row['path']}".encode()).hexdigest()[:10], folder / row["file"]


# ------------------------------------------------------------------ records as files
def written(record: Record) -> str:
    """A record as JSON, a line a run, so that a change of one is a line of a diff."""
    groups = []
    for name, runs in sorted(record.groups.items()):
        lines = ",\n".join(f"{json.dumps(run)}: {json.dumps(said)}" for run, said in sorted(runs.items()))
        groups.append(f"{json.dumps(name)}: {{\n{lines}\n}}")
    return f'{{"version": {json.dumps(record.version)}, "groups": {{\n' + ",\n".join(groups) + "\n}}\n"


def read(file: Path) -> Record:
    """A record that was written."""
    stored = json.loads(file.read_text(encoding="utf-8"))
    return Record(stored["version"], stored["groups"])


def order(version: str) -> tuple[int, int, int, int, int]:
    """What sorts versions: a candidate (1.2.0rc1) stands before its release."""
    number, is_candidate, candidate = version.partition("rc")
    major, minor, patch = (int(part) for part in number.split("."))
    return major, minor, patch, not is_candidate, int(candidate or 0)


def last(before: str = "") -> Record | None:
    """The record of the newest release, or of the newest before a version; None where there is none.

    Candidates are passed over: whoever updates comes from a release.
    """
    versions = sorted((file.stem for file in RECORDS.glob("*.json") if "rc" not in file.stem), key=order)
    earlier = [version for version in versions if not before or order(version) < order(before)]
    return read(RECORDS / f"{earlier[-1]}.json") if earlier else None


# ------------------------------------------------------------------ what changed
def changes(before: Record | None, now: Record) -> str:
    """What is told otherwise, as Markdown: a line for each way in which runs changed, the commonest first."""
    if before is None:
        return "The first record: there is nothing to compare with.\n"
    return "".join(f"{line}\n" for line in _lines(before, now))


def _lines(before: Record, now: Record) -> Iterator[str]:
    both = [name for name in now.groups if name in before.groups]
    same = sum(now.groups[name].get(run) == said for name in both for run, said in before.groups[name].items())
    known = sum(len(before.groups[name]) for name in both)
    yield f"Of {known:,} yardstick runs of {before.version}, {same:,} are told the same."
    for name in sorted({*before.groups, *now.groups} - set(both)):
        lacks = "has it, this one has not" if name in before.groups else "lacks it"
        yield f"`{name}` is not compared: the record of {before.version} {lacks}."
    moved = _moved(before, now, both)
    if moved:
        yield from ("", "| runs | was | is | which |", "|---|---|---|---|")
    for (was, is_), runs in sorted(moved.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"| {len(runs)} | {_cell(was)} | {_cell(is_)} | {_named(runs)} |"


def _moved(before: Record, now: Record, groups: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """The runs that changed, by what they were told and are told; a run that is new or gone is told nothing."""
    found = defaultdict(list)
    for group in groups:
        old, new = before.groups[group], now.groups[group]
        for run in sorted({*old, *new}):
            was, is_ = old.get(run, ""), new.get(run, "")
            if was != is_:
                found[was, is_].append(f"{group}/{run}")
    return found


def _cell(said: str) -> str:
    verdict, _, leaf = said.partition(" ")
    if not verdict:
        return "no such run"
    return verdict if leaf == NONE else f"{verdict} `{leaf}`"


def _named(runs: list[str]) -> str:
    shown = ", ".join(f"`{run.replace('|', '¦')}`" for run in runs[:MAX_NAMED])
    return shown if len(runs) <= MAX_NAMED else f"{shown} and {len(runs) - MAX_NAMED} more"


def report(shared: Path, version: str = "") -> str:
    """Judge all runs and tell what changed against the last record; where a version is given, write its record."""
    now = taken(version or "now", shared)
    told = changes(last(version), now)
    if version:
        RECORDS.mkdir(exist_ok=True)
        (RECORDS / f"{version}.json").write_text(written(now), encoding="utf-8", newline="\n")
    return told


def main() -> None:
    """Print what changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=SHARED, help="where the data outside lie")
    parser.add_argument("--record", default="", metavar="VERSION", help="write the record of this version")
    options = parser.parse_args()
    print(report(options.shared, options.record), end="")


if __name__ == "__main__":
    main()
