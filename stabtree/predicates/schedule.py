"""The learning rate against the schedule that is configured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import Answer, Evidence, unknown
from stabtree.facts.registry import finite
from stabtree.predicates.registry import predicate

if TYPE_CHECKING:
    from stabtree._lazy import Floats, Ints
    from stabtree.run import Run, Series

MOVES = ("cos", "linear", "poly", "exp", "inv", "sqrt", "cycl", "one", "warm_restart", "noam", "wsd")
STEPPED = ("step", "milestone", "piecewise")
FIXED = 1e-3  # a rate printed with four digits has not moved below this relative change


@predicate(source="convergence O8 and O23", labels=("frozen", "early", "follows"), min_points=2)
def schedule_followed(
    run: Run,
    lr: Series,
    *,
    least_fall: float,
    early_share: float,
    zero_share: float,
    left_share: float,
    floor_share: float,
) -> Answer:
    """Does the logged learning rate do what the configured schedule says?

    `frozen`: the schedule should by now have lowered the rate by `least_fall` (a cosine does so after a tenth of its
    way, a stepped one at its first milestone), and since the warm-up it has not moved by 0.1%. `early`: before
    `early_share` of the planned steps the rate goes below `zero_share` of its peak for good, or, where the schedule
    moves to its end, to a floor below `floor_share` of its peak, and stays for `left_share` of the plan at least: a
    scheduler that is stepped more often than planned. Needs `lr_schedule` and `max_steps` or `lr_milestones` from the
    configuration.
    """
    steps, values = finite(lr)
    schedule = str(run.setting("lr_schedule") or "").lower()
    planned, warmup = run.setting("max_steps"), run.setting("warmup_steps")
    milestones = run.setting("lr_milestones")
    if not schedule:
        return unknown("the configuration names no lr_schedule")
    begin = warmup if isinstance(warmup, int) else 0
    last, peak = int(steps[-1]), float(values.max())
    after = values[steps >= begin]
    if len(after) < 3 or peak <= 0:
        return unknown(f"lr has fewer than three rows after the warm-up of {begin:,} steps", "lr")
    by: int | None = None
    if any(word in schedule for word in STEPPED) and isinstance(milestones, tuple) and milestones:
        by = milestones[0]
    elif any(word in schedule for word in MOVES) and "constant" not in schedule and isinstance(planned, int):
        by = begin + math.ceil((planned - begin) * math.acos(max(-1.0, 1 - 2 * least_fall)) / math.pi)
    if by is not None and last > by and float(np.ptp(after)) <= FIXED * peak:
        text = f"lr stays at {after[-1]:.3g} from step {int(steps[steps >= begin][0]):,} to {last:,}, although the "
        text += f"schedule is {schedule!r} and should have moved it by step {by:,}"
        onset = int(steps[steps >= by][0])
        found = (Evidence(text, "lr", (onset, last), float(np.ptp(after)) / peak, FIXED),)
        return Answer("frozen", found, onset_step=onset, last_good_step=onset)
    at = _ends(steps, values, schedule, zero_share, floor_share)
    if isinstance(planned, int) and at is not None and at < early_share * planned and last - at > left_share * planned:
        text = f"lr is down to {values[-1]:.2g}, from {peak:.3g}, at step {at:,} of {planned:,} planned, for good"
        return Answer("early", (Evidence(text, "lr", (at, last), at / planned, early_share),), onset_step=at)
    text = f"lr goes from {after[0]:.3g} to {after[-1]:.3g} after the warm-up, the schedule is {schedule!r}"
    return Answer("follows", (Evidence(text, "lr", (int(steps[0]), last), float(np.ptp(after)) / peak, FIXED),))


def _ends(steps: Ints, values: Floats, schedule: str, zero_share: float, floor_share: float) -> int | None:
    """The step from which on the rate is next to nothing, or at the floor of a schedule that should still move."""
    if any(word in schedule for word in (*STEPPED, "cycl", "restart")):
        return None  # may be this low early by design
    peak, floor = float(values.max()), float(values[-1])
    moves = any(word in schedule for word in MOVES) and "constant" not in schedule
    low = values < zero_share * peak
    if moves and floor < floor_share * peak:
        low |= values <= floor + FIXED * peak
    high = np.flatnonzero(~low)
    return int(steps[high[-1] + 1]) if len(high) and high[-1] + 1 < len(steps) else None
