"""Write what was fitted, and tabulate what it is worth on logs of repositories that it never saw."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from benchmarks.fit.judged import ORDER
from benchmarks.fit.logs import FAULTBENCH, TRAINERS, WILD
from benchmarks.kinds import names
from faultbench.rates import Rate
from faultbench.scoring import ALARMS, NOT_JUDGED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from benchmarks.fit.estimates import Fits
    from benchmarks.fit.judged import Judged
    from benchmarks.fit.logs import Log

    Pair = tuple[Log, Judged]

SETTLED = "plateau"
HEAD = """\
# Written by `make fit`: the likelihood of a fault from which on a finding is an alarm, or a fact worth a note; fitted
# limits; and how fast that likelihood grows with the strength. `stabtree explain ID` shows what a limit rests on.
"""


def yaml_of(fits: Fits, alarm: float, near: float, unseen: Mapping[str, Mapping[str, Rate]]) -> str:
    """Return the file that the tool reads."""
    lines = [f"levels: {{alarm: {alarm:g}, near: {near:g}}}", "families:"]
    lines += [f"  {name}: {{slope: {slope:.1f}}}" for name, slope in sorted(fits.families.items())]
    lines.append("questions:" if fits.questions else "questions: {}")
    for id_, found in sorted(fits.questions.items()):
        limit = ", ".join(f"{name}: {value:g}" for name, value in found.limit.items())
        parts = [f"limit: {{{limit}}}"] if limit else []
        parts += [f"slope: {found.slope:g}", f"positives: {found.positives}", f"repositories: {found.repositories}"]
        if found.family:
            parts.append(f"family: {found.family}")
        if id_ in unseen:
            shares = ", ".join(f"{name}: {_triple(rate)}" for name, rate in unseen[id_].items() if rate.of)
            parts.append(f"unseen: {{{shares}}}")
        lines.append(f"  {id_}: {{{', '.join(parts)}}}")
    return HEAD + "\n".join(lines) + "\n"


def _triple(rate: Rate) -> str:
    low, high = rate.interval()
    return f"[{rate.share:.2f}, {low:.2f}, {high:.2f}]"


def rates(pairs: Iterable[Pair]) -> dict[str, Rate]:
    """Return each rate of some logs."""
    hits: dict[str, list[bool]] = defaultdict(list)
    for log, said in pairs:
        alarmed = said.verdict in ALARMS
        if log.label == "unclear":
            hits["unclear that alarm"].append(alarmed)
        if not log.counts:
            continue
        hits["coverage"].append(said.verdict not in NOT_JUDGED)
        hits["failures named" if log.failed else "healthy that alarm"].append(alarmed)
        if alarmed:
            hits["alarms right"].append(log.failed)
        if alarmed and log.failed:
            hits["kind right"].append(kind_right(log, said))
            if log.onset:
                hits["onset right"].append(_onset_right(log, said))
        if said.verdict == "ok":
            hits["failures among healthy"].append(log.failed)
        if said.verdict == "note" and SETTLED in said.leaves:
            hits["failures among settled"].append(log.failed)
    return {name: Rate(sum(held), len(held)) for name, held in hits.items()}


def kind_right(log: Log, said: Judged) -> bool:
    """Return whether one of the alarms names the failure."""
    if log.source == FAULTBENCH:
        return any(alarm.bench in log.leaves for alarm in said.alarms)
    return any(names(alarm.leaf, kind) for alarm in said.alarms for kind in log.kinds)


def _onset_right(log: Log, said: Judged) -> bool:
    assert log.onset is not None  # noqa: S101 - only such logs are asked
    return any(a.onset is not None and abs(a.onset - log.onset) <= said.slack for a in said.alarms)


COLUMNS = (
    *("coverage", "alarms right", "failures named", "healthy that alarm", "kind right", "onset right"),
    *("unclear that alarm", "failures among healthy", "failures among settled"),
)
KIND_COLUMNS = ("failures named", "kind right", "onset right")


def by_source(logs: Sequence[Log], judged: Sequence[Judged]) -> str:
    """Return the figures of each source as a table of Markdown."""
    pairs = list(zip(logs, judged, strict=True))
    groups = {source: [pair for pair in pairs if pair[0].source == source] for source in (WILD, TRAINERS, FAULTBENCH)}
    return "\n".join(_table("source", groups, COLUMNS))


def by_kind(logs: Sequence[Log], judged: Sequence[Judged]) -> str:
    """Return the figures of the public logs as tables of Markdown: by kind of failure, by task, by label."""
    pairs = list(zip(logs, judged, strict=True))
    wild = [pair for pair in pairs if pair[0].source == WILD]
    kinds = {kind: [p for p in wild if p[0].label == kind] for kind in sorted({log.label for log, _ in wild})}
    tasks = {task: [p for p in wild if p[1].task == task] for task in sorted({said.task for _, said in wild})}
    return "\n".join(
        [
            *_table("kind (wild)", {k: v for k, v in kinds.items() if v[0][0].failed}, KIND_COLUMNS),
            "",
            *_table("task (wild)", tasks, COLUMNS[:5]),
            "",
            *_verdicts(kinds),
        ]
    )


def _table(head: str, groups: dict[str, list[Pair]], columns: Sequence[str]) -> Iterator[str]:
    yield f"| {head} | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for name, pairs in groups.items():
        found = rates(pairs)
        yield f"| {name} | {' | '.join(str(found.get(column, Rate(0, 0))) for column in columns)} |"


def _verdicts(kinds: dict[str, list[Pair]]) -> Iterator[str]:
    yield f"| label (wild) | {' | '.join(ORDER)} |"
    yield "|---" * (len(ORDER) + 1) + "|"
    for kind, pairs in kinds.items():
        said = [judged.verdict for _, judged in pairs]
        yield f"| {kind} | {' | '.join(str(said.count(verdict)) for verdict in ORDER)} |"


def of_public(logs: Sequence[Log], judged: Sequence[Judged], name: str) -> Rate:
    """Return a rate of the public logs."""
    return rates(pair for pair in zip(logs, judged, strict=True) if pair[0].source == WILD).get(name, Rate(0, 0))


def unseen_of(logs: Sequence[Log], judged: Sequence[Judged], leaves: Collection[str]) -> dict[str, Rate]:
    """Return how many alarms of some leaves are right, and how many failures that they would name raise any alarm."""
    right, named = [], []
    for log, said in zip(logs, judged, strict=True):
        if not log.counts:
            continue
        alarmed = any(alarm.leaf in leaves for alarm in said.alarms)
        if alarmed:
            right.append(log.failed)
        if log.failed and any(names(leaf, kind) for leaf in leaves for kind in log.kinds):
            named.append(said.verdict in ALARMS)
    return {"right": Rate(sum(right), len(right)), "named": Rate(sum(named), len(named))}
