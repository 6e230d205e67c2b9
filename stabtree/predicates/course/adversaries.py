"""Whether one of two adversaries has won."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, Answer, Evidence, measured
from stabtree.common.figures import figure
from stabtree.common.stats import median
from stabtree.common.strength import FARTHEST, below
from stabtree.facts.registry import finite
from stabtree.metrics.role import ADVERSARIAL, describe_name
from stabtree.metrics.table import words
from stabtree.metrics.vocabulary import AGAINST
from stabtree.predicates.registry import predicate
from stabtree.profile.onset import lasts_from

if TYPE_CHECKING:
    from stabtree.run import Run, Series


@predicate(source="https://github.com/soumith/ganhacks, track failures early")
def discriminator_wins(run: Run, reward: Series | None = None, *, factor: float = shared.FACTOR_HUGE) -> Answer:
    """Does the loss of a discriminator end at almost 0?

    Yes where its last level is below a `factor`-th of ln 2, the loss of one that guesses: it is certain of nearly every
    sample, and its gradient shows the generator no way. Not asked of a loss that goes below 0, nor beside
    a reward, which a discriminator may give.
    """
    played = {name: series for name, series in {**run.series, **run.others}.items() if _discriminates(name, series)}
    if run.setting("loss_kind") != ADVERSARIAL or reward is not None or not played:
        return Answer(NO, (Evidence("no loss of a discriminator is logged"),), strength=-FARTHEST)
    levels = {name: _last_level(series) for name, series in played.items()}
    name = min(levels, key=lambda key: levels[key])
    steps, values = finite(played[name])
    limit, level = math.log(2) / factor, levels[name]
    text = f"{name} ends at a level of {figure(level)} (limit {figure(limit, 2)}); a guess costs 0.69"
    first = lasts_from(values <= limit) or 0
    found = Evidence(
        text, name, (int(steps[first]), int(steps[-1])), level, limit, f"{name} ends at {figure(level, 2)}"
    )
    good = int(steps[first - 1]) if first else None
    return measured(below(level, limit), (found,), onset_step=int(steps[first]), last_good_step=good)


def _discriminates(name: str, series: Series) -> bool:
    values = finite(series)[1]
    said = describe_name(name)
    return said.kind == ADVERSARIAL and bool(AGAINST & set(words(name))) and len(values) > 0 and values.min() >= 0


def _last_level(series: Series) -> float:
    _, values = finite(series)
    return median(values[-max(shared.ROWS_SHORT, len(values) // shared.LEVELS) :])
