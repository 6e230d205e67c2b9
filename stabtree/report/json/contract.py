"""The JSON Schema of `diagnose --json` and `watch --json`: what each key holds; events are described in `events`.

Schema 1 only grows: a later version may add keys, and never drops, renames or retypes one.
"""

from __future__ import annotations

from stabtree.common import extensions
from stabtree.common.answer import UNKNOWN
from stabtree.diagnosis.judged import CauseState
from stabtree.report.json.run_contract import (
    account_entry,
    context_parts,
    decision_parts,
    log_next_parts,
    missing_parts,
    near_parts,
    run_parts,
)
from stabtree.report.json.shapes import (
    SCALAR,
    Schema,
    count,
    each,
    flag,
    many,
    mapping,
    maybe,
    number,
    of,
    record,
    text,
    texts,
    word,
)
from stabtree.tree.model import Severity, Take

VERDICTS = [*map(str, Severity), UNKNOWN]


def schema() -> Schema:
    """Return the schema as plain values, draft 2020-12."""
    events: dict[str, Schema] = extensions.function("watch_contract")()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What `stabtree diagnose --json` prints, and each line of `watch --json`, schema 1",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("diagnosis", "runs", "failure", *events)],
        "$defs": {
            "diagnosis": record("A run that was judged.", _diagnosis()),
            "runs": record("Several runs.", _runs()),
            "failure": record("Nothing could be read; the exit code is 2.", {"schema": _schema(), "error": _error()}),
            "visit": record("A question of a walk and its answer.", _visit()),
            "evidence": record("One thing that was seen.", _evidence()),
            "finding": record("Something that was found: one event.", _finding()),
            "watch": record("What the NaN monitor sees of one series.", _watch()),
            **events,
        },
    }


def _schema() -> Schema:
    return {"description": "The number of this contract.", "const": 1}


def _error() -> Schema:
    keys = {
        "problem": text("What is wrong."),
        "where": text("The file, line or option that it is about; may be empty."),
        "hint": text("What to do next; may be empty."),
    }
    return record("Something that the user can fix.", keys)


def _runs() -> dict[str, Schema]:
    source = {"source": text("The run's path as it was named, with the run's name where the path holds several.")}
    path = {"path": text("The same.")}
    judged = record("A run that was judged, as alone.", source | _diagnosis())
    unread = record("A log that can't be read.", source | path | {"schema": _schema(), "error": _error()})
    worst = f"The worst verdict of all; {UNKNOWN} also where the worst is a log that can't be read."
    return {
        "schema": _schema(),
        "verdict": word(worst, VERDICTS),
        "runs": many("The runs, in the order of their paths.", {"anyOf": [judged, unread]}),
    }


def _diagnosis() -> dict[str, Schema]:
    end = {
        "id": text("The leaf."),
        "of": text("The node of the source document that it belongs to."),
        "title": text("The leaf in a few words."),
    }
    return {
        "schema": _schema(),
        "tool": record("What judged it.", {"name": text("stabtree."), "version": text("Its version.")}),
        "run": record("The run.", run_parts()),
        "context": record("Who the run is.", context_parts()),
        "tree": text("The name of the tree that the path is of."),
        "rules": record("By what it was judged.", _rules()),
        "verdict": word("The worst severity found; unknown where what must be judged was not.", VERDICTS),
        "misread": text("Why what was read of the log does not represent the run; empty where it does."),
        "path": each("visit", "The source document's own walk, up to its first leaf."),
        "trees": many("The trees that were put together.", record("A tree.", _tree())),
        "end": record("The leaf at the end of the path.", end),
        "findings": each("finding", "What was found, worst first."),
        "timeline": many("What happened around the onset of the first finding.", record("An event.", _event())),
        "further": many("The walks of the later sections, past the first leaf.", each("visit", "A walk, as the path.")),
        "near": many(
            "What came near to an alarm without reaching it, likeliest first.", record("A fact.", near_parts())
        ),
        "missing": many("Questions that the log could not answer.", record("A question.", missing_parts())),
        "log_next": many("What to log next time, the most useful first.", record("A thing to log.", log_next_parts())),
        "notes": texts("Notes on a person's answers and on accepted findings, and all that reading the log changed."),
        "account": many("What became of all that the files hold.", record("An entry.", account_entry())),
        "monitor": {
            "description": "What the NaN monitor would have done; null where the loss is finite throughout.",
            "anyOf": [record("The replay.", _monitor()), {"type": "null"}],
        },
        "why_not": {
            "description": "Why no walk came to the node that --why-not names; null without it.",
            "anyOf": [_why_not(), {"type": "null"}],
        },
    }


