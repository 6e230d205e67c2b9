"""Whether what a model says of its inputs has shrunk to nothing, whatever its loss does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, Answer, Evidence, measured
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.common.strength import FARTHEST, below, weakest
from stabtree.facts.registry import finite
from stabtree.metrics.table import words
from stabtree.predicates.registry import predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.run import Run, Series

NO_INFORMATION = 0.1  # no limit: nats of a whole latent code, less than a seventh of a bit
_OF_CODES = frozenset(("embedding", "embeddings", "embed", "emb", "feature", "features", "representation", "repr"))
_SPREADS = frozenset(("std", "spread", "variance", "var"))
_KL = frozenset(("kl", "kld", "kldiv"))
_REBUILDS = frozenset(("recon", "reconstruction", "rec", "elbo", "vae"))


@predicate(source="posterior collapse (arXiv:1511.06349); collapse (arXiv:2105.04906)")
def code_collapses(run: Run, *, factor: float = shared.FACTOR_HUGE) -> Answer:
    """Has the KL of a variational model, or the spread of embeddings, shrunk to nothing?

    Yes where the last level of a series whose name says that it is the spread of embeddings or features lies below a
    `factor`-th of its highest; or so does the KL beside the loss of a reconstruction, and it is less than any
    information: an annealed KL falls far, too, and ends at some nats.
    """
    logged = {**run.series, **run.others}
    rebuilds = any(_REBUILDS & set(words(name)) for name in logged)
    strengths = {name: _shrunk(name, series, factor, rebuilds=rebuilds) for name, series in logged.items()}
    worst = max(strengths, key=lambda name: strengths[name], default="")
    if not worst or strengths[worst] <= -FARTHEST:
        return Answer(NO, (Evidence("no spread of embeddings and no KL of a latent code shrinks"),), strength=-FARTHEST)
    steps, values = finite(logged[worst])
    name = logged[worst].origin or worst
    top, level = float(values.max()), _level(values)
    text = f"{name} ends at {figure(level)}, after {figure(top)} at its highest (limit {factor:g} times less)"
    past = np.flatnonzero(values > top / factor)
    onset = min(int(past[-1]) + 1, len(steps) - 1) if len(past) else 0
    brief = f"{name} is down from {figure(top)} to {figure(level, 2)}"
    evidence = Evidence(text, worst, (int(steps[onset]), int(steps[-1])), level, top / factor, brief)
    return measured(strengths[worst], (evidence,), onset_step=int(steps[onset]))


def _shrunk(name: str, series: Series, factor: float, *, rebuilds: bool) -> float:
    """Return how far a series has shrunk that should keep its size; next to nothing of any other."""
    values = finite(series)[1]
    said = set(words(series.origin or name))
    spreads, informs = said & _OF_CODES and said & _SPREADS, said & _KL and rebuilds
    if not (spreads or informs) or len(values) <= shared.ROWS_SHORT or values.min() < 0:
        return -FARTHEST
    level = _level(values)
    shrunk = below(level, float(values.max()) / factor)
    return shrunk if spreads else weakest(shrunk, below(level, NO_INFORMATION))


def _level(values: Floats) -> float:
    return median(values[-max(shared.ROWS_SHORT, len(values) // shared.LEVELS) :])
