"""Whether the limits of one half of healthy runs silence the other half, and what they cost in faults.

    python -m benchmarks.calibrate FOLDER

FOLDER is a split of faultbench, with runs/ and truth/. Every second healthy run is given. A line for each way of
judging: the alarms on the given half and on the other one, and the faults without an alarm, before and after.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.judging.judge import Judging
from stabtree.loaders import load_runs
from stabtree.run import Run
from stabtree.tools.calibrate.limits import calibrate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.loaders import Loaded

WAYS = {"as shipped": Judging(), "by the letter": Judging(literal=True)}


def alarms(runs: Sequence[Loaded], judging: Judging) -> int:
    """Count the runs with an alarm."""
    found = (judging.diagnosed(item.run) for item in runs if isinstance(item.run, Run))
    return sum(any(finding.is_alarm for finding in one.reached) for one in found)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    healthy: list[Loaded] = []
    faults: list[Loaded] = []
    for file in sorted((folder / "truth").glob("*.json")):
        truth = json.loads(file.read_text(encoding="utf-8"))
        (healthy if truth["healthy"] else faults).extend(load_runs(folder / "runs" / file.stem))
    for way, judging in WAYS.items():
        found = calibrate(healthy[::2], judging)
        set_ = replace(judging, set=tuple(f"{limit.key}={limit.value!r}" for limit in found.to_set))
        print(f"{way}: {', '.join(set_.set) or 'nothing to set'}; left {', '.join(found.left) or 'nothing'}")
        for name, runs in (("given", healthy[::2]), ("other", healthy[1::2]), ("faults", faults)):
            print(f"  {name:8} {alarms(runs, judging):>3} -> {alarms(runs, set_):<3} of {len(runs)} alarm")


if __name__ == "__main__":
    main()
