"""JSON lines read a block at a time give what they give line by line, whatever stands in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.source import open_source
from stabtree.metrics.names import Names
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.table import Table

ODD = (
    '{"step": 1E400, "loss": -0}',
    '{"step": 9007199254740993, "loss": 18446744073709551616}',
    '{"step": 3, "loss": NaN}',
    '{"step": 3, "loss": -inf, "x": null}',
    '{"step": 3, "loss": true, "lr": "2.5"}',
    '{"step": 3, "loss": "nan", "lr": "x"}',
    '{"step": 3, "loss": [1, 2], "x": "\\ud800"}',
    '{"step": 3, "loss": {"a": 1}}',
    '{"step": 3, "loss": 2, "loss": 3}',
    '{"loss": 3, "step": 4}',
    '{"config": {"lr": 1}}',
    '{"a": [{"step": 1}\n{"step": 2}]},{"step": 3}',
    '{"step": 1},{"loss": 2}',
    '{"x": "}\n{", "loss": "1}',
    "{}",
    "not json",
    "\0",
    ' {"step": 3, "loss": 4}',
    '{"step": 3, "loss": 4,}',
    '{"x": [1, 2], "loss": 2}',
)


def described(table: Table) -> Any:
    """All that a table holds, comparable."""
    cells = {
        name: (column.values[column.mask].tolist(), column.mask.tolist(), column.bad, column.bad_example)
        for name, column in table.columns.items()
        if column
    }
    return repr((list(table.columns), cells, table.rows, table.skipped, table.config, table.notes))


@pytest.mark.parametrize("line", ODD)
def test_blocks_read_as_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """The quick way takes only what the slow way reads the same."""
    rows = [f'{{"step": {i}, "loss": {i}.5}}' for i in range(6)]
    source = open_source(write(tmp_path, "\n".join([*rows[:3], line, *rows[3:], ""]), "run.jsonl"))
    quick = described(*jsonl.read(source, Names()))
    monkeypatch.setattr(jsonl, "_block_of_objects", lambda _: [])
    assert quick == described(*jsonl.read(source, Names()))


def test_a_long_first_line_is_no_manifest(tmp_path: Path) -> None:
    """A run that writes its whole configuration first has a first line longer than what is sniffed."""
    from stabtree.loaders import load_run

    first = '{"config": {"lr": 0.1, "text": "' + "x" * 300_000 + '"}}\n'
    rows = "".join(f'{{"step": {i}, "loss": {3 - i / 10}}}\n' for i in range(9))
    run = load_run(write(tmp_path, first + rows, "run.jsonl"))
    assert (run.sources[0].format, len(run.series["loss"]), run.setting("lr")) == ("jsonl", 9, 0.1)
