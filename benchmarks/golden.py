"""Golden records: what `stabtree PATH --json` says of every run at hand, in two grades.

    python -m benchmarks.golden [--record] [--group GROUP ...] [--every N] [--keep DIR]

The first grade is the whole JSON, as a hash. The second is what a reader acts on: verdict, headline, onset, restart and
first action. Without `--record` the runs are judged again and every difference from the records is printed; the exit
code is 1 where the second grade changed. `--keep DIR` writes each JSON into a folder, for `diff -r`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import io
import json
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"
SHARED = ROOT.parent / "shared"
GROUPS = ("fixtures", "faultbench", "trainers", "logs", "wild")
HASH_LENGTH = 12


class Golden(NamedTuple):
    """What is recorded of one path: the hash of its JSON, and what a reader acts on."""

    hash: str
    outcome: str


def paths(group: str) -> tuple[Path, list[str]]:
    """Return the folder of a group and the paths below it, sorted; none where its files are missing."""
    if group == "fixtures":
        folder = ROOT / "fixtures"
        found = {path.parent.relative_to(folder).as_posix() for path in folder.glob("*/*/manifest.json")}
    elif group == "faultbench":
        folder = SHARED / "faultbench" / "dev" / "runs"
        found = {path.name for path in folder.glob("*")}
    elif group == "trainers":
        folder = SHARED / "trainers"
        truth = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("truth/*.json")]
        found = {target["path"] for run in truth for target in run["targets"]}
    else:
        folder = SHARED / group
        found = {row["file"] for row in _rows(folder / "INDEX.csv")}
    return folder, sorted(found)


def _rows(index: Path) -> Iterator[dict[str, str]]:
    if index.exists():
        with index.open(encoding="utf-8", newline="") as stream:
            yield from csv.DictReader(stream)


def record(path: str, folder: Path, keep: Path | None = None) -> Golden:
    """Diagnose a path as a user does and return its record."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.chdir(folder), contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = cli.main(["diagnose", path, "--json"])
    output.seek(0)
    whole = json.load(output)
    results = whole.get("runs", [whole])
    for result in results:
        result.pop("tool", None)  # the version and a hash of the trees' texts are no verdict
        result.pop("rules", None)
    text = json.dumps(results, sort_keys=True, indent=1)
    if keep:
        (keep / f"{path.replace('/', '__')[-200:]}.json").write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    return Golden(digest, f"exit {code}: " + " | ".join(map(outcome, results)))


def outcome(result: dict[str, Any]) -> str:
    """Return what a reader acts on: `critical Q2.3@40 restart 20: Lower the learning rate`."""
    if "error" in result:
        return f"error {result['error']['problem']}"
    if not result.get("findings"):
        return str(result["verdict"])
    first = result["findings"][0]
    restart = first.get("restart") or {}
    step = restart.get("checkpoint_step", restart.get("up_to_step"))
    text = " ".join(next((action["text"] for action in first.get("actions", ())), "").split())
    return f"{result['verdict']} {first['id']}@{first['onset_step']} restart {step}: {text}"


def read(group: str) -> dict[str, Golden]:
    """Return the records of a group, by path; empty where it was never recorded."""
    file = RECORDS / f"{group}.tsv"
    if not file.exists():
        return {}
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    return {name: Golden(*rest) for name, *rest in rows}


def write(group: str, found: dict[str, Golden]) -> None:
    """Write the records of a group."""
    lines = ["\t".join((name, golden.hash, golden.outcome)) for name, golden in sorted(found.items())]
    (RECORDS / f"{group}.tsv").write_text("\n".join([*lines, ""]), encoding="utf-8")


def main() -> int:
    """Compare with the records, or write them."""
    parser = argparse.ArgumentParser(description="Golden records of all runs at hand, in two grades.")
    parser.add_argument("--record", action="store_true", help="write the records instead of comparing with them")
    parser.add_argument("--group", action="append", choices=GROUPS, help="only this group")
    parser.add_argument("--every", type=int, default=1, help="only every Nth run, for a quick look")
    parser.add_argument("--keep", type=Path, help="a folder to write each JSON to")
    asked = parser.parse_args()
    changed = 0
    for group in asked.group or GROUPS:
        folder, names = paths(group)
        names = names[:: asked.every]
        if not names:
            print(f"{group}: skipped, its files are not here")
            continue
        keep = asked.keep.resolve() / group if asked.keep else None
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            found = dict(
                zip(names, pool.map(partial(record, folder=folder, keep=keep), names, chunksize=4), strict=True)
            )
        if asked.record:
            write(group, found)
            print(f"{group}: {len(found):,} recorded", flush=True)
            continue
        old = read(group)
        other = [name for name in names if name in old and old[name].outcome != found[name].outcome]
        words = [name for name in names if name not in other and old.get(name) != found[name]]
        changed += len(other)
        print(f"{group}: {len(found):,} judged, {len(other):,} changed, {len(words):,} with other JSON", flush=True)
        for name in other:
            print(f"  {name}:\n    {old[name].outcome}\n    {found[name].outcome}")
        for name in words:
            print(f"  {name}: other JSON")
    return 1 if changed else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_CACHE_HOME"] = home  # no cache of ours may answer instead
        raise SystemExit(main())
