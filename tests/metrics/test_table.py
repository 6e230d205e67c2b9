"""The table of metrics: no name means two things."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from stabtree.metrics.table import all_metrics, match, normalize, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.metrics.metric import Metric

PLACES = table().axes


def called(metric: Metric) -> set[str]:
    """Return all names of a metric, as they are compared."""
    return set(map(normalize, metric.names))


def test_no_name_means_two_metrics() -> None:
    """Compared as columns are, no name and no alias belongs to more than one metric."""
    count = Counter(name for metric in all_metrics() for name in called(metric))
    assert [name for name, metrics in count.items() if metrics > 1] == []


@pytest.mark.parametrize("metric", all_metrics(), ids=lambda metric: metric.name)
def test_an_alias_stands_once_and_leads_to_its_metric(metric: Metric) -> None:
    """No alias is there twice, in whatever spelling, and a column of that name is read as the metric."""
    written = [normalize(name) for name in metric.aliases]
    assert [name for name, count in Counter(written).items() if count > 1] == []
    assert {found[0] for name in metric.aliases if (found := match(name)) is not None} <= {metric.name}
    assert all(match(name) for name in metric.aliases)


@pytest.mark.parametrize(("kind", "names"), PLACES.items())
def test_a_column_that_says_where_is_no_metric(kind: str, names: Iterable[str]) -> None:
    """What names a step, an epoch, a rank or a run names no metric, nor another of the four."""
    own = {normalize(name) for name in names}
    others = {normalize(name) for other, named in PLACES.items() if other != kind for name in named}
    assert not own & others
    assert not own & {name for metric in all_metrics() for name in called(metric)}


@pytest.mark.parametrize(
    ("column", "metric"),
    [
        ("info/learner/default_policy/learner_stats/total_loss", "loss"),
        ("ray/tune/info/learner/agent_0/learner_stats/vf_loss", "value_loss"),
        ("learners/default_policy/gradients_default_optimizer_global_norm", "grad_norm"),
        ("ray/tune/episode_reward_mean", "reward"),
        ("learners/default_policy/total", None),
        ("my/learner/default_policy/learner_stats/total_loss", None),
    ],
)
def test_what_a_policy_learns_is_named_after_it(column: str, metric: str | None) -> None:
    """RLlib's path to a metric of one policy leads to that metric, and no other path does."""
    found = match(column)
    assert (found and found[0]) == metric


@pytest.mark.parametrize(
    ("column", "metric"),
    [
        ("rewards/exact_match/mean", "reward_function/exact_match"),
        ("train/rewards/format/mean", "reward_function/format"),
        ("rewards/format/std", None),
        ("rewards/mean", "reward"),
        ("memory/max_alloc", "gpu_memory"),
        ("memory/max_active(GiB)", None),
    ],
)
def test_what_trainers_of_language_models_log_beside_the_loss(column: str, metric: str | None) -> None:
    """The mean of a reward function is known by the function's name, axolotl's memory by its own."""
    found = match(column)
    assert (found and found[0]) == metric
