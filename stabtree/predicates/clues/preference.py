"""What the log of a training on pairs shows: do both sets teach the same, and what becomes of the chosen answers?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.stats import median
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series

GUESS = 0.5  # no limit: the accuracy of a guess between two answers
FAR_FROM_A_GUESS = 0.1  # no limit: a guess over 100 pairs is within that of one half, two times in a hundred it is not


@clue
def pair_sets(_moment: Moment, preference_accuracy: Series, eval_preference_accuracy: Series) -> Seen | None:
    """Compare what training pairs and held-out pairs teach: `opposite`, `both wrong`, or `alike`."""
    trained, held_out = _last(preference_accuracy), _last(eval_preference_accuracy)
    if trained is None or held_out is None:
        return None
    text = f"the accuracy on training pairs ends at {trained:.2f}, on held-out pairs at {held_out:.2f}; a guess has .50"
    low, high = GUESS - FAR_FROM_A_GUESS, GUESS + FAR_FROM_A_GUESS
    word = "alike"
    if max(trained, held_out) < low:
        word = "both wrong"
    elif min(trained, held_out) < low and max(trained, held_out) > high:
        word = "opposite"
    return Seen(word, text, f"{trained:.2f} and {held_out:.2f}", "eval_preference_accuracy")


@clue
def chosen_times(_moment: Moment, run: Run) -> Seen | None:
    """Return how many times further below 0 the log-probability of the chosen answers ends than it began."""
    series = _ending_in(run, "logps/chosen")
    if series is None:
        return None
    values = finite(series)[1]
    size = min(shared.ROWS_SHORT, len(values) // 2)
    if not size or (first := median(values[:1])) >= 0:
        return None
    last = median(values[-size:])
    text = f"{series.origin or series.metric} goes from {first:.3g} to {last:.3g}: the chosen answers become unlikelier"
    if last >= first:
        text = f"{series.origin or series.metric} does not fall: {first:.3g} → {last:.3g}"
    return Seen(last / first, text, f"{first:.3g} → {last:.3g}", series.metric)


def _last(series: Series) -> float | None:
    values = finite(series)[1][-shared.ROWS_LONG :]
    return median(values) if len(values) >= 2 else None


def _ending_in(run: Run, name: str) -> Series | None:
    """Return the first series whose column ends in a name, but for those of held-out data."""
    found = (one for key, one in run.others.items() if key.endswith(name) and not key.startswith("eval"))
    return next(found, None)
