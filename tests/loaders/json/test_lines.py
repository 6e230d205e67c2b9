"""JSON lines read a block at a time give what they give line by line, whatever stands in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.source import open_source
from stabtree.metrics.names import Names
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.loaders.table import Table

NUMBERS = (
    "1",
    "-0",
    "2.5",
    "1e-3",
    "1E400",
    "-1e400",
    "4.9e-324",
    "0.1000000000000000055511151231257827",
    "9007199254740993",
    "18446744073709551616",
    "1" + "0" * 400,
    "NaN",
    "-Infinity",
    "nan",
    "-inf",
    "01",
    "+1",
    ".5",
    "1.",
    "null",
    "true",
    "false",
    '"2.5"',
    '"nan"',
    '"x"',
    '"}"',
    '"{"',
    '"\\ud800"',
    '"é"',
    "[1, 2]",
    '{"a": 1}',
    '{"loss": 3, "b": {"c": 4}}',
    "[{}]",
)
KEYS = ("step", "loss", "train/loss", "lr", "batch_id", "config", "type", "dtype", "x", "grad_norm", "loss")
ODD = (
    "",
    "   ",
    "{}",
    "not json",
    "5",
    "[1]",
    '{"a": [{"step": 1}',
    '{"step": 2}]}',
    '{"step": 1},{"loss": 2}',
    '{"step": 1',
    '"loss": 2}',
    '{"x": "}',
    '{", "loss": "1}',
    "\x1b[32m",
    "\0",
    '{"step": 3, "loss": 4} ',
    ' {"step": 3, "loss": 4}',
    '{"step": 3, "loss": 4}\r',
    '{"step": 3, "loss": 4,}',
    '{"config": {"lr": 1}}',
)


def pairs(keys: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An object of one line with such keys."""
    one = st.builds(lambda key, value: f'"{key}": {value}', keys, st.sampled_from(NUMBERS))
    return st.lists(one, min_size=1, max_size=4).map(lambda cells: "{" + ", ".join(cells) + "}")


PLAIN = st.builds(lambda step, loss: f'{{"step": {step}, "loss": {loss!r}}}', st.integers(0, 99), st.floats())
LINES = st.lists(st.one_of(PLAIN, PLAIN, pairs(st.sampled_from(KEYS)), st.sampled_from(ODD)), min_size=1, max_size=8)


def told(table: Table) -> Any:
    """All that a table tells, comparable."""
    cells = {}
    for name, column in table.columns.items():
        if column:
            logged = np.ones(len(column.values), bool) if column.logged is None else column.logged
            values = [repr(v + 0.0) if on else "" for v, on in zip(column.values.tolist(), logged, strict=True)]
            cells[name] = (values, column.bad, column.bad_example, column.coded)
    return list(table.columns), cells, table.rows, table.skipped, table.skipped_count, table.config, table.notes


class AllButX(Names):
    """Wants every column but one."""

    def wanted(self, column: str) -> bool:
        """Whether it is another column than `x`."""
        return column != "x"


def both_ways(path: Path) -> Iterator[Any]:
    """What the reading by blocks gives, then what the reading by lines gives."""
    for whole in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not whole:
                patch.setattr(jsonl, "_add_plain_block", lambda *_: False)
            try:
                yield told(jsonl.read(open_source(path), AllButX()))
            except Exception as error:
                yield repr(error)


@settings(max_examples=400)
@given(LINES, st.sampled_from(["\n", ""]))
@example(['{"a": [{"step": 1}', '{"step": 2}]},{"step": 3}'], "\n")
@example(['{"step": 1, "loss": 2, "loss": 3}', '{"step": 1}'], "\n")
@example(['{"step": 1, "loss": 2}', '{"loss": 3, "step": 4}', '{"step": 5, "lr": 2}'], "\n")
@example(['{"step": 1, "loss": 9007199254740993}'], "\n")
@example(['{"y": [1, 2]}'], "\n")
@example(['{"x": [1, 2], "loss": 2}', '{"x": [1, 2], "loss": 3}'], "\n")
def test_blocks_read_as_lines(tmp_path: Path, lines: list[str], end: str) -> None:
    """The quick way takes only what the slow way reads the same."""
    path = write(tmp_path, "\n".join(lines).encode("utf-8", "replace") + end.encode(), "run.jsonl")
    quick, slow = both_ways(path)
    assert quick == slow


def test_train_and_eval_rows_in_turns_are_read_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of different keys don't send a whole file the slow way."""
    rows = [f'{{"step": {i}, "loss": 2.5}}\n{{"step": {i}, "eval_loss": 2.5, "lr": 1}}\n' for i in range(100)]
    monkeypatch.setattr(jsonl, "_add_line", lambda *_: pytest.fail("read by lines"))
    table = jsonl.read(open_source(write(tmp_path, "".join(rows), "run.jsonl")), Names())
    loss = table.columns["loss"]
    assert table.rows == 200
    assert loss
    assert loss.logged is not None
    assert loss.logged.tolist() == [True, False] * 100


def test_a_long_first_line_is_no_manifest(tmp_path: Path) -> None:
    """A run that writes its whole configuration first has a first line longer than what is sniffed."""
    from stabtree.loaders import load_run

    first = '{"config": {"lr": 0.1, "text": "' + "x" * 300_000 + '"}}\n'
    rows = "".join(f'{{"step": {i}, "loss": {3 - i / 10}}}\n' for i in range(9))
    run = load_run(write(tmp_path, first + rows, "run.jsonl"))
    assert (run.sources[0].format, len(run.series["loss"]), run.setting("lr")) == ("jsonl", 9, 0.1)
