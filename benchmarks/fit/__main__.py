"""Fit limits and slopes, write `trees/calibration.yaml`, and print what they are worth on unseen repositories.

    python -m benchmarks.fit [--shared DIR] [--cache DIR] [--report FILE] [--levels 0.75 ...]

Logs are judged once with the documented limits; `benchmarks.fit.estimates` fits each question to the strengths of its
answers. For the report everything is fitted again without each fifth of the repositories (of the trainers: without
each fifth of the pairs of framework and fault), and those are then judged whole with these limits. Of the levels of
alarm the lowest is taken that keeps alarms on healthy logs at 5%, and of those of a near answer the highest that keeps
failures among the runs called healthy at 3%.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.fit import estimates
from benchmarks.fit.estimates import cases_of, mains_of
from benchmarks.fit.judged import DOCUMENTED, judge, leaf_behind
from benchmarks.fit.levels import NEAR, near_level
from benchmarks.fit.logs import FOLDS, SIMULATED, logs_of
from benchmarks.fit.report import by_kind, by_source, of_public, unseen_of, yaml_of
from stabtree.tree.shipped import use_calibrations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.fit.estimates import Fits, Main
    from benchmarks.fit.judged import Judged, Seen
    from benchmarks.fit.logs import Log
    from faultbench.rates import Rate
    from stabtree.tree.shipped import Calibrations

ROOT = Path(__file__).resolve().parents[2]
CALIBRATION = ROOT / "trees" / "calibration.yaml"
LEVELS = (0.6, 0.75, 0.9)
MAX_FALSE = 0.05


def crossed(logs: Sequence[Log], judged: Sequence[Judged], mains: Mapping[str, Main], level: float) -> list[Fits]:
    """Return for each fold what is fitted to all others."""
    found = []
    for fold in range(FOLDS):
        rest = [(log, said) for log, said in zip(logs, judged, strict=True) if log.fold != fold]
        found.append(estimates.fit(cases_of(*zip(*rest, strict=True)), mains, level))
    return found


def unseen(logs: Sequence[Log], plain: Sequence[Judged], known: Sequence[Calibrations]) -> list[Judged]:
    """Judge each log with what was fitted without its repository, where that changes any of its answers."""
    found = list(plain)
    touched = [index for index, log in enumerate(logs) if _touches(known[log.fold], plain[index])]
    again = judge([logs[index] for index in touched], [known[logs[index].fold] for index in touched])
    for index, said in zip(touched, again, strict=True):
        found[index] = said
    return found


def _touches(known: Calibrations, said: Judged) -> bool:
    """Return whether a limit that moved, or what is near one, concerns a log."""
    moved = any(known.of(seen.question).limit for seen in said.seen)
    return moved or any(_near(known, seen) != _near(DOCUMENTED, seen) for seen in said.seen)


def _near(known: Calibrations, seen: Seen) -> bool:
    return seen.strength < 0 and seen.alarms and known.likelihood(seen.question, seen.strength) >= known.near


def main() -> int:
    """Fit, write, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="where the labelled logs are")
    parser.add_argument("--cache", type=Path, help="a folder for the loaded logs: reading them takes minutes")
    parser.add_argument("--report", type=Path, help="write the tables there instead of printing them")
    parser.add_argument("--levels", type=float, nargs="+", default=LEVELS, help="the levels of alarm to choose from")
    parser.add_argument("--out", type=Path, default=CALIBRATION)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    use_calibrations(DOCUMENTED)
    logs = logs_of(options.shared, options.cache)
    judged = judge(logs, feel=True)
    mains = mains_of(judged)
    real = [index for index, log in enumerate(logs) if log.source != SIMULATED]
    tried = {level: crossed(logs, judged, mains, level) for level in options.levels}
    logs_, plain = [logs[index] for index in real], [judged[index] for index in real]
    held = {level: unseen(logs_, plain, [one.at(level, NEAR[0]) for one in fits]) for level, fits in tried.items()}
    alarm = max(held, key=lambda level: _worth(logs_, held[level], level))
    fits = estimates.fit(cases_of(logs, judged), mains, alarm)
    near = near_level(zip(logs_, held[alarm], strict=True), [one.at(alarm, NEAR[0]) for one in tried[alarm]])
    said = unseen(logs_, plain, [one.at(alarm, near) for one in tried[alarm]])
    options.out.write_text(yaml_of(fits, alarm, near, _figures(fits, logs_, said)), encoding="utf-8")
    text = _text(logs_, plain, held, said, near)
    if options.report:
        options.report.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


def _worth(logs: Sequence[Log], said: Sequence[Judged], level: float) -> tuple[float, float, float]:
    """Return how good a level of alarm is: few alarms on healthy logs, then many failures named."""
    false, named = (of_public(logs, said, name).share for name in ("healthy that alarm", "failures named"))
    return -max(false, MAX_FALSE), named, -abs(level - DOCUMENTED.alarm)


def _text(
    logs: Sequence[Log],
    plain: Sequence[Judged],
    held: Mapping[float, Sequence[Judged]],
    said: Sequence[Judged],
    near: float,
) -> str:
    lines = [f"- near from {near:g} on"]
    for level, one in held.items():
        false, named = (of_public(logs, one, name) for name in ("healthy that alarm", "failures named"))
        lines.append(f"- alarm at {level:g}: {false} of the healthy public logs alarm, {named} of the failures")
    lines += ["", "With the documented limits:", "", by_source(logs, plain), ""]
    lines += ["With limits fitted to other repositories:", "", by_source(logs, said), "", by_kind(logs, said), ""]
    return "\n".join(lines)


def _figures(fits: Fits, logs: Sequence[Log], said: Sequence[Judged]) -> dict[str, dict[str, Rate]]:
    """Return of each question that was fitted what its leaves are worth on unseen repositories."""
    leaves: dict[str, set[str]] = defaultdict(set)
    for one in said:
        for seen in one.seen:
            leaves[seen.question].add(leaf_behind(seen.question, seen.verdict))
    own = (id_ for id_, one in fits.questions.items() if not one.family)
    return {id_: unseen_of(logs, said, leaves[id_]) for id_ in own}


if __name__ == "__main__":
    sys.exit(main())
