"""What `stabtree check` reads of the configurations that lie in folders of runs, and what it alarms on.

    python -m benchmarks.check DIR ... [--alarms] [--settings]

A configuration is a file or a run's folder that says something of how it was trained: what its trainer was started
with, or what the header of its log holds. Copies of one, as they lie in each checkpoint, count once. Prints by the
trainer how many there are, how many of their settings are known, and which rules alarm how often. `--alarms` tells
each alarm with what it is about, to be read by hand; `--settings` all that was read. Exits with 1 where one crashed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from faultbench.scoring import ALARMS
from stabtree.common.errors import StabtreeError
from stabtree.tools.check.judge import checked
from stabtree.tools.check.load import load_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run

# What a configuration may be read from only as a whole.
WHOLE = ("mlruns",)
CHECKPOINT = "checkpoint-"


def main() -> int:
    """Go through the folders; exit with 1 where a configuration crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--alarms", action="store_true", help="each alarm")
    parser.add_argument("--settings", action="store_true", help="each setting that was read")
    options = parser.parse_args()
    crashed = 0
    for folder in options.folders:
        figures, broken = _figures(folder, alarms=options.alarms, settings=options.settings)
        crashed += broken
        print(f"{folder}: {figures}")
    return 1 if crashed else 0


def _figures(folder: Path, *, alarms: bool, settings: bool) -> tuple[str, int]:
    """The figures of one folder, a line each, and how many files crashed."""
    files: Counter[str] = Counter()
    keys: dict[str, list[int]] = defaultdict(list)
    told: Counter[str] = Counter()
    alarmed: list[int] = []
    for path in _places(folder):
        files["looked at"] += 1
        try:
            run = load_config(path)
            found = checked(run)
        except StabtreeError:
            continue
        except Exception as error:
            files["crashed"] += 1
            print(f"{path}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        keys[_trainer(run)].append(len(run.config))
        wrong = [one for one in found.findings if one.leaf.severity in ALARMS]
        told.update(f"{one.leaf.severity} {one.leaf.id}" for one in found.findings)
        alarmed.append(len(wrong))
        _list(path, run, found, alarms=alarms, settings=settings)
    lines = [f"{files['looked at']} places, {len(alarmed)} configurations, {files['crashed']} crashed"]
    lines += [
        f"  {name}: {len(many)}, {sum(many) / len(many):.1f} settings each" for name, many in sorted(keys.items())
    ]
    if alarmed:
        share = sum(map(bool, alarmed)) / len(alarmed)
        lines.append(f"  alarms: {sum(alarmed)} in all, {share:.0%} of configurations have any")
    lines += [f"  {many:4} {rule}" for rule, many in told.most_common()]
    return "\n".join(lines), files["crashed"]


def _places(folder: Path) -> Iterator[Path]:
    """The files and folders that may be configurations, of the copies in checkpoints none but the last."""
    for place, folders, files in os.walk(folder):
        folders.sort()
        here = Path(place)
        yield from (here / name for name in folders if name in WHOLE)
        folders[:] = [name for name in folders if name not in WHOLE and not name.startswith(CHECKPOINT)]
        yield from (here / name for name in sorted(files))


def _trainer(run: Run) -> str:
    said = run.config.get("framework")
    logged = not any("configuration (" in source.format for source in run.sources) and said is None
    return str(said.value) if said else "no trainer known" if logged else "other"


def _list(path: Path, run: Run, found: Diagnosis, *, alarms: bool, settings: bool) -> None:
    if settings:
        print(path, *(f"  {key} = {one.value!r} ({one.source})" for key, one in run.config.items()), sep="\n")
        print(*(f"  note: {note}" for note in run.notes), sep="\n")
    for one in found.findings if alarms else ():
        evidence = "; ".join(item.text for item in one.evidence)
        print(f"{path}: {one.leaf.severity} {one.leaf.id}: {evidence}")


if __name__ == "__main__":
    sys.exit(main())
