"""What the tests of all callbacks ask of the log that one wrote, and of the page that shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of the log in a folder, but for its configuration."""
    lines = map(json.loads, (folder / "run.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if "config" not in line]


def alarms(folder: Path) -> list[str]:
    """The leaves worse than a note that a diagnosis of the log finds."""
    findings = diagnose(load_run(folder / "run.jsonl")).findings
    return [item.leaf.id for item in findings if item.leaf.severity.is_alarm]


def example(heading: str) -> str:
    """The code below a heading of docs/how-to/callbacks.md."""
    page = (ROOT / "docs" / "how-to" / "callbacks.md").read_text(encoding="utf-8")
    return page.partition(f"## {heading}")[2].partition("```python\n")[2].partition("```")[0]
