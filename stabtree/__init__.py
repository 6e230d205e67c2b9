"""Find out what went wrong in a training run, from the logs it left behind.

>>> import stabtree
>>> diagnosis = stabtree.diagnose("metrics.csv")  # doctest: +SKIP
>>> diagnosis.verdict, [finding.leaf.id for finding in diagnosis.findings]  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from stabtree.common.answer import NO, UNKNOWN, YES, Answer, Evidence, inapplicable, unknown
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.diagnosis.walk import diagnose
    from stabtree.loaders import load_run, load_runs
    from stabtree.measures.registry import measure
    from stabtree.run import Run, Series
    from stabtree.tools.ci.stable import assert_stable
    from stabtree.tools.compare.compare import Comparison, compare
    from stabtree.tools.fleet.scan import Fleet, scan
    from stabtree.tools.live.judge import TrainingStoppedError
    from stabtree.tools.live.monitor import NaNMonitor, NonFiniteError
    from stabtree.tools.live.recorder import Recorder
    from stabtree.tools.live.sink import Sink
    from stabtree.tree.load import load_tree, load_trees

__all__ = [
    "NO",
    "UNKNOWN",
    "YES",
    "Answer",
    "Comparison",
    "Diagnosis",
    "Evidence",
    "Fleet",
    "Incident",
    "NaNMonitor",
    "NonFiniteError",
    "Recorder",
    "Run",
    "Series",
    "Sink",
    "StabtreeError",
    "TrainingStoppedError",
    "__version__",
    "assert_stable",
    "compare",
    "diagnose",
    "inapplicable",
    "load_run",
    "load_runs",
    "load_tree",
    "load_trees",
    "measure",
    "scan",
    "unknown",
]

_HOMES = {
    "NO": "stabtree.common.answer",
    "UNKNOWN": "stabtree.common.answer",
    "YES": "stabtree.common.answer",
    "Answer": "stabtree.common.answer",
    "Evidence": "stabtree.common.answer",
    "inapplicable": "stabtree.common.answer",
    "unknown": "stabtree.common.answer",
    "measure": "stabtree.measures.registry",
    "Comparison": "stabtree.tools.compare.compare",
    "Diagnosis": "stabtree.diagnosis.result",
    "Incident": "stabtree.diagnosis.result",
    "Run": "stabtree.run",
    "Series": "stabtree.run",
    "NaNMonitor": "stabtree.tools.live.monitor",
    "NonFiniteError": "stabtree.tools.live.monitor",
    "load_run": "stabtree.loaders",
    "load_runs": "stabtree.loaders",
    "load_tree": "stabtree.tree.load",
    "load_trees": "stabtree.tree.load",
    "compare": "stabtree.tools.compare.compare",
    "diagnose": "stabtree.diagnosis.walk",
    "Fleet": "stabtree.tools.fleet.scan",
    "scan": "stabtree.tools.fleet.scan",
    "assert_stable": "stabtree.tools.ci.stable",
    "Recorder": "stabtree.tools.live.recorder",
    "Sink": "stabtree.tools.live.sink",
    "TrainingStoppedError": "stabtree.tools.live.judge",
}


def __getattr__(name: str) -> Any:
    # Imported at first use: `stabtree --help` needs none of them.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'stabtree' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, those that are imported at their first use too: what an editor completes."""
    return sorted(__all__)
