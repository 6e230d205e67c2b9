"""Metrics in one JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path


def test_columns_of_an_epoch_history(tmp_path: Path) -> None:
    """What Keras keeps: a list for each metric, and no steps."""
    run = load_run(write(tmp_path, json.dumps({"loss": [3, 2, 1], "val_loss": [3, 2.5]}), "history.json"))
    assert run.series["loss"].values.tolist() == [3, 2, 1]
    assert "Shorter than the longest series, so not logged at the end: val_loss." in run.notes


def test_lists_of_settings_are_no_columns(tmp_path: Path) -> None:
    """Layer sizes may be more than there are epochs."""
    run = load_run(write(tmp_path, json.dumps({"loss": [3, 2], "layers": [8, 8, 8, 8], "acc": [0.1, 0.2]}), "h.json"))
    assert run.sources[0].rows == 2
    assert [use.name for use in run.sources[0].columns] == ["loss", "acc"]


@pytest.mark.parametrize("end", ["", ",", ', {"step": 9, "lo', "\n\0\0\0"])
def test_a_cut_array_gives_its_whole_objects(tmp_path: Path, end: str) -> None:
    """A process that was killed while it wrote."""
    rows = ", ".join(f'{{"step": {i}, "loss": {4 - i / 10}}}' for i in range(9))
    run = load_run(write(tmp_path, f"[{rows}{end}", "a.json"))
    assert len(run.series["loss"]) == 9
    assert "the 9 complete rows before that were read" in " ".join(run.notes)


def test_objects_in_a_row_over_several_lines(tmp_path: Path) -> None:
    """A logger that indents what it appends."""
    text = "\n".join(json.dumps({"step": i, "loss": 4 - i / 10, "eval": {"loss": 4}}, indent=2) for i in range(9))
    run = load_run(write(tmp_path, text, "log.json"))
    assert (len(run.series["loss"]), len(run.series["eval_loss"])) == (9, 9)


STATE = '{"global_step": 1, "log_history": [' + '{"a":' * 100_000


@pytest.mark.parametrize("text", ["[" * 100_000, '[{"a":' * 50_000, '{"loss": [' + "[" * 100_000, STATE, "[{}]", "[{]"])
def test_a_document_without_metrics_is_an_error(tmp_path: Path, text: str) -> None:
    """Brackets without end, and empty or broken ones."""
    with pytest.raises(StabtreeError):
        load_run(write(tmp_path, text, "a.json"))


def test_a_document_too_large_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would have to be parsed as a whole."""
    monkeypatch.setattr("stabtree.loaders.json.document.MAX_TEXT", 100)
    with pytest.raises(StabtreeError, match="more than 512 MiB") as caught:
        load_run(write(tmp_path, json.dumps([{"step": i, "loss": 1.5} for i in range(99)]), "a.json"))
    assert "JSON lines" in caught.value.hint
