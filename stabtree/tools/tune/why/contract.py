"""What `--why-not` adds to the contract of `--json`."""

from __future__ import annotations

from stabtree.report.json.shapes import SCALAR, Schema, flag, many, maybe, number, record, text, texts, word
from stabtree.tools.tune.why.model import NodeStatus


def why_not(visit: dict[str, Schema]) -> dict[str, Schema]:
    """Return why no walk came to a node.

    Args:
        visit: what is said of a question of a walk; one on the way says it, too.
    """
    about = "The questions from the entry of its section to it; what is behind one that `set` turns, as if it had been."
    return {
        "node": text("The question, the leaf, or what holds several leaves."),
        "title": text("What it is called."),
        "came": word("Whether a walk came to it.", [str(status).replace(" ", "_") for status in NodeStatus]),
        "why": text("What the questions don't say; may be empty."),
        "way": many(about, record("A question.", visit | _stage())),
        "set": many("What, set together, takes the walk there.", record("A parameter.", _flip())),
        "log": many("What to log for its section to be walked.", record("A thing to log.", _lack())),
    }


def _stage() -> dict[str, Schema]:
    margin = {
        "metric": maybe(text("The series.")),
        "steps": many("Where.", {"type": "integer"}),
        "observed": number("The number that was compared."),
        "threshold": number("What it was compared with."),
        "missed_by": number("How far it is from there."),
        "decides": flag("Whether getting past it is known to turn the answer."),
    }
    return {
        "walked": flag("Whether a walk came to it; else it was asked for this alone."),
        "wanted": texts("The answers that lead on to the node."),
        "to": text("Where they lead."),
        "agrees": flag("Whether the answer is one of them, or counts as one."),
        "margin": {
            "description": "By how much a number missed it; null where no single number is known to decide.",
            "anyOf": [record("A number and its limit.", margin), {"type": "null"}],
        },
        "set": many("What would have turned it alone, the smallest change first.", record("A parameter.", _flip())),
        "log": many("What to log for an answer.", record("A thing to log.", _lack())),
        "by_hand": flag("Whether --answer can answer it."),
    }


def _flip() -> dict[str, Schema]:
    return {
        "key": text("What to type after --set."),
        "now": {**SCALAR, "description": "Its value in this walk."},
        "value": {**SCALAR, "description": "The nearest one that would do."},
    }


def _lack() -> dict[str, Schema]:
    return {"metric": text("A metric, or a setting of the manifest."), "log": text("How to log it.")}
