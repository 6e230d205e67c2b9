"""What calibrating found: on the screen, as TOML to paste into the settings of a project, as JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

from stabtree.common.text import clean, in_words
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import new_page
from stabtree.report.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.report.page import Page
    from stabtree.tools.tune.calibrate.result import Calibration, Change, Left

LEAF, KEY = 20, 24  # columns of a screen
NAMED = 3  # runs or faults of a list that are named; the others are counted
NAME = 60
ENOUGH = 30  # runs, with which none that alarms leaves up to about a tenth
BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml(calibration: Calibration, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the lines for a project's settings, each with what it rests on and what it gives up."""
    found = _shortened(calibration)
    lines = [f"# {line}" for line in _summary(found)]
    lines += [f'# ignore = ["{item.leaf}"]  # {_advice(item)}' for item in found.left if not item.never]
    if found.changes:
        lines += ["# Under [tool.stabtree.set] in pyproject.toml, under [set] in stabtree.toml.", "[set]"]
    for change in found.changes:
        lines.append(f"{_key(change.knob.key)} = {change.value!r}  # {'; '.join(_reasons(change))}")
    return "\n".join(lines) + "\n"


def screen(calibration: Calibration, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return what to set and where, and what is given up by it."""
    found, page = _shortened(calibration), new_page(look)
    first, *rest = _summary(found)
    page.line((first, "title"))
    _left_out(page, found)
    if found.changes:
        page.heading("Set")
        for change in found.changes:
            _change(page, change)
    if found.left:
        page.heading("Still reported")
        width = max(LEAF, *(len(item.leaf) + 2 for item in found.left))
        for item in found.left:
            page.item((item.leaf, "id"), [(_advice(item), "")], indent=1, head_width=width)
    for line in rest:
        page.blank()
        page.line((line, ""))
    if found.changes:
        page.heading("Into stabtree.toml (in pyproject.toml under [tool.stabtree.set])")
        pairs = [f"{_key(change.knob.key)} = {change.value!r}" for change in found.changes]
        page.lines([[(line, "")] for line in ("[set]", *pairs)], indent=1)
        page.line(("with what it rests on: --output toml=FILE", "dim"))
    return page.text()


def data(calibration: Calibration, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return all of it for machines."""
    import json

    expected = calibration.expected
    found: dict[str, Any] = {
        "schema": 1,
        "runs": list(calibration.runs),
        "excluded": [{"run": name, "reason": reason} for name, reason in calibration.excluded],
        "alarmed": calibration.alarmed.count,
        "set": calibration.settings,
        "changes": [_plain(change) for change in calibration.changes],
        "left": [
            {"leaf": item.leaf, "runs": list(item.runs), "never": item.never, "missed": list(item.missed)}
            for item in calibration.left
        ],
        "false_alarms": {"count": expected.count, "of": expected.of, "low": expected.low, "high": expected.high},
        "faults": {
            "labelled": calibration.faults,
            "caught": calibration.caught,
            "missed": [
                {"name": m.name, "leaf": m.leaf, "question": m.question, "before": m.before, "after": m.after}
                for m in calibration.missed
            ],
        },
    }
    return json.dumps(found, indent=1)


def _shortened(calibration: Calibration) -> Calibration:
    """Return the same without the folder that all runs are in."""
    names = [*calibration.runs, *(name for name, _ in calibration.excluded)]
    shared = 0
    if len(names) > 1:
        folders = zip(*(name.split("/")[:-1] for name in names), strict=False)
        shared = sum(1 for _ in takewhile(lambda parts: len({*parts}) == 1, folders))

    def short(name: str) -> str:
        return clean("/".join(name.split("/")[shared:]), NAME)

    changes = (
        replace(one, extreme=short(one.extreme), runs=tuple(map(short, one.runs))) for one in calibration.changes
    )
    return replace(
        calibration,
        excluded=tuple((short(name), clean(reason)) for name, reason in calibration.excluded),
        changes=tuple(changes),
        left=tuple(replace(item, runs=tuple(map(short, item.runs))) for item in calibration.left),
    )


def _summary(calibration: Calibration) -> list[str]:
    """Return how many alarm, how many will, and what is given up."""
    if not calibration.runs:
        return ["None of the runs can stand for a healthy one: nothing to calibrate from."]
    return [_counted(calibration), _expected(calibration), _given_up(calibration)]


def _left_out(page: Page, calibration: Calibration) -> None:
    for name, reason in calibration.excluded[:NAMED]:
        page.item(("left out", "dim"), [(f"{name}  {reason}", "")], indent=1, head_width=10)
    if (more := len(calibration.excluded) - NAMED) > 0:
        page.line((f"and {more} more: --json names all", "dim"), indent=11)
    if calibration.broken:
        page.line(("--trust takes runs that look broken for healthy", "dim"), indent=11)


def _change(page: Page, change: Change) -> None:
    knob = change.knob
    first = [(f"{knob.base:g}", "dim"), (" → ", "dim"), (f"{change.value:g}", "number")]
    page.item((knob.key, "id"), [*first, (f"  {in_words(change.leaves)}", "")], indent=1, head_width=KEY)
    for reason in _reasons(change):
        page.line((reason, "dim"), indent=3, hanging=2)


def _reasons(change: Change) -> list[str]:
    """Return what a line rests on."""
    knob, count = change.knob, len(change.runs)
    reasons = [f"shipped {knob.shipped:g}"]
    if knob.base != knob.shipped:
        reasons.append(f"set before to {knob.base:g}: take that line out")
    needed = f"by {change.extreme}: {change.needed:.4g}"
    if change.seen:
        needed += f': "{clean(change.seen)}"'
    if count > 1:
        needed = f"by {count} runs, most {needed}"
    reasons.append(f"needed {needed}")
    if change.margin:
        reasons.append(f"margin for runs to come {change.margin:.1%}")
    else:
        reasons.append("no margin: other runs need as much")
    return reasons


def _counted(calibration: Calibration) -> str:
    alarmed, of = calibration.alarmed.count, calibration.alarmed.of
    runs = counted(of, "healthy run")
    if not alarmed:
        return f"{runs}, and none alarms: nothing to set."
    now = f"{runs}: {alarmed:,} alarm now"
    if alarmed == 1:
        now = f"{runs}: 1 alarms now"
    if not calibration.changes:
        return f"{now}, and no threshold is to be set for it."
    still = len(set(chain.from_iterable(item.runs for item in calibration.left)))
    if not still:
        return f"{now}, none with what is set below."
    return f"{now}, {still:,} with what is set below."


def _expected(calibration: Calibration) -> str:
    share = calibration.expected
    observed = f"False alarms to expect: {share.count} of {share.of} when each run is left out in turn"
    if share.count:
        return f"{observed}; with 95% confidence {share.low:.1%} to {share.high:.1%} of such runs."
    bound = f"{observed}; with 95% confidence at most {share.high:.1%} of such runs."
    if share.of >= ENOUGH:
        return bound
    return f"{bound} So few runs can't show less; {ENOUGH} of which none alarms would show at most 12%."


def _given_up(calibration: Calibration) -> str:
    known = f"of {calibration.faults} labelled faults"
    if calibration.caught < calibration.faults:
        known = f"of {calibration.caught} labelled faults that are caught now ({calibration.faults} in all)"
    if not calibration.missed:
        return f"Given up: {known} none would be missed."
    named = [f"{clean(miss.name, NAME)} ({miss.question} {miss.before} -> {miss.after})" for miss in calibration.missed]
    return f"Given up: {known} {len(named)} would be missed: {', '.join(named)}."


def _advice(item: Left) -> str:
    runs = f"{_listed(item.runs)}: "
    if item.never:
        return f"{runs}it reports NaN or a divergence, which no threshold may hide"
    if item.missed:
        cost = f"which would miss {_listed(item.missed)}"
    else:
        cost = "which misses no labelled fault"
    return f"{runs}no single number silences it; if it is harmless here: --ignore {item.leaf}, {cost}"


def _listed(names: Sequence[str]) -> str:
    words = [clean(name, NAME) for name in names[:NAMED]]
    if len(names) > NAMED:
        words.append(f"{len(names) - NAMED} more")
    return in_words(words)


def _key(key: str) -> str:
    """Return a dotted key of TOML; a part that is no bare word is quoted."""
    import json

    def quoted(part: str) -> str:
        if BARE.fullmatch(part):
            return part
        return json.dumps(part, ensure_ascii=False)

    return ".".join(map(quoted, key.split(".")))


def _plain(change: Change) -> dict[str, Any]:
    knob = change.knob
    return {
        "set": knob.key,
        "question": knob.question,
        "shipped": knob.shipped,
        "before": knob.base,
        "value": change.value,
        "needed": change.needed,
        "margin": change.margin,
        "extreme": change.extreme,
        "seen": change.seen,
        "runs": list(change.runs),
        "leaves": list(change.leaves),
    }
