"""What `explain` prints of the nodes of the documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from stabtree.metrics.table import all_metrics
from stabtree.report import explain
from stabtree.report.explain import find, fitted_texts, is_named
from stabtree.report.trees import about_metric
from stabtree.tree import shipped
from stabtree.tree.load import load_defining, load_known, load_tree, load_trees
from stabtree.tree.shipped import Calibrations, Fit, use_calibrations
from tests.cli.command import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.metrics.metric import Metric

TREE = load_trees()
DOCUMENT = [*(f"P{n}" for n in range(1, 20)), *(f"O{n}" for n in range(1, 27))]


@pytest.mark.parametrize("id_", DOCUMENT)
def test_every_id_of_the_documents_explains_itself(id_: str) -> None:
    """P1 to P19 and O1 to O26 exist and say what is wrong, why, and what to do."""
    alone = load_defining(id_)
    assert alone is not None
    nodes, by_id = find(alone, id_)
    assert by_id
    told = explain.explain(alone, nodes)
    assert re.search(r"^ (why|means|cause) ", told, re.MULTILINE)
    assert re.search(r"^ (fix |fixes|answers) ", told, re.MULTILINE)
    assert find(TREE, id_)[1]


def test_every_id_is_explained_on_one_screen() -> None:
    """Every third node or cause of whatever tree: its text and not a list, in the lines of a terminal of 80 columns."""
    known = load_known()
    explained: set[str] = set()
    for tree in (known, load_tree("phase19")):
        ids = sorted({node.id for node in explain.every(tree)} - explained)
        for id_ in ids[::3]:
            nodes, by_id = find(tree, id_)
            assert by_id
            assert is_named(nodes[0], id_)
            text = explain.one_screen(tree, nodes, named=id_, width=80)
            assert text.startswith(f"{id_}  "), id_
            assert text.count("\n") <= explain.MAX_LINES, text
            explained.add(id_)


@pytest.mark.parametrize(
    ("word", "begins"),
    [
        ("learning_rate", "learning_rate is read as lr."),
        ("gnorm", "gnorm is read as grad_norm."),
        ("completions/clipped_ratio", "completions/clipped_ratio is read as clipped_ratio."),
        ("actor/pg_clipfrac", "actor/pg_clipfrac is read as clip_ratio."),
        ("mAP", "mAP  a column, read by its name as: quality, higher is better"),
        ("global_step", "global_step  read as step, "),
        ("lr-too-high", "lr-too-high  "),
        ("fit-one-batch", "fit-one-batch  "),
        ("NaN", "Q1.1  "),
        ("z-loss", "P15  "),
        ("silent divergence", "Q4.1  "),
        ("CUDA out of memory", "cuda-oom  "),
    ],
)
def test_what_inspect_reads_is_explained(word: str, begins: str) -> None:
    """Another name of a metric leads to the metric, a column of a known kind to its kind, a cause to itself."""
    text = run("explain", word, COLUMNS="80").stdout
    assert text.startswith(begins)
    assert text.count("\n") <= explain.MAX_LINES


def test_what_speaks_for_a_cause_is_shown_in_words() -> None:
    """Each observation with its factor, what is against it apart, and what helps; not by their names in the code."""
    told = " ".join(explain.explain(TREE, find(TREE, "lr-too-high")[0]).split())
    assert re.search("for it .*how many times the highest usual rate it is: above 3: ×5", told)
    assert re.search("against it .*which share of the steps the optimizer skipped: above 0.9: ×0.02", told)
    assert re.search(r"what helps .*Lower the peak learning rate \(lower-lr\)", told)


def test_no_explanation_holds_a_placeholder() -> None:
    """Nor what only the log of a run can fill in."""
    assert not re.findall(
        r"\{[a-z_]+[/*=<}]|…|\{for |\{when ", explain.explain(load_known(), explain.every(load_known()))
    )


@pytest.mark.parametrize("metric", all_metrics(), ids=lambda metric: metric.name)
def test_every_metric_can_be_explained(metric: Metric) -> None:
    """Its meaning, its first other name and how to log it stand on the page, whether or not a question asks for it."""
    page = " ".join(about_metric(load_trees(), metric.name, width=160).split())
    for text in (metric.meaning, *metric.aliases[:1], metric.log):
        assert " ".join(text.split()) in page


@pytest.fixture
def known() -> Iterator[None]:
    """Use calibrations of one question that was fitted, and of one that was not."""
    unseen = {"right": (0.9, 0.8, 0.95)}
    fitted = Fit(2.0, limit={"dead_share": 0.4}, positives=27, repositories=14, unseen=unseen)
    questions = {"O25": fitted, "Q2.1": Fit(1.5, "spike", positives=3, repositories=2)}
    use_calibrations(Calibrations(0.75, 0.3, 2.0, questions))
    yield
    shipped._USED.clear()


@pytest.mark.usefixtures("known")
def test_explain_says_what_a_limit_rests_on() -> None:
    """A fitted one names its failures and what it is worth elsewhere, another one that it was not fitted."""
    fitted, right = fitted_texts("O25")
    assert "fitted to 27 failures (14 sources)" in fitted
    assert "75% at it" in fitted
    assert right == "on repositories left out of the fit 90% of such alarms are right (95%: 80% to 95%)"
    (shared,) = fitted_texts("Q2.1")
    assert "only 3 failures" in shared
    assert "shared by spike" in shared
    assert not list(fitted_texts("O1"))