def _why_not() -> Schema:
    return record("What led away from it.", extensions.function("why_not_contract")(_visit()))


def _rules() -> dict[str, Schema]:
    return {
        "version": text("The version of the tree that the path is of; empty where its file states none."),
        "sha256": text("The hash of all trees that were put together, their words and numbers, before `set` counts."),
        "literal": flag("Whether --literal was given."),
        "set": mapping("What --set gave, by node and parameter.", mapping("A node's parameters.", SCALAR)),
    }


def _visit() -> dict[str, Schema]:
    return {
        "id": text("The question's id."),
        "ask": text("The question."),
        "answer": text("yes, no, unknown, or a label such as fp16."),
        "by": word("Who gave the answer.", ["data", "person"]),
        "evidence": each("evidence", "What decided it; empty where it is unknown."),
        "reason": text("Why it is unknown; empty where it is not."),
        "strength": number("How far the evidence is from the limit, in doublings; null where it has no degrees."),
    }


def _evidence() -> dict[str, Schema]:
    return {
        "text": text("What was seen, in words."),
        "metric": maybe(text("The series that it was seen in.")),
        "steps": many("Where, at most a handful of steps.", {"type": "integer"}),
        "observed": number("The number that was compared; null where it is not finite or not a number."),
        "threshold": number("What it was compared with."),
    }


def _tree() -> dict[str, Schema]:
    return {
        "name": text("Its name."),
        "title": text("Its title."),
        "walked": flag("Whether any of it was walked."),
        "why": text("Why, or why not."),
    }


def _event() -> dict[str, Schema]:
    return {
        "step": count("When."),
        "metric": text("The series."),
        "text": text("What it did."),
        "first": flag("Whether it alone moved before all others."),
    }


def _leaf() -> dict[str, Schema]:
    return {
        "id": text("The leaf."),
        "title": text("The leaf in a few words."),
        "severity": word("How bad it is.", [*map(str, Severity)]),
        "onset_step": maybe(count("The first step of what was found.")),
    }


def _finding() -> dict[str, Schema]:
    fix = {"fix": text("What to do."), "reason": text("What in the log speaks for it; may be empty.")}
    return _leaf() | {
        "of": text("The node of the source document that the leaf belongs to."),
        "section": text("The section whose walk ended there."),
        "why": text("What it means."),
        "onset_time": maybe(text("When that was, in UTC as of ISO 8601; null where the log has no date.")),
        "last_good_step": maybe(count("The last logged step at which everything was at its level.")),
        "evidence": each("evidence", "What the questions on the way saw."),
        "precursors": each("evidence", "What had left its normal course before."),
        "causes": many("Judged causes, strongest first.", record("A cause.", _cause())),
        "fixes": texts("All fixes, in the order in which to try them."),
        "first_fixes": many("Those to try first.", record("A fix.", fix)),
        "restart": {
            "description": "Where to restart; null where the leaf calls for none.",
            "anyOf": [record("A restart.", _restart()), {"type": "null"}],
        },
        "see": texts("Where to read on."),
        "page": maybe(text("The address of a page on the leaf; null where its tree names none.")),
        "own_onset_step": maybe(count("Where its own leaf begins; the event may have begun earlier.")),
        "ignored": flag("Whether it is left out of the verdict: its leaf is ignored, or it is accepted."),
        "accepted": {
            "description": "Why it is accepted; null where it is not.",
            "anyOf": [record("The acceptance.", _accepted()), {"type": "null"}],
        },
        "also": many("Other findings of the same event.", record("A leaf.", _leaf())),
        "consequences": many("Findings that followed from it.", record("A leaf.", _leaf())),
        "rows": many("The rows that show it, by step.", record("A row.", _row())),
        "decision": {
            "description": "What to find out first; null where the log decides between the causes.",
            "anyOf": [record("A decision.", decision_parts()), {"type": "null"}],
        },
        "open": flag("Whether it lasts to the end of the log."),
        "p": number("How likely an engineer would call the run faulty in this way; null where that was not fitted."),
    }


