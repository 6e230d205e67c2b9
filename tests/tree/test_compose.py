"""Trees together: a user's tree beside ours, one that uses ours, and the schema that all of them follow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.common.yaml12 import parse
from stabtree.diagnosis.walk import diagnose
from stabtree.measures import all_questions
from stabtree.tree.load import build, load_tree, load_trees, schema
from stabtree.tree.shipped import shipped
from tests.cli.command import run as command
from tests.conftest import falling, make_run

if TYPE_CHECKING:
    from pathlib import Path

USING = """
name: mine
title: A tree that goes on in ours
uses: [phase19]
sections:
  - {id: mine, title: First of all, entry: M1}
questions:
  - id: M1
    section: mine
    ask: Is the loss finite?
    test: nonfinite_loss
    go: {yes: mine-nan, exploded: mine-nan, skipped: nan-skipped, stops: loss-stops, no: Q2.1}
    source: a test
leaves:
  - {id: mine-nan, of: M1, title: NaN, severity: critical, fix: fix it, source: a test}
"""
CHECK = """
name: more
title: One check
checks:
  - {id: X1, leaf: x-low, when: [loss], ask: Low?, test: loss_spikes, severity: note, title: Low, means: It is,
     fix: no, source: t}
"""


def test_a_tree_may_lead_into_ours() -> None:
    """An edge to a node of a tree that is used is no mistake; without `uses` it is one; what is not there is named."""
    tree = build(USING, "mine.yaml")
    found = diagnose(make_run({"loss": falling(400)}), tree)
    assert [visit.question.id for visit in found.path][:2] == ["M1", "Q2.1"]
    assert [part.name for part in found.trees] == ["mine", "phase19"]
    with pytest.raises(StabtreeError, match="which does not exist"):
        build(USING.replace("uses: [phase19]\n", ""), "mine.yaml")
    with pytest.raises(StabtreeError, match="not a shipped tree"):
        build(USING.replace("[phase19]", "[phase20]"), "mine.yaml")


def test_a_folder_of_trees_is_walked_beside_ours(tmp_path: Path) -> None:
    """--trees adds every YAML file of a folder; an id of ours in one of them is an error, and so is an empty folder."""
    with pytest.raises(StabtreeError, match="no YAML file"):
        load_trees(folder=tmp_path)
    file = tmp_path / "more.yaml"
    file.write_text(CHECK, encoding="utf-8")
    found = diagnose(make_run({"loss": falling(400)}), load_trees(folder=tmp_path))
    assert ("more", True) in {(tree.name, tree.walked) for tree in found.trees}
    file.write_text(CHECK.replace("X1", "Q2.1"), encoding="utf-8")
    with pytest.raises(StabtreeError, match="used by more than one"):
        load_trees(folder=tmp_path)


def test_trees_without_anything_to_ask_are_left_out_and_named() -> None:
    """A run without lines needs no tree of error messages; the diagnosis says so."""
    run = make_run({"loss": falling(400)})
    found = diagnose(run)
    assert "E.oom" not in found.tree.questions
    (errors,) = (tree for tree in found.trees if tree.name == "errors")
    assert not errors.walked
    assert "no text log" in errors.why


def test_a_tree_of_entries_alone_is_not_walked() -> None:
    """It can be read and explained, and says that there is nothing to walk."""
    tree = build(
        "name: e\ntitle: E\nentries:\n  - {id: E1, title: t, symptom: s, cause: c, fixes: [f], source: x}\n", "e"
    )
    with pytest.raises(StabtreeError, match="no questions to walk"):
        diagnose(make_run({"loss": falling(100)}), tree)


def test_the_schema_names_the_measures_that_it_is_given() -> None:
    """Those of installed packages as well, where `stabtree tree schema` writes it."""
    made = schema(["b", "a"])["$defs"]
    for kind in ("Question", "Check"):
        assert made[kind]["properties"]["test"] == {"enum": ["a", "b"]}


@pytest.mark.parametrize("name", list(shipped()))
def test_the_schema_accepts_every_shipped_tree(name: str) -> None:
    """What we ship follows the schema, and a misspelt key does not."""
    jsonschema = pytest.importorskip("jsonschema")
    value = parse(shipped()[name].read_text(encoding="utf-8"), name).value
    jsonschema.validate(value, schema(all_questions()))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**value, "titel": "x"}, schema(all_questions()))
    assert load_tree(name).name == name


def test_a_rerun_and_a_folder_of_trees_are_options(tmp_path: Path) -> None:
    """--rerun compares with a second run; --trees adds a folder and does not go with --tree."""
    rows = [f"{step},{'nan' if step > 80 else 3 - step / 100}\n" for step in range(100)]
    run, again = tmp_path / "run.csv", tmp_path / "again.csv"
    for path in (run, again):
        path.write_text("step,loss\n" + "".join(rows), encoding="utf-8")
    found = json.loads(command("diagnose", str(run), "--rerun", str(again), "--json").stdout)
    assert "nan-from-data" in {item["id"] for item in found["findings"]}
    assert {tree["name"]: tree["walked"] for tree in found["trees"]}["errors"] is False
    assert "no YAML file" in command("diagnose", str(run), "--trees", str(tmp_path)).stderr
    assert "don't go together" in command("diagnose", str(run), "--trees", str(tmp_path), "--tree", "phase19").stderr
