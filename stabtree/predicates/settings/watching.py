"""What will be seen of the run, and what will be left of it: logging, evaluation, checkpoints."""

from __future__ import annotations

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, inapplicable
from stabtree.common.stats import LARGEST
from stabtree.predicates.registry import Count, predicate
from stabtree.predicates.settings.answers import decided, describe, is_default, not_given, number, word
from stabtree.run import Run  # noqa: TC001 - the signature is the declaration

OFF, BY_STEPS = "no", ("", "steps")
FEW, ONCE = "few", "once"
REWARDED = ("grpo", "ppo")
SAVES = ("save_strategy", "checkpoint_every", "max_steps")
LOGS = ("log_strategy", "log_interval", "max_steps")
PRINTED = "steps_per_print"
_BEST = ("huggingface", "trl", "llamafactory", "axolotl")  # they refuse a best that is saved and not evaluated


@predicate(source="axolotl, key metrics for SFT", labels=(YES, ONCE, NO), rule="no evaluation before the run ends")
def eval_never(run: Run) -> Answer:
    """Will the run end without an evaluation?

    `once` unless samples are known to come again: the training loss of new ones shows nearly as much. So it is where
    nobody chose it, and it is the trainer's default.
    """
    if number(run, "num_generations") or word(run, "task") in REWARDED:
        return inapplicable("its reward shows how it does")
    how, every, total = word(run, "eval_strategy"), number(run, "eval_every"), number(run, "max_steps")
    if not how and every is None:
        return not_given(run, "eval_strategy")
    late = how in BY_STEPS and every is not None and total is not None and every > total
    epochs = number(run, "epochs")
    found = YES if how == OFF or late else NO
    if found == YES and (epochs is None or epochs <= 1 or is_default(run, "eval_strategy")):
        found = ONCE
    keys = ("eval_strategy", *(("eval_every", "max_steps") if how != OFF else ()), "epochs")
    return decided(run, keys, "", found=found)


@predicate(source="Phase-19 Q2.4", rule="no checkpoint before the run ends, and more than {usual_steps} steps")
def saves_never(run: Run, *, usual_steps: int) -> Answer:
    """Will there be no checkpoint before the run ends?

    A run that is no longer than `usual_steps` loses no more than is usual.
    """
    how, every, total = word(run, SAVES[0]), number(run, SAVES[1]), number(run, SAVES[2])
    if total is not None and total <= usual_steps:
        bar = f"up to {usual_steps} steps between checkpoints are usual"
        return decided(run, SAVES, bar, found=False, observed=total, limit=float(usual_steps))
    if how == OFF:
        return decided(run, SAVES[:1], "", found=True)
    if how not in BY_STEPS:
        return decided(run, SAVES[:1], "", found=False)
    if every is None or total is None:
        return not_given(run, *SAVES[1:])
    # What nobody chose is saved at the end as well.
    chosen = not is_default(run, "checkpoint_every")
    return decided(run, SAVES, "", found=chosen and every >= total, observed=every, limit=total)


@predicate(source="Phase-19 Q2.4", rule="more than {usual_steps} steps between checkpoints, and {share:.0%} of the run")
def saves_rarely(run: Run, *, usual_steps: int, share: float) -> Answer:
    """Are the checkpoints far apart?"""
    how, every, total = word(run, SAVES[0]), number(run, SAVES[1]), number(run, SAVES[2])
    if how not in BY_STEPS:
        return inapplicable(f"{describe(run, SAVES[0])}: not by steps")
    if every is None or (every > usual_steps and total is None):
        return not_given(run, *SAVES[1:])
    if total is not None and every >= total:
        return decided(run, SAVES, "there is none", found=False)
    limit = max(float(usual_steps), share * (total or 0.0))
    bar = f"up to {limit:g} steps apart is usual"
    return decided(run, SAVES, bar, found=every > limit, observed=every, limit=limit)


