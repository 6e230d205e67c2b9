"""`stabtree.compare`: logs or runs in, a `Comparison` out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import near
from stabtree.run import Run
from stabtree.tools.compare.result import Axis, Comparison, Parted
from stabtree.tools.compare.runs import compare_runs
from stabtree.tools.compare.tokens import token_column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stabtree.diagnosis.result import Diagnosis


def compare(*runs: Any, by: str = "step", diagnosed: bool = True, **options: Any) -> Comparison:
    """Find where a run parts from healthy runs, beyond noise, and what else differs.

    Args:
        runs: the healthy runs first, the bad run last: each a `Run`, or what `load_run` reads.
        by: what the rows are matched by: `step`, `tokens` (of logs that count them) or `time`.
        diagnosed: whether to diagnose each run too, which also shows whether too much of its log was misread.
        options: how logs are read, as `load_run` takes them.

    Raises:
        StabtreeError: if a log can't be read, there is nothing to compare with, or the axis is unknown.

    >>> import stabtree
    >>> stabtree.compare("good.csv", "bad.csv").first  # doctest: +SKIP
    """
    from stabtree.diagnosis.walk import diagnose
    from stabtree.loaders import load_run

    axis = axis_of(by)
    loaded = [one if isinstance(one, Run) else load_run(one, **options) for one in runs]
    names = [str(one) if isinstance(one, str | Path) else run.name for one, run in zip(runs, loaded, strict=True)]

    def by_tokens(index: int, column: str) -> Run:
        if isinstance(runs[index], Run):
            hint = "read it with load_run(..., step_column=NAME)"
            raise StabtreeError(
                "a run that was read by steps can't be counted in tokens", where=names[index], hint=hint
            )
        return load_run(runs[index], **{**options, "step_column": column})

    return compared(loaded, names, axis, by_tokens, diagnose if diagnosed else None)


def axis_of(by: str) -> Axis:
    """Return the axis of that name.

    Raises:
        StabtreeError: if there is none.
    """
    if by not in tuple(Axis):
        close = near(by, tuple(Axis)).removeprefix("; ")
        raise StabtreeError(f"{by!r} is not an axis", where="--by", hint=close or f"one of {', '.join(Axis)}")
    return Axis(by)


def compared(
    runs: Sequence[Run],
    names: Sequence[str],
    by: Axis,
    by_tokens: Callable[[int, str], Run],
    diagnose: Callable[[Run], Diagnosis] | None,
) -> Comparison:
    """Compare runs, the bad one last, and diagnose each.

    Args:
        runs: the runs as they were read, by steps.
        names: what to call them.
        by: what rows are matched by.
        by_tokens: reads a run again, by its index, with a column in place of its steps.
        diagnose: what judges a run; None to judge none.
    """
    matched = list(runs)
    if by is Axis.TOKENS:
        matched = [by_tokens(index, token_column(run)) for index, run in enumerate(runs)]
    found = compare_runs(matched[:-1], matched[-1], names, by)
    if diagnose is None:
        return found
    return _unless_misread(replace(found, diagnoses=tuple(map(diagnose, runs))))


def _unless_misread(found: Comparison) -> Comparison:
    """Return the comparison, undecided if it found no parting and the bad run or all good runs were misread."""
    *good, bad = [one.misread for one in found.diagnoses]
    if found.parted is not Parted.NO or not (bad or all(good)):
        return found
    if bad:
        reason = f"the bad run was misread: {bad}"
    elif len(good) > 1:
        reason = f"the good runs were misread: {good[0]}"
    else:
        reason = f"the good run was misread: {good[0]}"
    return replace(found, parted=Parted.UNKNOWN, reason=reason)
