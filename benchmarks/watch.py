"""What a watcher would have told of labelled runs while they grew, and how soon.

    python -m benchmarks.watch DIR [DIR ...] [--hold 0,3,10] [--half dev|held] [--pace SECONDS]

DIR holds labelled runs: faultbench (runs/ and truth/ with `first_visible_step`), runs of trainers (truth/ with
`targets`), or real logs (INDEX.csv). Each log is written anew, row by row, and watched as `stabtree watch` would: every
judgement reads what is there so far. `--hold` takes several lengths at once: each has a watcher of its own, and what
one of them has judged the others need not judge again. `--pace` is the time between two rows: none by default, so
that the growth alone makes the judging points; 5 makes each row one. Halves are those of `benchmarks.wild`, by run or
by repository: tune on `dev`, report both.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.growing import growing, step_rows
from benchmarks.wild import half
from faultbench.scoring import CALM, DONE
from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.judge import Judging
from stabtree.judging.verdict import Outcome
from stabtree.loaders import load_runs
from stabtree.tools.live.events import HOLD_ROWS, REPORTED_FROM, Announcer, Signs, Watching
from stabtree.tools.live.watch import SIGN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.tools.live.events import News

PROCESSES = 2
STOPPED = "not finished: stopped at piece {:,} of {:,}"


@dataclass(frozen=True, slots=True)
class Case:
    """A labelled run.

    Attributes:
        id: its name.
        path: its log.
        half: dev or held.
        fault: what is wrong with it; empty for a healthy one.
        section: the section that is to find it: `1`, `2 seen`, `2 persistent`, `3`, `4`, `other`.
        visible_step: the first step at which the log shows it, where that is known.
    """

    id: str
    path: str
    half: str
    fault: str = ""
    section: str = "other"
    visible_step: int | None = None


@dataclass(slots=True)
class Seen:
    """What became of a case while it grew.

    Attributes:
        case: the case.
        rows: how many rows it has.
        last_step: its last step.
        visible_row: the row that first shows the fault.
        judged: how many judgements were made.
        told: for each hold what was told: leaf, severity, rows, rows when it was first found, onset, step.
        final: what `diagnose` finds in the whole log: leaf, severity, onset.
        error: why it could not be watched.
    """

    case: Case
    rows: int = 0
    last_step: int = 0
    visible_row: int | None = None
    judged: int = 0
    told: dict[str, list[list[Any]]] = field(default_factory=dict)
    final: list[list[Any]] = field(default_factory=list)
    error: str = ""


def cases(folder: Path) -> Iterator[Case]:
    """The labelled runs of a folder whose label says whether they are healthy, and shows."""
    if (folder / "INDEX.csv").is_file():
        with (folder / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                if row["label"] not in ("unclear", "not-a-log"):
                    fault = "" if row["label"] == "healthy" else row["label"]
                    onset = int(row["onset"]) if row["onset"].strip().isdigit() else None
                    yield Case(row["file"], str(folder / row["file"]), half(row["repo"]), fault, "other", onset)
        return
    for file in sorted((folder / "truth").glob("*.json")):
        truth = json.loads(file.read_text(encoding="utf-8"))
        if "targets" not in truth:
            yield _bench(truth, folder)
        elif truth["healthy"] or truth["visible"] == "yes":
            # The state of a trainer is that of its folder, and grows as one file.
            paths = {target["name"]: target["path"] for target in truth["targets"]}
            path = next(paths[name] for name in ("state", "csv", *paths) if (folder / paths.get(name, "-")).exists())
            fault = "" if truth["healthy"] else truth["fault"]
            yield Case(truth["id"], str(folder / path), half(truth["id"]), fault, "other", truth["fault_step"])


def _bench(truth: dict[str, Any], folder: Path) -> Case:
    calm = truth["fault"] in (*CALM, DONE)
    section = truth["section"]
    if section == "2":
        section = "2 persistent" if truth["expected_leaf"] == "s2.persistent" else "2 seen"
    path, fault = folder / "runs" / truth["run_id"], "" if calm else truth["fault"]
    return Case(truth["run_id"], str(path), half(truth["run_id"]), fault, section, truth["first_visible_step"])


def watch(case: Case, holds: Sequence[int], pace: float, seconds: float) -> Seen:
    """Let a log grow, and collect what is told."""
    warnings.simplefilter("ignore")
    seen = Seen(case, told={str(hold): [] for hold in holds})
    judging, judged = Judging(), dict[int, "list[Outcome]"]()
    now, size = 0.0, 0
    until = time.monotonic() + seconds

    def judge() -> list[Outcome]:
        if size not in judged:
            judged.clear()
            judged[size] = judge_file(path, judging)
            seen.judged += 1
        return judged[size]

    watchers = [Watching(judge, Announcer(hold_rows=hold), clock=lambda: now) for hold in holds]
    signs = Signs()
    try:
        log = growing(Path(case.path))
        with tempfile.TemporaryDirectory() as folder:
            for size, (path, piece) in enumerate(log.grow(Path(folder)), 1):  # noqa: B007 (judge sees them)
                now += pace
                sign = signs.call(frozenset({"not finite"} if SIGN.search(piece) else ()))
                for told, watcher in zip(seen.told.values(), watchers, strict=True):
                    told.extend(map(_plain, watcher.grown(size, sign=sign)))
                if time.monotonic() > until:
                    return replace(seen, error=STOPPED.format(size, len(log.pieces)))
            _finish(seen, judge())
    except StabtreeError as error:
        seen.error = f"{error.problem}: {error.where}"
    return seen


def judge_file(path: Path, judging: Judging) -> list[Outcome]:
    """What `diagnose` says of a log now; nothing of one that holds no run yet."""
    try:
        return [judging.outcome(item) for item in load_runs(path)]
    except StabtreeError as error:
        return [Outcome(path.name, error)]


def _plain(news: News) -> list[Any]:
    leaf = news.finding.leaf
    step = news.diagnosis.run.last_step
    return [leaf.id, str(leaf.severity), news.rows, news.first_rows, news.finding.onset_step, step]


def _finish(seen: Seen, outcomes: Sequence[Outcome]) -> None:
    """Take in the whole log."""
    for outcome in outcomes:
        if not isinstance(outcome.found, Diagnosis):
            continue
        run = outcome.found.run
        for finding in outcome.found.reached:
            if finding.leaf.severity.rank >= REPORTED_FROM.rank:
                seen.final.append([finding.leaf.id, str(finding.leaf.severity), finding.onset_step])
        if run.series and (run.last_step or 0) >= seen.last_step:
            seen.last_step = run.last_step or 0
            seen.rows = max(map(len, run.series.values()))
            if seen.case.visible_step is not None:
                seen.visible_row = step_rows(run, seen.case.visible_step)


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--hold", default=str(HOLD_ROWS), help="rows, several between commas")
    parser.add_argument("--half", choices=("dev", "held"))
    parser.add_argument("--pace", type=float, default=0.0, help="seconds between two rows")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each log at most")
    parser.add_argument("--total", type=float, default=3600.0, help="seconds for all; what was not begun is told")
    parser.add_argument("--only", default="", help="cases whose id begins so")
    options = parser.parse_args()
    wanted = [case for folder in options.folders for case in cases(folder) if case.id.startswith(options.only)]
    wanted = [case for case in wanted if options.half in (None, case.half)]
    holds = [int(hold) for hold in options.hold.split(",")]
    work = partial(watch, holds=holds, pace=options.pace, seconds=options.seconds)
    seen, until = list[Seen](), time.monotonic() + options.total
    with ProcessPoolExecutor(PROCESSES) as pool:
        waiting = [pool.submit(work, case) for case in wanted]
        for case, future in zip(wanted, waiting, strict=True):
            if time.monotonic() > until and future.cancel():
                seen.append(Seen(case, error="not begun: time is up"))
            else:
                seen.append(future.result())
    report(seen)
    return 0


def report(seen: Sequence[Seen]) -> None:
    """Print who was alarmed, how soon, and what of it the whole log still shows, for each hold and each half."""
    for one in seen:
        if one.error:
            print(f"not watched: {one.case.id}: {one.error[:150]}")
    watched = [one for one in seen if not one.error]
    print(f"{len(watched)} of {len(seen)} logs, {sum(one.judged for one in watched):,} judgements")
    for hold in dict.fromkeys(hold for one in watched for hold in one.told):
        for part in ("dev", "held"):
            if chosen := [one for one in watched if one.case.half == part]:
                print(f"\n== hold {hold}, half {part}")
                _report_half([(one, one.told[hold]) for one in chosen])


def _report_half(seen: Sequence[tuple[Seen, list[list[Any]]]]) -> None:
    healthy = [told for one, told in seen if not one.case.fault]
    faults = [told for one, told in seen if one.case.fault]
    print(f"healthy ever alarmed {sum(map(bool, healthy))}/{len(healthy)}")
    print(f"faults told {sum(map(bool, faults))}/{len(faults)}")
    lags: dict[str, list[int]] = {}
    for one, told in seen:
        final = {leaf for leaf, *_ in one.final}
        after = [item[2] - one.visible_row for item in told if one.visible_row is not None]
        lags.setdefault(one.case.section, []).extend([lag for lag in after if lag >= 0][:1])
        kinds = {
            "alarmed": bool(told) and not one.case.fault,
            "by the whole log alone": bool(final) and not told,
            "before the log shows it": any(lag < 0 for lag in after),
            "another leaf than in the whole log": bool({item[0] for item in told} - final),
        }
        if any(kinds.values()):
            words = ", ".join(word for word, holds in kinds.items() if holds)
            items = " ".join(f"{leaf}@{onset} row {first}>{rows}" for leaf, _, rows, first, onset, _ in told)
            print(f"  {one.case.id} {one.case.fault or 'healthy'}: {words}: {items}; in the end {sorted(final)}")
    for section, rows in sorted(lags.items()):
        if rows:
            at = sorted(rows)[min(len(rows) - 1, int(0.9 * len(rows)))]
            print(f"  section {section}: {len(rows)} told, rows median {statistics.median(rows):g}, 90% {at}")


if __name__ == "__main__":
    sys.exit(main())
