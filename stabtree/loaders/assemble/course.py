"""The course of each series: rows whose steps go back, silences, and values that stand for something else."""

from __future__ import annotations

import math
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.passes import extremes, increases, never_falls
from stabtree.common.shared import (
    FACTOR,
    FACTOR_LARGE,
    ROWS_LONG,
    ROWS_SHORT,
    SHARE_HALF,
    SHARE_MOST,
    SHARE_SOME,
)
from stabtree.common.stats import median, true_at_end
from stabtree.common.text import clean
from stabtree.loaders.table import unless_all
from stabtree.metrics.table import is_time
from stabtree.run import MISSED_ROWS, Gap, Resume

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column, Table
    from stabtree.run import Series, Setting

    SeriesByName = dict[str, Series]
    # The rule by which a column was due in some rows, those, (n,), the rows that it is about, (n,), and the logarithm
    # of how many rules of its kind there are.
    Layout = tuple[str, Bools, Bools, float]

# A log goes back at a resume, a few times at most. One that goes back more often is out of order, and so is one that
# goes back in such a share of its rows and hardly repeats a step: what is resumed runs some steps again.
MAX_RESUMES, MIN_BACK, SHUFFLED_SHARE, REPEATED_SHARE = 200, 4, 0.2, 0.1
WATCHED = ("loss", "grad_norm", "lr", "loss_scale")
EVALUATED = frozenset(("eval_loss", "eval_quality"))
MIN_ROWS = 3
BY_CHANCE = 0.001  # how often single missing values may come together so by chance
FITS = 0.02  # how often measured rows may fit a layout by chance
MAX_LAYOUTS = 20  # kinds of rows that each column is compared with
PLACEHOLDER_SCALES = (-1.0, 1.0)  # what DeepSpeed and Megatron print where no scaler is in use
MASKED_ROWS = 2  # rows to the end with a gradient of 0; one is enough where it is NaN
RL_SIGNS = frozenset(("reward_std", "frac_reward_zero_std"))  # a policy's loss moves without a gradient, too


class History(Struct, frozen=True):
    """What became of rows whose steps go back."""

    keep: Bools | None  # (n,), false for rows of abandoned stretches; None when all are kept
    resumes: tuple[Resume, ...] = ()  # the places where the log goes back, with `replaced_rows`
    notes: tuple[str, ...] = ()  # about rows that are merely out of order


def history(steps: Ints, carries: Bools, broken: Bools) -> History:
    """Find resumes among rows in file order; rows that carry the loss decide, since eval rows often come late.

    A resume goes back over at least two rows and writes at least two steps anew; one that replaces all rows since the
    first is a fresh start, of which only a note is kept. Anything else is out of order and is put in its place: a
    single row, a part of the log that ends before the rows that it seems to replace, all rows of a shuffled log.
    `carries` and `broken` are the rows that carry the loss, and those that hold NaN or infinity, bool (n,).
    """
    if never_falls(steps):
        return History(None)
    rows = np.flatnonzero(carries)
    seen = steps[rows]
    back = np.flatnonzero(np.diff(seen) < 0) + 1
    if not len(back):
        return History(None)
    distinct = np.unique(seen)
    apart, repeated = np.diff(distinct), len(seen) - len(distinct)
    # Where a run was resumed and logs at other steps afterwards, these are closer than elsewhere.
    once = not repeated and bool((apart > np.median(apart) / 2).all())
    shuffled = len(back) >= SHUFFLED_SHARE * len(seen) and repeated <= REPEATED_SHARE * len(seen)
    if len(back) > MAX_RESUMES or (len(back) >= MIN_BACK and (once or shuffled)):
        times = f"{len(back):,} time{'s' * (len(back) != 1)}"
        note = f"The log is out of order: its steps go back {times}. Its rows were put in the order of their steps."
        return History(None, notes=(note,))
    whole = distinct[0] <= MISSED_ROWS * median(apart)  # others go back to a checkpoint
    keep = np.ones(len(steps), dtype=np.bool_)
    resumes: list[Resume] = []
    fresh: list[int] = []
    stray = start = 0
    top = int(seen[0])
    for begin, end in pairwise([*back.tolist(), len(seen)]):
        top, start = max(top, int(seen[start:begin].max())), begin
        from_step, to_step = int(seen[begin - 1]), int(seen[begin])
        abandoned = np.flatnonzero(keep[: rows[begin]] & (steps[: rows[begin]] >= to_step))
        left = abandoned[carries[abandoned]]
        again = int(np.searchsorted(seen[begin:end], top, side="right"))
        if again < 2 or len(left) < 2 or seen[end - 1] < steps[left].min():
            stray += 1
            continue
        if whole and len(left) == np.count_nonzero(keep[: rows[begin]] & carries[: rows[begin]]):
            fresh.append(from_step)
            resumes.clear()  # they were of the attempt before
        else:
            resumes.append(Resume(from_step, to_step, len(abandoned), int(np.count_nonzero(broken[abandoned]))))
        keep[abandoned] = False
        top = to_step
    notes = []
    if fresh:
        text = f"The file holds {len(fresh) + 1} runs, each begun anew at the first step: the last is read"
        notes.append(f"{text} (the others end at step {', '.join(f'{step:,}' for step in fresh)}).")
    if stray:
        notes.append(f"Rows out of order: {stray}, put in the place of their step.")
    return History(unless_all(keep), tuple(resumes), tuple(notes))


