"""The lines that log a metric are Python, and log what they are said to."""

from __future__ import annotations

import ast
import re

import pytest

from docs.site.logging_lines import LINES, TRAINERS
from stabtree.metrics.table import by_name, match

CODE = [
    (metric, code) for metric, ways in LINES.items() for how in ways.values() for code in re.findall("`(.+?)`", how)
]


@pytest.mark.parametrize(("metric", "code"), CODE)
def test_each_line_is_python_and_logs_its_metric(metric: str, code: str) -> None:
    """Arguments alone are taken as those of a call."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        tree = ast.parse(f"call({code})")
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "rec.log":
            for keyword in call.keywords:
                found = match(keyword.arg or "")
                assert found
                assert found[0] == metric
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "self.log":
            found = match(ast.literal_eval(call.args[0]))
            assert found
            assert found[0] == metric


def test_they_are_of_known_metrics_and_trainers() -> None:
    """A metric that is renamed takes its lines with it."""
    assert LINES.keys() <= by_name().keys()
    assert {where for ways in LINES.values() for where in ways} <= TRAINERS.keys()
