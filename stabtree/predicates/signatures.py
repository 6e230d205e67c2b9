"""Signatures of causes that public threads established: which metric does what, in which order, under which setting.

They rank causes. Where several leave the same trace the answer is `likely`, and `yes` only where a setting shows which.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, POSSIBLE, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.stats import interval, median, stretches
from stabtree.common.strength import above, weakest, whether
from stabtree.facts.registry import finite, paired
from stabtree.predicates.registry import Count, predicate
from stabtree.predicates.start import LARGEST_VOCABULARY

if TYPE_CHECKING:
    from stabtree.common.lazy import Ints
    from stabtree.context.model import Context
    from stabtree.run import Run, Series


def setting_matches(run: Run, key: str, value: str) -> bool | None:
    """Return whether a setting has a value, compared as words or as numbers; None where it is not known."""
    known = run.setting(key)
    if known is None:
        return None
    if isinstance(known, int | float) and not isinstance(known, bool):
        try:
            return math.isclose(float(known), float(value), rel_tol=1e-9)
        except ValueError:
            return False
    return str(known).lower() == value.lower()


@predicate(source="public threads", labels=("possible", "no"))
def setting_is(run: Run, *, key: str = "dtype", value: str = "fp16") -> Answer:
    """Does the configuration hold this value?

    A setting alone proves nothing, and makes nothing likely: `possible` at best.
    """
    match = setting_matches(run, key, value)
    if match is None:
        return unknown(f"the configuration does not name {key}", key)
    text = f"{key} is {run.setting(key)} ({run.config[key].source}), needed is {value}"
    return Answer(POSSIBLE, (Evidence(text),)) if match else Answer(NO, (Evidence(text),), contrary=True)


@predicate(source="what a person found", labels=(LIKELY, NO))
def answered(run: Run, *, key: str = "nan_begins", value: str = "embedding") -> Answer:
    """Did a person answer so?

    `key` is what the question's predicate sets, so only an answer can decide.
    """
    match = setting_matches(run, key, value)
    if match is None:
        return unknown(f"nobody answered {key}")
    found = (Evidence(f"{run.setting(key)}, as {run.config[key].source}"),)
    return Answer(LIKELY if match else NO, found)


@predicate(source="public threads: reinforcement learning, whose loss is no learning signal", labels=("possible", "no"))
def is_logged(run: Run, *, metric: str = "reward", other: str = "") -> Answer:
    """Is a metric logged that shows what kind of run this is, or another one that shows as much?"""
    name = next((name for name in (metric, other) if name and run.get(name) is not None), metric)
    series = run.get(name)
    text = f"{name} is logged in {len(series):,} rows" if series is not None else f"{name} is not logged"
    return Answer(POSSIBLE if series is not None else NO, (Evidence(text, name),))


@predicate(source="DeepSpeed#5347, LlamaFactory#8088 and others", labels=("likely", "no"))
def loss_zero_with_grad_nan(
    run: Run,
    loss: Series,
    grad_norm: Series,
    lr: Series | None = None,
    *,
    share: float = shared.SHARE_HALF,
    lr_moves: str = "any",
) -> Answer:
    """Is the loss exactly 0 where grad_norm is not finite?

    In at least `share` of the rows with such a grad_norm, the first of which is one of the first rows of the log: what
    breaks later has broken the weights, which leaves the same trace. transformers prints a NaN
    loss as 0. `lr_moves` is `moves` or `frozen`: a loss scaler that skips every step holds the schedule back, in bf16
    it goes on. Asked is the loss as it was written, before such a 0 was taken for the NaN that it is.
    """
    steps, losses, norms = paired(run.written.get("loss", loss), grad_norm)
    broken = ~np.isfinite(norms)
    zero = broken & (losses == 0)
    how = "written as 0, which stands for NaN," if "loss" in run.written else "exactly 0"
    text = f"loss is {how} in {int(zero.sum()):,} of the {int(broken.sum()):,} rows whose grad_norm is not finite"
    at = tuple(int(s) for s in steps[zero][:3])
    found = Evidence(text, "loss", at, float(zero.sum()), share * float(broken.sum()))
    early = bool(broken.any()) and int(np.argmax(broken)) < shared.ROWS_SHORT
    strength = weakest(above(float(zero.sum()), share * float(broken.sum())), whether(early))
    if strength < 0:
        return measured(strength, (found,), LIKELY)
    moved = _moved(lr, steps[zero]) if lr is not None else None
    if lr_moves != "any" and moved is not None:
        rate = Evidence(f"lr {'moves' if moved else 'is frozen'} over these rows", "lr", at)
        return Answer(LIKELY if moved == (lr_moves == "moves") else NO, (found, rate))
    return measured(strength, (found,), LIKELY)


def _moved(lr: Series, steps: Ints) -> bool | None:
    """Return whether lr changes over the given steps; None where it was logged at fewer than two of them."""
    values = lr.values[np.isin(lr.steps, steps)]
    values = values[np.isfinite(values)]
    return bool(float(values.max()) != float(values.min())) if len(values) > 1 else None


@predicate(source="Qwen3-VL#1146")
def grad_zero_with_lr_zero(grad_norm: Series, lr: Series) -> Answer:
    """Are grad_norm and the learning rate both exactly 0 throughout?"""
    zeros = int((grad_norm.values == 0).sum()), int((lr.values == 0).sum())
    text = f"grad_norm is exactly 0 in {zeros[0]:,} of {len(grad_norm):,} rows, lr in {zeros[1]:,} of {len(lr):,}"
    yes = len(grad_norm) > 1 and len(lr) > 1 and zeros == (len(grad_norm), len(lr))
    return Answer(YES if yes else NO, (Evidence(text, "grad_norm", (), float(zeros[0]), float(len(grad_norm))),))


@predicate(source="LlamaFactory#5660 and others", labels=("likely", "no"), min_points=1)
def initial_loss_high(run: Run, loss: Series, context: Context) -> Answer:
    """Does the loss begin far above that of an untrained model?

    Guessing costs ln(classes): above three times that, or ln(262,144), the largest vocabulary, where neither
    `vocab_size` nor `n_classes` is known. The loss must be exactly 0 later on: a poor initialisation begins high, too.
    """
    steps, values = finite(run.written.get("loss", loss))
    classes = context.classes.value or LARGEST_VOCABULARY
    limit, first = shared.FACTOR * math.log(classes), float(values[0])
    text = f"the first loss is {figure(first, 4)}; {shared.FACTOR:g} × ln({classes:,}) is {figure(limit)}"
    found = Evidence(text, "loss", (int(steps[0]),), first, limit)
    return measured(weakest(above(first, limit), whether(bool((values == 0).any()))), (found,), LIKELY)


@predicate(source="transpeeder#8, ColossalAI#5370, espnet#4095, xtuner#187", labels=("likely", "no"))
def isolated_nonfinite(run: Run, *, metric: str = "loss", longest: Count) -> Answer:
    """Is a metric not finite in single rows only, with ordinary ones around them?

    At most `longest` rows in a row, in fewer than half of all, and finite at the end.
    """
    series = run.get(metric)
    if series is None:
        return unknown(f"{metric} was not logged", metric)
    bad = ~np.isfinite(series.values)
    most = max((b - a for a, b in stretches(bad)), default=0)
    text = f"{metric} is not finite in {int(bad.sum()):,} of {len(series):,} rows, at most {most} in a row"
    found = Evidence(text, metric, tuple(int(s) for s in series.steps[bad][:5]), float(most), float(longest))
    single = 0 < most <= longest and bad.sum() < shared.SHARE_HALF * len(bad) and not bad[-1]
    return Answer(LIKELY if single else NO, (found,))


@predicate(source="pytorch-lightning#20619, litgpt#185", labels=("likely", "no"))
def breaks_at_start(loss: Series, *, at_once: bool) -> Answer:
    """Is the loss not finite from its first rows on, up to the end?

    With `at_once` no row is finite, else a few of the first ones are.
    """
    good = np.flatnonzero(np.isfinite(loss.values))
    last = int(good[-1]) + 1 if len(good) else 0
    text = f"the loss is finite in {len(good):,} of {len(loss):,} rows"
    text += f", last at step {int(loss.steps[good[-1]]):,}" if len(good) else ""
    found = Evidence(text, "loss", tuple(int(s) for s in loss.steps[last : last + 1]), float(last), 0.0)
    early = last == 0 if at_once else 0 < last <= shared.ROWS_SHORT
    return Answer(LIKELY if early and last < len(loss) else NO, (found,))


@predicate(source="detectron2#508 and #838, mlx-lm#1658", labels=("likely", "no"))
def loss_before_break(loss: Series, *, climbs: bool = True) -> Answer:
    """Did the loss climb before it broke?

    Compared is the last finite loss before the first that is not with the rows before it: more than twice their
    median, and above each of them, as a loss that is scattered over decades is not. Without `climbs` the
    question is whether it was ordinary to the last, which a log that has a row for each of several steps, or their
    mean, can't tell.
    """
    if not climbs and len(loss) > 1 and interval(loss.steps) > 1:
        return unknown("the loss is not logged at every step: the rows right before the break are not visible", "loss")
    bad = np.flatnonzero(~np.isfinite(loss.values))
    before = loss.values[: bad[0]] if len(bad) else loss.values[:0]
    if len(before) < 2:
        return unknown("the loss has no two rows before it breaks", "loss")
    window, last, factor = before[-shared.ROWS_LONG - 1 : -1], float(before[-1]), shared.FACTOR_SMALL
    usual, top = median(window), float(window.max())
    ratio = float(np.clip(last / usual, -1e300, 1e300)) if usual > 0 else 0.0
    text = f"the last finite loss is {figure(last, 4)}, {as_factor(ratio)} its usual value before (limit {factor:g}×)"
    text += f", which reached {figure(top, 4)}" if last <= top else ""
    found = Evidence(text, "loss", (int(loss.steps[bad[0] - 1]),), ratio, factor)
    strength = weakest(above(ratio, factor), whether(last > top))
    return measured(strength if climbs else -strength, (found,), LIKELY)


@predicate(source="fairseq#515 and #1895", labels=("likely", "no"), min_points=4)
def falls_despite_scale(loss: Series, loss_scale: Series) -> Answer:
    """Does the loss go on falling although the loss scale is below 1?

    Compared are the first and the last quarter of the rows from the first such scale on. A loss that is summed over
    many tokens is large, and its scale small: no collapse. Where every step is skipped the loss does not move.
    """
    at, scales = finite(loss_scale)
    low = at[scales < 1]
    steps, values = finite(loss)
    after = values[steps >= low[0]] if len(low) else values[:0]
    if len(after) < 4 or not np.isfinite(loss.values).all():
        text = f"the loss has {len(after):,} rows at a scale below 1, or rows that are not finite"
        return Answer(NO, (Evidence(text, "loss_scale", (), float(scales.min()) if len(scales) else None, 1.0),))
    part = max(1, len(after) // 4)
    first, end = median(after[:part]), median(after[-part:])
    noise = median(np.abs(np.diff(after)))
    text = f"the loss goes from {figure(first, 4)} to {figure(end, 4)} while the loss scale goes down to "
    text += figure(float(scales.min()))
    found = Evidence(text, "loss_scale", (int(low[0]), int(steps[-1])), first - end, noise)
    return measured(weakest(above(first - end, noise), whether(end <= median(after))), (found,), LIKELY)