def without_filler(table: Table, steps: Ints) -> Table:
    """Take a NaN for an empty cell where its column was not due to be measured, and note when it was due.

    Frames and arrays need a value in every row: a column that is measured now and then holds NaN in between. When it
    was due follows from the rows that hold a number. A NaN in such a row stays, and so does every NaN of a column whose
    rows follow no rule. `steps` are those of the rows.
    """
    columns = {name: column for name, column in table.columns.items() if column and not column.coded}
    broken = {name: column for name, column in columns.items() if not extremes(column).finite}
    numbers = {name: column.mask & ~np.isnan(column.values) for name, column in broken.items()}
    between = {name: rows for name, rows in numbers.items() if _comes_back(broken[name].mask, rows)}
    if not between:
        return table
    distinct = {rows.tobytes(): (name, rows) for name, rows in reversed(between.items())}
    kinds = sorted(distinct.values(), key=lambda kind: -np.count_nonzero(kind[1]))[:MAX_LAYOUTS]
    found: dict[tuple[bytes, bytes], Layout | None] = {}
    notes = []
    for name, rows in between.items():
        logged = broken[name].mask
        key = rows.tobytes(), logged.tobytes()
        if key not in found:
            layouts = chain(_apart(logged, rows, kinds), _periods(steps, logged, rows))
            found[key] = next((one for one in layouts if _fits(logged, rows, one)), None)
        if layout := found[key]:
            when, due, of, _ = layout
            broken[name] = replace(broken[name], logged=rows | (logged & of & due))
            notes.append(f"{clean(name, 40)} is measured {when}: NaN in other rows is filler, taken as not logged.")
    return replace(table, columns={**table.columns, **broken}, notes=(*table.notes, *notes))


def _comes_back(logged: Bools, rows: Bools) -> bool:
    """Return whether some cell of a column is NaN before the last one that holds a number."""
    return bool(rows.any() and (logged & ~rows)[: len(rows) - int(np.argmax(rows[::-1]))].any())


def _fits(logged: Bools, rows: Bools, layout: Layout) -> bool:
    """Return whether nearly all rows that hold a number were due, which they would hardly be by chance."""
    _, due, of, free = layout
    size, places, fitting = (int(np.count_nonzero(of & one)) for one in (logged, logged & due, rows & due))
    if not fitting or fitting < SHARE_MOST * np.count_nonzero(of & rows):
        return False
    few, many = (math.lgamma(one + 1) - math.lgamma(one - fitting + 1) for one in (places, size))
    return few - many + free < math.log(FITS)


def _apart(logged: Bools, rows: Bools, kinds: Sequence[tuple[str, Bools]]) -> Iterator[Layout]:
    """Yield the rows in which another column is NaN, if no row holds both: rows of training and of evaluation."""
    last = len(rows) - int(np.argmax(rows[::-1]))
    for name, other in kinds:
        if not (rows & other).any() and np.count_nonzero((other & logged)[:last]) >= MIN_ROWS:
            yield f"where {clean(name, 40)} is not", ~other, logged, 0.0


