"""The JSON Schema of `context`, which says who a run is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.context.model import CONFIGURED, INFERRED, LOGGED, PHASES, TASKS, UNKNOWN
from stabtree.report.json.shapes import Schema, count, maybe, number, record, text, word
from stabtree.run import PRECISIONS

if TYPE_CHECKING:
    from collections.abc import Sequence


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
