"""The course of each series: rows whose steps go back, silences, and values that stand for something else.

Frames written through pandas leave the cell of a NaN empty, and some trainers leave a NaN out of the row.
Then silence is the only trace. But most silence is layout: eval rows are between train rows, and metrics
are logged at intervals of their own. So a gap must be long against the metric's own interval, the one
overall and the ones around it, and rows of training must have been written meanwhile. Where single values are missing
here and there, it must be longer than their share makes likely, too.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.passes import extremes, increases, never_falls
from stabtree.common.shared import FACTOR, ROWS_LONG, ROWS_SHORT, SHARE_HALF, SHARE_MOST, SHARE_SOME
from stabtree.common.stats import median, true_at_end
from stabtree.metrics.table import is_time
from stabtree.run import Gap, Resume

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column
    from stabtree.run import Series, Setting

# A log goes back at a resume, a few times at most; one that goes back more often is out of order.
MAX_RESUMES = 200
# Rows that are merely out of order are at most so many rows from their place.
MAX_NEAR = 10
# A log whose steps go back so often is out of order where no step comes twice: what is resumed runs some steps again.
MIN_BACK = 4
# In so many of its rows none goes back but one that was shuffled, whatever its steps.
SHUFFLED_SHARE, SINGLE_SHARE = 0.2, 0.9


class History(Struct, frozen=True):
    """What became of rows whose steps go back.

    Attributes:
        keep: bool (n,), false for rows of abandoned stretches; None when all are kept.
        resumes: the places where the log goes back, with `replaced_rows`.
        notes: about rows that are merely out of order.
    """

    keep: Bools | None
    resumes: tuple[Resume, ...] = ()
    notes: tuple[str, ...] = ()


def history(steps: Ints, loss_logged: Bools | None, broken: Bools | None = None) -> History:
    """Find resumes among rows in file order.

    A resume goes back over at least two rows and writes at least two steps anew; one that replaces all rows since the
    first is a fresh start, of which only a note is kept. Anything less is a row out of order, which is put in its
    place; so are a few rows that fill the holes which the few rows before them left, as several writers into one file
    leave them, and all rows of a log that was shuffled or put together in another order. Rows that carry the loss
    decide, since eval rows often come late.

    Args:
        steps: int64 (n,), the rows' steps in file order.
        loss_logged: bool (n,), which rows carry the loss; None for all.
        broken: bool (n,), which rows hold a value that is not finite; None for none.
    """
    if increases(steps) or never_falls(steps):
        return History(None)
    seen = steps if loss_logged is None else steps[loss_logged]
    back = np.flatnonzero(np.diff(seen) < 0) + 1
    if not len(back):
        return History(None)
    if len(back) > MAX_RESUMES or _is_disordered(seen, back):
        times = f"{len(back):,} time{'s' * (len(back) != 1)}"
        note = f"The log is out of order: its steps go back {times}. Its rows were put in the order of their steps."
        return History(None, notes=(note,))
    return _resumes(steps, loss_logged, back.tolist(), np.zeros(len(steps), bool) if broken is None else broken)


def _resumes(steps: Ints, loss_logged: Bools | None, back: list[int], broken: Bools) -> History:
    """Tell resumes from fresh starts and stray rows at each row with the loss where the log goes `back`."""
    carries = np.ones(len(steps), dtype=np.bool_) if loss_logged is None else loss_logged
    rows = np.flatnonzero(carries)
    seen = steps[rows]
    distinct = np.unique(seen)
    keep = np.ones(len(steps), dtype=np.bool_)
    resumes: list[Resume] = []
    fresh: list[int] = []
    stray = start = 0
    top = int(seen[0])
    for begin, end in pairwise([*back, len(seen)]):
        top = max(top, int(seen[start:begin].max()))
        start = begin
        from_step, to_step = int(seen[begin - 1]), int(seen[begin])
        again = seen[begin : begin + int(np.searchsorted(seen[begin:end], top, side="right"))]
        before = _before(rows[begin], steps, loss_logged, to_step)
        abandoned = np.flatnonzero(keep[:before] & (steps[:before] >= to_step))
        left = abandoned[carries[abandoned]]
        if len(again) < 2 or len(left) < 2 or _fills(again, steps[left], distinct):
            stray += 1
            continue
        if len(left) == np.count_nonzero(keep[:before] & carries[:before]):
            fresh.append(from_step)
            resumes.clear()  # they were of the attempt before
        else:
            lost = int(np.count_nonzero(broken[abandoned]))
            resumes.append(Resume(from_step, to_step, len(abandoned), lost))
        keep[abandoned] = False
        top = to_step
    return History(None if keep.all() else keep, tuple(resumes), _notes(fresh, stray))


def _notes(fresh: list[int], stray: int) -> tuple[str, ...]:
    notes = []
    if fresh:
        ends = ", ".join(f"{step:,}" for step in fresh)
        text = f"The file holds {len(fresh) + 1} runs, each begun anew at the first step: the last is read"
        notes.append(f"{text} (the others end at step {ends}).")
    if stray:
        notes.append(f"Rows out of order: {stray}, put in the place of their step.")
    return tuple(notes)


def _is_disordered(seen: Ints, back: Ints) -> bool:
    """Whether all rows of a log were written once, but are in another order.

    Such a log was shuffled, sorted by the text of its steps, or put together from parts in the wrong order. A run that
    is resumed goes back a few times and repeats steps. Where it logs at other steps afterwards it repeats none, but
    then its steps are closer where it ran twice than elsewhere.

    Args:
        seen: int64 (n,), the steps of the rows in file order.
        back: the rows at which they go back.
    """
    ordered = np.sort(seen)
    apart = np.diff(ordered)
    repeated = int(np.count_nonzero(apart == 0))
    if len(back) >= max(MIN_BACK, SHUFFLED_SHARE * len(seen)) and repeated <= (1 - SINGLE_SHARE) * len(seen):
        return True
    if repeated or not (apart > np.median(apart) / 2).all():
        return False
    texts = list(map(str, seen.tolist()))
    return len(back) >= MIN_BACK or _are_parts(seen, back, ordered) or texts == sorted(texts)


def _are_parts(seen: Ints, back: Ints, ordered: Ints) -> bool:
    """Whether stretches of a log follow each other without a break once they are in order; arguments as above.

    A stretch of one row or two is merely out of order.
    """
    edges = [0, *back.tolist(), len(seen)]
    if min(np.diff(edges)) < 3:
        return False
    spans = sorted((int(seen[begin]), int(seen[end - 1])) for begin, end in pairwise(edges))
    usual = 2 * np.median(np.diff(ordered))
    return all(0 < later - end <= usual for (_, end), (later, _) in pairwise(spans))


def _fills(again: Ints, left: Ints, distinct: Ints) -> bool:
    """Whether rows that go back fill the holes of those before them, as dense as the steps around are."""
    if len(again) > MAX_NEAR or len(left) > MAX_NEAR:
        return False
    both = np.sort(np.concatenate([again, left]))
    around = distinct[(distinct < both[0]) | (distinct > both[-1])]
    return len(around) > 1 and bool((np.diff(both) > np.median(np.diff(around)) / 2).all())


def _before(row: int, steps: Ints, loss_logged: Bools | None, to_step: int) -> int:
    """Return the first row after the abandoned stretch: eval rows of the new stretch may precede its first loss."""
    while loss_logged is not None and row > 0 and not loss_logged[row - 1] and steps[row - 1] <= to_step:
        row -= 1
    return row


WATCHED = ("loss", "grad_norm", "lr", "loss_scale")
# What a trainer may write once more when it is done.
EVALUATED = frozenset(("eval_loss", "eval_quality"))
MIN_POINTS = ROWS_SHORT
MIN_ROWS = 3
DENSITY = SHARE_HALF
AROUND = ROWS_SHORT
ALWAYS = ROWS_LONG
# How often single missing values may come together so by chance: anywhere in the log, or right at its end.
BY_CHANCE = 0.001
AT_END_BY_CHANCE = 0.01
# Fewer missing values than this share of a metric are not worth a note.
NOTED_SHARE = 0.01


def find_gaps(
    steps: Ints, metrics: Mapping[str, Column], series: Mapping[str, Series], evaluations: Sequence[Column] = ()
) -> tuple[Gap, ...]:
    """Return the gaps of the watched metrics, in order of their first step.

    Args:
        steps: int64 (n,), the step of each row.
        metrics: what the rows hold, n cells a column.
        series: the same by step.
        evaluations: what was measured on held-out data and no metric was read from, n cells a column.
    """
    gaps: list[Gap] = []
    for metric, column, logged in _watched(metrics, series):
        training, blank = _rows_without(metric, metrics)
        for evaluation in evaluations:
            blank &= ~evaluation.mask
        if column.garbled is not None:
            readable = ~_spoilt(column.garbled, steps > logged.steps[-1])
            training, blank = training & readable, blank & readable
        if metric == "loss" and blank[-1] and not blank[:-1].any() and _is_step(steps, metrics):
            training[-1] = True
        busy = np.setdiff1d(steps[training], logged.steps)
        quiet = np.setdiff1d(steps[training | blank], logged.steps)
        if metric == "loss" and ends_aside(steps, metrics):
            busy, quiet = busy[busy != steps[-1]], quiet[quiet != steps[-1]]
        gaps += _gaps(metric, logged.steps, busy, quiet)
    return tuple(sorted(gaps, key=lambda gap: gap.first_step))


def _watched(metrics: Mapping[str, Column], series: Mapping[str, Series]) -> Iterator[tuple[str, Column, Series]]:
    """Yield the watched metrics that some rows lack, but for those that are logged only when something happens."""
    for metric in WATCHED:
        column, logged = metrics.get(metric), series.get(metric)
        if column is None or column.logged is None or column.sporadic:
            continue
        if logged is not None and len(logged) >= MIN_POINTS:
            yield metric, column, logged


def _spoilt(garbled: Bools, behind: Bools) -> Bools:
    """Return the rows in which something was logged that can't be read; not those of an end that holds nothing else.

    Args:
        garbled: bool (n,), cells that can't be read.
        behind: bool (n,), the rows after the last value.
    """
    if 2 * (garbled & behind).sum() > garbled.sum():
        return garbled & ~behind
    return garbled


def ends_aside(steps: Ints, metrics: Mapping[str, Column]) -> bool:
    """Whether the very last row is the only one at the end without a loss, and holds an evaluation or a rate only.

    A row of the rate alone is one of training where it is due and every loss has a gradient norm beside it: it lacks
    that, too.
    """
    loss = metrics.get("loss")
    if loss is None or loss.logged is None or len(loss.logged) <= MIN_POINTS:
        return False
    if loss.logged[-1] or not loss.logged[-2]:
        return False
    last = {name for name, column in metrics.items() if column.mask[-1] and not is_time(name)}
    if not last <= {*EVALUATED, "lr"}:
        return False
    return not last.isdisjoint(EVALUATED) or not _is_step(steps, metrics)


def _is_step(steps: Ints, metrics: Mapping[str, Column]) -> bool:
    """Whether a last row without a loss is a step of training: as far behind the last one as that was, with norms."""
    logged, norm = metrics["loss"].mask, metrics.get("grad_norm")
    own = steps[logged]
    due = len(own) > 1 and bool(steps[-1] - own[-1] == own[-1] - own[-2])
    return due and norm is not None and bool(norm.mask[logged][-2:].all())


def here_and_there(steps: Ints, metrics: Mapping[str, Column], series: Mapping[str, Series]) -> list[str]:
    """Return a note on each watched metric that lacks single values; arguments as for `find_gaps`."""
    found = []
    for metric, _, logged in _watched(metrics, series):
        training, _ = _rows_without(metric, metrics)
        busy = np.setdiff1d(steps[training], logged.steps)
        intervals = np.diff(logged.steps).astype(np.float64)
        near = intervals <= FACTOR * max(1.0, median(intervals))
        count = int(_between(busy, logged.steps)[1][near].sum())
        if count >= MIN_ROWS and count > NOTED_SHARE * len(logged) and _missing_share(intervals) > NOTED_SHARE:
            found.append(f"{metric} is missing here and there: in {count:,} rows that hold other metrics.")
    return found


def _missing_share(intervals: Floats) -> float:
    """Return the share of a metric's values that are missing one or two at a time."""
    usual = max(1.0, median(intervals))
    near = np.rint(intervals[intervals <= FACTOR * usual] / usual)
    return float((near - 1).clip(0).sum() / max(1.0, near.sum()))


