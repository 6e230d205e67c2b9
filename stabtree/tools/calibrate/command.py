"""`stabtree calibrate`: print the limits that healthy runs call for."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stabtree.cli.options import (
    COLUMNS,
    JudgeOptions,
    Only,
    OutputOptions,
    Paths,
    ReadOptions,
    effective_settings,
    judging_by,
    loaded_runs,
    output_option,
)
from stabtree.cli.output import deliver, protect_log, protect_rules, protect_run, wanted
from stabtree.cli.terminal import Busy
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, in_words
from stabtree.report.outputs import CALIBRATION, DEFAULT_OPTIONS, SCREEN, RenderOptions
from stabtree.report.page import counted, new_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.tools.calibrate.limits import Calibration, Limit

KEY = 24  # columns of a screen
NAME = 60
NAMED = 3  # runs of a list that are named; the others are counted
MAX_NEAREST = 5
BARE = re.compile(r"[A-Za-z0-9_-]+")


def calibrate(
    paths: Paths,
    read: Annotated[ReadOptions, Only(*COLUMNS)],
    judge: Annotated[JudgeOptions, Only("tree", "trees", "ignore", "literal")],
    out: Annotated[OutputOptions, Only("json", output=output_option(CALIBRATION))],
) -> None:
    """Print for each question the limit that the most extreme of your healthy runs just does not reach.

    Limits by which runs alarm are to be set; the nearest of the others are shown below. Runs with a critical finding
    are left out, unless --ignore names it. The exit code is 3 where no run is left.
    """
    from pathlib import Path

    from stabtree.common.errors import NOT_JUDGED
    from stabtree.judging.settings import FILE, SHARED
    from stabtree.tools.calibrate.limits import calibrate as calibrated

    settings = effective_settings(read, judge).settings
    targets = wanted(out, CALIBRATION)
    judging = judging_by(settings, judge)
    # A file of settings holds more than limits, whether or not it is in effect.
    protect_rules(targets, *judging.rules, *(str(file) for file in map(Path, (FILE, SHARED)) if file.exists()))
    busy = Busy(wanted=targets.get(None) == SCREEN)
    with busy.doing(f"reading {', '.join(paths)}"):
        given = loaded_runs(paths, read, settings)
    for item in given:
        if isinstance(item.run, StabtreeError):
            protect_log(targets, item.name)
        else:
            protect_run(targets, item.run, *judging.rules)
    with busy.doing(f"judging {len(given):,} runs"):
        found = calibrated(given, judging)
    deliver(CALIBRATION, found, targets)
    if not found.runs:
        raise typer.Exit(NOT_JUDGED)


def screen(found: Calibration, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return what to set, what is reported all the same, and how near the runs come to other limits."""
    page = new_page(look)
    page.line((_summary(found), "title"))
    for name, reason in found.excluded:
        page.item(("left out", "dim"), [(f"{clean(name, NAME)}  {clean(reason)}", "")], indent=1, head_width=10)
    if found.to_set:
        page.heading("Set")
    for limit in found.to_set:
        pieces = [(f"{limit.now:g}", "dim"), (" → ", "dim"), (f"{limit.value:g}", "number")]
        page.item((limit.key, "id"), [*pieces, (f"  {in_words(limit.leaves)}", "")], indent=1, head_width=KEY)
        page.line((_reason(limit), "dim"), indent=3, hanging=2)
        page.line((f'"{clean(limit.seen)}"', "dim"), indent=3, hanging=2)
    if found.left:
        page.heading("Still reported")
    for leaf, runs in found.left.items():
        text = f"{_listed(runs)}; if it is harmless here: --ignore {leaf}"
        page.item((leaf, "id"), [(text, "")], indent=1, head_width=KEY)
    others = found.limits[len(found.to_set) :]
    if others:
        page.heading("Nearest of the other limits")
    for limit in others[:MAX_NEAREST]:
        text = (
            f"{limit.now:g}, reached at {limit.value:g} by {clean(limit.extreme, NAME)} ({counted(limit.runs, 'run')})"
        )
        page.item((limit.key, "id"), [(text, "dim")], indent=1, head_width=KEY)
    if found.to_set:
        page.heading("Into stabtree.toml (in pyproject.toml under [tool.stabtree.set])")
        page.lines([[(line, "")] for line in ("[set]", *map(_pair, found.to_set))], indent=1)
    return page.text()


def toml(found: Calibration, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the lines for a project's settings, each with what it rests on."""
    lines = [f"# {_summary(found)}"]
    lines += [f'# ignore = ["{leaf}"]  # still reported: {_listed(runs)}' for leaf, runs in found.left.items()]
    if found.to_set:
        lines += ["# Under [tool.stabtree.set] in pyproject.toml, under [set] in stabtree.toml.", "[set]"]
    lines += [f"{_pair(limit)}  # {limit.now:g} before; {_reason(limit)}" for limit in found.to_set]
    return "\n".join(lines) + "\n"


def data(found: Calibration, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return all limits for machines."""
    content: dict[str, Any] = {
        "schema": 1,
        "runs": found.runs,
        "excluded": [{"run": name, "reason": reason} for name, reason in found.excluded],
        "alarmed": found.alarmed,
        "set": {limit.key: limit.value for limit in found.to_set},
        "limits": [limit._asdict() for limit in found.limits],
        "left": [{"leaf": leaf, "runs": runs} for leaf, runs in found.left.items()],
    }
    return json.dumps(content, indent=1)


def _summary(found: Calibration) -> str:
    if not found.runs:
        return "None of the runs can stand for a healthy one: nothing to calibrate from."
    runs, now = counted(len(found.runs), "healthy run"), f"{found.alarmed:,} alarm{'s' * (found.alarmed == 1)} now"
    if not found.alarmed:
        return f"{runs}, and none alarms: nothing to set."
    if not found.to_set:
        return f"{runs}: {now}, and no limit is to be set for it."
    still = len(set(chain.from_iterable(found.left.values())))
    return f"{runs}: {now}, {still or 'none':} with what is set below."


def _reason(limit: Limit) -> str:
    return f"by {len(limit.alarms)} of {counted(limit.runs, 'run')}, most by {clean(limit.extreme, NAME)}"


def _listed(names: Sequence[str]) -> str:
    words = [clean(name, NAME) for name in names[:NAMED]]
    return in_words([*words, f"{len(names) - NAMED} more"] if len(names) > NAMED else words)


def _pair(limit: Limit) -> str:
    """Return a line of TOML; a part of its key that is no bare word is quoted."""
    parts = (part if BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in limit.key.split("."))
    return f"{'.'.join(parts)} = {limit.value!r}"
