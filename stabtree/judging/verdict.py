"""What counts: the verdicts from which on a command fails (`--fail-on LEVEL`), its exit codes, and what is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping  # noqa: TC003 - read when a file is converted
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import FOUND, NOT_JUDGED, PRECEDENCE, UNUSABLE, StabtreeError
from stabtree.common.text import clean
from stabtree.diagnosis.result import Accepted
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.run import Run

UNREAD = "unread"
ORDER = (Severity.CRITICAL, Severity.WARNING, UNREAD, UNKNOWN, Severity.NOTE, Severity.OK)
"""The verdicts, worst first; a log that can't be read may hide anything."""
LEVELS = tuple(level for level in Severity if level is not Severity.OK)
NEVER = "never"
NOT_PARTIAL = "not-partial"
WORDS = (*LEVELS, UNKNOWN, NEVER, NOT_PARTIAL)
"""The words that `--fail-on` takes."""


class Outcome(NamedTuple):
    """The outcome of one of several runs: its name, and its diagnosis or why it can't be read."""

    name: str
    found: Diagnosis | StabtreeError

    @property
    def verdict(self) -> str:
        """The verdict, `unread` for a log that can't be read."""
        return UNREAD if isinstance(self.found, StabtreeError) else str(self.found.verdict)

    @property
    def partial(self) -> bool:
        """Whether every check that could run passed."""
        return not isinstance(self.found, StabtreeError) and self.found.partial

    @property
    def unended(self) -> bool:
        """Whether the log stops before its planned end, and nothing says why."""
        return not isinstance(self.found, StabtreeError) and self.found.unended is not None


def worst(outcomes: Sequence[Outcome]) -> str:
    """Return the worst verdict of several runs."""
    return min((outcome.verdict for outcome in outcomes), key=ORDER.index)


def levels_of(fail_on: Iterable[str]) -> frozenset[str]:
    """Return the levels that `--fail-on` names, split at commas; warning if it names none.

    Raises:
        StabtreeError: for a word that is not a level, and for never beside another level.
    """
    words = _words(fail_on)
    for word in words:
        if word not in WORDS:
            hint = f"{', '.join(WORDS[:-1])} or {WORDS[-1]}"
            raise StabtreeError(f"{word!r} is not a level", where="--fail-on", hint=hint)
    levels = set(words) - {NOT_PARTIAL}
    if NEVER in levels and len(levels - {UNKNOWN}) > 1:
        problem, hint = "never can't be combined with another level", "type --fail-on never alone"
        raise StabtreeError(problem, where="--fail-on", hint=hint)
    if not levels - {UNKNOWN}:
        levels.add(Severity.WARNING)
    return frozenset(levels)


def accepts_partial(fail_on: Iterable[str]) -> bool:
    """Return whether `--fail-on` lets a run pass if every check that could run passed."""
    return NOT_PARTIAL in _words(fail_on)


def _words(fail_on: Iterable[str]) -> list[str]:
    return list(chain.from_iterable(item.split(",") for item in fail_on))


def fails(verdict: str, levels: frozenset[str]) -> bool:
    """Return whether a verdict is at or above one of the levels."""
    if verdict == UNKNOWN:
        return UNKNOWN in levels
    bars = [level.rank for level in LEVELS if level in levels]
    return bool(bars) and Severity(verdict).rank >= min(bars)


def exit_code(verdicts: Iterable[str], levels: frozenset[str]) -> int:
    """Return the exit code that the verdicts of all runs add up to; `unread` is a log that could not be read."""
    codes = set()
    for verdict in verdicts:
        if verdict == UNREAD:
            codes.add(UNUSABLE)
        elif fails(verdict, levels):
            codes.add(FOUND)
        elif verdict == UNKNOWN and NEVER not in levels:
            codes.add(NOT_JUDGED)
    return next((code for code in PRECEDENCE if code in codes), 0)


FindingKey = tuple[str, str, str]
"""The path, the run and the fingerprint of a finding in a baseline."""

Text = Annotated[str, Meta(pattern=r"\S")]

UPDATE = "`stabtree baseline PATH --update` drops"


