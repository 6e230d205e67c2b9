"""The configuration of a watched run: what `check` would warn of is found from the run's first row on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.result import worst_first
from stabtree.judging.judge import Judging
from stabtree.judging.outcome import ORDER, Outcome
from stabtree.run import Run
from stabtree.tools.check.judge import checked, rules
from stabtree.tools.check.load import completed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.diagnosis.visits import Visit
    from stabtree.loaders import Loaded
    from stabtree.run import Setting
    from stabtree.tree.model import Tree


class _WrongSettings(NamedTuple):
    """What is wrong in a configuration, the walks that found it, and the tree that they are of."""

    findings: tuple[Incident, ...] = ()
    walks: tuple[tuple[Visit, ...], ...] = ()
    tree: Tree | None = None


class RowZero:
    """Judges runs by their logs, as `diagnose` does, and by what these hold of their configuration, as `check` does.

    Args:
        judging: how runs are judged.

    Attributes:
        logs: how their logs are judged: rules about configurations are not known there, and ignored here.
    """

    def __init__(self, judging: Judging) -> None:
        self._ignored = frozenset(judging.ignore)
        of_logs = judging.ignore
        if self._ignored:
            known = rules(Judging(judging.settings, trees=judging.trees)).leaves
            of_logs = tuple(name for name in judging.ignore if name not in known)
        self.logs = replace(judging, ignore=of_logs)
        self._configs = Judging(judging.settings, trees=judging.trees, baseline=judging.baseline)
        self._found: dict[str, tuple[Mapping[str, Setting], _WrongSettings]] = {}

    def outcome(self, loaded: Loaded) -> Outcome:
        """Return the outcome of a run, with what is wrong in its configuration among the findings.

        Raises:
            StabtreeError: as of `Judging.outcome`.
        """
        outcome = self.logs.outcome(loaded)
        if isinstance(outcome.found, StabtreeError) or not outcome.found.run.config:
            return outcome
        return outcome._replace(found=self._with_settings(outcome.name, outcome.found))

    def _with_settings(self, name: str, found: Diagnosis) -> Diagnosis:
        known = self._found.get(name)
        if known is None or known[0] != found.run.config:  # a configuration is judged once, not in each row
            known = self._found[name] = found.run.config, self._check(found.run)
        wrong = known[1]
        if not wrong.findings or wrong.tree is None:
            return found
        verdicts = [found.verdict, *(str(item.leaf.severity) for item in wrong.findings)]
        return replace(
            found,
            findings=tuple(worst_first([*found.findings, *wrong.findings])),
            further=(*found.further, *wrong.walks),
            tree=_beside(found.tree, wrong.tree),
            verdict=min(verdicts, key=ORDER.index),
            setting_notes=(),
        )

    def _check(self, run: Run) -> _WrongSettings:
        """Return what `check` warns of."""
        from stabtree.tools.check.load import header_settings

        settings = header_settings(run.config)
        if not settings:
            return _WrongSettings()
        found = checked(Run(run.name, {}, completed(settings), sources=run.sources), self._configs)
        wrong = tuple(item for item in found.findings if item.is_alarm and item.leaf.id not in self._ignored)
        leaves = {item.leaf.id for item in wrong}
        walks = [visits for visits in (found.path, *found.further) if visits]
        walks = [one for one in walks if not leaves.isdisjoint(one[-1].question.go.values())]
        return _WrongSettings(wrong, tuple(walks), found.tree)


def _beside(tree: Tree, other: Tree) -> Tree:
    """Return the tree of a log with the nodes of another one, so that its walks can be shown."""
    known = {section.id for section in tree.sections}
    return replace(
        tree,
        sections=(*tree.sections, *(section for section in other.sections if section.id not in known)),
        questions={**other.questions, **tree.questions},
        leaves={**other.leaves, **tree.leaves},
        groups={**other.groups, **tree.groups},
        entries={**other.entries, **tree.entries},
    )
