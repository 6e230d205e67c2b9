"""`stabtree.compare`: logs or runs in, a `Comparison` out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import near
from stabtree.comparing.result import Axis, Comparison, Parted
from stabtree.comparing.runs import compare_runs
from stabtree.comparing.tokens import token_column
from stabtree.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stabtree.diagnosis.result import Diagnosis


def compare(*runs: Any, by: str = "step", diagnosed: bool = True, **options: Any) -> Comparison:
    """Tell where a run parts from runs that are well, beyond noise, and what else differs.

    Args:
        runs: the runs that are well, and last the one that is not: each a `Run`, or what `load_run` reads.
        by: what the rows are matched by: `step`, `tokens` (of logs that count them) or `time`.
        diagnosed: whether each run is diagnosed too, which also tells whether too much of its log was misread.
        options: how logs are read, as `load_run` takes them.

    Raises:
        StabtreeError: where a log can't be read, there is nothing to compare with, or the axis is unknown.

    >>> import stabtree
    >>> stabtree.compare("good.csv", "bad.csv").first  # doctest: +SKIP
    """
    from stabtree.diagnosis.walk import diagnose
    from stabtree.loaders import load_run

    axis = axis_of(by)
    loaded = [one if isinstance(one, Run) else load_run(one, **options) for one in runs]
    names = [str(one) if isinstance(one, str | Path) else run.name for one, run in zip(runs, loaded, strict=True)]

    def by_tokens(place: int, column: str) -> Run:
        if isinstance(runs[place], Run):
            hint = "read it with load_run(..., step_column=NAME)"
            raise StabtreeError(
                "a run that was read by steps can't be counted in tokens", where=names[place], hint=hint
            )
        return load_run(runs[place], **{**options, "step_column": column})

    return compared(loaded, names, axis, by_tokens, diagnose if diagnosed else None)


def axis_of(by: str) -> Axis:
    """The axis of that name.

    Raises:
        StabtreeError: where there is none.
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
    """The comparison of runs, the bad one last, with what each is told.

    Args:
        runs: the runs as they were read, by steps.
        names: what to call them.
        by: what rows are matched by.
        by_tokens: reads a run again, with a column in the place of its steps.
        diagnose: what judges a run; None to judge none.
    """
    matched = list(runs)
    if by is Axis.TOKENS:
        matched = [by_tokens(place, token_column(run)) for place, run in enumerate(runs)]
    found = compare_runs(matched[:-1], matched[-1], names, by)
    if diagnose is None:
        return found
    return _unless_misread(replace(found, diagnoses=tuple(map(diagnose, runs))))


def _unless_misread(found: Comparison) -> Comparison:
    """A comparison that found nothing, but where what was read does not stand for the runs."""
    *good, bad = [one.misread for one in found.diagnoses]
    misread = bad or (good[0] if all(good) else "")
    if found.parted is not Parted.NO or not misread:
        return found
    which = "bad run was" if bad else "good runs were" if len(good) > 1 else "good run was"
    return replace(found, parted=Parted.UNKNOWN, reason=f"the {which} misread: {misread}")
