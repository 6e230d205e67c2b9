"""What the clues on a loss that is NaN or infinite see."""

from __future__ import annotations

import numpy as np

from stabtree.diagnosis.judged import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import make_run
from tests.leaves.make import AT, healthy, noisy

TREES = load_trees()
BROKEN = np.where((AT >= 500) & (AT % 5 > 0), np.inf, healthy()["loss"])


def test_a_loss_that_breaks_alone_leaves_the_weights_sound() -> None:
    """A gradient that stays finite, and losses that come back, need no restart; else the weights may be lost."""
    alone = diagnose(make_run(healthy(loss=BROKEN, grad_norm=noisy(1.0))), TREES).findings[0]
    first = alone.causes[0]
    assert (alone.leaf.id, first.cause.id, first.state) == ("nan-forward", "Q1.4.itself", CauseState.LIKELY)
    assert alone.restart is None
    lost = np.where(AT >= 501, np.nan, noisy(1.0))
    broken = diagnose(make_run(healthy(loss=BROKEN, grad_norm=lost)), TREES).findings[0]
    assert broken.restart is not None
    assert all(judged.cause.id != "Q1.4.itself" or judged.state is CauseState.RULED_OUT for judged in broken.causes)
