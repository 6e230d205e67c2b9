"""The record of what the yardstick runs are told, and what is printed of two records."""

from __future__ import annotations

import csv
import shutil
from typing import TYPE_CHECKING

from benchmarks import verdicts
from benchmarks.verdicts import Record
from tests import corpus
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

BEFORE = Record("0.1.0", {"leaves": {"a": "ok -", "b": "ok -", "c": "warning plateau", "gone": "ok -"}, "wild": {}})


def test_what_changed_is_told_by_how_it_changed() -> None:
    """The commonest change first; what is new or gone, and what one record lacks, are told as such."""
    now = Record(
        "0.2.0", {"leaves": {"a": "warning plateau", "b": "warning plateau", "c": "ok -", "new": "ok healthy"}}
    )
    assert verdicts.changes(BEFORE, now).splitlines() == [
        "Of 4 yardstick runs of 0.1.0, 0 are told the same.",
        "`wild` is not compared: the record of 0.1.0 has it, this one has not.",
        "",
        "| runs | was | is | which |",
        "|---|---|---|---|",
        "| 2 | ok | warning `plateau` | `leaves/a`, `leaves/b` |",
        "| 1 | no such run | ok `healthy` | `leaves/new` |",
        "| 1 | ok | no such run | `leaves/gone` |",
        "| 1 | warning `plateau` | ok | `leaves/c` |",
    ]
    same = verdicts.changes(BEFORE, BEFORE)
    assert same == "Of 4 yardstick runs of 0.1.0, 4 are told the same.\n"
    assert "nothing to compare with" in verdicts.changes(None, now)


def test_the_record_of_the_release_before_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By version, not by name: 0.10.0 comes after 0.9.0; a candidate is none."""
    monkeypatch.setattr(verdicts, "RECORDS", tmp_path)
    for version in ("0.9.0", "0.10.0", "0.10.0rc2", "0.10.0rc10"):
        (tmp_path / f"{version}.json").write_text(verdicts.written(Record(version, {})), encoding="utf-8")
    expected = {"": "0.10.0", "0.10.0": "0.9.0", "0.10.0rc10": "0.9.0", "0.10.1rc1": "0.10.0"}
    for before, version in expected.items():
        found = verdicts.last(before)
        assert found is not None
        assert found.version == version
    assert verdicts.last("0.9.0") is None


def test_logs_from_outside_are_recorded_without_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixtures by their names, a public log by a number made of repository and path; what is no log is left out."""
    few = ("fixtures/phase19/healthy", "fixtures/phase19/plateau by the letter", "made/plateau")
    monkeypatch.setattr(corpus, "cases", lambda: {name: corpus.Case(lambda: None) for name in few})  # type: ignore[arg-type, return-value]
    monkeypatch.setattr(verdicts, "_said", lambda _: "ok -")
    monkeypatch.setattr(corpus, "found", lambda _: None)
    (tmp_path / "wild").mkdir()
    shutil.copy(FIXTURES / "phase19" / "nan-forward" / "metrics.csv", tmp_path / "wild" / "x.csv")
    with (tmp_path / "wild" / "INDEX.csv").open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("file", "repo", "path", "label"))
        rows.writerow(("x.csv", "somebody/secret", "logs/x.csv", "nan"))
        rows.writerow(("none.csv", "somebody/secret", "y.txt", "not-a-log"))
    record = verdicts.taken("0.2.0", tmp_path)
    assert record.groups["fixtures"] == {"phase19/healthy": "ok -"}
    assert list(record.groups["wild"].values()) == ["critical nan-forward"]
    assert "trainers" not in record.groups
    assert "secret" not in verdicts.written(record)
