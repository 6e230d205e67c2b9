"""What to do now: what decides between causes, then the fixes in their order, and the restart last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from stabtree.common.figures import figure
from stabtree.common.text import clean
from stabtree.diagnosis.result import Advice
from stabtree.measures.checkpoints import CheckpointSource
from stabtree.report.page import counted, uncut
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Incident
    from stabtree.report.page import Page, Piece

MIN_HOURS = 0.1  # less is shown in minutes
AT_BEST = ", where the run was at its best"


class Action(Advice, frozen=True):
    """Something to do as it is shown, a restart in words.

    Attributes:
        strong: the part of the text that matters most, such as `the checkpoint of step 600`; may be empty.
    """

    strong: str = ""


def do_now(finding: Incident, *, doubtful: bool = False) -> tuple[Action, ...]:
    """Return what to do about a finding, the most helpful first.

    Args:
        finding: the finding.
        doubtful: whether the best checkpoint may not be the best.
    """
    found = []
    for item in finding.actions:
        shown = Action(*structs.astuple(item))
        if not item.text and finding.restart is not None:
            pieces = restart_line(finding.restart)
            text = "".join(piece for piece, _ in pieces).removesuffix(".") + "."
            text = text.replace(AT_BEST, "") if doubtful else text
            shown = structs.replace(shown, text=text, strong=next((piece for piece, style in pieces if style), ""))
        found.append(shown)
    return tuple(found)


def restart_line(restart: Restart) -> list[Piece]:
    """Return the advice as a line of pieces: what to do, the checkpoint, and why."""
    best, unit = restart.take is Take.BEST, restart.unit
    if not restart.has_older:
        return _no_checkpoint(restart)
    if restart.checkpoint_step is None:
        # Nothing says which there are.
        step, margin = f"{unit} {restart.up_to_step:,}", restart.margin_steps
        if best:
            return [("Use ", ""), (f"the checkpoint nearest to {step}", "number"), (f"{AT_BEST}, if one was kept", "")]
        why = f" ({counted(margin, unit)} before the last sound row)" if margin else ""
        after = f"{why} with its optimizer state; at least {_lost(restart)}"
        return [("Restart from ", ""), (f"any checkpoint up to {step}", "number"), (after, "")]
    named = f"the checkpoint of {unit} {restart.checkpoint_step:,}"
    if restart.epoch is not None:
        named += f", the end of epoch {restart.epoch:,}"
    path = f" ({clean(restart.path)})" if restart.path else ""
    if best:  # where the run was at its best, or nearest to that
        late, near = restart.checkpoint_step - restart.before_step, AT_BEST
        if late < 0:
            near = f", the last one up to {unit} {restart.before_step:,}{AT_BEST}"
        elif late > 0:
            past = f"{counted(late, unit)} past its best, at {unit} {restart.before_step:,}"
            near = f", the nearest that was kept: it is {past}; keep more of them next time"
        return [("Use ", ""), (named, "number"), (f"{path}{near}{_source(restart)}", "")]
    which = f"before {unit} {restart.before_step:,}" if restart.checkpoint_step < restart.before_step else ""
    why = f"{which or 'the last sound one'}; {_lost(restart)}"
    if restart.take is Take.NEWEST:
        why = "the newest with sound weights"
    text = f"{path} with its optimizer state, {why}{_source(restart)}"
    if restart.fresh_step == restart.checkpoint_step:
        text += ". It was written right before the loss broke and is the oldest; if it breaks again, start over"
    elif restart.fresh_step is not None:
        text += f". Not from {unit} {restart.fresh_step:,}: that one was written right before the loss broke, and may "
        text += "hold what broke it"
    return [("Restart from ", ""), (named, "number"), (text, "")]


def _no_checkpoint(restart: Restart) -> list[Piece]:
    """Say what to do where no checkpoint will do."""
    trouble, best = f"{restart.unit} {restart.before_step:,}", restart.take is Take.BEST
    if restart.nothing:
        head = "No checkpoint is worth keeping" if best else "Nothing to go back to"
        return [(head, "number"), (f": {restart.nothing}. Fix the cause and start again", "")]
    if not best:
        older = f"no checkpoint is older than {trouble}"
        if restart.listed is None:
            older += f" (the configuration writes one {_period(restart)})"
        elif restart.listed:
            older += f": the oldest is of {restart.unit} {restart.listed[0]:,}"
            if restart.path:
                older += f" ({clean(restart.path)})"
        else:
            older = "no checkpoint was kept"
        return [("Restart from ", ""), ("the beginning", "number"), (f": {older}; the whole run is lost", "")]
    again = f"train again and stop at {trouble}, or keep the best one"
    if restart.useless is None:
        return [("No checkpoint is known", "number"), (f" from around {trouble}{AT_BEST}: {again}", "")]
    step, here, lowest = restart.useless
    nearest = f"at the nearest, of {restart.unit} {step:,}, the eval loss is {figure(here, 4)}, and "
    nearest += f"{figure(lowest, 4)} at its lowest"
    return [("No checkpoint that was kept is of use", "number"), (f": {nearest}. Instead {again}", "")]


def _source(restart: Restart) -> str:
    """Say how it is known that there is such a checkpoint, where none was seen."""
    if restart.line is not None:
        return f" (saved there by line {restart.line:,} of the log; if no later one was written over it)"
    if restart.path or restart.source is CheckpointSource.LISTED:
        return ""
    return f" (one {_period(restart)} by the configuration, if it was kept)"


def _period(restart: Restart) -> str:
    """Say how often checkpoints are written."""
    return f"every {restart.every:,} {restart.unit}s" if restart.every > 1 else f"every {restart.unit}"


def _lost(restart: Restart) -> str:
    """Say how many steps must be rerun, with their time where it was logged."""
    hours, time = restart.lost_hours, ""
    if hours is not None:
        time = f" ({hours:,.1f} hours)" if hours >= MIN_HOURS else f" ({max(hours * 60, 0.1):.1f} minutes)"
    return f"{counted(restart.lost_steps, restart.unit)}{time} must be rerun"


def add_actions(page: Page, actions: Sequence[Action], lines: int) -> None:
    """Add what to do, numbered, in at most so many lines each; neither a question nor the restart is ever cut.

    Below a question stands what may come out of it, each with what to do then.
    """
    if actions:
        page.line(("Do now", "heading"))
    for place, action in enumerate(actions, 1):
        head = (f"{place}.", "number")
        if action.branches:
            page.item(head, [(action.text, "number")], indent=2, head_width=3)
            width = max(len(page.plain(word)) for word, _ in action.branches)
            for word, text in action.branches:
                if width > page.width // 3:
                    page.line((f"{word} →", "answer"), indent=5)
                    page.line((text, ""), indent=7)
                    continue
                texts = uncut(page.plain(text), page.width - 5 - width - 3, lines, needed=True)
                head = (f"{page.plain(word):<{width}} →", "answer")
                page.item(head, [("\n".join(texts), "")], indent=5, head_width=width + 3)
        elif action.strong:
            before, strong, after = action.text.partition(action.strong)
            page.item(head, [(before, ""), (strong, "number"), (after, "")], indent=2, head_width=3)
        else:
            texts = uncut(page.plain(action.text), page.width - 5, lines, needed=True)
            page.item(head, [("\n".join(texts), "")], indent=2, head_width=3)
