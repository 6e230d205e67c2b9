"""stabtree: tells what went wrong in a training run, from the logs it left behind.

>>> import stabtree
>>> diagnosis = stabtree.diagnose("metrics.csv")  # doctest: +SKIP
>>> diagnosis.verdict, [finding.leaf.id for finding in diagnosis.findings]  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from stabtree.common.monitor import NaNMonitor, NonFiniteError
    from stabtree.comparing.compare import compare
    from stabtree.comparing.result import Comparison
    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.diagnosis.walk import diagnose
    from stabtree.fleet.scan import Fleet, scan
    from stabtree.judging.stable import assert_stable
    from stabtree.live.in_loop import TrainingStoppedError
    from stabtree.live.recorder import Recorder
    from stabtree.loaders import load_run, load_runs
    from stabtree.run import Run, Series
    from stabtree.tree.load import load_tree, load_trees

__all__ = [
    "Comparison",
    "Diagnosis",
    "Finding",
    "Fleet",
    "NaNMonitor",
    "NonFiniteError",
    "Recorder",
    "Run",
    "Series",
    "StabtreeError",
    "TrainingStoppedError",
    "__version__",
    "assert_stable",
    "compare",
    "diagnose",
    "load_run",
    "load_runs",
    "load_tree",
    "load_trees",
    "scan",
]

_HOMES = {
    "Comparison": "stabtree.comparing.result",
    "Diagnosis": "stabtree.diagnosis.result",
    "Finding": "stabtree.diagnosis.result",
    "Run": "stabtree.run",
    "Series": "stabtree.run",
    "NaNMonitor": "stabtree.common.monitor",
    "NonFiniteError": "stabtree.common.monitor",
    "load_run": "stabtree.loaders",
    "load_runs": "stabtree.loaders",
    "load_tree": "stabtree.tree.load",
    "load_trees": "stabtree.tree.load",
    "compare": "stabtree.comparing.compare",
    "diagnose": "stabtree.diagnosis.walk",
    "Fleet": "stabtree.fleet.scan",
    "scan": "stabtree.fleet.scan",
    "assert_stable": "stabtree.judging.stable",
    "Recorder": "stabtree.live.recorder",
    "TrainingStoppedError": "stabtree.live.in_loop",
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
