"""What no report may say, whatever the log: checked over every run that the tests hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stabtree.diagnosis.restart import FROM_THE_START
from stabtree.measures.registry import finite
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis, Incident

ROWS = 20
EARLY = 0.05  # of a run: what begins there begins with it


def contradictions(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what a diagnosis says that its own numbers refute."""
    run = diagnosis.run
    # What is restarted from the newest checkpoint has not touched the weights.
    harm = [item for item in diagnosis.findings if item.is_alarm and item.open and item.leaf.restart]
    harm = [item for item in harm if item.leaf.take is not Take.NEWEST]
    first, last = run.first_step, max([run.last_step or 0, *(gap.last_step for gap in run.gaps)])
    for item in diagnosis.findings:
        name, onset, good, restart = item.leaf.id, item.onset_step, item.last_good_step, item.restart
        if onset is not None and first is not None:
            if not first <= onset <= last:
                yield f"{name}: onset {onset} outside of steps {first} to {last}"
            if good is not None and good > onset:
                yield f"{name}: last good step {good} after its onset {onset}"
        if "reward-fall" in item.leaf.events and (late := _best_after(diagnosis, item)):
            yield f"{name}: begins at {onset}, its best is at {late}"
        if restart is None or restart.take is not Take.BEFORE or not item.open:
            continue
        step = restart.checkpoint_step if restart.checkpoint_step is not None else restart.up_to_step
        begun = min((other.onset_step for other in harm if other.onset_step is not None), default=None)
        if step is not None and begun is not None and step > begun and item.is_alarm and not restart.nothing:
            yield f"{name}: restarts from {step}, and trouble begins at {begun}"
        if restart.nothing == FROM_THE_START and onset is not None and _sound(diagnosis, onset):
            yield f"{name}: nothing to go back to, and sound up to {onset}"


def _best_after(diagnosis: Diagnosis, item: Incident) -> int | None:
    """Return the step of the highest level of what fell, if that is after its onset by more than a tenth of the run."""
    series, onset = diagnosis.run.find(item.metric), item.onset_step
    if series is None or onset is None:
        return None
    steps, values = finite(series)
    rows = max(1, len(values) // 20)
    levels = np.array([np.median(values[at : at + rows]) for at in range(0, len(values) - rows + 1, rows)])
    best = int(steps[int(levels.argmax()) * rows])
    return best if best > onset else None


def _sound(diagnosis: Diagnosis, onset: int) -> bool:
    """Return whether many rows of the loss, and a part of the run, come before an onset."""
    loss = diagnosis.run.find("loss")
    before = 0 if loss is None else int((loss.steps < onset).sum())
    return loss is not None and before > max(ROWS, EARLY * len(loss))
