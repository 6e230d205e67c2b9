"""The account of the lines that hold numbers and were not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.loaders import load_run
from stabtree.loaders.text.messages import MAX_KINDS, SHOWN, Unread
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path


def test_lines_of_one_kind_are_counted_together(tmp_path: Path) -> None:
    """Those of time and memory are harmless, errors and settings are no kind of their own."""
    content = "".join(
        f"step {i} loss: {i}.5\n"
        f"2031-01-02 03:04:05 we gathered some {i} samples of the buffer here\n"
        f"the epoch took {i}.5 s for all\n"
        "RuntimeError: CUDA error 700\n"
        for i in range(1, 8)
    )
    kinds = load_run(write(tmp_path, content, "train.log")).sources[0].unread
    assert [(kind.count, kind.line, kind.harmless) for kind in kinds] == [(7, 2, False), (7, 3, True)]
    assert "some 1 samples" in kinds[0].example


def test_the_account_stays_short() -> None:
    unread = Unread()
    for number in range(1, 2 * MAX_KINDS + 1):
        unread.add(f"kind {'x' * number}", f"kind {'x' * number} 1", number)
    kinds = unread.kinds()
    assert len(kinds) == SHOWN + 1
    assert sum(kind.count for kind in kinds) == 2 * MAX_KINDS
