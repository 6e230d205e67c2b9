"""`stabtree calibrate`: fit thresholds to healthy runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options.judge import TREES, JudgeOptions, effective_settings, judging_by
from stabtree.cli.options.output import OutputOptions, output_option
from stabtree.cli.options.read import COLUMNS, Paths, ReadOptions, reading
from stabtree.cli.output.deliver import deliver
from stabtree.cli.output.places import protect_log, protect_run, wanted
from stabtree.cli.program.expand import Only, option
from stabtree.cli.program.help import INPUT, JUDGING
from stabtree.cli.shell.progress import Busy
from stabtree.common.errors import StabtreeError
from stabtree.report.outputs import CALIBRATION, SCREEN

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stabtree.tree.model import Severity

LEVELS = ("warning", "note")


def _levels(_start: str) -> list[str]:
    return [*LEVELS]


Trust = Annotated[bool, option(JUDGING, "--trust", "Take all runs for healthy, even those that look broken.")]
LevelOpt = Annotated[str, option(JUDGING, "--level LEVEL", "What counts as a false alarm: warning or note.", _levels)]
FaultsOpt = Annotated[
    str | None, option(INPUT, "--faults DIR", "A folder of your failed runs: report which of them would be missed too.")
]


def calibrate(
    paths: Paths,
    read: Annotated[ReadOptions, Only(*COLUMNS)],
    judge: Annotated[JudgeOptions, Only(*TREES, "literal")],
    out: Annotated[OutputOptions, Only("json", output=output_option(CALIBRATION))],
    faults: FaultsOpt = None,
    trust: Trust = False,
    level: LevelOpt = "warning",
) -> None:
    """Find the smallest change of thresholds with which none of your healthy runs raises an alarm.

    Prints what to set, how many false alarms to expect then, and which labelled faults would be missed. The exit code
    is 3 where none of the runs can serve as a healthy one.
    """
    from stabtree.judging.codes import NOT_JUDGED
    from stabtree.loaders import load_runs
    from stabtree.tools.tune.calibrate.calibrating import calibrate as calibrated
    from stabtree.tools.tune.calibrate.faults import faults_of, load_faults
    from stabtree.tools.tune.calibrate.walks import Walks

    settings, severity = effective_settings(read, judge).settings, _severity(level)
    targets = wanted(out, CALIBRATION)
    judging = judging_by(settings, judge)
    _protect_rules(targets, judging.rules)
    busy = Busy(wanted=targets.get(None) == SCREEN)
    how = reading(read, settings)
    with busy.doing(f"reading {', '.join(paths)}"):
        given = load_runs(*paths, **how)
        labelled = load_faults(faults, how)
    for item in (*given, *labelled):
        if isinstance(item.run, StabtreeError):
            protect_log(targets, item.name)
        else:
            protect_run(targets, item.run, *judging.rules)
    with busy.doing(f"calibrating on {len(given):,} runs"):
        walks = Walks(judging)
        found = calibrated(given, walks, faults_of(labelled, walks), level=severity, trust=trust)
    deliver(CALIBRATION, found, targets)
    if not found.runs:
        raise typer.Exit(NOT_JUDGED)


def _severity(level: str) -> Severity:
    from stabtree.tree.model import Severity

    if level not in LEVELS:
        raise StabtreeError(f"{level!r} is not a level of alarms", where="--level", hint=f"type {' or '.join(LEVELS)}")
    return Severity(level)


def _protect_rules(targets: Iterable[Path | None], rules: tuple[str | None, ...]) -> None:
    """Refuse to overwrite settings and trees: they hold more than what is calibrated.

    Raises:
        StabtreeError: for a file of them that exists.
    """
    from pathlib import Path

    from stabtree.judging.settings import FILE, SHARED

    used = {Path(rule).resolve() for rule in rules if rule}
    for target in targets:
        if target and target.exists() and (target in used or target.name in (FILE, SHARED)):
            hint = "name a new file, and copy what you want from it"
            raise StabtreeError("holds settings or trees already", where=f"--output {target}", hint=hint)