def _periods(steps: Ints, logged: Bools, rows: Bools) -> Iterator[Layout]:
    """Yield the rows that are due every so many steps; the first and the last step may be measured besides."""
    at, own = np.unique(steps[logged]), np.unique(steps[rows])
    if len(own) < 2:
        return
    apart = median(np.diff(at))
    lengths, counts = np.unique(np.diff(own), return_counts=True)
    usual = int(lengths[np.argmax(counts)])
    phases, counts = np.unique(own % usual, return_counts=True)
    due = steps % usual == phases[np.argmax(counts)]
    if usual >= 2 * apart:
        of = (steps > own[0]) & (due | (steps != own[-1]))
        yield f"every {usual:,} steps", due, of, math.log(usual / apart)


def find_gaps(
    steps: Ints, metrics: Mapping[str, Column], series: Mapping[str, Series], evaluations: Sequence[Column] = ()
) -> tuple[Gap, ...]:
    """Return the gaps of the watched metrics, in order of their first step.

    Frames written through pandas leave the cell of a NaN empty, and some trainers leave a NaN out of the row: then
    silence is the only trace. But most silence is layout, such as eval rows or intervals of their own. `evaluations`
    are the columns of held-out data that no metric was read from.
    """
    gaps: list[Gap] = []
    distinct = increases(steps)  # of a million steps, to make them distinct takes longer than to read them
    for metric in WATCHED:
        column, logged = metrics.get(metric), series.get(metric)
        if column is None or column.logged is None or column.sporadic or logged is None or len(logged) < ROWS_SHORT:
            continue
        training, beside_rate, other = (np.zeros(len(steps), dtype=np.bool_) for _ in range(3))
        for name, own in metrics.items():
            if name in EVALUATED or own.sporadic:
                other |= own.mask
            elif name != metric and not is_time(name):
                training |= own.mask
                if name != "lr":
                    beside_rate |= own.mask
        for evaluation in evaluations:
            other |= evaluation.mask
        lacking = ~column.logged if column.garbled is None else ~(column.logged | column.garbled)
        silent = (steps[rows & lacking] for rows in (training, beside_rate, training | ~other))
        busy, due, quiet = (np.setdiff1d(one, logged.steps, assume_unique=distinct) for one in silent)
        gaps += _gaps(metric, logged.steps, (busy, due, quiet))
    every = max((one.steps for one in series.values()), key=len, default=steps[:0])
    apart = np.diff(every)
    at = int(np.append(apart, 0).argmax())
    if ROWS_SHORT <= at < len(apart) - ROWS_SHORT:
        # No row is left of a stretch, as where a disk was full: as long as all others, and far longer than each.
        others, usual = np.delete(apart, at), median(apart)
        if apart[at] > max(SHARE_HALF * apart.sum(), ROWS_LONG * usual, FACTOR_LARGE * others.max()):
            missing = int(apart[at] / usual) - 1
            gaps.append(Gap("step", int(every[at]) + 1, int(every[at + 1]) - 1, missing, at_end=False))
    return tuple(sorted(gaps, key=lambda gap: gap.first_step))


def _gaps(metric: str, own: Ints, without: tuple[Ints, Ints, Ints]) -> Iterator[Gap]:
    """Yield the gaps between the metric's own steps and after them.

    At busy steps something else of training was logged, at due ones more than a learning rate, at quiet ones that or
    nothing known at all. Such rows may come from an evaluation in unknown columns, so they count where they are dense.
    """
    busy, due, quiet = without
    last = busy[busy > own[-1]]
    always = len(own) >= ROWS_LONG and not ((busy > own[-ROWS_LONG]) & (busy < own[-1])).any()
    if metric == "loss" and 0 < len(last) <= MIN_ROWS and always:
        # Each row of training holds the loss: a trainer that stops at its first NaN leaves one row without it, or two.
        if last[-1] in due:
            yield Gap(metric, int(last[0]), int(last[-1]), len(last), at_end=True)
        return
    if not len(quiet):
        return
    intervals = np.diff(own).astype(np.float64)
    usual = max(1.0, median(intervals))
    near = np.rint(intervals[intervals <= FACTOR * usual] / usual)
    missing_share = float((near - 1).clip(0).sum() / max(1.0, near.sum()))
    silence, edges = intervals, own
    if quiet[-1] > own[-1]:
        silence, edges = np.append(intervals, quiet[-1] - own[-1]), np.append(own, quiet[-1] + 1)
    first = np.searchsorted(quiet, edges[:-1], side="right")
    rows = np.searchsorted(quiet, edges[1:], side="left") - first
    enough = rows >= np.maximum(MIN_ROWS, SHARE_HALF * silence / usual)
    unlikely = len(own) * missing_share ** np.maximum(1.0, np.rint(silence / usual) - 1) < BY_CHANCE
    for index in np.flatnonzero(enough & unlikely & (silence > FACTOR * usual)).tolist():
        at_end = index == len(intervals)
        around = [intervals[max(0, index - ROWS_SHORT) : index], intervals[index + 1 : index + 1 + ROWS_SHORT]]
        if at_end:  # nothing behind it shows whether the log became sparser: the one before has to
            around.append(intervals[-1:])
        if silence[index] > FACTOR * max(median(part) for part in around if len(part)):
            span = quiet[first[index] : first[index] + rows[index]]
            yield Gap(metric, int(span[0]), int(span[-1]), len(span), at_end=at_end)


