"""The report on one screen."""

from __future__ import annotations

import numpy as np

from stabtree.diagnosis.walk import diagnose
from stabtree.render.look import Look
from stabtree.render.sections.full import full
from stabtree.tree.load import load_trees
from tests.conftest import make_run

TREE = load_trees()


def test_questions_for_a_person_take_one_line_of_the_screen() -> None:
    """O1=yes asks what else is wrong; what is not answered is listed together."""
    flat = make_run({"loss": 2.3 + np.random.default_rng(0).normal(0, 0.01, 600), "lr": np.full(600, 1e-3)})
    assert diagnose(flat, TREE).findings[0].leaf.id == "flat-from-start"
    told = full(diagnose(flat, TREE, answers={"O1": "yes"}), Look(width=120))
    assert "10 questions for a person (O6, O10, O11, O13, O17, O18, O19, O20, O21, O26)" in " ".join(told.split())
    assert sum("O17" in line for line in told.splitlines()) <= 2
