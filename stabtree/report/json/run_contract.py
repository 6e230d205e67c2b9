"""The JSON Schema of a run: its files and configuration, its context, what was read, and what stays open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.context.model import CONFIGURED, INFERRED, LOGGED, PHASES, TASKS, UNKNOWN
from stabtree.judging.account import Fate
from stabtree.report.json.shapes import SCALAR, Schema, count, many, mapping, maybe, number, record, text, texts, word
from stabtree.run import PRECISIONS

if TYPE_CHECKING:
    from collections.abc import Sequence


def run_parts() -> dict[str, Schema]:
    """Return the schema of the keys of a run."""
    setting = {"value": SCALAR, "source": text("Where it was read.")}
    given = {
        "path": text("The file, as it was named."),
        "bytes": maybe(count("Its size when it was hashed; null where it was not.")),
        "sha256": maybe(text("The hash of the file as it is stored, packed or not; null where it was not hashed.")),
        "reason": text("Why it was not hashed; empty where it was."),
    }
    return {
        "name": text("Its name."),
        "first_step": maybe(count("The first step at which anything was logged.")),
        "last_step": maybe(count("The last one.")),
        "rows": count("How many rows were read."),
        "metrics": texts("The names of its series."),
        "config": mapping("Its configuration.", record("A setting.", setting)),
        "inputs": many("The files that it was read from.", record("A file.", given)),
    }


def account_entry() -> dict[str, Schema]:
    """Return the schema of an entry of the account."""
    kinds = ["series", "values", "cells", "lines"]
    return {
        "kind": word("A series, its values that are not finite, its cells that are no numbers, or lines.", kinds),
        "name": text("The column; of lines the first one, or why it could not be read."),
        "fate": word("What became of it.", [*map(str, Fate)]),
        "count": count("How many values, cells or lines there are."),
        "reason": text("Why it is not judged; empty where it is."),
        "first": maybe(count("The step of the first such value, or the number of the first such line.")),
        "path": text("The file."),
    }


def context_parts() -> dict[str, Schema]:
    """Return the schema of each part of a context, by its name."""
    how = {
        "how": word("How it is known.", [CONFIGURED, LOGGED, INFERRED, UNKNOWN]),
        "why": text("The evidence in a few words; empty where it is not known."),
    }
    words = {
        "task": ("What it trains.", TASKS),
        "algorithm": ("The algorithm, of tasks that have several.", ()),
        "phase": ("Where its weights began.", PHASES),
        "framework": ("The trainer.", ()),
        "precision": ("The number format.", PRECISIONS),
        "optimizer": ("The optimizer.", ()),
    }
    parts: dict[str, tuple[Schema, dict[str, Schema]]]
    parts = {name: (_one_of(about, among), {}) for name, (about, among) in words.items()}
    better = {"better": word("Where the outcome goes while the run does well.", ["lower", "higher", None])}
    parts["planned_steps"] = (maybe(count("The optimizer steps that were planned.")), {})
    parts["peak_lr"] = (number("The highest learning rate; null where it is not known."), {})
    parts["classes"] = (maybe(count("The classes, or tokens, that one guess is among.")), {})
    parts["outcome"] = (maybe(text("The metric that says how well the run does.")), better)
    parts["chance"] = (number("The value of the outcome for an uninformed guess; null where it is not known."), {})
    return {name: record("A part.", {"value": value, **how, **more}) for name, (value, more) in parts.items()}


def _one_of(about: str, words: Sequence[str]) -> Schema:
    return word(about, [*words, None]) if words else maybe(text(about))


def decision_parts() -> dict[str, Schema]:
    """Return the parts of a question that decides between causes."""
    branch = {"answer": text("What may come out."), "do": text("What to do then.")}
    return {
        "ask": text("The question, or the trial to run."),
        "branches": many("What may come out of it.", record("An outcome.", branch)),
        "causes": texts("Ids of the causes between which it decides; empty where the finding itself asks."),
    }


def near_parts() -> dict[str, Schema]:
    """Return the parts of a fact that came near to an alarm."""
    return {
        "id": text("The question's id."),
        "leaf": text("The leaf that it would have led to."),
        "p": number("How likely an engineer would call the run faulty in this way."),
        "strength": number("How far it is from the limit, in doublings; below 0."),
        "text": text("What was seen, in words."),
    }


def missing_parts() -> dict[str, Schema]:
    """Return the parts of a question that the log could not answer."""
    return {
        "id": text("The question's id."),
        "reason": text("Why it has no answer."),
        "metric": texts("What the run lacks for it; empty where nothing to log would help."),
        "log": text("How to log it."),
    }


def log_next_parts() -> dict[str, Schema]:
    """Return the parts of a thing to log next time."""
    return {
        "metric": texts("Metrics to log, or settings to name."),
        "log": text("How to log them."),
        "unlocks": texts("Ids of the questions and causes that they would answer."),
        "decides": texts("What of the findings they would settle."),
    }
