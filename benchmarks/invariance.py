"""What is said of the labelled runs when the same run is logged otherwise, and when its log is damaged.

    python -m benchmarks.invariance ../shared/faultbench/dev [--bare] [--only NAME] [--runs r0001 ...] [--list]

24 transformations (another order, other units, other digits) may change no verdict, but for leaves that rest on an
absolute scale. 48 corruptions (cells without their point, columns that shift, quotes that stay open) may make a run not
judged; an alarm must not become green by them, and no run that is labelled healthy may get one. Each changed log is
written to a file and read from there. `--bare` leaves the manifest out, so that nothing is known but the log.

`lost` counts alarms that become green, `made up` those on healthy runs, `untold` green verdicts on damaged logs without
a note more than before. The exit code is 1 when an alarm was lost, or made up, by a change that gives no reason for it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import stabtree
from benchmarks.relogged import CHANGES, Log
from faultbench.scoring import ALARMS
from tests import corpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.relogged import Change

GREEN = ("ok", "note")
WORKERS = 2


class Told(NamedTuple):
    """What is said of a log: the verdict, `refused` where it can't be read; the leaves it rests on; how many notes."""

    verdict: str
    found: tuple[str, ...] = ()
    notes: int = 0

    def alarms(self, spared: tuple[str, ...]) -> bool:
        """Whether there is an alarm that does not rest on one of some leaves."""
        return self.verdict in ALARMS and not set(self.found) <= set(spared)


class Outcome(NamedTuple):
    """What a change of its log makes of a run."""

    run: str
    healthy: bool
    scale: tuple[str, ...]
    before: Told
    after: Told

    @property
    def lost(self) -> bool:
        """Whether an alarm became green."""
        return self.before.alarms(self.scale) and self.after.verdict in GREEN

    @property
    def made_up(self) -> bool:
        """Whether a run that is labelled healthy gets an alarm that it did not have."""
        return self.healthy and self.before.verdict in GREEN and self.after.alarms(self.scale)

    @property
    def unjudged(self) -> bool:
        """Whether the run can no longer be judged."""
        return self.after.verdict in ("unknown", "refused") and self.before.verdict not in ("unknown", "refused")

    @property
    def untold(self) -> bool:
        """Whether the verdict is green without a note more than before."""
        return self.after.verdict in GREEN and self.after.notes <= self.before.notes


def tell(log: str, manifest: str | None, folder: Path) -> Told:
    """What is said of a log, written to a file and read from there."""
    (folder / "metrics.csv").write_text(log, encoding="utf-8")
    path = folder / "metrics.csv"
    if manifest is not None:
        path = folder / "manifest.json"
        path.write_text(json.dumps({**json.loads(manifest), "metrics_file": "metrics.csv"}), encoding="utf-8")
    try:
        run = stabtree.load_run(path)
        diagnosis = stabtree.diagnose(run, corpus.trees())
    except stabtree.StabtreeError as error:
        return Told("refused", (str(error),), 1)
    found = tuple(
        item.leaf.id for item in diagnosis.reached if item.leaf.severity is diagnosis.findings[0].leaf.severity
    )
    skipped = sum(source.skipped_count for source in run.sources)
    return Told(str(diagnosis.verdict), found, len(run.notes) + skipped)


def outcomes(run: Path, changes: Sequence[str], *, bare: bool) -> list[Outcome]:
    """What each change makes of one run, in the order of the changes."""
    warnings.simplefilter("ignore")
    truth = json.loads((run.parents[1] / "truth" / f"{run.name}.json").read_text(encoding="utf-8"))
    manifest = None if bare else (run / "manifest.json").read_text(encoding="utf-8")
    log = Log.read(next(run.glob("metrics.*")))
    with tempfile.TemporaryDirectory() as folder:
        before = tell(log.csv(), manifest, Path(folder))
        found = []
        for change in (CHANGES[name] for name in changes):
            changed = change.make(log, random.Random(f"{run.name} {change.name}"))  # noqa: S311 - damage, no secrets
            after = tell(changed if isinstance(changed, str) else changed.csv(), manifest, Path(folder))
            found.append(Outcome(run.name, truth["healthy"], change.scale, before, after))
    return found


def told(change: Change, found: Sequence[Outcome], *, listed: bool) -> None:
    """Print the line of a change, and one for each verdict that it changes where they are asked for."""
    counts = (
        sum(one.before.verdict != one.after.verdict for one in found),
        sum(one.lost for one in found),
        sum(one.made_up for one in found),
        sum(one.unjudged for one in found),
        sum(one.untold for one in found) if change.damage else 0,
    )
    print(f"{change.name:28}" + "".join(f"{count or '-':>9}" for count in counts) + f"  {change.why}", flush=True)
    for one in found if listed else ():
        if one.before.verdict != one.after.verdict:
            mark = "LOST" if one.lost else "MADE UP" if one.made_up else ""
            before, after = (f"{told.verdict} {', '.join(told.found)[:90]}" for told in (one.before, one.after))
            print(f"    {one.run} {mark:8}{before} -> {after}")


def wrong(bench: Path, *, bare: bool) -> dict[str, float]:
    """How many alarms are lost, and how many made up, by changes that give no reason for it."""
    table = measure(sorted((bench / "runs").iterdir()), list(CHANGES), bare=bare)
    judged = [one for change, found in table if not change.why for one in found]
    return {"lost": sum(one.lost for one in judged), "made up": sum(one.made_up for one in judged)}


def measure(runs: Sequence[Path], changes: Sequence[str], *, bare: bool) -> list[tuple[Change, list[Outcome]]]:
    """Every change with what it makes of each run."""
    with ProcessPoolExecutor(WORKERS) as pool:
        rows = list(pool.map(partial(outcomes, changes=changes, bare=bare), runs, chunksize=4))
    return [(CHANGES[name], [row[place] for row in rows]) for place, name in enumerate(changes)]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, help="a folder with runs and truth")
    parser.add_argument("--bare", action="store_true", help="without the manifests")
    parser.add_argument("--only", nargs="+", default=[""], help="changes whose names begin so")
    parser.add_argument("--runs", nargs="+", help="these runs only")
    parser.add_argument("--list", action="store_true", help="name every run whose verdict changes")
    options = parser.parse_args()
    changes = [name for name in CHANGES if name.startswith(tuple(options.only))]
    runs = [path for path in sorted((options.bench / "runs").iterdir()) if path.name in (options.runs or path.name)]
    heads = ("changed", "lost", "made up", "unjudged", "untold")
    print(f"{f'{len(runs)} runs':28}" + "".join(f"{head:>9}" for head in heads) + "  why a verdict may change")
    fell = 0
    for change, found in measure(runs, changes, bare=options.bare):
        told(change, found, listed=options.list)
        fell += 0 if change.why else sum(one.lost or one.made_up for one in found)
    print(f"\n{fell} alarms lost or made up without a reason")
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
