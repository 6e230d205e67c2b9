"""The configuration of a watched run: what `check` would warn of is found from the run's first row on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.judging.outcome import ORDER, Outcome
from stabtree.run import Run
from stabtree.tools.check.configs.settle import completed
from stabtree.tools.check.judge import checked, rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.loaders import Loaded
    from stabtree.run import Setting


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
        self._found: dict[str, tuple[Mapping[str, Setting], tuple[Incident, ...]]] = {}

    def outcome(self, loaded: Loaded) -> Outcome:
        """Return the outcome of a run, with what is wrong in its configuration as findings behind those of its log.

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
        if not known[1]:
            return found
        verdicts = [found.verdict, *(str(item.leaf.severity) for item in known[1])]
        return replace(
            found,
            findings=(*found.findings, *known[1]),
            verdict=min(verdicts, key=ORDER.index),
            setting_notes=(),
        )

    def _check(self, run: Run) -> tuple[Incident, ...]:
        """Return what `check` warns of."""
        from stabtree.tools.check.configs.logged import header_settings

        settings = header_settings(run.config)
        if not settings:
            return ()
        found = checked(Run(run.name, {}, completed(settings), sources=run.sources), self._configs)
        return tuple(item for item in found.findings if item.is_alarm and item.leaf.id not in self._ignored)
