"""Make small real fine-tunes, healthy and broken, or rate what stabtree says of them.

    python -m benchmarks.finetunes make FOLDER [--trainer NAME ...]
    python -m benchmarks.finetunes rate FOLDER

`make` needs the trainers (`pip install -e '.[test-integrations]' peft tensorboard`). It trains the base models, then
each healthy run and its broken twin, and writes FOLDER/INDEX.csv as it goes; runs that are there already are kept, so
that each of several processes can make those of some trainers. FOLDER/curves holds what the labels follow from.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.finetunes import truth
from benchmarks.finetunes.plan import COUNTS, Job, pairs
from benchmarks.finetunes.rate import rated, report

if TYPE_CHECKING:
    from benchmarks.finetunes.truth import Made

COLUMNS = ("file", "group", "framework", "healthy", "fault", "fault_step", "visible", "note")


def run(job: Job, folder: Path) -> Made:
    """Make one run."""
    if job.framework == "keras":
        from benchmarks.finetunes.keras_runs import keras_fit

        return keras_fit(job, folder)
    if job.framework == "lightning":
        from benchmarks.finetunes.lightning_runs import lightning

        return lightning(job, folder)
    from benchmarks.finetunes import preference, torch_runs

    runners = {"dpo": preference.preference, "plain": torch_runs.plain}
    return runners.get(job.framework, torch_runs.hugging_face)(job, folder)


def labels(job: Job, made: Made, twin: Made, folder: Path) -> dict[str, object]:
    """Return the line of a run in the index."""
    what = f"{truth.gain(made):+.1%} held out, {len(made.rows)} rows, lr {job.rate:.2g}, shift {job.shift:.2g}"
    row = {"file": made.file.relative_to(folder), "group": job.base, "framework": job.framework, "note": what}
    if not job.fault:
        return {**row, "healthy": "yes"}
    how, seen = truth.visible(made, twin)
    step = made.broke if made.broke is not None and job.fault == "half_overflow" else job.fault_step
    note = f"{what}; {seen or 'nothing to see'}; healthy twin {truth.gain(twin):+.1%}"
    return {**row, "healthy": "no", "fault": job.fault, "fault_step": step, "visible": how, "note": note}


def further(job: Job) -> Job:
    """Plan a run again, with another seed and a source that is further away."""
    return replace(job, seed=job.seed + 7000, shift=job.shift + 0.1)


def pair(job: Job, twin: Job, folder: Path) -> list[dict[str, object]]:
    """Make a healthy run and its broken twin, keep their curves, and return their lines in the index."""
    made = run(job, folder)
    while not truth.healthy(made):
        job, twin = further(job), further(twin)
        made = run(job, folder)
    other = run(twin, folder)
    for one, curves in ((job, made), (twin, other)):
        kept = json.dumps({**asdict(one), **asdict(curves)}, default=str)
        (folder / "curves" / f"{one.id}.json").write_text(kept, encoding="utf-8")
    return [labels(job, made, made, folder), labels(twin, other, made, folder)]


def make(folder: Path, trainers: list[str]) -> None:
    """Make the runs that are not there yet."""
    import torch

    torch.set_num_threads(1)
    index = folder / "INDEX.csv"
    (folder / "curves").mkdir(parents=True, exist_ok=True)
    if not index.exists():
        index.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    there = index.read_text(encoding="utf-8")
    for job, twin in pairs():
        if f"runs/{job.id}/" in there or job.framework not in trainers:
            continue
        with index.open("a", encoding="utf-8", newline="") as stream:
            csv.DictWriter(stream, COLUMNS, lineterminator="\n").writerows(pair(job, twin, folder))
        print(job.id, twin.id, flush=True)


def main() -> int:
    """Make or rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("make", "rate"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trainer", nargs="*", choices=COUNTS, default=list(COUNTS), help="make runs of these only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.do == "make":
        make(options.folder, options.trainer)
    else:
        print(report(rated(options.folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
