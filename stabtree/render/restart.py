"""The restart in words: which checkpoint, why that one, and what is run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.text import clean
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Restart
    from stabtree.render.plot import Piece

LEAST_HOURS = 0.1  # less is told in minutes


def restart_line(restart: Restart, onset_step: int | None) -> list[Piece]:
    """The advice as a line of pieces; `onset_step` is that of the finding that it stands under."""
    unit = "epoch" if restart.by_epoch else "step"
    place = f"{unit} {onset_step:,}" if onset_step is not None else "the trouble"
    if restart.checkpoint_step is None:
        return _without(restart, place, unit)
    named = f"the checkpoint of {unit} {restart.checkpoint_step:,}"
    where = f" ({clean(restart.path)})" if restart.path else ""
    known = _known(restart, unit)
    if restart.take is Take.BEST:
        side = "the nearest to" if restart.checkpoint_step > (onset_step or 0) else "the last one up to"
        best = f"{where}, {side} {place}, where the run was at its best{known}. The later {unit}s made it worse"
        return [("Use ", ""), (named, "number"), (best, "")]
    if restart.take is Take.NEWEST:
        text = f"{where}, the newest: the steps that overflowed were skipped, so its weights are sound{known}"
        return [("Restart from ", ""), (named, "number"), (text, "")]
    before = f", before {place}" if onset_step is not None else ""
    text = f"{where}{before}; {_lost(restart, unit)} run again{known}{_fresh(restart, unit)}"
    return [("Restart from ", ""), (named, "number"), (text, "")]


def _without(restart: Restart, place: str, unit: str) -> list[Piece]:
    """What to say where no checkpoint will do."""
    if restart.take is not Take.BEFORE:
        return [("No checkpoint is known", "number"), (f": what was found at {place} can't be gone back to", "")]
    if restart.listed:
        count, oldest = len(restart.listed), f"{unit} {restart.listed[0]:,}"
        why = f"the only checkpoint, of {oldest}, is not older than {place}"
        if count > 1:
            why = f"none of the {count:,} checkpoints is older than {place}, the oldest is of {oldest}"
        return [("Restart from ", ""), ("the beginning", "number"), (f": {why}; the whole run is lost", "")]
    why = "no checkpoint was kept" if restart.listed is not None else f"no checkpoint is older than {place}"
    text = f": {why}{_known(restart, unit)}; the whole run is lost"
    return [("Restart from ", ""), ("the beginning", "number"), (text, "")]


def _known(restart: Restart, unit: str) -> str:
    """How it is known that there is such a checkpoint, where none was seen."""
    if restart.path or restart.listed is not None:
        return ""
    period = f"every {restart.every:,} {unit}s" if restart.every > 1 else f"every {unit}"
    if restart.assumed:
        return f" (assuming a checkpoint {period}, as nothing says where they are: --checkpoints DIR)"
    return f" (the configuration writes one {period}; if it was kept)"


def _lost(restart: Restart, unit: str) -> str:
    """The steps that are lost, with their time where it was logged."""
    one = restart.lost_steps == 1
    steps = f"{restart.lost_steps:,} {unit}{'' if one else 's'}"
    hours = restart.lost_hours
    time = ""
    if hours is not None:
        time = f" ({hours:,.1f} hours)" if hours >= LEAST_HOURS else f" ({max(hours * 60, 0.1):.1f} minutes)"
    return f"{steps}{time} {'is' if one else 'are'}"


def _fresh(restart: Restart, unit: str) -> str:
    if restart.fresh_step is None:
        return ""
    if restart.fresh_step == restart.checkpoint_step:
        return ". It was written right before the loss broke and is the oldest; if it breaks again, start over"
    return (
        f". Not from {unit} {restart.fresh_step:,}: that one was written right before the loss broke, and may hold "
        "what broke it"
    )
