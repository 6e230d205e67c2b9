"""The options that say how runs are judged, and the settings they leave in effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from stabtree.cli.options import values
from stabtree.cli.program.expand import option
from stabtree.cli.program.help import JUDGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.cli.options.read import ReadOptions
    from stabtree.judging.accepted import KnownFindings
    from stabtree.judging.judge import Judging
    from stabtree.judging.outcome import Outcome
    from stabtree.judging.settings import Settings

TREES = ("tree", "trees", "set", "ignore")
"""The options that all commands which walk a tree have."""
FAILING = ("fail_on", "exit_zero", "accept_partial")
"""The options that decide the exit code."""


class JudgeOptions(Struct, frozen=True):
    """How runs are judged, as typed."""

    tree: Annotated[
        str | None,
        option(JUDGING, "--tree NAME|FILE", "Walk this tree alone: a shipped one, or a YAML file.", values.trees),
    ] = None
    trees: Annotated[
        str | None, option(JUDGING, "--trees DIR", "Walk the trees in this folder beside the shipped ones.")
    ] = None
    fail_on: Annotated[
        tuple[str, ...],
        option(
            JUDGING,
            "--fail-on LEVEL",
            "Exit 1 at or above note, warning (default) or critical; never: exit 0 whatever is found; unknown: exit 1, "
            "not 3, for a run that can't be judged; not-partial: exit 0, not 3, if every check that could run passed.",
            values.levels,
        ),
    ] = ()
    exit_zero: Annotated[bool, option(JUDGING, "--exit-zero", "The old name of --fail-on never.", hidden=True)] = False
    accept_partial: Annotated[
        bool, option(JUDGING, "--accept-partial", "The old name of --fail-on not-partial.", hidden=True)
    ] = False
    literal: Annotated[
        bool, option(JUDGING, "--literal", "Apply the bare thresholds, without the guards against noise.")
    ] = False
    set: Annotated[
        tuple[str, ...],
        option(JUDGING, "--set ID.PARAM=VALUE", "Override a parameter, as in Q2.1.sigma=4.", values.parameters),
    ] = ()
    answer: Annotated[
        tuple[str, ...],
        option(JUDGING, "--answer ID=VERDICT", "Answer a question yourself, as in Q1.2=fp16.", values.answers),
    ] = ()
    applied: Annotated[
        tuple[str, ...],
        option(JUDGING, "--applied ID", "The fixes of this node were tried and did not help.", values.questions),
    ] = ()
    ignore: Annotated[
        tuple[str, ...], option(JUDGING, "--ignore LEAF", "Ignore this finding, as in spike-minor.", values.leaves)
    ] = ()
    baseline: Annotated[
        str | None,
        option(JUDGING, "--baseline FILE", "Ignore the findings accepted in FILE, which `stabtree baseline` writes."),
    ] = None
    interactive: Annotated[
        bool, option(JUDGING, "--interactive", "Ask for what the log can't answer; type ? for an explanation.")
    ] = False


class EffectiveSettings(Struct, frozen=True):
    """What the command line and the project's settings say together.

    Attributes:
        settings: those of the project that the command line does not override.
        levels: from which a run fails: those of `--fail-on`, else the project's.
        accept_partial: whether a run passes if every check that could run passed.
        exit_zero: whether the exit code is 0 whatever is found.
    """

    settings: Settings
    levels: frozenset[str]
    accept_partial: bool
    exit_zero: bool

    def exit_code(self, verdicts: Iterable[str]) -> int:
        """Return the exit code of a command, given the verdicts of all runs."""
        from stabtree.judging.levels import exit_code

        if self.exit_zero:
            return 0
        return exit_code(verdicts, self.levels)

    def verdicts(self, outcomes: Sequence[Outcome]) -> list[str]:
        """Return the verdicts that the exit code is made of: ok for a partial run where that is enough."""
        from stabtree.tree.model import Severity

        if not self.accept_partial:
            return [outcome.verdict for outcome in outcomes]
        return [Severity.OK if outcome.partial else outcome.verdict for outcome in outcomes]


def effective_settings(read: ReadOptions, judge: JudgeOptions | None = None) -> EffectiveSettings:
    """Return the project's settings as the command line leaves them.

    Raises:
        StabtreeError: where the settings can't be read, or a word of `--fail-on` is no level.
    """
    from stabtree.judging.levels import accepts_partial, levels_of
    from stabtree.judging.settings import read_settings

    judge = judge or JudgeOptions()
    project = read_settings(read.config)
    settings = project.without(
        {
            "column": read.column,
            "step_column": read.step_column,
            "checkpoint_every": read.checkpoint_every,
            "tree": judge.tree,
            "trees": judge.trees,
            "fail_on": judge.fail_on,
            "set": judge.set,
            "baseline": judge.baseline,
        }
    )
    words = judge.fail_on or settings.fail_on
    return EffectiveSettings(
        settings=settings,
        levels=levels_of([*words]),
        accept_partial=judge.accept_partial or project.accept_partial or accepts_partial(words),
        exit_zero=judge.exit_zero,
    )


def judging_by(settings: Settings, judge: JudgeOptions, known: KnownFindings | None = None) -> Judging:
    """Return how runs are judged, as the command line and the project say.

    Args:
        settings: those in effect.
        judge: the options.
        known: findings that are accepted; those of the settings are added.

    Raises:
        StabtreeError: where an option is malformed.
    """
    from stabtree.judging.judge import Judging
    from stabtree.judging.overrides import pairs

    return Judging(
        settings,
        judge.tree,
        judge.trees,
        judge.literal,
        set=judge.set,
        answers=pairs([*judge.answer], "--answer", "Q1.2=fp16"),
        applied=judge.applied,
        ignore=judge.ignore,
        baseline=known,
    )


def judging_with_baseline(settings: Settings, judge: JudgeOptions) -> Judging:
    """Return how runs are judged, the findings accepted in a baseline ignored.

    Raises:
        StabtreeError: where an option is malformed, or the baseline can't be read.
    """
    from stabtree.judging.judge import accepted_by

    return judging_by(settings, judge, accepted_by(judge.baseline, settings))
