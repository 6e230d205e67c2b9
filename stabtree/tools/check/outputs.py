"""The outputs of `check`, of one configuration or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stabtree.report.outputs import GITHUB, GITLAB, HEADLINE, JSON, JSONL, JUNIT, RUN, RUNS, SARIF, output
from stabtree.tools.check import screen as one_screen
from stabtree.tools.check.markdown import markdown
from stabtree.tools.check.screen import screen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.outcome import Outcome
    from stabtree.report.options import RenderOptions

    Written = Callable[[Sequence[Outcome], RenderOptions], str]


def headline(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
    """Return one line for each configuration."""
    if len(outcomes) > 1:
        return str(output(RUNS, HEADLINE)(outcomes, look))
    return one_screen.headline(outcomes[0], look)


def _as_of_runs(name: str) -> Written:
    """Return the output that runs have under a name; a single configuration must have been read."""

    def written(outcomes: Sequence[Outcome], look: RenderOptions) -> str:
        if len(outcomes) > 1:
            return str(output(RUNS, name)(outcomes, look))
        return str(output(RUN, name)(cast("Diagnosis", outcomes[0].found), look))

    return written


json, jsonl = _as_of_runs(JSON), _as_of_runs(JSONL)
github, gitlab = _as_of_runs(GITHUB), _as_of_runs(GITLAB)
junit, sarif = _as_of_runs(JUNIT), _as_of_runs(SARIF)

__all__ = ["github", "gitlab", "headline", "json", "jsonl", "junit", "markdown", "sarif", "screen"]
