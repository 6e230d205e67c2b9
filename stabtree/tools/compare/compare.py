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

from msgspec import Struct
from msgspec.structs import asdict, replace

from stabtree.common import extensions
from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import near
from stabtree.loaders.json.rows import SEVERAL_RUNS
from stabtree.metrics.metric import Role, names
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import is_time, normalize
from stabtree.run import Run
from stabtree.tools.compare.noise import (
    SCHEDULED,
    Difference,
    Rows,
    apart,
    at_first,
    beyond_noise,
    ending,
    first_difference,
    lost,
    same_seed,
    side_by_side,
    why_incomparable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import ConfigScalar

COUNTERS = frozenset(
    names(
        "tokens num_tokens n_tokens total_tokens tokens_total num_tokens_total tokens_seen seen_tokens tokens_so_far "
        "consumed_tokens tokens_consumed trained_tokens train_tokens tokens_trained processed_tokens tokens_processed "
        "cumulative_tokens num_input_tokens_seen train_num_tokens train_num_input_tokens_seen train_tokens_seen "
        "throughput_total_tokens total_tokens_seen"
    )
)
AXES = {"step": "steps", "tokens": "tokens"}  # what the rows of two runs are matched by
JUDGED = (Role.REWARD, Role.HELD_OUT_LOSS, Role.LOSS, Role.QUALITY)  # what runs are judged by, the first one first


class Verdict(StrEnum):
    """Whether the bad run ends worse than the good ones."""

    WORSE = "worse"
    NO_WORSE = "no worse"
    UNKNOWN = "unknown"


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
        """The difference to look at: of an outcome that ends worse the earliest, else the first one; None if none."""
        worse = [item for item in self.differences if item.how == "worse" and item.metric in self.judged]
        worse.sort(key=lambda item: (item.step, self.judged.index(item.metric)))
        return next(chain(worse, self.differences), None)

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
        """Return plain values, as `stabtree compare --json` prints them."""
        return {
            "schema": 1,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "metric": self.first.metric if self.first else None,
            "first_worse": self.first_worse,
            "times_at_end": _plain(self.first.times_at_end) if self.first and self.first_worse is not None else None,
            "good": list(self.names[:-1]),
            "bad": self.names[-1],
            "by": self.by,
            "method": self.method,
            "rows": self.rows,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "differences": [{key: _plain(value) for key, value in asdict(item).items()} for item in self.differences],
            "compared": list(self.compared),
            "left_out": [{"metric": metric, "why": why} for metric, why in self.left_out],
            "settings": [
                {"key": item.key, "good": [*map(_plain, item.good)], "bad": _plain(item.bad)} for item in self.settings
            ],
            "findings": [
                {
                    "run": name,
                    "verdict": str(diagnosis.verdict),
                    "findings": [{"id": item.leaf.id, "onset_step": item.onset_step} for item in diagnosis.findings],
                }
                for name, diagnosis in zip(self.names, self.diagnoses, strict=False)
            ],
            "notes": list(self.notes),
        }


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def compare(*runs: Any, by: str = "step", diagnosed: bool = True, **options: Any) -> Comparison:
    """Find from where on a run is worse than healthy runs, beyond noise, and what else differs.

    Args:
        runs: the healthy runs first, the bad run last: each a `Run`, or what `load_run` reads.
        by: what the rows are matched by: `step`, or `tokens` (of logs that count them).
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

    def by_tokens(index: int, column: str) -> Run:
        if isinstance(runs[index], Run):
            problem, hint = "a run that was read by steps can't be counted in tokens", "load_run(..., step_column=NAME)"
            raise StabtreeError(problem, where=names[index], hint=f"read it with {hint}")
        return load_run(runs[index], **{**options, "step_column": column})

    return compared(loaded, names, by, by_tokens, diagnose if diagnosed else None)


def check_axis(by: str) -> None:
    """Check that there is an axis of that name.

    Raises:
        StabtreeError: if there is none.
    """
    if by not in AXES:
        hint = near(by, tuple(AXES)).removeprefix("; ") or f"one of {', '.join(AXES)}"
        raise StabtreeError(f"{by!r} is not an axis", where="--by", hint=hint)


def compared(
    runs: Sequence[Run],
    names: Sequence[str],
    by: str,
    by_tokens: Callable[[int, str], Run],
    diagnose: Callable[[Run], Diagnosis] | None,
) -> Comparison:
    """Compare runs, the bad one last, and diagnose each.

    A comparison that found nothing worse is undecided if the bad run or all good runs were misread.

    Args:
        runs: the runs as they were read, by steps.
        names: what to call them.
        by: what rows are matched by.
        by_tokens: reads a run again, by its index, with a column in place of its steps.
        diagnose: what judges a run; None to judge none.
    """
    matched = runs
    if by == "tokens":
        matched = [by_tokens(index, token_column(run)) for index, run in enumerate(runs)]
    comparison = compare_runs(matched[:-1], matched[-1], names, by)
    if diagnose is None:
        return comparison
    comparison = replace(comparison, diagnoses=tuple(map(diagnose, runs)))
    *good, bad = [diagnosis.misread for diagnosis in comparison.diagnoses]
    if comparison.verdict is not Verdict.NO_WORSE or not (bad or all(good)):
        return comparison
    which = f"{'bad' if bad else 'good'} {'runs were' if len(good) > 1 and not bad else 'run was'}"
    return replace(comparison, verdict=Verdict.UNKNOWN, reason=f"the {which} misread: {bad or good[0]}")


def token_column(run: Run) -> str:
    """Return the name of the column that counts tokens.

    Raises:
        StabtreeError: if no column has such a name.
    """
    for column in chain.from_iterable(source.columns for source in run.sources):
        if normalize(column.name) in COUNTERS:
            return column.name
    where = run.sources[0].path if run.sources else run.name
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
    common = [name for name in bad.series if not is_time(name) and all(name in run.series for run in good)]
    rows = [side_by_side(name, good, bad, nearest=by == "tokens") for name in common]
    rows = [item for item in rows if item.size]
    if not rows:
        what = AXES[by] if common else "series"
        return replace(comparison, reason=f"they have no {what} in common")
    each = zip((*good, bad), named, strict=True)
    several = [f"{name}: {note}" for run, name in each for note in run.notes if note.startswith(SEVERAL_RUNS)]
    comparison = replace(
        comparison,
        rows=max(item.size for item in rows),
        first_step=min(int(item.steps[0]) for item in rows),
        last_step=max(int(item.steps[-1]) for item in rows),
        notes=(*several, *_ends(good, bad, by)),
    )
    with np.errstate(all="ignore"):  # the largest numbers may differ by infinity, which no bar is
        why = [
            _digits_differ(run, bad, [item._replace(good=item.good[[index]]) for item in rows])
            for index, run in enumerate(good)
        ]
        if "" in why:
            return _by_seed(comparison, rows, why.index(""))
        return _by_noise(replace(comparison, digits_differ=why[0]), rows)


def _digits_differ(good: Run, bad: Run, pairs: Sequence[Rows]) -> str:
    """Return why the digits of two runs differ from the start; empty if they do not."""
    for key, why in (("seed", "The seeds differ"), ("dtype", "The precisions differ")):
        values = good.setting(key), bad.setting(key)
        if None not in values and values[0] != values[1]:
            return why
    return "" if same_seed(pairs) else "Their digits differ from the start"


def _by_seed(comparison: Comparison, rows: Sequence[Rows], same: int) -> Comparison:
    """Compare with the good run of the same seed: any difference in what was printed counts."""
    pairs = {item.metric: item._replace(good=item.good[[same]]) for item in rows}
    if len(comparison.good) > 1:
        note = f"Compared with {comparison.names[same]}, which has the same seed."
        comparison = replace(comparison, notes=(note, *comparison.notes))
    found = [first for pair in pairs.values() if (first := first_difference(pair))]
    return _decided(comparison, SEED, pairs, found)


def _by_noise(comparison: Comparison, rows: Sequence[Rows]) -> Comparison:
    """Compare runs of different seeds: what is measured differs beyond noise, what is scheduled in any digit."""
    left = tuple((item.metric, why) for item in rows if (why := why_incomparable(item)))
    usable = {item.metric: item for item in rows if item.metric not in dict(left)}
    if not usable.keys() - SCHEDULED:
        reasons = [f"{name}: {why}" for name, why in left if name not in SCHEDULED]
        return replace(comparison, reason=[*reasons, "no series in common that was measured"][0], left_out=left)
    found: list[Difference | None] = []
    for metric, item in usable.items():
        found += [first_difference(item)] if metric in SCHEDULED else [lost(item), beyond_noise(item)]
    comparison = replace(comparison, left_out=left)
    return _decided(comparison, HISTORY if len(comparison.good) == 1 else ENVELOPE, usable, filter(None, found))


def _decided(
    comparison: Comparison, method: str, rows: dict[str, Rows], differences: Iterable[Difference]
) -> Comparison:
    """Return the comparison with one difference of each series, and the verdict of the outcomes."""
    found: dict[str, Difference] = {}
    for item in sorted(chain(differences, _stopped(comparison, rows)), key=_rank):
        found.setdefault(item.metric, item)
    judged = _judged(rows)
    for metric in judged:
        equal = rows[metric].equal if method is SEED else 0
        if (metric in found or method is not SEED) and (ended := _ended(rows[metric], found.get(metric), equal)):
            found[metric] = ended
    worse = any(found[metric].how == "worse" for metric in judged if metric in found)
    verdict, reason = Verdict.WORSE if worse else Verdict.NO_WORSE, ""
    if not judged and (method is not SEED or found):
        verdict, reason = Verdict.UNKNOWN, "no outcome in common to judge by: a loss, a reward or a measure of quality"
    return replace(
        comparison,
        method=method,
        verdict=verdict,
        reason=reason,
        differences=tuple(sorted(found.values(), key=_rank)),
        judged=judged,
        compared=tuple(rows),
    )


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


def _ended(rows: Rows, first: Difference | None, equal: int) -> Difference | None:
    """Return how an outcome ends worse or better, and since when; else the first difference with its side."""
    direction, lost_step = _direction(rows.metric), first.lost_step if first else None
    off = apart(rows)
    worse = ending(rows, off, direction, "worse", lost_step, equal)
    if ended := worse or ending(rows, off, -direction, "better", equal=equal):
        return ended
    if first is None:
        return at_first(rows, off, direction)
    if first.good is None or first.bad is None or first.how == "differs":
        return None
    return replace(first, side="worse" if direction * (first.bad - first.good) > 0 else "better")


def _rank(item: Difference) -> tuple[float, ...]:
    """Return what orders differences: at one step scheduled series, then what moved furthest.

    A series within its noise comes last: it follows from another one, or from nothing.
    """
    noises = math.inf if item.noises is None else item.noises
    return item.step, item.metric not in SCHEDULED, noises < 1, item.how != "not finite", -noises


def _stopped(comparison: Comparison, rows: dict[str, Rows]) -> list[Difference]:
    """Find series that stop only in the bad run while it goes on: often a NaN that was written as an empty cell."""
    usual = {gap.metric for gap in chain.from_iterable(run.gaps for run in comparison.good)}
    found = []
    for gap in comparison.bad.gaps:
        if gap.metric in rows and gap.metric not in usual:
            before = rows[gap.metric].steps
            alike = int(before[max(int(np.searchsorted(before, gap.first_step)) - 1, 0)])
            lost_step = gap.first_step if gap.at_end else None
            found.append(Difference(gap.metric, gap.first_step, "stops", last_alike=alike, lost_step=lost_step))
    return found


def _ends(good: Sequence[Run], bad: Run, by: str) -> list[str]:
    """Return a note if the runs end at different steps."""
    last, longest = bad.last_step, max(run.last_step or 0 for run in good)
    if last is None or last == longest or by != "step":
        return []
    which = f"{'bad' if last < longest else 'good'} {'runs end' if len(good) > 1 and last > longest else 'run ends'}"
    return [f"The {which} at step {min(last, longest):,}, {abs(last - longest):,} steps earlier."]


def _settings(good: Sequence[Run], bad: Run) -> tuple[Unlike, ...]:
    """Return the settings in which the bad run differs from each of the good ones."""
    first, *others = [run.unlike(bad) for run in good]
    shared = {key: [run.config[key].value for run in good if key in run.config] for key in first}
    everywhere = [key for key in shared if all(key in keys for keys in others)]
    return tuple(Unlike(key, tuple(dict.fromkeys(shared[key])), bad.setting(key)) for key in everywhere)
