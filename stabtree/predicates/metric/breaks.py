"""Series that break: those besides the loss that stop being finite, and a loss that nothing bounds."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, YES, Answer, Evidence
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, row_of, rows_before
from stabtree.common.stats import stretches
from stabtree.common.strength import whether
from stabtree.facts.loss_break import last_finite_before
from stabtree.metrics.metric import Role
from stabtree.metrics.role import describe_name
from stabtree.predicates.nonfinite import name_of
from stabtree.predicates.registry import predicate

if TYPE_CHECKING:
    from stabtree.run import Run, Series

MEASURED, PASSING = "measured", "passing"
# Questions of their own ask whether these are finite.
ASKED = frozenset(("loss", "eval_loss", "grad_norm"))
# What a step of training computes from the weights: after a NaN there, the weights are likely lost as well.
COMPUTED = frozenset((Role.LOSS, Role.HELD_OUT_LOSS, Role.PART, Role.VALUE, Role.POLICY, Role.ENTROPY))
COMPUTED |= {Role.GRADIENT, Role.NORM, Role.RATE}
LOSSES = frozenset((Role.LOSS, Role.PART, Role.VALUE, Role.POLICY))
NAMED = 3  # no limit


class Finiteness(StrEnum):
    """What becomes of a series that is not finite in some of its rows."""

    FINITE = "finite"
    UNDEFINED = "undefined"  # before its first value, or throughout
    RETURNS = "returns"
    LOST = "lost"


def finiteness(series: Series) -> Finiteness:
    """Return what becomes of a series.

    It is lost where it is not finite from some row to its end, for longer than ever before: a rate without a case in
    some of the rows is undefined there, and may be so in the last one.
    """
    if not len(broken_rows(series)):
        return Finiteness.FINITE
    spans = stretches(~np.isfinite(series.values))
    begin, end = spans[-1]
    if begin == 0:
        return Finiteness.UNDEFINED
    longest = max((end - begin for begin, end in spans[:-1]), default=0)
    if end == len(series) and end - begin > longest:
        return Finiteness.LOST
    return Finiteness.RETURNS


@predicate(
    source="stabtree",
    labels=(YES, MEASURED, PASSING, NO),
    rule=(
        "yes: a loss, a gradient, a norm, an entropy or a rate is not finite from some row to its end; measured: "
        "another series; passing: a loss is not finite in some rows, and then is again"
    ),
)
def series_breaks(run: Run) -> Answer:
    """Does another series than the loss stop being finite?

    Before its first finite value a series was not defined yet, and one that is no loss need not be defined in each row.
    Not asked where the loss itself is lost, which Q1.1 judges.
    """
    loss = run.get("loss")
    if loss is not None and len(loss) and not np.isfinite(loss.values[-1]):
        return Answer(NO, (Evidence("the loss itself is not finite at its end", "loss"),))
    verdicts: dict[str, list[Series]] = {}
    for name, series in {**run.series, **run.others}.items():
        verdicts.setdefault(broken_as(name, series), []).append(series)
    for verdict in (YES, MEASURED, PASSING):
        if verdict in verdicts:
            return _found(verdict, sorted(verdicts[verdict], key=_first_step))
    text = f"{len(verdicts.get(NO, ())):,} series end with a finite value, or never had one"
    return Answer(NO, (Evidence(text),), strength=whether(False))


def broken_as(name: str, series: Series) -> str:
    """Return how a series breaks, as one of the verdicts of `series_breaks`: no where it need not be defined there."""
    course, role = finiteness(series), describe_name(name).role
    if name in ASKED or course in (Finiteness.FINITE, Finiteness.UNDEFINED):
        return NO
    if course is Finiteness.RETURNS:
        return PASSING if role in LOSSES else NO
    return YES if role in COMPUTED else MEASURED


def _found(verdict: str, broken: list[Series]) -> Answer:
    evidence = [_evidence(series) for series in broken[:NAMED]]
    if len(broken) > NAMED:
        evidence.append(Evidence(f"so do {len(broken) - NAMED} more series"))
    first = broken[0]
    onset = _first_step(first)
    good = last_finite_before(first, int(np.searchsorted(first.steps, onset)))
    return Answer(verdict, tuple(evidence), strength=whether(True), onset_step=onset, last_good_step=good)


def _first_step(series: Series) -> int:
    """Return the first step after its first finite value at which a series is not finite."""
    sound = np.isfinite(series.values)
    begin = int(np.argmax(sound))
    return int(series.steps[begin + np.argmin(sound[begin:])])


def _evidence(series: Series) -> Evidence:
    name, step = series.metric, _first_step(series)
    count = int(np.count_nonzero(~np.isfinite(series.values[rows_before(series.steps, step) :])))
    value = name_of(float(series.values[row_of(series.steps, step)][0]))
    text = f"{name} is {value} from step {step:,} on, in {count:,} of its {len(series):,} rows"
    if np.isfinite(series.values[-1]):
        last = int(series.steps[~np.isfinite(series.values)][-1])
        return Evidence(f"{text}, and finite again after step {last:,}", name, (step,), float(count), 0.0, brief=name)
    return Evidence(f"{text}, to its end", name, (step,), float(count), 0.0, brief=name)
