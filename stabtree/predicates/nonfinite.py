"""Section 1: is the loss NaN or infinite, and in which precision did the run train?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.answer import LIKELY, NO, YES, Answer, Evidence, measured, unknown
from stabtree.common.lazy import np
from stabtree.common.passes import row_of
from stabtree.common.stats import stretches
from stabtree.common.strength import FARTHEST, whether
from stabtree.facts.loss_break import last_finite_before
from stabtree.facts.registry import Absent, seen
from stabtree.facts.replay import broken_ranks
from stabtree.predicates.registry import predicate
from stabtree.run import PRECISIONS

if TYPE_CHECKING:
    from stabtree.context.model import Known
    from stabtree.facts.loss_break import Break
    from stabtree.run import Gap, Run, Series


def name_of(value: float) -> str:
    """Return the name of a value that is not finite."""
    if math.isnan(value):
        return "NaN"
    return "inf" if value > 0 else "-inf"


@predicate(source="phase19 Q1.1", labels=("yes", "skipped", "stops", "no"))
def nonfinite_loss(
    run: Run, loss: Series, loss_break: Break | Absent, grad_norm: Series | None = None, *, forgiving: bool
) -> Answer:
    """Is the loss NaN or infinite at any logged step?

    `skipped`: fewer than half of the values are not finite, and the loss came back and stayed finite for at
    least the last `recovered_rows` rows, or ends with no more bad rows in a row than it had come back from before: a
    trainer that skips bad updates goes on. `stops`: all that was logged is
    finite, but the loss is no longer logged while other series go on; pandas and JSON write a NaN as an empty cell or
    null, so this is never taken for health; only a last row of the last planned step, with no broken grad_norm, is what
    a trainer writes when it is done. A loss that is missing for a while and comes back is `skipped` too.
    Without `forgiving`, the document's own rule, any such value is a yes.
    """
    if isinstance(loss_break, Absent):
        if forgiving and _gaps(run):
            return _missing(run, loss, grad_norm)
        return Answer(NO, loss_break.evidence, strength=loss_break.strength)
    rows, came_back = loss_break.rows, forgiving and loss_break.healed
    start = int(rows[0]) if came_back else loss_break.row
    step, last_bad = int(loss.steps[start]), int(loss.steps[rows[-1]])
    value = name_of(float(loss.values[start]))
    text = f"loss is {value} at step {step:,}; {len(rows):,} of {len(loss):,} logged "
    text += "values are not finite"
    if came_back:
        longest = max(b - a for a, b in stretches(~np.isfinite(loss.values)))
        text += f", at most {longest} in a row, none after step {last_bad:,}"
    else:
        text += f", the last at step {last_bad:,} of {int(loss.steps[-1]):,}"
    early = int((rows < start).sum())
    brief = f"{value} from its first row on" if len(rows) == len(loss) else value
    if came_back:
        brief = f"{value} in {len(rows):,} of {len(loss):,} rows"
    earlier = f"the run recovered from {early} non-finite steps before that, from step {int(loss.steps[rows[0]]):,} on"
    return Answer(
        "skipped" if came_back else YES,
        seen(
            Evidence(text, "loss", (step,), float(len(rows)), 0.0, brief),
            Evidence(earlier, "loss", tuple(int(s) for s in loss.steps[rows[:5]])) if early else None,
            _first_rank(run, step),
        ),
        onset_step=step,
        last_good_step=last_finite_before(loss, start),
        storm=True,
        strength=FARTHEST,
    )


def _gaps(run: Run) -> list[Gap]:
    """Return where the loss is missing while other series go on, a gap at the end first."""
    return sorted((gap for gap in run.gaps if gap.metric == "loss"), key=lambda gap: not gap.at_end)


def _missing(run: Run, loss: Series, grad_norm: Series | None) -> Answer:
    gap, last = _gaps(run)[0], int(loss.steps[-1])
    if gap.at_end and gap.rows == 1 and gap.last_step >= run.planned_step and _sound_at(grad_norm, gap.last_step):
        text = f"loss is missing in the last row only, of step {gap.last_step:,}, the last one that was planned"
        return Answer(NO, (Evidence(text, "loss", (gap.first_step,), 1.0, 1.0),))
    if gap.at_end:
        text = f"loss is logged up to step {last:,}, then it is missing in {gap.rows:,} rows up to step "
        found = Evidence(f"{text}{gap.last_step:,}", "loss", (gap.first_step,), float(gap.rows), 0.0)
        return Answer("stops", (found,), onset_step=gap.first_step, last_good_step=last, storm=True, strength=FARTHEST)
    text = f"loss is missing in {gap.rows:,} rows of steps {gap.first_step:,} to {gap.last_step:,}"
    found = Evidence(text, "loss", (gap.first_step,), float(gap.rows), 0.0)
    return Answer("skipped", (found,), onset_step=gap.first_step, storm=True, strength=FARTHEST)


def _sound_at(grad_norm: Series | None, step: int) -> bool:
    """Return whether grad_norm is finite at a step, or was not logged."""
    return grad_norm is None or bool(np.isfinite(grad_norm.values[row_of(grad_norm.steps, step)]).all())


@predicate(source="stabtree", min_points=2)
def last_row_alone(run: Run, loss: Series, grad_norm: Series | None = None) -> Answer:
    """Is the loss missing in the very last row only, with no other sign of a NaN?

    Not where its grad_norm is not finite, nor where the losses before it came with one and it is missing as well, at a
    step that was due.
    """
    gaps = _gaps(run)
    if not gaps or not gaps[0].at_end or gaps[0].rows > 1:
        text = f"loss is missing in {sum(gap.rows for gap in gaps):,} rows"
        return Answer(NO, (Evidence(text, "loss", (), float(sum(gap.rows for gap in gaps)), 1.0),))
    step = gaps[0].last_step
    if not _sound_at(grad_norm, step):
        return Answer(NO, (Evidence(f"grad_norm of step {step:,} is not finite", "grad_norm", (step,)),))
    due = step - loss.steps[-1] == loss.steps[-1] - loss.steps[-2]
    if grad_norm is not None and due and np.array_equal(grad_norm.steps[-2:], loss.steps[-2:]):
        return Answer(NO, (Evidence(f"the row of step {step:,} lacks grad_norm as well", "grad_norm", (step,)),))
    text = f"only the row of step {step:,} holds no loss" + (
        ", its grad_norm is finite" if grad_norm is not None else ""
    )
    return Answer(YES, (Evidence(text, "loss", (step,), 1.0, 1.0),))


def _first_rank(run: Run, step: int) -> Evidence | None:
    """Return which rank blew up first, for a run that logs its ranks."""
    firsts = broken_ranks(run)
    if not firsts:
        return None
    rank = min(firsts, key=lambda r: firsts[r])
    others = len(run.ranks) - len(firsts)
    text = f"rank {rank} was first, at step {firsts[rank]:,}"
    text += f"; {others} of {len(run.ranks)} ranks stayed finite" if others else ""
    return Evidence(text, "loss", (firsts[rank], step))


@predicate(source="phase19 Q1.2", labels=PRECISIONS, sets="dtype")
def dtype_regime(run: Run, precision: Known[str]) -> Answer:
    """Which number format did the run train in?

    From the manifest or `--dtype`; else a loss scale that is logged and above 1 means fp16, since bf16
    and fp32 need none. A constant 1 or -1 is how trainers print "not in use" and proves nothing. A loss of which every
    value is a number of bf16 was computed in it.
    """
    known = run.config.get("dtype")
    if known and str(known.value) in PRECISIONS:
        return Answer(str(known.value), (Evidence(f"dtype is {known.value} ({known.source})"),))
    if precision.value:
        return Answer(precision.value, (Evidence(f"inferred: {precision.why}"),))
    return unknown("neither the log nor a configuration names it, and no loss scale is logged", "dtype")


@predicate(source="phase19 Q1.1, asked of the eval loss")
def nonfinite_eval(eval_loss: Series) -> Answer:
    """Is the eval loss NaN or infinite at its end, or more than once?

    A single value in between may be one broken batch of the held-out data, which the next evaluation leaves behind.
    """
    bad = np.flatnonzero(~np.isfinite(eval_loss.values))
    if not len(bad):
        text = f"all {len(eval_loss):,} logged values of eval_loss are finite"
        clean = Evidence(text, "eval_loss", (int(eval_loss.steps[0]),), 0.0, 0.0)
        return Answer(NO, (clean,), strength=-FARTHEST)
    first = int(eval_loss.steps[bad[0]])
    text = f"{len(bad):,} of {len(eval_loss):,} values of eval_loss are not finite, the first is "
    text += f"{name_of(float(eval_loss.values[bad[0]]))} at step {first:,}"
    found = (Evidence(text, "eval_loss", (first,), float(len(bad)), 1.0),)
    if len(bad) == 1 and bad[0] < len(eval_loss) - 1:
        return Answer(NO, found, strength=-1.0)
    good = int(eval_loss.steps[bad[0] - 1]) if bad[0] else None
    return Answer(YES, found, onset_step=first, last_good_step=good, strength=FARTHEST)


@predicate(source="OCP 8-bit floating point: E4M3 and E5M2", labels=(LIKELY, NO))
def trained_in_fp8(run: Run) -> Answer:
    """Did the run train in FP8, whose largest number is 448 or 57,344?

    Likely, never yes: the format makes an overflow likely, and no usual metric shows one.
    """
    known = run.config.get("dtype")
    if known is None:
        return unknown("neither the log nor a configuration says in which number format the run trained", "dtype")
    text = f"dtype is {known.value} ({known.source})"
    fp8 = known.value == "fp8"
    return Answer(LIKELY if fp8 else NO, (Evidence(text),), contrary=not fp8)


@predicate(source="public threads: evaluation batches without a single label")
def only_eval_breaks(loss: Series, eval_loss: Series) -> Answer:
    """Is the eval loss never finite while the training loss always is?"""
    broken = int((~np.isfinite(eval_loss.values)).sum())
    bad = int((~np.isfinite(loss.values)).sum())
    text = f"eval_loss is not finite in {broken:,} of {len(eval_loss):,} evaluations, the training loss in {bad:,} of "
    text += f"{len(loss):,} rows"
    found = Evidence(
        text, "eval_loss", tuple(int(s) for s in eval_loss.steps[:3]), float(broken), float(len(eval_loss))
    )
    strength = whether(0 < len(eval_loss) == broken and not bad and len(loss) > 0)
    return measured(strength, (found,), onset_step=int(eval_loss.steps[0]) if len(eval_loss) else None)
