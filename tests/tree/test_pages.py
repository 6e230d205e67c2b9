"""Findings link to the page of their leaf: the site's for ours, a team's own for theirs."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.tree.load import build, load_known, load_trees
from stabtree.tree.model import NOTHING
from tests.cli.command import run
from tests.conftest import FIXTURES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

HOUSE = """
name: house
title: House
source: us
uses: [phase19]
{pages}
sections:
  - {{id: first, title: First, entry: H1}}
questions:
  - id: H1
    section: first
    ask: Finite?
    short: finite?
    why: It matters.
    rule: any
    test: nonfinite_eval
    go: {{yes: bad, no: Q2.1}}
    source: us
leaves:
  - {{id: bad, of: H1, title: Bad, severity: critical, why: So., fix: Mend it., source: us{page}}}
"""


def house(pages: str = "", page: str = "") -> str:
    """A tree of a team's own, with addresses."""
    return HOUSE.format(pages=f"pages: {pages}" if pages else "", page=f', page: "{page}"' if page else "")


def test_every_leaf_that_ships_has_the_address_of_the_site() -> None:
    """Below the one of `pyproject.toml`: a page of its own, or a place on the page of its tree."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    tree = load_known()
    for leaf in tree.leaves.values():
        home = tree.section((tree.questions.get(leaf.of) or tree.groups[leaf.of]).section).tree
        places = (f"{leaf.id}.html", f"{home}.html#{leaf.id}")
        expected = [f"{urls['Documentation']}failures/{place}" for place in places]
        assert leaf.page in ([""] if leaf.title == NOTHING else expected)


def test_a_tree_of_ones_own_has_pages_of_its_own(tmp_path: Path) -> None:
    """Its leaves link there, those that it takes from ours to ours; a leaf's own page goes before."""
    tree = build(house("https://wiki.example/{leaf}?x"), "house.yaml")
    assert tree.leaves["bad"].page == "https://wiki.example/bad?x"
    assert tree.leaves["plateau"].page == load_trees().leaves["plateau"].page
    own = build(house("https://wiki.example/{leaf}", "http://wiki.example/run"), "house.yaml")
    assert own.leaves["bad"].page == "http://wiki.example/run"
    assert build(house(), "house.yaml").leaves["bad"].page == ""
    (tmp_path / "house.yaml").write_text(house("https://wiki.example/{leaf}"), encoding="utf-8")
    shown = run("explain", "bad", "--tree", str(tmp_path / "house.yaml"), "--full").stdout
    assert "https://wiki.example/bad" in shown


@pytest.mark.parametrize("address", ["javascript:alert(1)", "wiki/bad", "https://a b", "https://x)<b>", "https://x](y"])
def test_what_is_no_address_is_a_mistake(address: str) -> None:
    """It would stand in pages and in Markdown."""
    for text in (house(page=address), house(pages=f'"{address}"')):
        with pytest.raises(StabtreeError, match="begins with https"):
            build(text, "house.yaml")


def test_every_output_that_can_link_does() -> None:
    """JSON, SARIF, the page and Markdown tell the address of the first finding."""
    log = str(FIXTURES / "phase19" / "nan-forward")
    page = load_trees().leaves["nan-forward"].page
    told = json.loads(run("diagnose", log, "--json").stdout)
    assert told["findings"][0]["page"] == page
    sarif = json.loads(run("diagnose", log, "--output", "sarif").stdout)
    assert page in [rule.get("helpUri") for rule in sarif["runs"][0]["tool"]["driver"]["rules"]]
    assert f"({page})" in run("diagnose", log, "--output", "markdown").stdout
    assert f'href="{page}"' in run("diagnose", log, "--output", "html").stdout
