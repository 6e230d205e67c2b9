"""`stabtree calibrate`: with the limits that it prints the healthy runs are silent, and a worse one is not."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import failed, run
from tests.conftest import FIXTURES, falling

if TYPE_CHECKING:
    from pathlib import Path

HOUSE = """
name: house
title: The house's own
source: the house
uses: [phase19]
sections:
  - {id: first, title: First looks, entry: H1, when: [grad_norm]}
questions:
  - id: H1
    section: first
    ask: Does grad_norm stay above 5?
    short: grad_norm above 5?
    why: It has always come before a divergence.
    rule: "grad_norm at or above {level:g} in {share:.0%} of the last {rows} rows"
    test: stays_above
    params: {metric: grad_norm, level: 5.0, share: 0.9, rows: 50}
    go: {yes: too-large, no: Q1.1}
    source: the house
leaves:
  - id: too-large
    of: H1
    title: The gradients are too large
    severity: warning
    why: Ours keep below.
    fix: Lower the learning rate.
    source: the house
"""


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a tree, three healthy runs of which two alarm by it, and one that is worse."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "house.yaml").write_text(HOUSE, encoding="utf-8")
    for name, level in {"good/calm": 2.0, "good/loud": 7.0, "good/louder": 9.0, "bad": 50.0}.items():
        place = tmp_path / name
        place.mkdir(parents=True)
        rows = [f"{step},{loss:.6f},{level},0.001" for step, loss in enumerate(falling(200))]
        (place / "metrics.csv").write_text("\n".join(["step,loss,grad_norm,lr", *rows, ""]), encoding="utf-8")
        (place / "manifest.json").write_text('{"dtype": "fp32", "metrics_file": "metrics.csv"}', encoding="utf-8")
    return tmp_path


def calibrate(*more: str) -> str:
    """What the command prints of the folder's healthy runs."""
    done = run("calibrate", "good", "--tree", "house.yaml", *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("team")
def test_what_it_writes_silences_the_runs() -> None:
    """The file is read by `--settings` as it is: the healthy runs end in 0, and one that is worse still in 1."""
    told = ["diagnose", "--tree", "house.yaml", "-q"]
    assert run(*told, "good").returncode == 1
    assert calibrate("--output", "toml=ours.toml") == ""
    assert run(*told, "--settings", "ours.toml", "good").returncode == 0
    assert run(*told, "--settings", "ours.toml", "bad").returncode == 1


@pytest.mark.usefixtures("team")
def test_each_limit_says_what_it_rests_on() -> None:
    """The limit lies just beyond the most extreme run; the screen, TOML and JSON say so of how many runs."""
    found = json.loads(calibrate("--json"))
    limit = found["limits"][0]
    assert limit["key"] == "H1.level"
    assert (limit["now"], limit["extreme"], limit["runs"]) == (5.0, "good/louder", 3)
    assert limit["alarms"] == ["good/loud", "good/louder"]
    assert 9 < limit["value"] <= 9.03
    assert (found["alarmed"], found["left"]) == (2, [])
    assert all(limit["strength"] < 0 for limit in found["limits"][1:])
    text = calibrate("--output", "toml")
    assert tomllib.loads(text)["set"]["H1"]["level"] == limit["value"]
    assert "by 2 of 3 runs, most by good/louder" in text
    assert "3 healthy runs: 2 alarm now, none with what is set below." in calibrate()


def test_a_project_s_own_limit_is_where_it_begins(team: Path) -> None:
    """What is set already is in force, and only the rest of the way is printed."""
    (team / "stabtree.toml").write_text("[set]\nH1.level = 8.0\n", encoding="utf-8")
    (limit,) = [limit for limit in json.loads(calibrate("--json"))["limits"] if limit["alarms"]]
    assert (limit["now"], limit["alarms"]) == (8.0, ["good/louder"])
    (team / "stabtree.toml").write_text("[set]\nH1.level = 12.0\n", encoding="utf-8")
    assert "none alarms: nothing to set" in calibrate()


def test_a_limit_that_the_strength_alone_does_not_give_is_looked_for() -> None:
    """What rises too slowly for another limit alarms by its trend, and is silent with the one that is printed."""
    slow = str(FIXTURES / "phase19" / "slow-rise")
    found = json.loads(run("calibrate", slow, "--json").stdout)
    (key,) = found["set"]
    assert run("diagnose", slow, "--set", f"{key}={found['set'][key]}").returncode == 0
    assert run("diagnose", slow, "--set", f"{key}={found['set'][key] * 0.98}").returncode == 1


def test_what_looks_broken_is_left_out() -> None:
    """Alone it ends with 3, and is named with the finding; where that is ignored, it counts."""
    broken = str(FIXTURES / "phase19" / "nan-forward")
    done = run("calibrate", broken)
    assert done.returncode == 3
    assert "if it is not, --ignore nan-forward" in " ".join(done.stdout.split())
    assert run("calibrate", broken, "--ignore", "nan-forward").returncode == 0


def test_nothing_of_the_user_s_is_written_over(team: Path) -> None:
    """Settings and trees hold more than limits; a log may be the only copy, also where it can't be read."""
    (team / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    (team / "empty.csv").touch()
    for name in ("pyproject.toml", "house.yaml", "empty.csv", "good/loud/metrics.csv", "good/loud/manifest.json"):
        before = (team / name).read_bytes()
        told = failed("calibrate", "good", "empty.csv", "--tree", "house.yaml", "--output", f"toml={name}")
        assert "in use" in told or "is a file of the run itself" in told
        assert (team / name).read_bytes() == before


def test_a_name_can_not_add_a_setting(team: Path) -> None:
    """A folder whose name holds a line break and a key stays in its comment."""
    (team / "good" / "louder").rename(team / "good" / "x\nfail_on = 'never'\x1b[31m")
    text = calibrate("--output", "toml")
    assert tomllib.loads(text).keys() == {"set"}
    assert "\x1b" not in text