@predicate(
    source="Phase-19 Q4.1; NaN detection, rollback",
    labels=(YES, FEW, NO),
    rule="only the newest is kept, or those kept span fewer than {fault_steps} steps, in a run of more",
)
def keeps_too_few(run: Run, *, fault_steps: int) -> Answer:
    """Will all checkpoints that are kept be younger than a fault is when it shows?

    The oldest of n is at least n - 1 intervals old. A best one that is kept besides is older. `few` where there is an
    older one at all, be it in the history of a hub.
    """
    keys = ("save_total_limit", "checkpoint_every", "load_best", "max_steps", "push_to_hub")
    kept, every, total = number(run, keys[0]), number(run, keys[1]), number(run, keys[3])
    how = word(run, "save_strategy")
    if kept is None:
        return not_given(run, keys[0])
    if how == OFF or kept <= 0:
        return inapplicable(f"{describe(run, 'save_strategy', keys[0])}: none is dropped")
    if run.setting("load_best") is True:
        return decided(run, keys[:3], "the best one is kept besides", found=False)
    if total is not None and total <= fault_steps:
        bar = f"the run is over before a slow fault shows, which takes {fault_steps} steps"
        return decided(run, (keys[0], keys[3]), bar, found=False, observed=total, limit=float(fault_steps))
    if kept > 1 and (every is None or how not in BY_STEPS):
        if every is None:
            return not_given(run, "checkpoint_every")
        return inapplicable(f"{describe(run, 'save_strategy')}")
    span = (kept - 1) * (every or 0.0)
    dropped = total is None or every is None or kept * every < total
    kept_is = f"the oldest kept is {span:g} steps old or more" if kept > 1 else "only one is kept"
    bar = f"{kept_is}; a slow fault takes {fault_steps} steps to show"
    # Where a metric is watched, these are the best ones, which may be of any age.
    best = run.config[keys[0]].spelled.endswith("save_top_k")
    older = kept > 1 or best or run.setting("push_to_hub") is True
    if not dropped or span >= fault_steps:
        found = NO
    elif older:
        found = FEW
    else:
        found = YES
    return decided(run, keys, bar, found=found, observed=span, limit=float(fault_steps))


@predicate(
    source="Hugging Face Trainer",
    rule="load_best is true, and save_strategy is not eval_strategy, or checkpoint_every no multiple of eval_every",
)
def best_mismatched(run: Run) -> Answer:
    """Is the best checkpoint to be loaded, and saved at other times than the run is evaluated?"""
    if run.setting("load_best") is not True or word(run, "framework") not in _BEST:
        return inapplicable("no trainer that compares the two loads the best")
    evaluated, saved = word(run, "eval_strategy"), word(run, "save_strategy")
    if OFF in (evaluated, saved) or saved == "best":
        return inapplicable(f"{describe(run, 'eval_strategy', 'save_strategy')}: there is nothing to compare")
    if not evaluated or not saved:
        return not_given(run, *(key for key in ("eval_strategy", "save_strategy") if key not in run.config))
    if evaluated != saved:
        return decided(run, ("eval_strategy", "save_strategy"), "they must be the same", found=True)
    every, kept = number(run, "eval_every"), number(run, "checkpoint_every")
    if evaluated != "steps" or not every or not kept:
        return decided(run, ("eval_strategy", "save_strategy"), "", found=False)
    bar = "the second must be a multiple of the first"
    return decided(run, ("eval_every", "checkpoint_every"), bar, found=bool(kept % every), observed=kept, limit=every)


@predicate(
    source="stabtree: the rows that show a lasting state",
    labels=(YES, FEW, NO),
    rule="no row at all, or fewer than {rows} rows",
)
def logs_too_little(run: Run, *, rows: Count = shared.ROWS_LONG) -> Answer:
    """Will the log have too few rows to judge the run by?

    Yes where it has none; `few` below `rows` ones, unless every step is logged, and where nobody chose the interval.
    """
    how, every, total = word(run, LOGS[0]), number(run, LOGS[1]), number(run, LOGS[2])
    if how == OFF:
        return decided(run, LOGS[:1], "nothing is logged", found=True)
    refused = _not_by_steps(run)
    if refused:
        return refused
    if not every or total is None:
        return not_given(run, *LOGS[1:])
    count = min(total // every, LARGEST)
    if count < 1 and not is_default(run, LOGS[1]):
        found = YES
    elif count < rows and every > 1:
        found = FEW
    else:
        found = NO
    bar = f"{count:g} rows; a lasting state takes {rows}"
    return decided(run, LOGS, bar, found=found, observed=count, limit=float(rows))


@predicate(source="Phase-19 Q2.1 and Q2.2", rule="more than {recovery_steps} steps between rows")
def logs_too_rarely(run: Run, *, recovery_steps: int) -> Answer:
    """Are the rows of the log so far apart that a spike may be over before the next one?"""
    every = number(run, LOGS[1])
    refused = _not_by_steps(run)
    if refused:
        return refused
    if every is None:
        return not_given(run, LOGS[1])
    bar = f"a spike is over within {recovery_steps} steps"
    found, limit = every > recovery_steps, float(recovery_steps)
    return decided(run, LOGS[:2], bar, found=found, observed=every, limit=limit)


def _not_by_steps(run: Run) -> Answer | None:
    """Return why the number of steps between two log rows is not known; None where it may be."""
    if word(run, LOGS[0]) not in BY_STEPS:
        return inapplicable(f"{describe(run, LOGS[0])}: not by steps")
    if LOGS[1] in run.config and PRINTED in run.config[LOGS[1]].source:
        return inapplicable(f"{describe(run, LOGS[1])}: how often DeepSpeed prints, not what the trainer logs")
    return None