def interpret(series: Mapping[str, Series], config: Mapping[str, Setting]) -> tuple[SeriesByName, tuple[str, ...]]:
    """Return the series with the values that their trainer meant, and a note for each change."""
    dtype = config["dtype"].value if "dtype" in config else None
    meant = dict(series)
    with np.errstate(all="ignore"):  # NaN and infinity are data here
        notes = [_placeholder_scale(meant, dtype), _placeholder_norm(meant), _masked_nan(meant)]
    return meant, tuple(filter(None, notes))


def _frozen(series: Series, values: Floats) -> Series:
    values.flags.writeable = False
    return replace(series, values=values)


def _placeholder_scale(meant: SeriesByName, dtype: object) -> str:
    """Remove a loss scale of -1 throughout, or of 1 outside of fp16, which is no scaler's; return the note."""
    if "loss_scale" not in meant or dtype == "fp16":
        return ""
    own = extremes(meant["loss_scale"])
    if not own.finite or own.lowest != own.highest or own.lowest not in PLACEHOLDER_SCALES:
        return ""
    del meant["loss_scale"]
    return f"loss_scale is {own.lowest:g} throughout, which is written where no scaler is in use: taken as not logged."


def _placeholder_norm(meant: SeriesByName) -> str:
    """Remove a grad_norm of exactly 0 throughout under a loss that moves: it was never measured; return the note.

    With a reward the loss moves without a gradient as well, and the 0 is real.
    """
    norm, loss = meant.get("grad_norm"), meant.get("loss")
    if norm is None or loss is None or len(norm) < 2 or extremes(norm) != (0, 0, True) or RL_SIGNS & meant.keys():
        return ""
    values = loss.values[np.isfinite(loss.values)]
    part = max(1, len(values) // 10)
    first, last = median(values[:part]), median(values[-part:])
    if len(values) < ROWS_SHORT or abs(first - last) <= SHARE_SOME * abs(first):
        return ""
    del meant["grad_norm"]
    return "grad_norm is 0 throughout although the loss moves, so it was not measured: taken as not logged."


def _masked_nan(meant: SeriesByName) -> str:
    """Replace a loss that a filter wrote for NaN, up to the end of the log, by NaN; return the note.

    Hugging Face's filter writes 0.0, or the mean so far again and again. That is assumed where each row to the end has
    a grad_norm of NaN; or of 0, if the loss was above 0 before. With a reward in the log a loss of 0 is what the method
    gives.
    """
    if "reward" in meant or not meant.keys() >= {"loss", "grad_norm"}:
        return ""
    loss, norm = meant["loss"], meant["grad_norm"]
    zero = loss.values == 0
    repeated = np.append([False], loss.values[1:] == loss.values[:-1])
    if not (zero[-1] or repeated[-1]):
        return ""
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
    meant["loss"] = _frozen(loss, values)
    return (
        f"From step {int(loss.steps[first]):,} on the loss is written as {float(loss.values[-1]):g} while grad_norm is "
        "NaN or 0, as trainers do that filter NaN out of their logs (logging_nan_inf_filter): read as NaN."
    )
