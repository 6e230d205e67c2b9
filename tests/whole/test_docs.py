"""The documentation's tree loads, finds what it says, and passes its own tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import build, load_trees
from tests.cli.command import run
from tests.conftest import falling, make_run

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "write-a-tree.md"


def blocks(language: str) -> list[str]:
    """The fenced blocks of the page."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_tree_of_the_page_works() -> None:
    """Its question, its check, and the edge that leads into Phase-19."""
    tree = build(blocks("yaml")[0], "house.yaml")
    well = make_run({"loss": falling(400), "eval_loss": falling(400), "grad_norm": np.ones(400)})
    assert not [finding for finding in diagnose(well, tree).findings if finding.leaf.id == "do-not-promote"]
    large = make_run({"loss": falling(400), "eval_loss": np.full(400, np.nan), "grad_norm": np.full(400, 9.0)})
    ids = [finding.leaf.id for finding in diagnose(large, tree).findings]
    assert {"do-not-promote", "gradients-too-large"} <= set(ids)


def test_the_tree_of_the_page_is_walked_beside_the_shipped_ones(tmp_path: Path) -> None:
    """Also where it uses one of them: in a folder of trees its own nodes are added, those that it uses stay one."""
    (tmp_path / "house.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    large = make_run({"loss": falling(400), "eval_loss": np.full(400, np.nan), "grad_norm": np.full(400, 9.0)})
    ids = [finding.leaf.id for finding in diagnose(large, load_trees(large, tmp_path)).findings]
    assert {"do-not-promote", "gradients-too-large"} <= set(ids)


def test_the_rule_about_a_configuration_works(tmp_path: Path) -> None:
    """It is found beside ours, and no log is walked through it."""
    (tmp_path / "house.yaml").write_text(blocks("yaml")[1], encoding="utf-8")
    (tmp_path / "run.yml").write_text("adapter: lora\nlearning_rate: 2.5e-4\noptimizer: adamw\n", encoding="utf-8")
    (tmp_path / "rules").mkdir()
    (tmp_path / "house.yaml").rename(tmp_path / "rules" / "house.yaml")
    told = run("check", str(tmp_path / "run.yml"), "--trees", str(tmp_path / "rules"))
    assert (told.returncode, "(house-rate)" in told.stdout) == (1, True)
    assert "K1" not in load_trees(None, tmp_path / "rules").questions


def test_the_tests_of_the_page_print_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over logs that are as their names say, to the letter."""
    monkeypatch.chdir(tmp_path)
    Path("house.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    Path("fixtures").mkdir()
    for name, grad_norm, eval_loss in (("eval-nan", 1, np.nan), ("large-gradients", 9, 1), ("good", 1, 1)):
        rows = [f"{step},{loss:.6f},{grad_norm},{eval_loss}" for step, loss in enumerate(falling(400))]
        text = "\n".join(["step,loss,grad_norm,eval_loss", *rows, ""])
        Path(f"fixtures/{name}.csv").write_text(text, encoding="utf-8")
    (block,) = blocks("console")
    command, _, shown = block.partition("\n")
    assert command == "$ stabtree tree test house.yaml"
    done = run("tree", "test", "house.yaml", COLUMNS="80")
    assert (done.returncode, done.stdout) == (0, shown)


def test_checking_a_tree_asks_for_what_a_path_needs(tmp_path: Path) -> None:
    """A question without a short form is no mistake, but is named; the page's own tree has one for each."""
    text = blocks("yaml")[0]
    path = tmp_path / "house.yaml"
    path.write_text(text, encoding="utf-8")
    assert "short" not in run("tree", "check", str(path)).stdout
    path.write_text(re.sub(r"    short: grad_norm.*\n", "", text), encoding="utf-8")
    done = run("tree", "check", str(path))
    assert done.returncode == 0
    assert "note: H2: no `short`" in done.stdout


def test_checking_a_tree_asks_for_what_a_screen_needs(tmp_path: Path) -> None:
    """A cause or a first fix that a line has no room for is named, until it has a short form."""
    text, cause = blocks("yaml")[0], "causes: [{id: H1.long, text: an evaluation of weights that are not those saved, "
    path = tmp_path / "house.yaml"
    path.write_text(
        text.replace("    fixes:\n", f"    {cause}fixes: [Evaluate the saved weights once more.]}}]\n    fixes:\n", 1)
    )
    noted = run("tree", "check", str(path)).stdout
    assert "note: H1.long: no `short`" in noted
    assert "note: H1.long: no `mend`" in noted
    path.write_text(path.read_text().replace("fixes: [E", "short: other weights, mend: Evaluate again, fixes: [E"))
    assert "note" not in run("tree", "check", str(path)).stdout