class KnownFinding(Struct, frozen=True):
    """An accepted finding, as a baseline keeps it.

    Attributes:
        path: the log, relative to the folder of the baseline.
        run: the run's name.
        leaf: the leaf.
        severity: how bad it was; a worse finding of the same leaf is not accepted.
        onset_step: its first step, for people; the fingerprint covers it as well.
        fingerprint: what identifies it.
        breaks: how often each series stopped being finite; if a series that the finding rests on does so once more,
            the finding is new.
        reason: why it is accepted, written by a person.
        since: since when, written by a person.
    """

    path: str
    run: str
    leaf: str
    severity: str
    onset_step: int | None
    fingerprint: str
    breaks: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    since: str = ""

    @property
    def key(self) -> FindingKey:
        """What identifies the finding within its file."""
        return self.path, self.run, self.fingerprint


class KnownFindings(Protocol):
    """Findings that are accepted one by one."""

    @property
    def source(self) -> str:
        """The file that holds them."""

    @property
    def count(self) -> int:
        """The number of known findings."""

    def why(self, diagnosis: Diagnosis, finding: Incident) -> Accepted | None:
        """Return why a finding is accepted; None if it is not."""

    def of(self, run: Run) -> tuple[KnownFinding, ...]:
        """Return the accepted findings of a run."""


class Acceptance(Struct, frozen=True, forbid_unknown_fields=True):
    """A leaf that a project accepts in some runs, whatever their rows.

    Attributes:
        leaf: the leaf.
        reason: why.
        run: a pattern of the runs' names or paths, as `nightly-*`.
        since: since when; may be empty.
    """

    leaf: Text
    reason: Text
    run: Text = "*"
    since: Text = ""

    def covers(self, run: Run, finding: Incident) -> bool:
        """Return whether this finding is accepted."""
        names = [run.name, *(source.path for source in run.sources)]
        return finding.leaf.id == self.leaf and any(fnmatchcase(name, self.run) for name in names)

    def __str__(self) -> str:
        if self.run == "*":
            return self.leaf
        return f"{self.leaf} in {self.run}"


class Accepting(Struct, frozen=True):
    """Everything that is accepted: the project's leaves, and the findings of a baseline.

    Attributes:
        project: the acceptances in the settings.
        source: the file of the settings.
        baseline: the accepted findings from a separate file.
    """

    project: tuple[Acceptance, ...]
    source: str
    baseline: KnownFindings | None

    def diagnose(self, judge: Callable[[tuple[str, ...]], Diagnosis]) -> Diagnosis:
        """Return a diagnosis that ignores what is accepted.

        Ignoring a finding can bring up another, such as one on another rank, so it repeats until nothing more is
        accepted.

        Args:
            judge: diagnoses the run, ignoring these leaves besides those that are ignored anyway.
        """
        accepted: dict[str, Accepted] = {}
        while True:
            found = judge(tuple(accepted))
            why = {item.leaf.id: self.why(found, item) for item in unaccepted_findings(found)}
            more = {id_: reason for id_, reason in why.items() if reason}
            if not more:
                break
            accepted |= more
        ignored = tuple(replace(item, accepted=accepted.get(item.leaf.id)) for item in found.ignored)
        diagnosis = replace(found, ignored=ignored)
        return replace(diagnosis, acceptance_notes=tuple(self._outdated(diagnosis)))

    def why(self, diagnosis: Diagnosis, finding: Incident) -> Accepted | None:
        """Return why a finding is accepted; None if it is not."""
        for item in self.project:
            if item.covers(diagnosis.run, finding):
                return Accepted(item.reason, item.since, self.source)
        if self.baseline:
            return self.baseline.why(diagnosis, finding)
        return None

    def _outdated(self, diagnosis: Diagnosis) -> Iterator[str]:
        """Yield notes on accepted findings of this run that did not occur, or not in the accepted form."""
        if not self.baseline:
            return
        present = {item.leaf.id for item in unaccepted_findings(diagnosis)}
        ignored = {item.leaf.id for item in diagnosis.ignored}
        gone = 0
        for entry in self.baseline.of(diagnosis.run):
            if entry.leaf in present:
                at = ""
                if entry.onset_step is not None:
                    at = f" at {diagnosis.run.unit} {entry.onset_step:,}"
                yield f"{entry.leaf} is not the one that {clean(self.baseline.source)} accepts{at}: it counts"
            elif entry.leaf not in ignored and entry.leaf in diagnosis.tree.leaves:
                gone += 1
        if gone == 1:
            yield f"1 accepted finding no longer occurs: {UPDATE} it"
        elif gone:
            yield f"{gone} accepted findings no longer occur: {UPDATE} them"


def unaccepted_findings(diagnosis: Diagnosis) -> list[Incident]:
    """Return the findings that count, each leaf on its own."""
    return list(chain.from_iterable(finding.parts for finding in diagnosis.findings))
