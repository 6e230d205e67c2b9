"""The documentation's tree loads, and finds what it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import build
from tests.conftest import falling, make_run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "write-a-tree.md"


def test_the_tree_of_the_page_works() -> None:
    """Its question, its check, and the edge that leads into Phase-19."""
    text = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    tree = build(text, "house.yaml")
    well = make_run({"loss": falling(400), "eval_loss": falling(400), "grad_norm": np.ones(400)})
    assert not [finding for finding in diagnose(well, tree).findings if finding.leaf.id == "do-not-promote"]
    large = make_run({"loss": falling(400), "eval_loss": np.full(400, np.nan), "grad_norm": np.full(400, 9.0)})
    ids = [finding.leaf.id for finding in diagnose(large, tree).findings]
    assert {"do-not-promote", "gradients-too-large"} <= set(ids)
