"""The answer of a predicate: a verdict and the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass

YES = "yes"
NO = "no"
UNKNOWN = "unknown"
LIKELY = "likely"
POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class Evidence:
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


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question.

    Attributes:
        verdict: `yes`, `no`, `unknown`, or a label that the predicate declares (`fp16`, ...).
        evidence: never empty unless the verdict is unknown.
        reason: why it is unknown.
        missing: the metrics and settings that would have answered it; those that the run has are not advised.
        onset_step: first step of what was found.
        last_good_step: last logged step before anything unusual.
        applies: of an unknown answer, whether the question has a meaning for this run.
        storm: whether the loss stopped being finite: a checkpoint from right before may hold what broke it.
        contrary: of a no, whether the log contradicts it; otherwise the log merely does not show it.
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


def unknown(reason: str, *missing: str) -> Answer:
    """Return the answer if the data can't decide, with the metrics to log and the settings to name."""
    return Answer(UNKNOWN, reason=reason, missing=missing)


def inapplicable(reason: str) -> Answer:
    """Return the answer if the question has no meaning for the run, whatever else it logged."""
    return Answer(UNKNOWN, reason=reason, applies=False)
