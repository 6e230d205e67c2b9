"""What the written pages say in figures and diagrams is what was measured and drawn, and the same on every page."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from faultbench.rates import Rate
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.model import Severity
from tests.conftest import FIXTURES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
PAGES = sorted(page for page in (ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("explanation/*.md")))
LIMITS = (DOCS / "limits.md").read_text(encoding="utf-8")


def test_the_diagram_of_an_event_shows_what_is_told() -> None:
    """Two critical findings of one event, one of them told, and a restart from before the first sign."""
    (told, *others) = diagnose(load_run(FIXTURES / "phase19" / "fp16-overflow")).findings
    assert [part.leaf.id for part in told.seen_as] == ["fp16-overflow", "eval-nonfinite"]
    assert [part.onset_step for part in told.seen_as] == [730, 750]
    assert all(other.leaf.severity != Severity.CRITICAL for other in others)
    assert told.restart is not None
    assert (told.restart.checkpoint_step, told.restart.before_step) == (600, 676)


def test_the_page_on_guards_shows_what_was_measured() -> None:
    """Its table is `docs/figures/literal.json`, a line a set of runs, in its order."""
    page = (DOCS / "explanation" / "guarded.md").read_text(encoding="utf-8")
    shown = [tuple(map(int, row)) for row in re.findall(r"^\| (?:.*?) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)]
    measured = json.loads((DOCS / "figures" / "literal.json").read_text(encoding="utf-8"))
    assert shown == [(found["literal"], found["guarded"]) for found in measured.values()]
    sizes = [int(size) for size in re.findall(r"^\| (\d+) .* \| \d+ \| \d+ \|$", page, re.MULTILINE)]
    assert sizes == [found["runs"] for found in measured.values()][: len(sizes)]


@pytest.mark.parametrize(
    "row", re.findall(r"^\| [^|]+ \| \d+ of \d+.*$", LIMITS, re.MULTILINE), ids=lambda row: row[2:30]
)
def test_a_share_and_its_interval_are_those_of_its_counts(row: str) -> None:
    """To the digit that is printed."""
    right, of = (int(count) for count in re.findall(r"(\d+) of (\d+)", row)[0])
    low, high = (100 * share for share in Rate(right, of).interval())
    shares = re.findall(r"= ([\d.]+)%", row)
    assert shares == ([f"{100 * right / of:.1f}"] if right else [])
    assert f"{low:.1f} to {high:.1f}%" in row or (right == 0 and f"up to {high:.1f}%" in row)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_says_of_public_logs_is_what_the_limits_say(page: Path) -> None:
    """No page has counts of alarms and failures of its own: those of all 266 logs stand in the limits."""
    text = page.read_text(encoding="utf-8")
    said = set(re.findall(r"(\d+ of (?:65|68|266))\b", text))
    assert said <= set(re.findall(r"(\d+ of (?:65|68|266))\b", LIMITS))


def test_the_first_part_of_the_public_logs_is_that_of_the_limits() -> None:
    """What the page on thresholds counts in it stands in the limits; all shares are those of their counts."""
    page = (DOCS / "explanation" / "thresholds.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| (\d+) of (\d+) \((\d+)%\) \| (\d+) of (\d+) \((\d+)%\) \|", page)
    assert len(rows) == 4
    for right, of, share, *others in (map(int, row) for row in rows):
        assert f"| {right} of {of} = " in LIMITS
        assert share == round(100 * right / of)
        assert others[2] == round(100 * others[0] / others[1])