def _rows_without(metric: str, metrics: Mapping[str, Column]) -> tuple[Bools, Bools]:
    """Return the rows without a metric: with another one of training in them, and with nothing known in them."""
    logged = metrics[metric].mask
    training = np.zeros(len(logged), dtype=np.bool_)
    evaluated = np.zeros(len(logged), dtype=np.bool_)
    for name, column in metrics.items():
        if name in EVALUATED or column.sporadic:
            evaluated |= column.mask
        elif name != metric and not is_time(name):
            training |= column.mask
    return training & ~logged, ~(logged | training | evaluated)


def _gaps(metric: str, own: Ints, busy: Ints, quiet: Ints) -> list[Gap]:
    """Return the gaps between the metric's own steps and after them.

    Args:
        metric: its name.
        own: int64 (n,), the steps at which it was logged.
        busy: int64 (m,), steps without it at which something else of training was logged.
        quiet: int64 (k,), these and the steps at which nothing known was logged at all. Such rows may come
            from an evaluation in unknown columns, so they count only where they are as dense as the metric.
    """
    if not len(quiet):
        return []
    last = busy[busy > own[-1]]
    intervals = np.diff(own).astype(np.float64)
    share = _missing_share(intervals)
    # Each of the last rows of training holds the metric, so that one without it is an event.
    always = len(own) >= ALWAYS and not ((busy > own[-ALWAYS]) & (busy < own[-1])).any()
    if metric == "loss" and 0 < len(last) <= MIN_ROWS and always:
        # A trainer that stops at its first NaN leaves one row without a loss, or two.
        if share ** len(last) < AT_END_BY_CHANCE:
            return [Gap(metric, int(last[0]), int(last[-1]), len(last), at_end=True)]
        return []
    usual = max(1.0, median(intervals))
    silence, edges = intervals, own
    if quiet[-1] > own[-1]:
        silence, edges = np.append(intervals, quiet[-1] - own[-1]), np.append(own, quiet[-1] + 1)
    first, rows = _between(quiet, edges)
    enough = (_between(busy, edges)[1] >= MIN_ROWS) | (rows >= np.maximum(MIN_ROWS, DENSITY * silence / usual))
    unlikely = len(own) * share ** np.maximum(1.0, np.rint(silence / usual) - 1) < BY_CHANCE
    found = []
    for index in np.flatnonzero(enough & unlikely & (silence > FACTOR * usual)).tolist():
        if silence[index] > FACTOR * _usual(intervals, index):
            span = quiet[first[index] : first[index] + rows[index]]
            found.append(Gap(metric, int(span[0]), int(span[-1]), len(span), at_end=index == len(intervals)))
    return found


