"""The JSON Schema of `diagnose --json`: what each key holds is said here, and nowhere else.

Schema 1 only grows: a later version may add keys, and never drops, renames or retypes one. The schema knows the keys of
this very version; who checks documents of later ones lets further keys pass.
"""

from __future__ import annotations

from typing import Any

from stabtree.answer import UNKNOWN
from stabtree.diagnosis.result import CauseState
from stabtree.tree.model import Severity, Take

Schema = dict[str, Any]

VERDICTS = [*map(str, Severity), UNKNOWN]
SCALAR: Schema = {
    "description": "A value; null for a number that is not finite.",
    "type": ["string", "number", "boolean", "array", "null"],
    "items": {"type": "integer"},
}


def schema() -> Schema:
    """The schema as plain values, draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What `stabtree diagnose --json` prints, schema 1",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("diagnosis", "runs", "failure")],
        "$defs": {
            "diagnosis": _object("A run that was judged.", _diagnosis()),
            "runs": _object("Several runs.", _runs()),
            "failure": _object("Nothing could be read; the exit code is 2.", {"schema": _schema(), "error": _error()}),
            "visit": _object("A question of a walk and its answer.", _visit()),
            "evidence": _object("One thing that was seen.", _evidence()),
            "finding": _object("Something that was found: one event.", _finding()),
            "watch": _object("What the NaN monitor sees of one series.", _watch()),
        },
    }


def _object(about: str, keys: dict[str, Schema]) -> Schema:
    """An object that has all of these keys, and no others."""
    return {
        "description": about,
        "type": "object",
        "additionalProperties": False,
        "required": list(keys),
        "properties": keys,
    }


def _text(about: str) -> Schema:
    return {"description": about, "type": "string"}


def _flag(about: str) -> Schema:
    return {"description": about, "type": "boolean"}


def _count(about: str) -> Schema:
    return {"description": about, "type": "integer"}


def _number(about: str) -> Schema:
    return {"description": about, "type": ["number", "null"]}


def _word(about: str, words: list[str]) -> Schema:
    return {"description": about, "enum": words}


def _maybe(held: Schema) -> Schema:
    return {**held, "type": [held["type"], "null"]}


def _list(about: str, items: Schema) -> Schema:
    return {"description": about, "type": "array", "items": items}


def _texts(about: str) -> Schema:
    return _list(about, {"type": "string"})


def _of(name: str, about: str) -> Schema:
    return {"description": about, "$ref": f"#/$defs/{name}"}


def _each(name: str, about: str) -> Schema:
    return _list(about, {"$ref": f"#/$defs/{name}"})


def _map(about: str, values: Schema) -> Schema:
    return {"description": about, "type": "object", "additionalProperties": values}


def _schema() -> Schema:
    return {"description": "The number of this contract.", "const": 1}


def _error() -> Schema:
    keys = {
        "problem": _text("What is wrong."),
        "where": _text("The file, line or option that it is about; may be empty."),
        "hint": _text("What to do next; may be empty."),
    }
    return _object("Something that the user can mend.", keys)


def _runs() -> dict[str, Schema]:
    path = {"path": _text("The run's path, as it was named.")}
    judged = _object("A run that was judged, as alone.", path | _diagnosis())
    unread = _object("A log that can't be read.", path | {"schema": _schema(), "error": _error()})
    worst = f"The worst verdict of all; {UNKNOWN} also where the worst is a log that can't be read."
    return {
        "schema": _schema(),
        "verdict": _word(worst, VERDICTS),
        "runs": _list("The runs, in the order of their paths.", {"anyOf": [judged, unread]}),
    }


def _diagnosis() -> dict[str, Schema]:
    end = {
        "id": _text("The leaf."),
        "of": _text("The node of the source document that it belongs to."),
        "title": _text("The leaf in a few words."),
    }
    return {
        "schema": _schema(),
        "tool": _object("What judged it.", {"name": _text("stabtree."), "version": _text("Its version.")}),
        "run": _object("The run.", _run()),
        "tree": _text("The name of the tree that the path is of."),
        "rules": _object("By what it was judged.", _rules()),
        "verdict": _word("The worst severity found; unknown where what must be judged was not.", VERDICTS),
        "misread": _text("Why what was read of the log does not stand for the run; empty where it does."),
        "path": _each("visit", "The source document's own walk, up to its first leaf."),
        "trees": _list("The trees that were put together.", _object("A tree.", _tree())),
        "end": _object("The leaf at the end of the path.", end),
        "findings": _each("finding", "What was found, worst first."),
        "timeline": _list(
            "What happened around the onset of the first finding, by step.", _object("An event.", _event())
        ),
        "further": _list(
            "The walks of the later sections, past the first leaf.", _each("visit", "A walk, as the path is one.")
        ),
        "missing": _list("Questions that the log could not answer.", _object("A question.", _missing())),
        "log_next": _list("What to log next time, the most useful first.", _object("A thing to log.", _log_next())),
        "notes": _texts("What is to be said of a person's answers, and all that reading the log changed or ignored."),
        "monitor": {
            "description": "What the NaN monitor would have done; null where the loss is finite throughout.",
            "anyOf": [_object("The replay.", _monitor()), {"type": "null"}],
        },
    }


def _run() -> dict[str, Schema]:
    setting = {"value": SCALAR, "source": _text("Where it was read.")}
    given = {
        "path": _text("The file, as it was named."),
        "bytes": _maybe(_count("Its size when it was hashed; null where it was not.")),
        "sha256": _maybe(_text("The hash of the file as it is stored, packed or not; null where it was not hashed.")),
        "reason": _text("Why it was not hashed; empty where it was."),
    }
    return {
        "name": _text("Its name."),
        "first_step": _maybe(_count("The first step at which anything was logged.")),
        "last_step": _maybe(_count("The last one.")),
        "rows": _count("How many rows were read."),
        "metrics": _texts("The names of its series."),
        "config": _map("Its configuration.", _object("A setting.", setting)),
        "inputs": _list("The files that it was read from.", _object("A file.", given)),
    }


def _rules() -> dict[str, Schema]:
    return {
        "version": _text("The version of the tree that the path is of; empty where its file states none."),
        "sha256": _text("The hash of all trees that were put together, their words and numbers, before `set` counts."),
        "literal": _flag("Whether --literal was given."),
        "set": _map("What --set gave, by node and parameter.", _map("A node's parameters.", SCALAR)),
    }


def _visit() -> dict[str, Schema]:
    return {
        "id": _text("The question's id."),
        "ask": _text("The question."),
        "answer": _text("yes, no, unknown, or a label such as fp16."),
        "by": _word("Who gave the answer.", ["data", "person"]),
        "evidence": _each("evidence", "What decided it; empty where it is unknown."),
        "reason": _text("Why it is unknown; empty where it is not."),
    }


def _evidence() -> dict[str, Schema]:
    return {
        "text": _text("What was seen, in words."),
        "metric": _maybe(_text("The series that it was seen in.")),
        "steps": _list("Where, at most a handful of steps.", {"type": "integer"}),
        "observed": _number("The number that was compared; null where it is not finite or not a number."),
        "threshold": _number("What it was compared with."),
    }


def _tree() -> dict[str, Schema]:
    return {
        "name": _text("Its name."),
        "title": _text("Its title."),
        "walked": _flag("Whether any of it was walked."),
        "why": _text("Why, or why not."),
    }


def _event() -> dict[str, Schema]:
    return {
        "step": _count("When."),
        "metric": _text("The series."),
        "text": _text("What it did."),
        "first": _flag("Whether it alone moved before all others."),
    }


def _missing() -> dict[str, Schema]:
    return {
        "id": _text("The question's id."),
        "reason": _text("Why it has no answer."),
        "metric": _texts("What the run lacks for it; empty where nothing to log would help."),
        "log": _text("How to log it."),
    }


def _log_next() -> dict[str, Schema]:
    return {
        "metric": _texts("Metrics to log, or settings to name."),
        "log": _text("How to log them."),
        "unlocks": _texts("Ids of the questions and causes that they would answer."),
        "decides": _texts("What of the findings they would settle."),
    }


def _leaf() -> dict[str, Schema]:
    return {
        "id": _text("The leaf."),
        "title": _text("The leaf in a few words."),
        "severity": _word("How bad it is.", [*map(str, Severity)]),
        "onset_step": _maybe(_count("The first step of what was found.")),
    }


def _finding() -> dict[str, Schema]:
    fix = {"fix": _text("What to do."), "reason": _text("What in the log speaks for it; may be empty.")}
    return _leaf() | {
        "of": _text("The node of the source document that the leaf belongs to."),
        "section": _text("The section whose walk ended there."),
        "why": _text("What it means."),
        "onset_time": _maybe(_text("When that was, in UTC as of ISO 8601; null where the log tells no date.")),
        "last_good_step": _maybe(_count("The last logged step before it.")),
        "evidence": _each("evidence", "What the questions on the way saw."),
        "precursors": _each("evidence", "What had left its normal course before."),
        "causes": _list("Judged causes, strongest first.", _object("A cause.", _cause())),
        "fixes": _texts("All fixes, in the order in which to try them."),
        "first_fixes": _list("Those to try first.", _object("A fix.", fix)),
        "restart": {
            "description": "Where to restart; null where the leaf calls for none.",
            "anyOf": [_object("A restart.", _restart()), {"type": "null"}],
        },
        "see": _texts("Where to read on."),
        "own_onset_step": _maybe(_count("Where its own leaf begins; the event may have begun earlier.")),
        "ignored": _flag("Whether --ignore names its leaf: it counts for nothing."),
        "also": _list("What else tells of the same event.", _object("A leaf.", _leaf())),
    }


def _cause() -> dict[str, Schema]:
    return {
        "id": _text("Its id."),
        "state": _word("What the log says of it.", [str(state).replace(" ", "_") for state in CauseState]),
        "text": _text("The cause."),
        "evidence": _each("evidence", "What was seen of it."),
        "reason": _text("Why nothing was; may be empty."),
        "fixes": _texts("What mends it."),
    }


def _restart() -> dict[str, Schema]:
    return {
        "checkpoint_step": _maybe(_count("The checkpoint to take; null where there is none.")),
        "checkpoint_every": _count("Steps between checkpoints; 0 where none is known or assumed."),
        "assumed": _flag("Whether nothing says where the checkpoints are."),
        "lost_steps": _count("Steps that are run again."),
        "fresh_step": _maybe(_count("A newer checkpoint that was passed over: it may hold what broke the run.")),
        "path": _maybe(_text("Where the checkpoint lies; null where it was not seen.")),
        "before_step": _count("The step of the trouble that it must be older than; for the best one where that was."),
        "lost_hours": _number("Hours that went into the lost steps; null where no time was logged."),
        "take": _word("Which checkpoint is advised.", [*map(str, Take)]),
        "unit": _word("What all these steps count.", ["step", "epoch", "row"]),
    }


def _monitor() -> dict[str, Schema]:
    return {
        "max_consecutive": _count("So many rows in a row without a finite loss stop the run."),
        "every": _count("Steps between two rows."),
        "steps_in_vain": _count("Steps that ran after it would have stopped."),
        "loss": _of("watch", "The loss."),
        "grad_norm": {
            "description": "The gradient norm; null where it was not logged, or is finite throughout.",
            "anyOf": [{"$ref": "#/$defs/watch"}, {"type": "null"}],
        },
        "first_ranks": _texts("The ranks that broke first."),
        "first_rank_step": _maybe(_count("When.")),
        "other_ranks": _texts("The ranks that would have been told of it."),
    }


def _watch() -> dict[str, Schema]:
    return {
        "first_step": _count("The first step that is not finite."),
        "total": _count("How many rows are not."),
        "longest": _count("The most in a row."),
        "stop_step": _maybe(_count("Where it would have stopped the run; null where it would not.")),
        "returned_step": _maybe(_count("Where the series came back for good.")),
        "last_good": _number("The last finite value before."),
        "last_good_step": _maybe(_count("Its step.")),
    }
