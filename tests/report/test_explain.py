"""What `explain` prints of the nodes of the documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from stabtree.metrics.table import all_metrics
from stabtree.report import explain
from stabtree.report.explain import find
from stabtree.report.trees import about_metric
from stabtree.tree.load import load_defining, load_known, load_trees
from tests.cli.command import run

if TYPE_CHECKING:
    from stabtree.metrics.metric import Metric

TREE = load_trees()
PLACEHOLDER = re.compile(r"\{=?[a-z_]+(?:[/*=<][^\s{}]*)?\}|\{(?:for|not for|when|unless) ")
QUOTED = re.compile(r'f"[^"]*"')  # Python that a fix shows
ITEM = re.compile(r"^ {12}\d\. |^ fixes +1\. | → (?!noted)", re.MULTILINE)
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


def test_every_id_is_explained_whole_or_says_what_is_left_out() -> None:
    """A screen has the lines of a terminal of 80 columns, no placeholder and no `…`; each list ends or counts on."""
    tree = load_known()
    for node in explain.every(tree):
        nodes, by_id = find(tree, node.id)
        assert by_id
        screen = explain.one_screen(tree, nodes, named=node.id, width=80)
        assert screen.startswith(f"{node.id}  "), node.id
        assert screen.count("\n") <= explain.MAX_LINES, screen
        full = explain.explain(tree, [nodes[0]], width=80)
        for text in (screen, full):
            assert not PLACEHOLDER.search(QUOTED.sub("", text)), text
            assert "…" not in text, text
        left_out = len(ITEM.findall(full)) - len(ITEM.findall(screen))
        counts = [int(number) for number in re.findall(r"and (\d+) more(?: lines)?: --full", screen)]
        assert sum(counts) >= left_out, screen


@pytest.mark.parametrize(
    ("word", "begins"),
    [
        ("learning_rate", "learning_rate is read as lr."),
        ("gnorm", "gnorm is read as grad_norm."),
        ("completions/clipped_ratio", "completions/clipped_ratio is read as clipped_ratio."),
        ("actor/pg_clipfrac", "actor/pg_clipfrac is read as clip_ratio."),
        ("NaN", "Q1.1  "),
        ("z-loss", "P15  "),
        ("silent divergence", "Q4.1  "),
        ("CUDA out of memory", "cuda-oom  "),
        ("entropy collapse", "G8  "),
        ("gradient clipping", "always-clipped  "),
        ("overfitting", "overfitting  "),
        ("reward hacking", "reward-hacking  "),  # the only title with it, of several texts
        ("loss scale", "loss scale is read as loss_scale."),
    ],
)
def test_typed_words_lead_to_a_metric_then_to_titles(word: str, begins: str) -> None:
    """The first line shown, be it of a page or of a list."""
    text = run("explain", word, COLUMNS="80").stdout
    assert re.sub(" {2,}", "  ", text).startswith(begins)
    assert text.count("\n") <= explain.MAX_LINES


@pytest.mark.parametrize(("id_", "metric"), [("S2", "grad_norm"), ("G10.jump", "kl"), ("O24", "loss_scale")])
def test_a_rule_says_of_what(id_: str, metric: str) -> None:
    """The metric that its question sets, or that its measure can't do without, where its words name none."""
    assert explain.rule_of(TREE, TREE.questions[id_]).startswith(f"{metric}: ")


@pytest.mark.parametrize("metric", all_metrics(), ids=lambda metric: metric.name)
def test_every_metric_can_be_explained(metric: Metric) -> None:
    """Its meaning, its first other name and how to log it stand on the page, whether or not a question asks for it."""
    page = " ".join(about_metric(load_trees(), metric.name, width=160).split())
    for text in (metric.meaning, *metric.aliases[:1], metric.log):
        assert " ".join(text.split()) in page
