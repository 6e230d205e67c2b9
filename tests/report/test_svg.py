"""A figure as a picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.svg import WIDTH, svg_report
from stabtree.tree.load import load_trees

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
OVERFLOW = FIXTURES / "phase19" / "fp16-overflow"
SVG = "{http://www.w3.org/2000/svg}"


def picture(path: Path) -> ET.Element:
    """The picture of a fixture, parsed."""
    log = load_run(path)
    return ET.fromstring(svg_report(diagnose(log, load_trees(log))))  # noqa: S314 - our own


@pytest.mark.parametrize("path", sorted(p for p in FIXTURES.glob("*/*") if p.is_dir())[::8], ids=lambda path: path.name)
def test_every_fixture_makes_a_small_picture_that_names_itself(path: Path) -> None:
    """Well-formed, with a title and a description, all within its frame, and at most 100 kB."""
    root = picture(path)
    assert root[0].tag == f"{SVG}title"
    assert (root[0].text or "").startswith(path.name)
    assert root[1].tag == f"{SVG}desc"
    assert "over steps" in (root[1].text or "")
    height = float(root.get("height", "0"))
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x", "-1")) <= WIDTH
        assert 0 < float(text.get("y", "-1")) <= height
    assert len(ET.tostring(root)) < 100_000


def test_what_matters_is_in_the_picture() -> None:
    """Onset, restart and first mover are named; what is not finite has crosses."""
    root = picture(OVERFLOW)
    words = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    assert "onset at step 730" in words
    assert "restart from step 600" in words
    assert "moved first" in words
    assert any(item.get("class") == "cross" for item in root.iter(f"{SVG}path"))
