"""`explain METRIC` tells what is known of a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.metrics.table import all_metrics
from stabtree.report.trees.metric import about_metric
from stabtree.tree.load import load_trees
from tests.cli.command import failed, run

if TYPE_CHECKING:
    from stabtree.metrics.metric import Metric


@pytest.mark.parametrize("metric", all_metrics(), ids=lambda metric: metric.name)
def test_every_metric_can_be_explained(metric: Metric) -> None:
    """Its meaning, its first other name and how to log it stand on the page, whether or not a question asks for it."""
    page = " ".join(about_metric(load_trees(), metric.name, width=160).split())
    for text in (metric.meaning, *metric.aliases[:1], metric.log):
        assert " ".join(text.split()) in page


def test_a_metric_names_the_questions_that_read_it() -> None:
    """Those whose predicate asks for it, and those whose tree names it; the nodes that mention it follow."""
    text = run("explain", "grad_norm").stdout
    assert text.startswith("grad_norm  global L2 norm")
    assert "Q3.1, " in text
    assert " findings   nan-backward, " in text
    assert "G" in next(line for line in run("explain", "kl").stdout.splitlines() if line.startswith(" read by"))


@pytest.mark.parametrize("name", ["loss", "grad_norm", "kl"])
def test_a_metric_is_told_on_one_screen(name: str) -> None:
    """What names it stands by id, some of it; --full has a line for each, the last as well as the first."""
    brief = run("explain", name, COLUMNS="80").stdout.splitlines()
    whole = run("explain", name, "--full", COLUMNS="80").stdout.splitlines()
    assert len(brief) <= 24
    assert len(brief) < len(whole)
    assert brief[:4] == whole[:4]
    assert brief[-1] == " --full has a line for each"
    first = next(line.split()[1].rstrip(",") for line in brief if line.startswith(" findings"))
    assert any(line.startswith(f"{first} ") for line in whole)


def test_what_is_neither_metric_nor_node_is_an_error() -> None:
    """A name that is none of them is told."""
    assert "nothing is called 'grad_nrom'" in failed("explain", "grad_nrom")