def _row() -> dict[str, Schema]:
    return {
        "step": count("Its step."),
        "what": word("What it shows.", ["last good", "onset", "worst", "end"]),
        "values": mapping("What was logged there, by metric.", {"type": ["number", "null"]}),
    }


def _accepted() -> dict[str, Schema]:
    return {
        "reason": text("Why it is accepted; may be empty."),
        "since": text("Since when; may be empty."),
        "source": text("The file that says so: the settings, or the baseline."),
    }


def _cause() -> dict[str, Schema]:
    return {
        "id": text("Its id."),
        "state": word("What the log says of it.", [str(state).replace(" ", "_") for state in CauseState]),
        "text": text("The cause."),
        "evidence": each("evidence", "What was seen of it."),
        "reason": text("Why nothing was; may be empty."),
        "fixes": texts("What fixes it."),
        "odds": number("How many times likelier it is than a cause of which nothing is known."),
    }


def _restart() -> dict[str, Schema]:
    return {
        "checkpoint_step": maybe(count("The checkpoint to take; null where there is none, or none is known.")),
        "up_to_step": maybe(count("Any checkpoint up to this step will do; the best one is nearest to it.")),
        "checkpoint_every": count("Steps between checkpoints; 0 where that is not known."),
        "assumed": flag("Whether nothing says where the checkpoints are."),
        "lost_steps": count("Steps that are run again."),
        "fresh_step": maybe(count("A newer checkpoint that was passed over: it may hold what broke the run.")),
        "path": maybe(text("Where the checkpoint is; null where it was not seen.")),
        "before_step": count("The step of the trouble that it must be older than; for the best one where that was."),
        "lost_hours": number("Hours that went into the lost steps; null where no time was logged."),
        "take": word("Which checkpoint is advised.", [*map(str, Take)]),
        "unit": word("What all these steps count.", ["step", "epoch", "row"]),
    }


def _monitor() -> dict[str, Schema]:
    return {
        "max_consecutive": count("So many rows in a row without a finite loss stop the run."),
        "every": count("Steps between two rows."),
        "steps_in_vain": count("Steps that ran after it would have stopped."),
        "loss": of("watch", "The loss."),
        "grad_norm": {
            "description": "The gradient norm; null where it was not logged, or is finite throughout.",
            "anyOf": [{"$ref": "#/$defs/watch"}, {"type": "null"}],
        },
        "first_ranks": texts("The ranks that broke first."),
        "first_rank_step": maybe(count("When.")),
        "other_ranks": texts("The ranks that would have logged it as broken elsewhere."),
    }


def _watch() -> dict[str, Schema]:
    return {
        "first_step": count("The first step that is not finite."),
        "total": count("How many rows are not."),
        "longest": count("The most in a row."),
        "stop_step": maybe(count("Where it would have stopped the run; null where it would not.")),
        "returned_step": maybe(count("Where the series came back for good.")),
        "last_good": number("The last finite value before."),
        "last_good_step": maybe(count("Its step.")),
    }