def _between(steps: Ints, edges: Ints) -> tuple[Ints, Ints]:
    """Return, of the steps strictly between each two edges, the index of the first and the count."""
    first = np.searchsorted(steps, edges[:-1], side="right")
    return first, np.searchsorted(steps, edges[1:], side="left") - first


def _usual(intervals: Floats, index: int) -> float:
    """Return the interval to expect around `index`: a log that becomes sparser has not stopped."""
    before = intervals[max(0, index - AROUND) : index]
    after = intervals[index + 1 : index + 1 + AROUND]
    usual = max([median(part) for part in (before, after) if len(part)], default=0.0)
    if not len(after) and index < len(intervals) and len(before):
        # The last interval has nothing behind it that would show a change: the one before it has to.
        usual = max(usual, float(before[-1]))
    return usual


PLACEHOLDER_SCALES = (-1.0, 1.0)  # what DeepSpeed and Megatron print where no scaler is in use
MOVED = SHARE_SOME  # relative change of a loss that no run has without a gradient
MASKED_ROWS = 2  # rows to the end with a gradient of 0; one is enough where it is NaN
RL_SIGNS = frozenset(("reward_std", "frac_reward_zero_std"))  # a policy's loss moves without a gradient, too
MIN_COMPARED = ROWS_SHORT
MIN_RANGE = FACTOR  # a scale that moved by two halvings at least
SLOPE = (0.75, 1.25)  # of log grad_norm over log loss_scale: 1 when the norm is multiplied by the scale
EXPLAINED = SHARE_MOST  # share of the norm's variance that the scale must explain

