"""What a finding means, in a plain sentence or two below its title: whether it is over, and what to doubt about it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.stats import median
from stabtree.common.text import in_words
from stabtree.context.find import context_of
from stabtree.facts.registry import finite
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.common.lazy import Floats
    from stabtree.diagnosis.result import Incident
    from stabtree.run import Run

CAME_BACK = "Q2.3"  # the node of a spike that the loss came back from
STAYED_UP = "Q2.4"  # the node of a spike that it did not come back from
RISES = "Q4.5"  # the node of a rise that nothing explains
EXPLAINS = {"lr": "lr", "weight_norm": "weight norm", "grad_norm": "gradient"}
MIN_ROWS = 3  # that make a level
LEVEL_SHARE = 20  # a level is one of so many parts of the rows
NEAR_CHANCE = 0.03
ROWS_OF_JUMP = 2  # a row that is a mean may hold a part of a jump


def recovered(run: Run, finding: Incident) -> str:
    """Describe how a loss ends that came back from a spike; empty where nothing came back."""
    series, onset = run.get("loss"), finding.onset_step
    if finding.leaf.of != CAME_BACK or series is None or onset is None:
        return ""
    steps, values = finite(series)
    rows = max(MIN_ROWS, len(values) // LEVEL_SHARE)
    if len(values) < 2 * rows:
        return ""
    before, last = values[: rows_before(steps, onset)][-rows:], float(values[-1])
    begins, ends = median(values[:rows]), median(values[-rows:])
    if finding.restart is None and len(before) and max(ends, last) <= before.max():
        return f"It came back: the loss ends at {figure(last, 4)}; nothing to restart."
    before_that = f"the {figure(begins, 4)} of its first rows" if last > begins else "where it was before"
    if last >= values[rows_before(steps, onset) :].max():
        return f"The loss ends at {figure(last, 4)}, above {before_that}."
    return f"The loss fell back from its top, but ends at {figure(last, 4)}, above {before_that}."


def stayed_up(run: Run, finding: Incident) -> str:
    """Say how far a loss went up that stays there, and whether that is where it began; empty of any other finding."""
    series, onset = run.get("loss"), finding.onset_step
    if finding.leaf.of != STAYED_UP or series is None or onset is None:
        return ""
    steps, values = finite(series)
    good = onset - 1 if finding.last_good_step is None else finding.last_good_step
    before = values[: rows_upto(steps, good)][-shared.ROWS_LONG :]
    after = values[rows_upto(steps, good) :]
    if len(before) < MIN_ROWS or len(after) < MIN_ROWS:
        return ""
    low, high = median(before), median(after[-max(MIN_ROWS, len(values) // LEVEL_SHARE) :])
    rows = int(np.argmax(after >= (low + high) / 2)) + 1
    way = "climbed" if rows > ROWS_OF_JUMP else "jumped"
    text = f"The loss {way} from {figure(low, 3)} to {figure(high, 3)}"
    if abs(high - values[0]) <= shared.SHARE_SOME * abs(values[0]):
        return f"{text}, back to the {figure(values[0], 3)} of its first row."
    return f"{text}, and stays there."


def led_to(finding: Incident) -> str:
    """Name what followed from a finding; empty where nothing did."""
    followed = [f"{item.leaf.title} ({item.unit} {item.onset_step:,})" for item in finding.consequences]
    return f"What followed: {'; '.join(followed)}." if followed else ""


def unlogged(run: Run, finding: Incident) -> str:
    """Name what would separate the causes of a rise and was not logged; empty where all of it was."""
    if finding.leaf.of != RISES:
        return ""
    names = [name for metric, name in EXPLAINS.items() if not run.has(metric)]
    if not names:
        return ""
    verb = "are" if len(names) > 1 else "is"
    return f"{in_words(names)} {verb} not logged."


def better_meanwhile(run: Run, finding: Incident) -> str:
    """Say that the quality on held-out data rose while the loss did: then the loss is no reason to stop."""
    quality, onset = run.get("eval_quality"), finding.onset_step
    if finding.leaf.of != RISES or quality is None or onset is None:
        return ""
    steps, values = finite(quality)
    before, after = values[: rows_upto(steps, onset)], values[rows_upto(steps, onset) :]
    if not len(before) or len(after) < MIN_ROWS:
        return ""
    last = median(after[-max(MIN_ROWS, len(after) // LEVEL_SHARE) :])
    if last <= before.max():
        return ""
    name = quality.origin or quality.metric
    return (
        f"{name} got better meanwhile ({figure(before.max(), 4)} → {figure(last, 4)}): look at the terms of the loss."
    )


def doubts(run: Run, finding: Incident) -> str:
    """Say why the lowest eval loss may not be the best of a run; empty where nothing speaks against it."""
    values = _values(run, "eval_loss")
    if finding.leaf.take is not Take.BEST or len(values) < MIN_ROWS:
        return ""
    return " ".join(_doubts(values, context_of(run).classes.value))


def _doubts(values: Floats, classes: object) -> Iterator[str]:
    lowest = float(values.min())
    rise = median(values[-max(MIN_ROWS, len(values) // 3) :]) - lowest
    at = int(values.argmin())
    swing = float(np.abs(np.diff(values[at:])).max(initial=0.0))
    if at == 0:
        yield "The eval loss is lowest at its very first evaluation: it never got better."
    elif swing > rise:
        yield f"The eval loss swings by up to {figure(swing)} between evaluations; its final rise is {figure(rise)}."
    yield from _no_better_than_a_guess(lowest, classes)


def _no_better_than_a_guess(lowest: float, classes: object) -> Iterator[str]:
    """Say that the lowest eval loss is that of a guess, among so many classes or else between two."""
    if isinstance(classes, int) and classes > 1:
        if lowest >= math.log(classes):
            yield f"It never was below {math.log(classes):.3g}, the loss of a guess."
    elif abs(lowest / math.log(2) - 1) < NEAR_CHANCE:
        yield f"Its lowest, {lowest:.3g}, is about ln 2, the loss of a guess between two."


def _values(run: Run, metric: str) -> Floats:
    series = run.get(metric)
    if series is None:
        return np.empty(0)
    return finite(series)[1]
