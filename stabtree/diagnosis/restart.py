"""From which checkpoint to restart: the newest one that the trouble has not touched yet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.diagnosis.result import Finding, Restart
from stabtree.tree.model import Severity, Take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.facts.checkpoints import Checkpoints


def advise(
    known: Checkpoints, onset_step: int, last_good_step: int | None, *, storm: bool, take: Take = Take.BEFORE
) -> Restart:
    """The newest checkpoint not after the last good step, and in a NaN storm not from right before it either.

    Args:
        known: where the run's checkpoints are.
        onset_step: the first step of the trouble.
        last_good_step: the last logged step before it; found in the loss when not given.
        storm: whether the loss went NaN. Then a checkpoint from the last `fresh_steps` steps up to the last good
            one is passed over, as long as there is an older one.
        take: what the leaf asks for: a checkpoint from before the trouble, the best one, or the newest one.
    """
    last = known.last_step or onset_step
    good = last_good_step if last_good_step is not None else known.step_before(onset_step)
    if take is Take.NEWEST:
        good = known.last_finite if storm else last
    if good is None:
        good = 0  # nothing that was logged before the onset shows a healthy run
    newest = known.newest(good)
    older = known.newest(good - known.fresh_steps) if storm else newest
    chosen = older if older is not None else newest
    if take is Take.BEST:
        chosen = newest = older = known.nearest(onset_step)
    return Restart(
        checkpoint_step=chosen,
        every=known.every,
        assumed=known.assumed,
        lost_steps=0 if take is Take.BEST else last - (chosen or 0),
        fresh_step=newest if newest != older else None,
        path=known.paths.get(min(known.paths, default=0) if chosen is None else chosen, ""),
        before_step=onset_step,
        lost_hours=None if take is Take.BEST else known.hours_since(chosen or 0),
        take=take,
        listed=known.listed,
        by_epoch=known.by_epoch,
    )


def before_all_trouble(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, none with a checkpoint that lies inside the trouble of an earlier critical one."""
    restarts = [
        (f.onset_step, f.restart)
        for f in findings
        if f.leaf.severity is Severity.CRITICAL and f.onset_step is not None and f.restart is not None
    ]
    moved: list[Finding] = []
    for finding in findings:
        onset, own = finding.onset_step, finding.restart
        earlier = [
            restart
            for at, restart in restarts
            if own is not None
            and onset is not None
            and restart is not own
            # A checkpoint from after the onset may lie inside what came later.
            and (own.take is Take.NEWEST or at < max(onset, (own.checkpoint_step or 0) + 1))
        ]
        if own is not None and earlier:
            first = min([own, *earlier], key=lambda restart: restart.checkpoint_step or 0)
            moved.append(replace(finding, restart=first))
        else:
            moved.append(finding)
    return moved
