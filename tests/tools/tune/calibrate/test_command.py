"""`stabtree calibrate`: what it prints is what `diagnose` then goes by."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import failed, run
from tests.conftest import FIXTURES, falling
from tests.tools.tune.calibrate.houses import HOUSE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("few_faults")
BROKEN = str(FIXTURES / "phase19" / "nan-forward")
LEVELS = {"calm": 2.0, "loud": 7.0, "louder": 9.0}


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A folder with a tree, three healthy runs of which two alarm by it, and a failed one."""
    (tmp_path / "house.yaml").write_text(HOUSE, encoding="utf-8")
    for folder, levels in {"good": LEVELS, "bad": {"low": 8.0, "high": 50.0}}.items():
        for name, level in levels.items():
            place = tmp_path / folder / name
            place.mkdir(parents=True)
            rows = [f"{step},{loss:.6f},{level},0.001" for step, loss in enumerate(falling(200))]
            (place / "metrics.csv").write_text("\n".join(["step,loss,grad_norm,lr", *rows, ""]), encoding="utf-8")
            (place / "manifest.json").write_text('{"dtype": "fp32", "metrics_file": "metrics.csv"}', encoding="utf-8")
    return tmp_path


def calibrate(team: Path, *more: str) -> str:
    """What the command prints of the folder's healthy runs."""
    done = run("calibrate", str(team / "good"), "--tree", str(team / "house.yaml"), *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_it_writes_silences_the_runs(team: Path) -> None:
    """The file is read by `--config` as it is: the healthy runs end in 0, and one that is worse still in 1."""
    told = ["diagnose", "--tree", str(team / "house.yaml"), "-q"]
    assert run(*told, str(team / "good")).returncode == 1
    file = team / "ours.toml"
    assert calibrate(team, "--output", f"toml={file}") == ""
    config = [*told, "--config", str(file)]
    assert run(*config, str(team / "good")).returncode == 0
    assert run(*config, str(team / "bad" / "high")).returncode == 1


def test_each_line_says_what_it_rests_on(team: Path) -> None:
    """What was shipped, what the runs need, how many there are, and what to expect."""
    text = calibrate(team, "--output", "toml")
    (line,) = [line for line in text.splitlines() if line.startswith("H1.level = ")]
    for part in ("# shipped 5;", "needed by 2 runs, most by louder: 9.", "margin for runs to come"):
        assert part in line
    assert "3 healthy runs: 2 alarm now, none with what is set below." in text
    assert "1 of 3 when each run is left out" in text
    assert tomllib.loads(text)["set"]["H1"]["level"] > 9


def test_faults_of_ones_own_are_counted_too(team: Path) -> None:
    """That which would be missed is named with its question and both verdicts; the other is not."""
    found = json.loads(calibrate(team, "--faults", str(team / "bad"), "--json"))
    missed = [one for one in found["faults"]["missed"] if one["name"] in ("low", "high")]
    assert missed == [{"name": "low", "leaf": "too-large", "question": "H1", "before": "warning", "after": "note"}]
    assert found["alarmed"] == 2
    screen = calibrate(team, "--faults", str(team / "bad"))
    assert "low (H1 warning -> note)" in " ".join(screen.split())


def test_nothing_to_calibrate_from_is_no_success() -> None:
    """A run that looks broken alone ends with 3, and is named with what it was told."""
    done = run("calibrate", BROKEN)
    assert done.returncode == 3
    assert "nan-forward" in done.stdout
    assert "--trust" in done.stdout


def test_settings_that_exist_are_not_written_over(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold more than thresholds; a tree in use is spared as well."""
    monkeypatch.chdir(team)
    (team / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    for name in ("pyproject.toml", "house.yaml"):
        assert "already" in failed("calibrate", "good", "--tree", "house.yaml", "--output", f"toml={name}")
    assert (team / "pyproject.toml").read_text(encoding="utf-8") == "[project]\n"


def test_a_log_is_not_written_over(team: Path) -> None:
    """Neither one that was read, nor a fault, nor one that can't be read: the runs are all there as before."""
    empty = team / "empty.csv"
    empty.touch()
    files = [file for folder in ("good", "bad") for file in (team / folder).rglob("*") if file.is_file()]
    before = [file.read_bytes() for file in files]
    for file in (*files, empty):
        told = ("calibrate", str(team / "good"), str(empty), "--faults", str(team / "bad"))
        assert "is a file of the run itself" in failed(*told, "--output", f"toml={file}")
    assert [file.read_bytes() for file in files] == before
    assert not empty.stat().st_size


def test_faults_that_can_not_be_read_are_told(team: Path) -> None:
    """Where there is none that can be, that is an error; one of several is named."""
    assert "there is no such file" in failed("calibrate", str(team / "good"), "--faults", str(team / "nowhere"))
    (team / "bad" / "torn").mkdir()
    (team / "bad" / "torn" / "metrics.csv").write_text("step,loss\n1,x\n", encoding="utf-8")
    found = json.loads(calibrate(team, "--faults", str(team / "bad"), "--json"))
    assert [one["reason"][:35] for one in found["excluded"]] == ["a labelled fault that can't be read"]


def test_a_level_that_there_is_not_is_an_error() -> None:
    """With those that there are."""
    assert "warning or note" in failed("calibrate", BROKEN, "--level", "critical")


def test_a_name_can_not_add_a_setting(team: Path) -> None:
    """A folder whose name holds a line break and a key stays in its comment."""
    (team / "good" / "louder").rename(team / "good" / "x\nfail_on = 'never'\x1b[31m")
    text = calibrate(team, "--output", "toml")
    assert tomllib.loads(text).keys() == {"set"}
    assert "\x1b" not in text
