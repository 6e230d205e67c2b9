"""What to do now: what decides between causes, then the fixes in their order, and the restart last."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.figures import figure
from stabtree.common.text import clean
from stabtree.diagnosis.result import SILENT
from stabtree.measures.checkpoints import CheckpointSource
from stabtree.report.page import counted, uncut
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Fix, Incident
    from stabtree.report.page import Page, Piece

MAX_TO_DO = 3
SAME_SHARE = 0.7  # of the words of the shorter of two fixes: with so many in both, they say the same
MIN_WORDS = 4
MIN_HOURS = 0.1  # less is shown in minutes
STOP = "Stop the run"
AT_BEST = ", where the run was at its best"
_CHANGE = re.compile(r"(\w+) (\S+ → [^;,() ]*[^;,.() ])")
_WORD = re.compile(r"[a-z_]{3,}")
_FILLERS = frozenset(
    ("the", "and", "that", "with", "for", "from", "its", "one", "are", "not", "before", "after", "every")
)


class Action(Struct, frozen=True):
    """One thing to do now.

    Attributes:
        text: what to do, with this run's numbers.
        reason: what in the log supports it; empty where only the finding itself does.
        strong: the part of the text that matters most, such as `the checkpoint of step 600`; may be empty.
        fix: the fix of the finding; empty for the restart.
        branches: where the text is a question, what may come out of it, each with what to do then.
    """

    text: str
    reason: str = ""
    strong: str = ""
    fix: str = ""
    branches: tuple[tuple[str, str], ...] = ()

    @property
    def whole(self) -> str:
        """The text with what to do in each of its branches."""
        return " ".join((self.text, *(text for _, text in self.branches)))


def do_now(finding: Incident, *, doubtful: bool = False) -> tuple[Action, ...]:
    """Return what to do about a finding, nothing of it twice, and at most `MAX_TO_DO` actions.

    Args:
        finding: the finding.
        doubtful: whether the best checkpoint may not be the best.
    """
    decision, restart = finding.decision, finding.restart
    first = [Action(decision.ask, branches=decision.branches)] if decision is not None else []
    fixes = [Action(fix.text, fix.reason, fix=fix.text) for fix in _fixes_in_order(finding)]
    actions = [
        replace(
            action, text=_stopped(action.text), branches=tuple((word, _stopped(to)) for word, to in action.branches)
        )
        for action in _unique([*first, *fixes])
    ]
    if restart is None:
        return tuple(actions[:MAX_TO_DO])
    pieces = restart_line(restart)
    text = "".join(text for text, _ in pieces)
    if doubtful:
        text = text.replace(AT_BEST, "")
    back = Action(f"{text.removesuffix('.')}.", strong=next((text for text, style in pieces if style), ""))
    return (*actions[: MAX_TO_DO - 1], back)


def _fixes_in_order(finding: Incident) -> list[Fix]:
    """Return the fixes that need no merely possible cause, and before them that of the first cause."""
    sure = [fix for fix in finding.advice if fix.text and not fix.conditional]
    if not sure and finding.decision is None:
        sure = [*finding.advice[:1]]
    # That of the first cause, or the leaf's that says the same, unless what decides leads to it.
    decision, own, wanted = finding.decision, None, set[str]()
    if cause := next((judged.cause for judged in finding.causes if judged.state not in SILENT), None):
        wanted = _words(" ".join(cause.fixes[:1]))
        leads = decision and (
            cause.id in decision.causes or any(_same(_words(to), wanted) for _, to in decision.branches)
        )
        own = None if leads else next((fix for fix in finding.advice if fix.cause == cause.id), None)
    if own is None:
        return sure
    first = next((fix for fix in sure if len(_words(fix.text) & wanted) >= SAME_SHARE * len(wanted)), own)
    rest = [fix for fix in sure if fix is not first]
    stops = [fix for fix in rest[:1] if fix.text.startswith(STOP)]  # nothing comes before that
    return [*stops, first, *rest[len(stops) :]]


def repeats(text: str, actions: Iterable[Action]) -> bool:
    """Return whether one of the actions says this already."""
    wanted = _words(text)
    return any(_same(wanted, _words(action.whole)) for action in actions)


def _stopped(text: str) -> str:
    """Return a text with a full stop, where it ends without any."""
    return text if not text or text.rstrip(")\"'").endswith((".", "?", "!", ":")) else f"{text}."


def changes_of(text: str) -> dict[str, str]:
    """Return the settings that a text changes, each with its value now and the advised one."""
    return dict(_CHANGE.findall(text))


def _unique(actions: Iterable[Action]) -> Iterator[Action]:
    """Yield the actions without those that repeat an earlier one, or give a setting another value than it did."""
    changed: dict[str, str] = {}
    branches: set[str] = set()
    earlier: list[set[str]] = []
    for action in actions:
        changes, words = changes_of(action.whole), _words(action.whole)
        if (
            action.text in branches
            or not changed.keys().isdisjoint(changes)
            or any(_same(words, other) for other in earlier)
        ):
            continue
        changed |= changes
        earlier.append(words)
        branches.update(text for _, text in action.branches)
        yield action


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower())) - _FILLERS


def _same(one: set[str], other: set[str]) -> bool:
    shorter = min(len(one), len(other))
    return shorter >= MIN_WORDS and len(one & other) >= SAME_SHARE * shorter


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
        after = f"{why} with its optimizer state; at least {_lost(restart)} run again"
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
    why = f"{which or 'the last sound one'}; {_lost(restart)} run again"
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
        older = f"no checkpoint is older than {trouble} (the configuration writes one {_period(restart)})"
        if restart.listed:
            oldest = f"{restart.unit} {restart.listed[0]:,}" + (f" ({clean(restart.path)})" if restart.path else "")
            older = f"the only checkpoint, of {oldest}, is not older than {trouble}"
            if len(restart.listed) > 1:
                all_ = f"none of the {len(restart.listed):,} checkpoints"
                older = f"{all_} is older than {trouble}, the oldest is of {oldest}"
        elif restart.listed is not None:
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
    return f" (the configuration writes one {_period(restart)}; if it was kept)"


def _period(restart: Restart) -> str:
    """Say how often checkpoints are written."""
    return f"every {restart.every:,} {restart.unit}s" if restart.every > 1 else f"every {restart.unit}"


def _lost(restart: Restart) -> str:
    """Return the steps that are lost, with their time where it was logged, and the verb."""
    hours, time = restart.lost_hours, ""
    if hours is not None:
        time = f" ({hours:,.1f} hours)" if hours >= MIN_HOURS else f" ({max(hours * 60, 0.1):.1f} minutes)"
    return f"{counted(restart.lost_steps, restart.unit)}{time} {'is' if restart.lost_steps == 1 else 'are'}"


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
