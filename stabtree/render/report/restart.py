"""The restart in words: which checkpoint, why that one, and what is run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.text import clean
from stabtree.facts.checkpoints import Told
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Restart
    from stabtree.render.plot import Piece

OPTION = "; --checkpoints DIR names their folder"
AT_BEST = ", where the run was at its best"
LEAST_HOURS = 0.1  # less is told in minutes


def restart_line(restart: Restart) -> list[Piece]:
    """The advice as a line of pieces."""
    unit = restart.unit
    place = f"{unit} {restart.before_step:,}"
    if restart.checkpoint_step is None:
        return _without(restart, place, unit)
    named = f"the checkpoint of {unit} {restart.checkpoint_step:,}"
    if restart.epoch is not None:
        named += f", the end of epoch {restart.epoch:,}"
    where = f" ({clean(restart.path)})" if restart.path else ""
    known = _known(restart, unit)
    if restart.take is Take.BEST:
        return [("Use ", ""), (named, "number"), (f"{where}{_best(restart, place, unit)}{known}", "")]
    if restart.take is Take.NEWEST:
        sound = "the newest with sound weights, since steps that overflow are skipped"
        text = f"{where}, {sound}{known}{_fresh(restart, unit)}"
        return [("Restart from ", ""), (named, "number"), (text, "")]
    when = f"before {place}" if restart.checkpoint_step < restart.before_step else "the last sound one"
    text = f"{where}, {when}; {_lost(restart, unit)} run again{known}{_fresh(restart, unit)}"
    return [("Restart from ", ""), (named, "number"), (text, "")]


def _best(restart: Restart, place: str, unit: str) -> str:
    """What is to be known of the checkpoint that is nearest to where the run was at its best."""
    late = (restart.checkpoint_step or 0) - restart.before_step
    if late == 0:
        return f"{AT_BEST}; don't train on with the same settings"
    if late < 0:
        return f", the last one up to {place}{AT_BEST}; don't train on with the same settings"
    past = f"{late:,} {unit}{'' if late == 1 else 's'} past its best, at {place}"
    return f", the nearest that was kept: it is {past}; keep more of them next time"


def _without(restart: Restart, place: str, unit: str) -> list[Piece]:
    """What to say where no checkpoint will do."""
    if restart.take is Take.BEST:
        return _train_again(restart, place, unit)
    if restart.nothing:
        return [("Nothing to go back to", "number"), (f": {restart.nothing}. Mend the cause and start again", "")]
    if restart.told is Told.UNCOUNTED:
        text = ", or from the beginning if none was kept: the log does not count optimizer steps, so none is assumed"
        return [("Restart from ", ""), (f"the newest checkpoint older than {place}", "number"), (text, "")]
    if restart.assumed:
        text = f", unless a checkpoint older than {place} was kept: none was found with the log{OPTION}"
        return [("Restart from ", ""), ("the beginning", "number"), (text, "")]
    if restart.listed:
        where = f" ({clean(restart.path)})" if restart.path else ""
        count, oldest = len(restart.listed), f"{unit} {restart.listed[0]:,}"
        why = f"the only checkpoint, of {oldest}{where}, is not older than {place}"
        if count > 1:
            why = f"none of the {count:,} checkpoints is older than {place}, the oldest is of {oldest}{where}"
        return [("Restart from ", ""), ("the beginning", "number"), (f": {why}; the whole run is lost", "")]
    why = f"no checkpoint is older than {place} (the configuration writes one {_period(restart, unit)})"
    why = "no checkpoint was kept" if restart.listed is not None else why
    return [("Restart from ", ""), ("the beginning", "number"), (f": {why}; the whole run is lost", "")]


def _train_again(restart: Restart, place: str, unit: str) -> list[Piece]:
    """What to say where no checkpoint is near to where the run was at its best."""
    again = f"train again and stop at {place}, or keep the best one"
    if restart.useless is None:
        return [
            ("No checkpoint is known", "number"),
            (f" from around {place}{AT_BEST}: {again}", ""),
        ]
    step, here, best = restart.useless
    nearest = f"at the nearest, of {unit} {step:,}, the eval loss is {here:.4g}, and {best:.4g} at its lowest"
    return [("No checkpoint that was kept is of use", "number"), (f": {nearest}. Instead {again}", "")]


def _known(restart: Restart, unit: str) -> str:
    """How it is known that there is such a checkpoint, where none was seen."""
    if restart.line is not None:
        return f" (saved there by line {restart.line:,} of the log; if no later one was written over it)"
    if restart.path or (restart.told is Told.LISTED):
        return ""
    if restart.assumed:
        return f" (assuming one {_period(restart, unit)}, since none was found with the log{OPTION})"
    return f" (the configuration writes one {_period(restart, unit)}; if it was kept)"


def _period(restart: Restart, unit: str) -> str:
    """How often checkpoints are written."""
    if restart.told is Told.EVALS:
        return "at each evaluation"
    if restart.told is Told.EPOCHS:
        return "every epoch"
    return f"every {restart.every:,} {unit}s" if restart.every > 1 else f"every {unit}"


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
