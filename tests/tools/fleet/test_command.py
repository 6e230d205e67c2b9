"""`stabtree scan` as it is typed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stabtree.tools.fleet.engine import ENGINES
from tests.cli.command import failed, run
from tests.conftest import FIXTURES
from tests.loaders.paths import logs

if TYPE_CHECKING:
    from pathlib import Path

SPIKE = FIXTURES / "phase19" / "spike-persistent"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scans in this process: what starts others is tested elsewhere."""
    monkeypatch.setitem(ENGINES, "processes", ENGINES["serial"])


def test_exit_codes_are_those_of_diagnose(tmp_path: Path) -> None:
    """0 for healthy runs, 1 for a finding, 2 for a log that can't be read, whatever else is there."""
    logs.csv(tmp_path / "a" / "metrics.csv")
    assert run("scan", str(tmp_path), "--no-cache").returncode == 0
    (tmp_path / "a" / "bad.csv").write_bytes(bytes(range(256)))
    assert run("scan", str(tmp_path), "--no-cache").returncode == 2
    assert run("scan", str(tmp_path), str(SPIKE), "--no-cache").returncode == 1
    assert run("scan", str(tmp_path), str(SPIKE), "--no-cache", "--exit-zero").returncode == 0


def test_the_cache_stands_where_the_environment_says(tmp_path: Path) -> None:
    """Nothing is written beside the logs, nor anywhere with --no-cache."""
    logs.csv(tmp_path / "top" / "metrics.csv")
    before = sorted((tmp_path / "top").iterdir())
    run("scan", str(tmp_path / "top"), "--no-cache", XDG_CACHE_HOME=str(tmp_path / "home"))
    assert not (tmp_path / "home").exists()
    run("scan", str(tmp_path / "top"), XDG_CACHE_HOME=str(tmp_path / "home"))
    assert (tmp_path / "home" / "stabtree" / "scan.sqlite").exists()
    assert sorted((tmp_path / "top").iterdir()) == before


def test_outputs_go_where_they_are_sent(tmp_path: Path) -> None:
    """The screen and files at once, each with every run."""
    logs.csv(tmp_path / "top" / "metrics.csv")
    out = tmp_path / "out.jsonl"
    done = run(
        "scan", str(tmp_path / "top"), str(SPIKE), "--no-cache", "--output", "screen", "--output", f"jsonl={out}"
    )
    assert "2 runs: 1 critical, 1 ok" in done.stdout
    assert [json.loads(line)["verdict"] for line in out.read_text(encoding="utf-8").splitlines()] == ["critical", "ok"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--by", "colour"), "cannot group by 'colour'"),
        (("--worst", "0"), "0 is too few"),
        (("--jobs", "0"), "0 is too few"),
        (("--timeout", "0"), "0 seconds are too few"),
        (("--output", "svg"), "'svg' is not an output"),
        (("--set", "Q9.9.x=1"), "Q9.9"),
        (("--tree", "nowhere.yaml"), "no such tree"),
        (("--format", "nonsense"), "not a format"),
        (("--dtype", "int3"), "int3"),
    ],
)
def test_what_is_typed_wrong_is_told_once(options: tuple[str, str], said: str, tmp_path: Path) -> None:
    """A mistake in an option ends the command in two lines, before any log is read."""
    logs.csv(tmp_path / "a" / "metrics.csv")
    assert said in failed("scan", str(tmp_path), "--no-cache", *options)


def test_a_folder_without_logs_is_no_success(tmp_path: Path) -> None:
    """A scan that found nothing to judge is not green."""
    assert "no log found" in failed("scan", str(tmp_path), "--no-cache")
    assert "standard input is one log" in failed("scan", "-", "--no-cache")


def test_no_output_goes_over_what_was_scanned_or_judged_by(tmp_path: Path) -> None:
    """A log, one that can't be read, the settings: each may be all that there is of it; a report of before goes."""
    logs.csv(tmp_path / "top" / "metrics.csv")
    (tmp_path / "top" / "bad.csv").write_bytes(bytes(range(256)))
    (tmp_path / "own.toml").write_text('fail_on = "critical"\n', encoding="utf-8")
    words = ("scan", str(tmp_path / "top"), "--no-cache", "--config", str(tmp_path / "own.toml"))
    for name, told in (
        ("top/metrics.csv", "of the run itself"),
        ("top/bad.csv", "of the run itself"),
        ("own.toml", "is in use"),
    ):
        before = (tmp_path / name).read_bytes()
        assert told in failed(*words, "--output", f"json={tmp_path / name}")
        assert (tmp_path / name).read_bytes() == before
    for _ in range(2):
        assert run(*words, "--output", f"json={tmp_path / 'out.json'}").returncode == 2
        assert (tmp_path / "out.json").exists()


def test_a_scan_passes_what_was_judged_in_part_where_the_project_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings count as for `diagnose`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.csv").write_text("step,loss\n1,2.31\n2,2.29\n", encoding="utf-8")
    assert run("scan", "short.csv", "--no-cache").returncode == 3
    (tmp_path / "stabtree.toml").write_text("accept_partial = true\n", encoding="utf-8")
    assert run("scan", "short.csv", "--no-cache").returncode == 0
