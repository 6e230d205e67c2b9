"""The words of a comparison, the same in every output."""

from __future__ import annotations

import shlex
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean
from stabtree.comparing.result import Axis, Method, Parted
from stabtree.render.figure.numbers import ends, short
from stabtree.render.report.words import badge, headline
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.comparing.result import Comparison, Parting, Unlike
    from stabtree.run import ConfigScalar

WORDS = {
    Parted.YES: ("THEY PART", Severity.CRITICAL),
    Parted.NO: ("THEY DON'T PART", Severity.OK),
    Parted.UNKNOWN: ("CAN'T TELL", UNKNOWN),
}
LONGEST_NAME = 60
MOST_RUNS = 3  # good runs that are told one by one


class PartingRow(NamedTuple):
    """A series that parts, in words.

    Attributes:
        at: where.
        metric: the series.
        good: the value of the good runs.
        bad: that of the bad run.
        how: what it does.
    """

    at: str
    metric: str
    good: str
    bad: str
    how: str


class ToldRow(NamedTuple):
    """What a run is told by its diagnosis.

    Attributes:
        badge: the verdict's style.
        name: the run.
        text: the headline, with its leaf.
    """

    badge: str
    name: str
    text: str


def title(comparison: Comparison) -> str:
    """Where they part and by what, or that they do not, or why that can't be told."""
    if comparison.parted is Parted.UNKNOWN:
        return comparison.reason
    if comparison.first is None:
        return "to the last digit" if comparison.method is Method.SEED else "beyond noise"
    row = _row(comparison, comparison.first)
    instead = f": {row.bad} instead of {row.good}" if row.bad and row.good else f": {row.how}" if row.how else ""
    return f"at {row.at}, {row.metric} first{instead}"


def place(comparison: Comparison, item: Parting) -> str:
    """Where a series parts, in the words of the axis."""
    if comparison.by is Axis.TIME:
        return f"{item.place:,.0f} s, step {item.step:,}"
    return f"{_unit(comparison)} {item.step:,}"


def _unit(comparison: Comparison) -> str:
    return "token" if comparison.by is Axis.TOKENS else comparison.bad.unit


def span(comparison: Comparison) -> str:
    """The stretch that the runs have in common."""
    return f"{_unit(comparison)}s {comparison.first_step:,} to {comparison.last_step:,}"


def basis(comparison: Comparison) -> str:
    """How noise was told from a difference, and over which rows."""
    if comparison.parted is Parted.UNKNOWN:
        return ""
    over = f"{comparison.rows:,} common rows, {span(comparison)}"
    if comparison.method is Method.SEED:
        return f"Both have the same seed: every printed digit counts, in {over}."
    noise = (
        f"what the {len(comparison.good)} good runs differ by"
        if comparison.method is Method.ENVELOPE
        else "how far the two were apart before"
    )
    chance = f"Of healthy runs {comparison.chance:.0%} are told to part by chance."
    return f"Not the same seed: noise is {noise}, in {over}. {chance}"


def partings(comparison: Comparison) -> list[PartingRow]:
    """The series that part, first to last."""
    return [_row(comparison, item) for item in comparison.partings]


def _row(comparison: Comparison, item: Parting) -> PartingRow:
    good, bad = _number(item.good), _number(item.bad)
    if item.how not in ("not finite", "stops"):
        good, bad = good or "NaN or inf", bad or "NaN or inf"
    if item.good is not None and item.bad is not None:
        low, high = ends(*sorted((item.good, item.bad)))
        good, bad = (low, high) if item.good <= item.bad else (high, low)
    if item.metric == "batch_id":
        good = bad = ""
    return PartingRow(place(comparison, item), clean(item.metric, LONGEST_NAME), good, bad, how(item))


def _number(value: float | None) -> str:
    return "" if value is None else short(value)


def how(item: Parting) -> str:
    """What a series does where it parts, in few words."""
    if item.how == "not finite":
        return "NaN or inf"
    if item.how == "stops":
        return "no longer logged"
    times = f"{short(item.noises, 2)}× its noise" if item.noises is not None else ""
    if item.metric == "batch_id":
        return "another batch"
    if item.how == "shifts":
        return f"over {item.over_rows} rows{f', {times}' if times else ''}"
    if item.how == "differs" and item.noises is not None and item.noises < 1:
        return "within its noise"
    return times


def setting(item: Unlike) -> tuple[str, str, str]:
    """A setting that differs: its name, and what the good and the bad runs say."""
    return clean(item.key, LONGEST_NAME), ", ".join(map(_value, item.good)) or "–", _value(item.bad)


def _value(value: ConfigScalar | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return clean(value, LONGEST_NAME)


def told(comparison: Comparison) -> list[ToldRow]:
    """What each run is told by its diagnosis; of many good runs how many are told as much."""
    if not comparison.diagnoses:
        return []
    *good, bad = zip(_short_names(comparison.names), comparison.diagnoses, strict=True)
    rows = [ToldRow(badge(one), name, headline(one)) for name, one in good]
    if len(good) > MOST_RUNS:
        badges = [row.badge for row in rows]
        rows = [ToldRow(one, f"{badges.count(one)} good runs", "") for one in dict.fromkeys(badges)]
    return [*rows, ToldRow(badge(bad[1]), bad[0], headline(bad[1]))]


def _short_names(names: Sequence[str]) -> list[str]:
    """The names without the folder that all of them lie in."""
    parents = zip(*(name.split("/")[:-1] for name in names), strict=False)
    shared = [parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, parents)]
    return [clean("/".join(name.split("/")[len(shared) :]), LONGEST_NAME) for name in names]


def findings_apart(comparison: Comparison) -> str:
    """The findings of the bad run that no good run has, and those that all good runs have and it has not."""
    if not comparison.diagnoses:
        return ""
    *good, bad = [[item.leaf.id for item in one.findings] for one in comparison.diagnoses]
    alone = [leaf for leaf in dict.fromkeys(bad) if not any(leaf in one for one in good)]
    lacking = [leaf for leaf in dict.fromkeys(good[0]) if leaf not in bad and all(leaf in one for one in good)]
    parts = [f"found in the bad run alone: {', '.join(alone)}"] if alone else []
    where = "run" if len(good) == 1 else "runs"
    parts += [f"in the good {where} alone: {', '.join(lacking)}"] if lacking else []
    return "; ".join(parts)


def next_command(comparison: Comparison) -> str:
    """What to type next."""
    name = comparison.names[-1]
    bad = name if shlex.quote(name) == name else "BAD"
    if comparison.parted is Parted.UNKNOWN:
        return f"stabtree inspect {bad}"
    return f"stabtree diagnose {bad}"


def closing(comparison: Comparison) -> str:
    """The sum of it in one sentence."""
    if comparison.parted is Parted.UNKNOWN:
        return f"not told: {comparison.reason}"
    unlike = [item.key for item in comparison.settings]
    said = f"{len(unlike)} setting{'s' if len(unlike) != 1 else ''} differ{'s' if len(unlike) == 1 else ''}"
    said = said if unlike else "no known setting differs"
    if comparison.first is None:
        return f"no parting beyond noise, {said}"
    many = f"{len(comparison.partings)} of {len(comparison.compared)} series part"
    return f"{clean(comparison.first.metric, LONGEST_NAME)} parted first, {many}, {said}"
