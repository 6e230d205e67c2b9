"""Many runs for machines: each run once, nothing of it lost, nothing of it active."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import Outcome
from stabtree.tools.fleet.outputs.csv import COLUMNS, csv_lines
from stabtree.tools.fleet.outputs.frame import frame
from stabtree.tools.fleet.outputs.lines import headlines, jsonl, to_json
from stabtree.tools.fleet.outputs.markdown import markdown
from stabtree.tools.fleet.outputs.records import record, spark
from stabtree.tools.fleet.outputs.table import table
from tests.conftest import make_run
from tests.tools.fleet.outputs.made import hostile, judged, many


def test_a_line_a_run_is_what_the_run_alone_tells() -> None:
    """Each line is the object of the run with its path as `source`; the whole holds the same, and the worst verdict."""
    lines = [json.loads(line) for line in jsonl(judged())]
    assert [line["source"] for line in lines] == [one.path for one in judged()]
    whole = json.loads("".join(to_json(judged())))
    assert whole == {"schema": 1, "runs": lines, "verdict": "critical"}
    assert json.loads("".join(to_json([]))) == {"schema": 1, "runs": [], "verdict": "ok"}


def test_no_encoding_can_garble_a_line() -> None:
    """Its names are those of the run, whatever a terminal or a pipe can carry."""
    path = "日本 \U0001f600.csv"
    (line,) = jsonl([record(Outcome(path, StabtreeError("is bad", where=path)), path)])
    assert line.isascii()
    assert json.loads(line)["path"] == path


def test_what_compact_json_can_not_hold_is_told_all_the_same() -> None:
    """A name that is no UTF-8 is escaped, and the line stays one."""
    told = record(Outcome("a\udcff.csv", StabtreeError("is bad", where="a\udcff.csv")), "a\udcff.csv")
    (line,) = jsonl([told])
    assert json.loads(line)["path"] == "a\udcff.csv"
    assert line.count("\n") == 1


def test_a_run_is_a_row_of_the_csv() -> None:
    """Under heads that stay, with steps as whole numbers, and why a log can't be read in a column of its own."""
    rows = list(csv.DictReader(io.StringIO("".join(csv_lines(judged())))))
    assert tuple(rows[0]) == COLUMNS
    by_path = {row["path"]: row for row in rows}
    assert by_path["fp16-overflow"] | {"title": ""} == {
        **dict.fromkeys(COLUMNS, ""),
        "path": "fp16-overflow",
        "verdict": "critical",
        "leaf": "fp16-overflow",
        "section": "3",
        "more": "1",
        "onset_step": "730",
        "restart_step": "600",
        "rows": "790",
        "last_step": "789",
        "seconds": "0.0",
        "badge": "critical",
    }
    assert by_path["broken.csv"]["problem"] == "no loss in it"
    assert (by_path["broken.csv"]["title"], by_path["broken.csv"]["rows"]) == ("", "")


def test_the_screen_counts_the_badges_of_the_csv() -> None:
    """A run whose notes call for nothing is told as healthy; how many are so is said, and each by its row."""
    rows = list(csv.DictReader(io.StringIO("".join(csv_lines(judged())))))
    assert {row["path"]: row["verdict"] for row in rows if row["badge"] == "ok"} == {
        "healthy": "ok",
        "spike-minor": "note",
    }
    assert "2 ok (1 with notes)" in "".join(table(judged()))
    assert list(frame(judged())["badge"]) == [row["badge"] for row in rows]


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t=", "\r=", "\n@", "\x1b[0m=", "\uff1d", " ="])
def test_no_cell_of_a_csv_is_a_formula(begins: str) -> None:
    """Text that a spreadsheet would compute begins with an apostrophe, and numbers stay numbers."""
    text = f"{begins}HYPERLINK(A1)"
    one = replace(judged()[0], path=text, run=text, leaf=text, title=text, onset_step=-3)
    written = "".join(csv_lines([one]))
    (row,) = csv.DictReader(io.StringIO(written))
    assert all(row[name].startswith("'") for name in ("path", "run", "leaf", "title"))
    assert row["onset_step"] == "-3"


@pytest.mark.parametrize("output", [csv_lines, headlines, jsonl])
def test_a_hostile_run_is_one_line(output: object) -> None:
    """No name breaks a line or sends an escape code."""
    assert callable(output)
    lines = "".join(output([hostile(), *judged()[1:]])).splitlines()
    assert len(lines) == len(judged()) + (output is csv_lines)
    assert not any("\x1b" in line for line in lines)


def test_markdown_of_many_runs_is_short_and_holds_no_markup_of_theirs() -> None:
    """The causes stand open, the worst runs folded, within what a forge takes; hostile names are text."""
    text = "".join(markdown(many(900, 9000)))
    assert len(text) < 65_000
    assert "The worst 100 of 900 runs that are not healthy" in text
    assert text.count("fp16") >= 1
    told = "".join(markdown([hostile(), *judged()]))
    assert "<script>" not in told.replace("\\<", "")
    assert "\n@all" not in told


def test_a_frame_is_typed() -> None:
    """Steps are whole numbers also where some are missing, and verdicts compare by how bad they are."""
    told = frame([replace(judged()[0], onset_step=2**60 + 1), *judged()[1:]])
    assert tuple(told.columns) == COLUMNS
    assert told["onset_step"].dtype == "Int64"
    assert told["onset_step"][0] == 2**60 + 1
    assert (told["verdict"] >= "warning").tolist() == [one.verdict == "critical" for one in judged()]
    assert len(frame([])) == 0


def test_a_small_line_keeps_its_ends_and_what_is_not_finite() -> None:
    """The lowest and the highest value are in it, a stretch without a finite one is a hole, the onset has its place."""
    loss = [5.0 - i / 40 for i in range(160)]
    loss[37], loss[81] = 90.0, -7.0
    loss[120:] = [float("nan")] * 40
    told, mark = spark(make_run({"loss": loss}), 120)
    finite = [value for value in told if value is not None]
    assert (max(finite), min(finite)) == (90.0, -7.0)
    assert told[24:] == (None,) * 8
    assert mark == 24