SeriesByName = dict[str, "Series"]


def interpret(series: Mapping[str, Series], config: Mapping[str, Setting]) -> tuple[SeriesByName, tuple[str, ...]]:
    """Return the series with the values that their trainer meant, and a note for each change."""
    dtype = config["dtype"].value if "dtype" in config else None
    found: SeriesByName = dict(series)
    with np.errstate(all="ignore"):  # NaN and infinity are data here
        notes = (
            _placeholder_scale(found, dtype),
            _placeholder_norm(found),
            _masked_nan(found),
            _scaled_norm(found),
        )
    return found, tuple(filter(None, notes))


def _placeholder_scale(found: SeriesByName, dtype: object) -> str:
    """Remove a loss scale of -1 throughout, or of 1 outside of fp16, which is no scaler's; return the note."""
    scale = found.get("loss_scale")
    if scale is None or not len(scale) or dtype == "fp16":
        return ""
    value = float(scale.values[0])
    if value not in PLACEHOLDER_SCALES or not (scale.values == value).all():
        return ""
    norm = found.get("grad_norm")
    if value == 1 and norm is not None and "loss" not in found and not np.isfinite(norm.values).any():
        return ""  # it is told by the lines that report an overflow
    del found["loss_scale"]
    return f"loss_scale is {value:g} throughout, which is written where no scaler is in use: taken as not logged."


