"""`stabtree.compare`: runs in, a `Comparison` out.

Says which rows are matched, whether the outcomes end worse and since when, what else differs beyond noise and where it
did first, and which settings differ.
"""

from __future__ import annotations

import math
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, json
from msgspec.structs import replace

from stabtree.common import extensions
from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.loaders.json.rows import SEVERAL_RUNS
from stabtree.metrics.metric import Role, names
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import is_time, normalize
from stabtree.run import Run
from stabtree.tools.compare.noise import (
    SCHEDULED,
    SIDES,
    Difference,
    Rows,
    first_difference,
    lost,
    off_by_more,
    same_seed,
    side_by_side,
    why_incomparable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import ConfigScalar

COUNTING = frozenset(  # the words of which the name of a column that counts tokens is made
    names("tokens num n total seen so far consumed trained train processed cumulative input throughput")
)
AXES = {"step": "steps", "tokens": "tokens"}  # what the rows of two runs are matched by
JUDGED = (Role.REWARD, Role.HELD_OUT_LOSS, Role.LOSS, Role.QUALITY)  # what runs are judged by, the first one first


class Verdict(StrEnum):
    """Whether the bad run ends worse than the good ones."""

    WORSE = "worse"
    NO_WORSE = "no worse"
    UNKNOWN = "unknown"


# What of a comparison is told as it is.
TOLD = names("verdict reason first_worse by method rows first_step last_step differences compared settings notes")
SEED = "same seed"  # the rows are equal to the last digit, until they are not
HISTORY = "one good run"  # noise is what the differences were before
ENVELOPE = "several good runs"  # noise is what the good runs differ by


class Unlike(Struct, frozen=True):
    """A setting in which the runs differ.

    Attributes:
        key: its name.
        good: the values of the good runs, each once; empty if none of them states it.
        bad: the value of the bad run; None if it does not state it.
    """

    key: str
    good: tuple[ConfigScalar, ...]
    bad: ConfigScalar | None


class Comparison(Struct, frozen=True):
    """The differences between the bad run and the good ones.

    Attributes:
        good: the good runs.
        bad: the bad run.
        names: what the runs are called, the bad one last.
        by: what the rows were matched by.
        method: `SEED`, `HISTORY` or `ENVELOPE`: what counted as noise; empty if nothing was compared.
        digits_differ: why not every printed digit counts, as a clause; empty if they agree.
        verdict: whether the bad run ends worse in an outcome.
        reason: why that is unknown, if it is.
        differences: the series that differ, in the order in which they end worse or begin to differ.
        judged: the outcomes by which that was told.
        compared: the series that were compared.
        left_out: common series that can't be compared, each with the reason.
        rows: the number of positions that the runs have in common.
        first_step: the first of them, in steps of the bad run; None if there is none.
        last_step: the last one.
        settings: the settings that differ.
        diagnoses: the diagnosis of each run, in the order of `names`; empty if none was asked for.
        notes: further notes.
    """

    good: tuple[Run, ...]
    bad: Run
    names: tuple[str, ...]
    by: str = "step"
    method: str = ""
    digits_differ: str = ""
    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    judged: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    rows: int = 0
    first_step: int | None = None
    last_step: int | None = None
    settings: tuple[Unlike, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> Difference | None:
        """The difference to look at: the earliest of an outcome, one that ends worse before others; None if none."""
        outcomes = [item for item in self.differences if item.metric in self.judged and item.how in SIDES]
        outcomes.sort(key=lambda item: (not item.lasts_worse, item.step, self.judged.index(item.metric)))
        return next(chain(outcomes, self.differences), None)

    @property
    def first_worse(self) -> int | None:
        """The step from which on the bad run is worse to its end; None where it is not."""
        return self.first.step if self.first and self.verdict is Verdict.WORSE else None

    def __repr__(self) -> str:
        where = f", {self.first.metric} from {self.first.step:,}" if self.first else ""
        return f"Comparison({self.names[-1]!r}: {self.verdict}{where})"

    def _repr_html_(self) -> str:
        """Return a card of a few kilobytes, as a notebook shows it."""
        return str(extensions.load("stabtree.tools.compare.outputs:card")(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `stabtree compare --json` prints them: None for a number that is not finite."""
        told = {name: getattr(self, name) for name in TOLD}
        metric = self.first.metric if self.first else None
        times = self.first.times if self.first and self.first_worse is not None else None
        findings = [
            {
                "run": name,
                "verdict": str(diagnosis.verdict),
                "findings": [{"id": item.leaf.id, "onset_step": item.onset_step} for item in diagnosis.findings],
            }
            for name, diagnosis in zip(self.names, self.diagnoses, strict=False)
        ]
        left_out = [{"metric": metric, "why": why} for metric, why in self.left_out]
        told |= {"schema": 1, "metric": metric, "times_at_end": times, "good": self.names[:-1], "bad": self.names[-1]}
        plain: dict[str, Any] = json.decode(json.encode(told | {"left_out": left_out, "findings": findings}))
        return plain


def compare(*runs: Any, by: str = "step", diagnosed: bool = True, **options: Any) -> Comparison:
    """Find from where on a run is worse than healthy runs, beyond noise, and what else differs.

    Args:
        runs: the healthy runs first, the bad run last: each a `Run`, or what `load_run` reads.
        by: what the rows are matched by: `step`, or `tokens`, which logs count or runs were read by.
        diagnosed: whether to diagnose each run too, which also shows whether too much of its log was misread.
        options: how logs are read, as `load_run` takes them.

    Raises:
        StabtreeError: if a log can't be read, there is nothing to compare with, or the axis is unknown.

    >>> import stabtree
    >>> stabtree.compare("good.csv", "bad.csv").first_worse  # doctest: +SKIP
    """
    from stabtree.diagnosis.walk import diagnose
    from stabtree.loaders import load_run

    check_axis(by)
    loaded = [item if isinstance(item, Run) else load_run(item, **options) for item in runs]
    names = [str(item) if isinstance(item, str | Path) else run.name for item, run in zip(runs, loaded, strict=True)]

    matched = loaded
    if by == "tokens":
        counters = [{**options, "step_column": token_column(run)} for run in loaded]
        each = zip(runs, counters, strict=True)
        matched = [item if isinstance(item, Run) else load_run(item, **how) for item, how in each]
    return compared(loaded, matched, names, by, diagnose if diagnosed else None)


def check_axis(by: str) -> None:
    """Check that there is an axis of that name.

    Raises:
        StabtreeError: if there is none.
    """
    if by not in AXES:
        raise StabtreeError(f"{by!r} is not an axis", where="--by", hint=f"one of {', '.join(AXES)}")


def compared(
    runs: Sequence[Run],
    matched: Sequence[Run],
    names: Sequence[str],
    by: str,
    diagnose: Callable[[Run], Diagnosis] | None,
) -> Comparison:
    """Compare runs, the bad one last, and diagnose each.

    A comparison that found nothing worse is undecided if the bad run or all good runs were misread.

    Args:
        runs: the runs as they were read, by steps.
        matched: the same runs by what their rows are matched by.
        names: what to call them.
        by: what rows are matched by.
        diagnose: what judges a run; None to judge none.
    """
    comparison = compare_runs(matched[:-1], matched[-1], names, by)
    if diagnose is None:
        return comparison
    comparison = replace(comparison, diagnoses=tuple(map(diagnose, runs)))
    *good, bad = [diagnosis.misread for diagnosis in comparison.diagnoses]
    if comparison.verdict is not Verdict.NO_WORSE or not (bad or all(good)):
        return comparison
    why = f"the bad run was misread: {bad}" if bad else f"the good run was misread: {good[0]}"
    return replace(comparison, verdict=Verdict.UNKNOWN, reason=why)


def token_column(run: Run) -> str:
    """Return the name of the column that counts tokens.

    Raises:
        StabtreeError: if no column has such a name.
    """
    for column in chain.from_iterable(source.columns for source in run.sources):
        words = set(normalize(column.name).split("_"))
        if "tokens" in words <= COUNTING:
            return column.name
    where = next((source.path for source in run.sources), run.name)
    raise StabtreeError("no column counts tokens", where=where, hint="name it: --step-column NAME")


def compare_runs(good: Sequence[Run], bad: Run, names: Sequence[str] = (), by: str = "step") -> Comparison:
    """Find from where on a run is worse than healthy runs, beyond noise.

    Args:
        good: the healthy runs.
        bad: the bad run.
        names: what to call them, the bad one last; their own names if not given.
        by: what rows are matched by. Runs that are matched by tokens were read with the tokens as their steps.

    Raises:
        StabtreeError: if there is no good run.
    """
    if not good:
        raise StabtreeError("nothing to compare with", hint="name a healthy run before the bad one")
    named = tuple(names) or tuple(run.name for run in (*good, bad))
    comparison = Comparison(tuple(good), bad, named, by, settings=_settings(good, bad))
    rows, why_none = _in_common(good, _with_gaps(bad, good), by)
    if not rows:
        return replace(comparison, reason=why_none)
    comparison = replace(
        comparison,
        rows=max(item.size for item in rows),
        first_step=min(int(item.steps[0]) for item in rows),
        last_step=max(int(item.steps[-1]) for item in rows),
        notes=(*_several(comparison), *_ends(comparison)),
    )
    with np.errstate(all="ignore"):  # the largest numbers may differ by infinity, which no bar is
        why = [_digits_differ(run, bad, _with_one(rows, index)) for index, run in enumerate(good)]
        if "" in why:
            return _by_seed(comparison, rows, why.index(""))
        return _by_noise(replace(comparison, digits_differ=why[0]), rows)


def _in_common(good: Sequence[Run], bad: Run, by: str) -> tuple[list[Rows], str]:
    """Return the rows of each series that all runs have, and why there are none."""
    common = [name for name in bad.series if not is_time(name) and all(name in run.series for run in good)]
    rows = [side_by_side(name, good, bad, nearest=by == "tokens") for name in common]
    return [item for item in rows if item.size], f"they have no {AXES[by] if common else 'series'} in common"


def _with_one(rows: Sequence[Rows], run: int) -> list[Rows]:
    """Return rows with one of the good runs alone."""
    return [item._replace(good=item.good[[run]]) for item in rows]


def _digits_differ(good: Run, bad: Run, pairs: Sequence[Rows]) -> str:
    """Return why the digits of two runs differ from the start; empty if they do not."""
    for key, why in (("seed", "The seeds differ"), ("dtype", "The precisions differ")):
        values = good.setting(key), bad.setting(key)
        if None not in values and values[0] != values[1]:
            return why
    return "" if same_seed(pairs) else "Their digits differ from the start"


def _by_seed(comparison: Comparison, rows: Sequence[Rows], same: int) -> Comparison:
    """Compare with the good run of the same seed: any difference in what was printed counts."""
    if len(comparison.good) > 1:
        note = f"Compared with {comparison.names[same]}, which has the same seed."
        comparison = replace(comparison, notes=(note, *comparison.notes))
    return _decided(comparison, SEED, _with_one(rows, same))


def _by_noise(comparison: Comparison, rows: Sequence[Rows]) -> Comparison:
    """Compare runs of different seeds: what is measured differs beyond noise, what is scheduled in any digit."""
    left = tuple((item.metric, why) for item in rows if (why := why_incomparable(item)))
    usable = [item for item in rows if item.metric not in dict(left)]
    comparison = replace(comparison, left_out=left)
    if all(item.metric in SCHEDULED for item in usable):
        reasons = [f"{name}: {why}" for name, why in left if name not in SCHEDULED]
        return replace(comparison, reason=[*reasons, "no series in common that was measured"][0])
    return _decided(comparison, ENVELOPE if len(comparison.good) > 1 else HISTORY, usable)


def _decided(comparison: Comparison, method: str, rows: Sequence[Rows]) -> Comparison:
    """Return the comparison with one difference of each series, and the verdict of the outcomes."""
    compared = tuple(item.metric for item in rows)
    each = [_difference(item, method) for item in rows]
    differences, judged = tuple(sorted(filter(None, each), key=_rank)), _judged(compared)
    verdict, reason = Verdict.NO_WORSE, ""
    if any(item.lasts_worse and item.metric in judged for item in differences):
        verdict = Verdict.WORSE
    elif not judged and (method is not SEED or differences):
        verdict, reason = Verdict.UNKNOWN, "no outcome in common to judge by: a loss, a reward or a measure of quality"
    return replace(
        comparison,
        method=method,
        verdict=verdict,
        reason=reason,
        differences=differences,
        judged=judged,
        compared=compared,
    )


def _difference(rows: Rows, method: str) -> Difference | None:
    """Return how a series differs: an outcome by how it ends, all else by what comes first; None if it does not."""
    direction, first = _direction(rows.metric), first_difference(rows)
    if method is SEED and first and direction:
        return off_by_more(rows, direction, rows.equal) or first
    if method is SEED or rows.metric in SCHEDULED:
        return first
    off = off_by_more(rows, direction)
    if off and direction and off.until is None:
        return off
    return min(filter(None, (lost(rows), off)), key=_rank, default=None)


def _judged(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return the outcomes among metrics, the most important first; beside a reward the loss says nothing."""
    roles = {metric: describe_name(metric).role for metric in metrics if _direction(metric)}
    outcomes = [metric for role in JUDGED for metric in roles if roles[metric] is role]
    return tuple(item for item in outcomes if roles[item] is not Role.LOSS or roles[outcomes[0]] is not Role.REWARD)


def _direction(metric: str) -> int:
    """Return 1 where higher is worse, -1 where lower is, 0 where neither is."""
    reading = describe_name(metric)
    judged = reading.role in JUDGED and not reading.kind
    return {"lower": 1, "higher": -1}.get(reading.better, 0) * judged


def _rank(item: Difference) -> tuple[float, ...]:
    """Return what orders differences: at one step scheduled series, then what moved furthest.

    A series within its noise comes last: it follows from another one, or from nothing.
    """
    noises = math.inf if item.noises is None else item.noises
    return item.step, item.metric not in SCHEDULED, noises < 1, item.how != "not finite", -noises


def _with_gaps(bad: Run, good: Sequence[Run]) -> Run:
    """Return the bad run with a NaN where a series stops in it alone: often one that was written as an empty cell."""
    usual = {gap.metric for gap in chain.from_iterable(run.gaps for run in good)}
    series = dict(bad.series)
    for gap in bad.gaps:
        if gap.metric in series and gap.metric not in usual:
            one = series[gap.metric]
            at = int(np.searchsorted(one.steps, gap.first_step))
            steps, values = np.insert(one.steps, at, gap.first_step), np.insert(one.values, at, np.nan)
            series[gap.metric] = replace(one, steps=steps, values=values)
    return replace(bad, series=series)


def _several(comparison: Comparison) -> list[str]:
    """Return a note for each run that is one of several of its file."""
    each = zip((*comparison.good, comparison.bad), comparison.names, strict=True)
    return [f"{name}: {note}" for run, name in each for note in run.notes if note.startswith(SEVERAL_RUNS)]


def _ends(comparison: Comparison) -> list[str]:
    """Return a note if the runs end at different steps."""
    last, longest = comparison.bad.last_step, max(run.last_step or 0 for run in comparison.good)
    if last is None or last == longest or comparison.by != "step":
        return []
    which = "bad run" if last < longest else "longest good run"
    return [f"The {which} ends at step {min(last, longest):,}, {abs(last - longest):,} steps earlier."]


def _settings(good: Sequence[Run], bad: Run) -> tuple[Unlike, ...]:
    """Return the settings in which the bad run differs from each of the good ones."""
    first, *others = [run.unlike(bad) for run in good]
    shared = {key: [run.config[key].value for run in good if key in run.config] for key in first}
    everywhere = [key for key in shared if all(key in keys for keys in others)]
    return tuple(Unlike(key, tuple(dict.fromkeys(shared[key])), bad.setting(key)) for key in everywhere)
