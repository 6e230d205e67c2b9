"""The restart in words: which checkpoint, why that one, and what is run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.figures import figure
from stabtree.common.text import clean
from stabtree.facts.checkpoints import CheckpointSource
from stabtree.report.text import counted
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from stabtree.diagnosis.restart import Restart
    from stabtree.report.text import Piece

AT_BEST = ", where the run was at its best"
MIN_HOURS = 0.1  # less is shown in minutes


def restart_line(restart: Restart) -> list[Piece]:
    """Return the advice as a line of pieces: what to do, the checkpoint, and why."""
    if not restart.has_older:
        return _no_checkpoint(restart)
    if restart.checkpoint_step is None:
        return _any_checkpoint(restart)
    named = f"the checkpoint of {restart.unit} {restart.checkpoint_step:,}"
    if restart.epoch is not None:
        named += f", the end of epoch {restart.epoch:,}"
    if restart.take is Take.BEST:
        return [("Use ", ""), (named, "number"), (f"{_path(restart)}{_best(restart)}{_source(restart)}", "")]
    if restart.take is Take.NEWEST:
        why = "the newest with sound weights"
    else:
        older = restart.checkpoint_step < restart.before_step
        which = f"before {_trouble(restart)}" if older else "the last sound one"
        why = f"{which}; {_lost(restart)} run again"
    return [
        ("Restart from ", ""),
        (named, "number"),
        (f"{_path(restart)} with its optimizer state, {why}{_source(restart)}{_fresh(restart)}", ""),
    ]


def _any_checkpoint(restart: Restart) -> list[Piece]:
    """Say up to where any checkpoint will do, where nothing says which there are."""
    step = f"{restart.unit} {restart.up_to_step:,}"
    if restart.take is Take.BEST:
        return [("Use ", ""), (f"the checkpoint nearest to {step}", "number"), (f"{AT_BEST}, if one was kept", "")]
    why = ""
    if restart.margin_steps:
        why = f" ({counted(restart.margin_steps, restart.unit)} before the last sound row)"
    after = f"{why} with its optimizer state; at least {_lost(restart)} run again"
    return [("Restart from ", ""), (f"any checkpoint up to {step}", "number"), (after, "")]


def _trouble(restart: Restart) -> str:
    """Name the step that the checkpoint must be older than."""
    return f"{restart.unit} {restart.before_step:,}"


def _path(restart: Restart) -> str:
    if restart.path:
        return f" ({clean(restart.path)})"
    return ""


def _best(restart: Restart) -> str:
    """Describe the checkpoint that is nearest to where the run was at its best."""
    late = (restart.checkpoint_step or 0) - restart.before_step
    if late == 0:
        return f"{AT_BEST}"
    if late < 0:
        return f", the last one up to {_trouble(restart)}{AT_BEST}"
    past = f"{counted(late, restart.unit)} past its best, at {_trouble(restart)}"
    return f", the nearest that was kept: it is {past}; keep more of them next time"


def _no_checkpoint(restart: Restart) -> list[Piece]:
    """Say what to do where no checkpoint will do."""
    if restart.take is Take.BEST:
        return _train_again(restart)
    if restart.nothing:
        return [("Nothing to go back to", "number"), (f": {restart.nothing}. Fix the cause and start again", "")]
    text = f": {_too_young(restart)}; the whole run is lost"
    return [("Restart from ", ""), ("the beginning", "number"), (text, "")]


def _too_young(restart: Restart) -> str:
    """Say why none of the known checkpoints will do."""
    trouble = _trouble(restart)
    if restart.listed is None:
        return f"no checkpoint is older than {trouble} (the configuration writes one {_period(restart)})"
    if not restart.listed:
        return "no checkpoint was kept"
    oldest = f"{restart.unit} {restart.listed[0]:,}{_path(restart)}"
    if len(restart.listed) > 1:
        return f"none of the {len(restart.listed):,} checkpoints is older than {trouble}, the oldest is of {oldest}"
    return f"the only checkpoint, of {oldest}, is not older than {trouble}"


def _train_again(restart: Restart) -> list[Piece]:
    """Say what to do where no checkpoint is near to where the run was at its best."""
    if restart.nothing:
        why = f": {restart.nothing}. Fix the cause and start again"
        return [("No checkpoint is worth keeping", "number"), (why, "")]
    trouble = _trouble(restart)
    again = f"train again and stop at {trouble}, or keep the best one"
    if restart.useless is None:
        return [("No checkpoint is known", "number"), (f" from around {trouble}{AT_BEST}: {again}", "")]
    step, here, best = restart.useless
    nearest = f"at the nearest, of {restart.unit} {step:,}, the eval loss is {figure(here, 4)}, and "
    nearest += f"{figure(best, 4)} at its lowest"
    return [("No checkpoint that was kept is of use", "number"), (f": {nearest}. Instead {again}", "")]


def _source(restart: Restart) -> str:
    """Say how it is known that there is such a checkpoint, where none was seen."""
    if restart.line is not None:
        return f" (saved there by line {restart.line:,} of the log; if no later one was written over it)"
    if restart.path or restart.source is CheckpointSource.LISTED:
        return ""
    return f" (the configuration writes one {_period(restart)}; if it was kept)"


def _period(restart: Restart) -> str:
    """Say how often checkpoints are written."""
    if restart.every > 1:
        return f"every {restart.every:,} {restart.unit}s"
    return f"every {restart.unit}"


def _lost(restart: Restart) -> str:
    """Return the steps that are lost, with their time where it was logged, and the verb."""
    hours, time = restart.lost_hours, ""
    if hours is not None and hours >= MIN_HOURS:
        time = f" ({hours:,.1f} hours)"
    elif hours is not None:
        time = f" ({max(hours * 60, 0.1):.1f} minutes)"
    verb = "is" if restart.lost_steps == 1 else "are"
    return f"{counted(restart.lost_steps, restart.unit)}{time} {verb}"


def _fresh(restart: Restart) -> str:
    if restart.fresh_step is None:
        return ""
    if restart.fresh_step == restart.checkpoint_step:
        return ". It was written right before the loss broke and is the oldest; if it breaks again, start over"
    return (
        f". Not from {restart.unit} {restart.fresh_step:,}: that one was written right before the loss broke, and may "
        "hold what broke it"
    )
