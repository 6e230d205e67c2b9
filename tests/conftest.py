"""Shared builders: runs made from plain lists, and where the fixtures stand."""

from __future__ import annotations

import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from msgspec.structs import replace

from stabtree import measures
from stabtree.common.errors import FAULTS
from stabtree.measures import MEASURES
from stabtree.run import Gap, Run, Series, Setting
from stabtree.tools.ci.services import tell
from stabtree.tools.fleet.record import record_of
from stabtree.tree.load import load_tree, load_trees, stated_for
from stabtree.tree.params import fact_params, resolved

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray

    from stabtree.common.answer import Answer
    from stabtree.judging.verdict import Outcome
    from stabtree.measures.registry import Measured
    from stabtree.tools.fleet.record import Record
    from stabtree.tree.model import Question

# The same examples in every run, and no clock that could fail one: what is red is red for everybody.
settings.register_profile(
    "stabtree",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("stabtree")


@pytest.fixture(autouse=True)
def _no_fault(request: pytest.FixtureRequest) -> Iterator[None]:
    """A question that fails is only a note of a diagnosis: in a test it is an error."""
    met: list[str] = []
    logger, handler = logging.getLogger(FAULTS), logging.Handler()
    handler.emit = lambda record: met.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield
    logger.setLevel(level)
    logger.removeHandler(handler)
    if request.node.get_closest_marker("faulty") is None:
        assert not met


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes name no test: a packed file holds the second in which it was packed, and workers must agree on names."""
    return argname if isinstance(val, bytes) else None


def pytest_sessionstart() -> None:
    """Where links ask for a right that this user lacks, as on Windows, a test that makes one is skipped."""
    with TemporaryDirectory() as folder:
        try:
            (Path(folder) / "link").symlink_to("nowhere")
        except OSError:
            Path.symlink_to = _no_link  # type: ignore[method-assign]


def _no_link(*_: object, **__: object) -> None:
    pytest.skip("links can't be made here")


ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"


def series(metric: str, values: ArrayLike, steps: ArrayLike | None = None) -> Series:
    """A series over steps 0, 1, 2, ... or the given ones."""
    made = np.asarray(values, dtype=np.float64)
    at = np.arange(len(made)) if steps is None else np.asarray(steps)
    return Series(metric, at.astype(np.int64), made)


def make_run(
    columns: Mapping[str, Any],
    steps: ArrayLike | None = None,
    gaps: tuple[Gap, ...] = (),
    ranks: Mapping[str, Mapping[str, Series]] | None = None,
    **config: Any,
) -> Run:
    """A run whose series all stand on the same steps, with a config from `test`."""
    return Run(
        name="made",
        series={name: series(name, values, steps) for name, values in columns.items()},
        config={key: Setting(value, "test") for key, value in config.items()},
        gaps=gaps,
        ranks=ranks or {},
    )


def falling(rows: int, noise: float = 0.05, seed: int = 0) -> NDArray[np.float64]:
    """A healthy loss: falls from 4 towards 1 with Gaussian noise."""
    at = np.arange(rows)
    return np.asarray(1 + 3 * np.exp(-5 * at / rows) + np.random.default_rng(seed).normal(0, noise, rows))


def measures_of(run: Run) -> Measured:
    """The facts of a run, with the parameters that the shipped trees state."""
    return measures.measures_of(run, fact_params(load_tree("phase19")))


def ask(name: str, run: Run, **params: Any) -> Answer:
    """A measure's answer with the parameters of the first shipped node that asks it, but the given ones."""
    return MEASURES[name].ask(measures_of(run), {**stated_for(name), **params})


def ask_node(node: Question, run: Run) -> Answer:
    """The answer to a node of the shipped trees."""
    return MEASURES[node.test].ask(measures_of(run), resolved(load_trees(), node))


def recorded(*outcomes: Outcome) -> list[Record]:
    """Outcomes as outputs of several runs take them, with what services are told."""
    return [replace(record_of(one, one.name), told=tell(one)) for one in outcomes]
