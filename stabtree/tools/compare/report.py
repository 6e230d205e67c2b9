"""The words of a comparison, the same in every output."""

from __future__ import annotations

import shlex
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean
from stabtree.report.plot import short
from stabtree.report.words import badge, headline
from stabtree.tools.compare.result import Axis, DigitsApart, Method, Parted
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.run import ConfigScalar
    from stabtree.tools.compare.result import Comparison, Parting, Unlike

WORDS = {
    Parted.YES: ("THEY PART", Severity.CRITICAL),
    Parted.NO: ("THEY DON'T PART", Severity.OK),
    Parted.UNKNOWN: ("CAN'T TELL", UNKNOWN),
}
_WHY_NOISE = {
    DigitsApart.UNKNOWN: "Their digits differ from the start",
    DigitsApart.SEED: "The seeds differ",
    DigitsApart.PRECISION: "The precisions differ",
    DigitsApart.ROUNDING: "Their first rows differ by rounding",
}
LONGEST_NAME = 60
MAX_DIGITS = 12
MAX_RUNS = 3  # good runs that are listed one by one


class PartingRow(NamedTuple):
    """A series that parts, in words: where, the series, the values of the good runs and of the bad one, and how."""

    at: str
    metric: str
    good: str
    bad: str
    how: str


class VerdictRow(NamedTuple):
    """The diagnosis of a run, in words: the verdict's style, the run, and the headline with its leaf."""

    badge: str
    name: str
    text: str


def title(comparison: Comparison) -> str:
    """Return where they part and by what, or that they do not, or why that is unknown."""
    if comparison.parted is Parted.UNKNOWN:
        return comparison.reason
    if comparison.first is None:
        return "to the last digit" if comparison.method is Method.SEED else "beyond noise"
    row = _row(comparison, comparison.first)
    text = f"at {row.at}, {row.metric} first"
    if row.bad and row.good:
        return f"{text}: {row.bad} instead of {row.good}"
    return f"{text}: {row.how}" if row.how else text


def _unit(comparison: Comparison) -> str:
    return "token" if comparison.by is Axis.TOKENS else comparison.bad.unit


def span(comparison: Comparison) -> str:
    """Return the range that the runs have in common."""
    return f"{_unit(comparison)}s {comparison.first_step:,} to {comparison.last_step:,}"


def basis(comparison: Comparison) -> str:
    """Return what counted as noise, and over which rows."""
    if comparison.parted is Parted.UNKNOWN:
        return ""
    over = f"{comparison.rows:,} common rows, {span(comparison)}"
    if comparison.method is Method.SEED:
        return f"Both have the same seed: every printed digit counts, in {over}."
    chance = f"Of healthy runs {comparison.chance:.0%} part by chance."
    if comparison.method is Method.ENVELOPE:
        return f"Noise is what the {len(comparison.good)} good runs differ by, in {over}. {chance}"
    return f"{_WHY_NOISE[comparison.digits_apart]}: noise is how far the two were apart before, in {over}. {chance}"


def partings(comparison: Comparison) -> list[PartingRow]:
    """Return the series that part, first to last."""
    return [_row(comparison, item) for item in comparison.partings]


def _row(comparison: Comparison, item: Parting) -> PartingRow:
    good, bad = _values(item)
    at = f"{_unit(comparison)} {item.step:,}"
    if comparison.by is Axis.TIME:
        at = f"{item.place:,.0f} s, step {item.step:,}"
    return PartingRow(at, clean(item.metric, LONGEST_NAME), good, bad, _how(item))


def _values(item: Parting) -> tuple[str, str]:
    """Return the values of the good and the bad run where a series parts, with as many digits as tell them apart."""
    if item.metric == "batch_id":
        return "", ""
    if item.good is not None and item.bad is not None:
        return _told_apart(item.good, item.bad)
    missing = "" if item.how in ("not finite", "stops") else "NaN or inf"
    good, bad = (missing if value is None else short(value) for value in (item.good, item.bad))
    return good, bad


def _told_apart(good: float, bad: float) -> tuple[str, str]:
    """Return two values with as many digits as it takes for their texts to differ."""
    for digits in range(3, MAX_DIGITS):
        texts = short(good, digits), short(bad, digits)
        if texts[0] != texts[1]:
            return texts
    return repr(good), repr(bad)


def _how(item: Parting) -> str:
    """Return how a series parts, in a few words."""
    if item.how == "not finite":
        return "NaN or inf"
    if item.how == "stops":
        return "no longer logged"
    if item.metric == "batch_id":
        return "another batch"
    if item.how == "differs" and item.noises is not None and item.noises < 1:
        return "within its noise"
    parts = []
    if item.how == "shifts":
        parts.append(f"over {item.over_rows} rows")
    if item.noises is not None:
        parts.append(f"{short(item.noises, 2)}× its noise")
    return ", ".join(parts)


def setting(item: Unlike) -> tuple[str, str, str]:
    """Return a setting that differs: its name, and the values of the good and the bad runs."""
    return clean(item.key, LONGEST_NAME), ", ".join(map(_value, item.good)) or "–", _value(item.bad)


def _value(value: ConfigScalar | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return clean(value, LONGEST_NAME)


def verdicts(comparison: Comparison) -> list[VerdictRow]:
    """Return the diagnosis of each run; of many good runs only how many have each verdict."""
    if not comparison.diagnoses:
        return []
    names = short_names(comparison.names)
    *good, bad = [
        VerdictRow(badge(one), name, headline(one)) for name, one in zip(names, comparison.diagnoses, strict=True)
    ]
    if len(good) > MAX_RUNS:
        counts = Counter(row.badge for row in good)
        good = [VerdictRow(one, f"{count} good runs", "") for one, count in counts.items()]
    return [*good, bad]


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names without the folder that all of them are in."""
    parents = zip(*(name.split("/")[:-1] for name in names), strict=False)
    shared = sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, parents))
    return [clean("/".join(name.split("/")[shared:]), LONGEST_NAME) for name in names]


def findings_apart(comparison: Comparison) -> str:
    """Return the findings that only the bad run has, and those that all good runs have and it does not."""
    if not comparison.diagnoses:
        return ""
    *good, bad = [dict.fromkeys(item.leaf.id for item in one.findings) for one in comparison.diagnoses]
    known, shared = set[str]().union(*good), set(good[0]).intersection(*good)
    lacking = shared.difference(bad)
    extra = [leaf for leaf in bad if leaf not in known]
    missing = [leaf for leaf in good[0] if leaf in lacking]
    parts = []
    if extra:
        parts.append(f"found only in the bad run: {', '.join(extra)}")
    if missing:
        parts.append(f"only in the good run{'s' * (len(good) > 1)}: {', '.join(missing)}")
    return "; ".join(parts)


def next_command(comparison: Comparison) -> str:
    """Return what to type next."""
    name = comparison.names[-1]
    bad = name if shlex.quote(name) == name else "BAD"
    if comparison.parted is Parted.UNKNOWN:
        return f"stabtree inspect {bad}"
    return f"stabtree diagnose {bad}"


def closing(comparison: Comparison) -> str:
    """Return the summary in one sentence."""
    if comparison.parted is Parted.UNKNOWN:
        return f"not known: {comparison.reason}"
    count = len(comparison.settings)
    settings = {0: "no known setting differs", 1: "1 setting differs"}.get(count, f"{count} settings differ")
    if comparison.first is None:
        return f"no parting beyond noise, {settings}"
    series = f"{len(comparison.partings)} of {len(comparison.compared)} series part"
    return f"{clean(comparison.first.metric, LONGEST_NAME)} parted first, {series}, {settings}"
