"""The answer of a measure: a verdict and the numbers behind it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

YES = "yes"
NO = "no"
UNKNOWN = "unknown"
LIKELY = "likely"
POSSIBLE = "possible"


class Evidence(Struct, frozen=True):
    """One thing that was seen.

    Attributes:
        text: the sentence for a person, with its numbers.
        metric: the series that it was seen in.
        steps: where, at most a handful of steps.
        observed: the number that was compared; None where it is not finite or not a number.
        threshold: what it was compared with.
        brief: a few words for the `headline` of a leaf; empty if there is nothing to add.
    """

    text: str
    metric: str = ""
    steps: tuple[int, ...] = ()
    observed: float | None = None
    threshold: float | None = None
    brief: str = ""


class Answer(Struct, frozen=True):
    """The answer to one question.

    Attributes:
        verdict: `yes`, `no`, `unknown`, or a label that the measure declares (`fp16`, ...).
        evidence: never empty unless the verdict is unknown.
        reason: why it is unknown.
        missing: the metrics and settings that would have answered it; those that the run has are not advised.
        onset_step: first step of what was found.
        last_good_step: last logged step before anything unusual.
        applies: of an unknown answer, whether the question has a meaning for this run.
        storm: whether the loss stopped being finite: a checkpoint from right before may hold what broke it.
        contrary: of a no, whether the log contradicts it; otherwise the log merely does not show it.
        strength: how far the evidence stands from the limit, in doublings: 0 and above for a finding, below 0 for a
            no; from the confidence bound where rows are few. None where an answer has no degrees.
        near: of a no with a strength, the verdict that it comes near to.
    """

    verdict: str
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    missing: tuple[str, ...] = ()
    onset_step: int | None = None
    last_good_step: int | None = None
    applies: bool = True
    storm: bool = False
    contrary: bool = False
    strength: float | None = None
    near: str = YES


def measured(strength: float, evidence: tuple[Evidence, ...], verdict: str = YES, **found: Any) -> Answer:
    """Return the answer of a measurement: the verdict from strength 0 on, no below it.

    Args:
        strength: how far the evidence stands from the limit, as `stabtree.common.shared` gives it.
        evidence: what was seen.
        verdict: the verdict that the limit is for.
        found: what else the answer holds where it is that verdict: `onset_step`, `last_good_step`, ...
    """
    if strength < 0:
        return Answer(NO, evidence, strength=strength, near=verdict)
    return Answer(verdict, evidence, strength=strength, **found)


def unknown(reason: str, *missing: str) -> Answer:
    """Return the answer if the data can't decide, with the metrics to log and the settings to name."""
    return Answer(UNKNOWN, reason=reason, missing=missing)


def inapplicable(reason: str) -> Answer:
    """Return the answer if the question has no meaning for the run, whatever else it logged."""
    return Answer(UNKNOWN, reason=reason, applies=False)
