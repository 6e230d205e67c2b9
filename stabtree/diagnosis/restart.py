"""From which checkpoint to restart: the newest one that the trouble has not touched yet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.diagnosis.result import Finding, Restart
from stabtree.monitor import MAX_CONSECUTIVE
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.run import Run

ASSUMED_CHECKPOINT_EVERY = 200  # phase19 Q2.4
# A checkpoint from the last steps before the loss goes NaN holds the state that was about to break it.
FRESH_STEPS = MAX_CONSECUTIVE


def advise(run: Run, onset_step: int, last_good_step: int | None, *, storm: bool) -> Restart:
    """The newest checkpoint not after the last good step, and in a NaN storm not from right before it either.

    Args:
        run: the run; its `checkpoints` or `checkpoint_every` say where checkpoints are.
        onset_step: the first step of the trouble.
        last_good_step: the last logged step before it; found in the loss when not given.
        storm: whether the loss went NaN. Then a checkpoint from the last `FRESH_STEPS` steps up to the last good
            one is passed over, as long as there is an older one.
    """
    every = run.setting("checkpoint_every")
    period = every if isinstance(every, int) and every >= 1 else None
    good = last_good_step if last_good_step is not None else _step_before(run, onset_step)
    if good is None:
        good = 0  # nothing that was logged before the onset shows a healthy run
    listed = run.setting("checkpoints")
    steps = listed if isinstance(listed, tuple) else None
    spacing = period or ASSUMED_CHECKPOINT_EVERY
    newest = _newest(steps, spacing, good)
    older = _newest(steps, spacing, good - FRESH_STEPS) if storm else newest
    last = run.last_step or onset_step
    chosen = older if older is not None else newest
    return Restart(
        checkpoint_step=chosen,
        every=spacing,
        assumed=period is None and steps is None,
        lost_steps=last - (chosen or 0),
        fresh_step=newest if newest != older else None,
    )


def _newest(listed: tuple[int, ...] | None, spacing: int, limit: int) -> int | None:
    """The newest checkpoint up to a step, None when there is none; step 0 is the beginning, not a checkpoint."""
    known = [limit // spacing * spacing] if listed is None else [step for step in listed if step <= limit]
    return max((step for step in known if step > 0), default=None)


def _step_before(run: Run, onset_step: int) -> int | None:
    loss = run.get("loss")
    before = loss.steps[loss.steps < onset_step] if loss is not None else None
    return int(before[-1]) if before is not None and len(before) else None


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
        earlier = [restart for at, restart in restarts if onset is not None and at < onset]
        if own is not None and earlier:
            first = min([own, *earlier], key=lambda restart: restart.checkpoint_step or 0)
            moved.append(replace(finding, restart=first))
        else:
            moved.append(finding)
    return moved
