"""What `--why-not` adds to the contract of `--json`."""

from __future__ import annotations

from typing import Annotated, Literal

from stabtree.report.contract import JsonPart, Scalar, VisitPart


class LackPart(JsonPart):
    """A thing to log."""

    metric: Annotated[str, "A metric, or a setting of the manifest."]
    log: Annotated[str, "How to log it."]


class FlipPart(JsonPart):
    """A parameter."""

    key: Annotated[str, "What to type after --set."]
    now: Annotated[Scalar, "Its value in this walk."]
    value: Annotated[Scalar, "The nearest one that would do."]


class NearMissPart(JsonPart):
    """A number and its limit."""

    metric: Annotated[str | None, "The series."]
    steps: Annotated[list[int], "Where."]
    observed: Annotated[float | None, "The number that was compared."]
    threshold: Annotated[float | None, "What it was compared with."]
    missed_by: Annotated[float | None, "How far it is from there."]
    decides: Annotated[bool, "Whether getting past it is known to turn the answer."]


class StagePart(VisitPart):
    """A question on the way."""

    walked: Annotated[bool, "Whether a walk came to it; else it was asked for this alone."]
    wanted: Annotated[list[str], "The answers that lead on to the node."]
    to: Annotated[str, "Where they lead."]
    agrees: Annotated[bool, "Whether the answer is one of them, or counts as one."]
    margin: Annotated[
        NearMissPart | None, "By how much a number missed it; null where no single number is known to decide."
    ]
    set: Annotated[list[FlipPart], "What would have turned it alone, the smallest change first."]
    log: Annotated[list[LackPart], "What to log for an answer."]
    by_hand: Annotated[bool, "Whether --answer can answer it."]


class WhyNotPart(JsonPart):
    """What led away from it."""

    node: Annotated[str, "The question, the leaf, or what holds several leaves."]
    title: Annotated[str, "What it is called."]
    came: Annotated[Literal["reached", "turned_away", "not_walked", "elsewhere"], "Whether a walk came to it."]
    why: Annotated[str, "What the questions don't say; may be empty."]
    way: Annotated[
        list[StagePart],
        "The questions from the entry of its section to it; what is behind one that `set` turns, as if it had been.",
    ]
    set: Annotated[list[FlipPart], "What, set together, takes the walk there."]
    log: Annotated[list[LackPart], "What to log for its section to be walked."]


def why_not() -> type[WhyNotPart]:
    """Return why no walk came to a node."""
    return WhyNotPart