def _placeholder_norm(found: SeriesByName) -> str:
    """Remove a grad_norm of exactly 0 throughout under a loss that moves: it was never measured; return the note.

    With a reward the loss moves without a gradient as well, and the 0 is real.
    """
    norm, loss = found.get("grad_norm"), found.get("loss")
    if norm is None or loss is None or len(norm) < 2 or extremes(norm) != (0, 0, True):
        return ""
    values = loss.values[np.isfinite(loss.values)]
    if RL_SIGNS & found.keys() or len(values) < MIN_COMPARED:
        return ""
    part = max(1, len(values) // 10)
    first, last = median(values[:part]), median(values[-part:])
    if abs(first - last) <= MOVED * abs(first):
        return ""
    del found["grad_norm"]
    return "grad_norm is 0 throughout although the loss moves, so it was not measured: taken as not logged."


def _masked_nan(found: SeriesByName) -> str:
    """Replace a loss that a filter wrote for NaN, up to the end of the log, by NaN; return the note.

    Hugging Face's filter writes 0.0, or the mean so far again and again. That is assumed where each row to the end has
    a grad_norm of NaN; or of 0, if the loss was above 0 before. With a reward in the log a loss of 0 is what the method
    gives.
    """
    loss, norm = found.get("loss"), found.get("grad_norm")
    if loss is None or norm is None or not len(loss) or not len(norm) or "reward" in found:
        return ""
    if loss.values[-1] != 0 and not (loss.values[-2:-1] == loss.values[-1]).any():
        return ""
    zero = loss.values == 0
    repeated = np.append([False], loss.values[1:] == loss.values[:-1])
    at = np.minimum(np.searchsorted(norm.steps, loss.steps), len(norm) - 1)
    beside = np.where(norm.steps[at] == loss.steps, norm.values[at], np.inf)
    rows = true_at_end((zero | repeated) & np.isnan(beside))
    still = true_at_end(zero & (np.isnan(beside) | (beside == 0)))
    if still >= MASKED_ROWS and (loss.values[: len(loss) - still] > 0).any():
        rows = max(rows, still)
    if not rows:
        return ""
    first = len(loss) - rows
    values = loss.values.copy()
    values[first:] = np.nan
    values.flags.writeable = False
    found["loss"] = replace(loss, values=values)
    return (
        f"From step {int(loss.steps[first]):,} on the loss is written as {float(loss.values[-1]):g} while grad_norm is "
        "NaN or 0, as trainers do that filter NaN out of their logs (logging_nan_inf_filter): read as NaN."
    )


def _scaled_norm(found: SeriesByName) -> str:
    """Divide a grad_norm that was logged before unscaling, so that it moves with the loss scale; return the note.

    On a skipped step the old norm is written once more; those rows are left out.
    """
    norm, scale = found.get("grad_norm"), found.get("loss_scale")
    if norm is None or scale is None or len(norm) < MIN_COMPARED or not len(scale):
        return ""
    own = extremes(scale)
    if own.finite and own.highest < MIN_RANGE * own.lowest:
        return ""
    at = np.searchsorted(scale.steps, norm.steps, side="right") - 1
    by = np.where(at >= 0, scale.values[np.maximum(at, 0)], np.nan)
    scaled = np.isfinite(by) & (by > 0)
    stale = np.append([False], (np.diff(norm.values) == 0) & (np.diff(by) != 0))
    usable = scaled & np.isfinite(norm.values) & (norm.values > 0) & ~stale
    slope = _slope(np.log(by[usable]), np.log(norm.values[usable]))
    if not SLOPE[0] < slope < SLOPE[1]:
        return ""
    values = np.where(scaled, norm.values / np.where(scaled, by, 1.0), norm.values)[~stale]
    values.flags.writeable = False
    found["grad_norm"] = replace(norm, steps=norm.steps[~stale], values=values, divided_by="loss_scale")
    left_out = ""
    if stale.any():
        left_out = f"; {int(stale.sum()):,} rows of skipped steps repeat the old norm and are left out"
    return (
        f"grad_norm goes with the loss scale (slope {slope:.2f} in logarithms), so it was logged before unscaling: "
        f"divided by the scale{left_out}."
    )


def _slope(scale: Floats, norm: Floats) -> float:
    """Return the slope of a norm over a scale, both logarithms (n,); NaN where the scale does not explain the norm."""
    if len(scale) < MIN_COMPARED or np.exp(np.ptp(scale)) < MIN_RANGE:
        return math.nan
    if float(np.var(norm - scale)) > (1 - EXPLAINED) * float(np.var(norm)):
        return math.nan
    off = scale - scale.mean()
    return float((off * (norm - norm.mean())).sum() / (off**2).sum())
