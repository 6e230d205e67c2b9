"""What the limit of a question rests on, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.text import counted
from stabtree.tree.calibration import calibrations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tree.calibration import Fit

HALF = -1.0  # of the limit, as a strength
UNSEEN = {"right": "of such alarms are right", "named": "of such failures raise an alarm"}


def fitted_texts(id_: str) -> Iterator[str]:
    """Yield what the limit and the slope of a question rest on; nothing where no labelled run was measured by it."""
    known = calibrations()
    if id_ not in known.questions:
        return
    found = known.of(id_)
    at, half = (f"{known.likelihood(id_, strength):.0%}" for strength in (0.0, HALF))
    yield f"{_rests_on(found)}; likelihood of a fault {at} at it, {half} at half of it ({_slope(found)})"
    for name, words in UNSEEN.items():
        if name in found.unseen:
            share, low, high = found.unseen[name]
            yield f"on repositories left out of the fit {share:.0%} {words} (95%: {low:.0%} to {high:.0%})"


def _rests_on(found: Fit) -> str:
    cases = f"{counted(found.positives, 'failure')} ({counted(found.repositories, 'source')})"
    if not found.family and found.limit:
        return f"limit fitted to {cases}"
    if not found.family:
        return f"documented limit, which a fit to {cases} does not move"
    if found.limit:
        return f"limit raised to what simulated healthy runs stay below, since it has only {cases}"
    if found.positives:
        return f"limit of its document or of simulated runs, since it has only {cases}"
    return "limit of its document or of simulated runs, since no labelled failure shows it"


def _slope(found: Fit) -> str:
    if not found.family:
        return f"slope {found.slope:g}, its own"
    return f"slope {found.slope:g}, shared by {found.family}"
