"""What a project sets counts where its people work, and never where the logs lie."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import failed, run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

SPIKE = FIXTURES / "phase19" / "spike-bad-batch"  # a warning
LOOSE = 'fail_on = "never"\n'


def write(folder: Path, text: str, name: str) -> None:
    """A file in a folder, which is made where it is not there."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"), [("stabtree.toml", LOOSE), ("pyproject.toml", f"[project]\nname = 'x'\n[tool.stabtree]\n{LOOSE}")]
)
def test_settings_of_the_working_directory_count_and_are_told(tmp_path: Path, name: str, text: str) -> None:
    """On the screen, in JSON and in the table of several runs."""
    assert run("diagnose", str(SPIKE), "-q").returncode == 1
    write(tmp_path, text, name)
    done = run("diagnose", str(SPIKE))
    assert done.returncode == 0
    note = f"Set by {name}: fail_on = never."
    assert note in done.stdout
    assert note in json.loads(run("diagnose", str(SPIKE), "--json").stdout)["notes"]
    assert note in run("diagnose", str(SPIKE), str(SPIKE.parent / "healthy")).stdout


@pytest.mark.parametrize("name", ["stabtree.toml", "pyproject.toml"])
def test_settings_beside_the_log_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A log does not loosen its own gate, unless its folder is where the user stands."""
    shutil.copytree(SPIKE, tmp_path / "logs")
    alone = run("diagnose", "logs", "--json")
    write(tmp_path, f"[tool.stabtree]\n{LOOSE}" if name == "pyproject.toml" else LOOSE, f"logs/{name}")
    for path in ("logs", "logs/manifest.json", str(tmp_path / "logs")):
        beside = run("diagnose", path, "--json")
        assert beside.returncode == alone.returncode == 1
        assert json.loads(beside.stdout)["notes"] == json.loads(alone.stdout)["notes"]
    monkeypatch.chdir(tmp_path / "logs")
    within = run("diagnose", ".", "--json")
    assert within.returncode == 0
    assert json.loads(within.stdout)["notes"][0] == f"Set by {name}: fail_on = never."


def test_config_names_the_file_and_the_working_directory_is_left_alone(tmp_path: Path) -> None:
    """With --settings nothing else is read; an empty file sets nothing."""
    write(tmp_path, LOOSE, "stabtree.toml")
    write(tmp_path, 'fail_on = "critical"\n', "other/strict.toml")
    write(tmp_path, "", "empty.toml")
    told = run("diagnose", str(SPIKE), "--settings", "other/strict.toml").stdout
    assert "Set by other/strict.toml: fail_on = critical." in told
    done = run("diagnose", str(SPIKE), "--settings", "empty.toml")
    assert (done.returncode, "Set by" in done.stdout) == (1, False)


def test_parameters_are_set_as_with_set(tmp_path: Path) -> None:
    """Dotted or quoted, and by the name of a question or of a fact."""
    asked = run("diagnose", str(SPIKE), "--set", "spike.window_steps=40", "--json").stdout
    for text in ("[set]\nspike.window_steps = 40", '[set]\n"spike.window_steps" = 40', "[set]\nQ2.1.window_steps = 40"):
        write(tmp_path, text, "stabtree.toml")
        got = json.loads(run("diagnose", str(SPIKE), "--json").stdout)
        assert got["path"] == json.loads(asked)["path"]
        assert got["notes"][0].endswith("window_steps = 40.")


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    """Whatever the key, and under whichever name a parameter is set."""
    plain = run("diagnose", str(SPIKE), "--set", "spike.window_steps=100", "--json").stdout
    write(tmp_path, 'fail_on = "never"\ntree = "convergence"\n[set]\nspike.window_steps = 40\n', "stabtree.toml")
    words = ("--fail-on", "warning", "--tree", "phase19", "--set", "Q2.1.window_steps=100")
    done = run("diagnose", str(SPIKE), "--json", *words)
    assert done.returncode == 1
    assert json.loads(done.stdout)["tree"] == "phase19"
    assert json.loads(done.stdout)["path"] == json.loads(plain)["path"]


def test_columns_hold_for_inspect_as_well(tmp_path: Path) -> None:
    """Both commands read a log alike, by any name of a metric; a column named on the command line goes before."""
    rows = "".join(f"{i},{2 - i / 100},{i / 100}\n" for i in range(80))
    write(tmp_path, f"it,mine,theirs\n{rows}", "run.csv")
    write(tmp_path, 'step_column = "it"\ncolumn = {train_loss = "mine"}\n', "stabtree.toml")
    assert json.loads(run("diagnose", "run.csv", "--json", "--fail-on", "never").stdout)["run"]["metrics"] == ["loss"]
    for words, column in (((), "mine"), (("--column", "training_loss=theirs"), "theirs")):
        told = json.loads(run("inspect", "run.csv", "--json", *words).stdout)
        assert [item["column"] for item in told["series"]] == [column]
        assert ("column.loss = mine" in told["notes"][0]) == (not words)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """A tree beside the settings is found from anywhere."""
    text = (FIXTURES.parent / "trees" / "phase19.yaml").read_text(encoding="utf-8")
    write(tmp_path, text.replace("name: phase19", "name: ours", 1), "settings/ours.yaml")
    write(tmp_path, 'tree = "ours.yaml"\n', "settings/strict.toml")
    done = run("diagnose", str(SPIKE), "--json", "--settings", "settings/strict.toml")
    assert json.loads(done.stdout)["tree"] == "ours"


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ('fial_on = "never"', "stabtree.toml: fial_on: there is no such key", "did you mean 'fail_on'?"),
        ("fail_on = 3", "stabtree.toml: fail_on: must be a text or a list of texts", 'fail_on = "critical"'),
        ('fail_on = "bad"', "stabtree.toml: fail_on: 'bad' is not a level", "critical"),
        ('column = "loss"', "stabtree.toml: column: must be a table of texts", "write column"),
        ('column = {los = "x"}', "stabtree.toml: column: 'los' is not a metric", "did you mean loss?"),
        ("[set]\nQ2.1.sgima = 4", "set.Q2.1.sgima: Q2.1 sets 'sgima'", "explain Q2.1"),
        ("[set]\nQ2.1.sigma = 'x'", "set.Q2.1.sigma: Q2.1 sets 'sigma' to 'x'; it must be of type float", "explain"),
        ("[set]\nsigma = 4", "stabtree.toml: set.sigma: names no parameter", "explain"),
        ('tree = "a"\ntrees = "b"', "stabtree.toml: tree and trees don't go together", "leave one"),
        ("accept = 1", "stabtree.toml: accept: must be a list of tables", "write accept"),
        ('accept = [{leaf = "spike-minor"}]', "stabtree.toml: accept[0]: has no reason", "write accept"),
        ('accept = [{leaf = "a", raeson = "x"}]', "accept[0].raeson: there is no such key", "did you mean 'reason'?"),
        ('accept = [{leaf = "spike-minr", reason = "x"}]', "accept: no finding is called", "the report"),
        ('baseline = "no.json"', "stabtree.toml: baseline: no.json: it can't be read", "stabtree baseline"),
        ("checkpoint_every = 0", "stabtree.toml: checkpoint_every: must be a number of steps", "write"),
        ("a =", "stabtree.toml: not valid TOML", "correct it"),
    ],
)
def test_a_mistake_is_told_with_its_key(tmp_path: Path, text: str, problem: str, hint: str) -> None:
    """Exit code 2, the file and the key, and what to write instead."""
    write(tmp_path, text, "stabtree.toml")
    for words in (("diagnose", str(SPIKE)), ("info", "config"), ("info", "config", "--json")):
        told = failed(*words)
        assert problem in told
        assert hint in told.splitlines()[1]


def test_a_file_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    """One that is asked for and not there, a folder, one without our table, one that is no text."""
    write(tmp_path, "[project]\nname = 'stabtree-user'\n", "other/pyproject.toml")
    (tmp_path / "latin.toml").write_bytes(b'tree = "\xff"\n')
    for name in ("no.toml", str(tmp_path), "other/pyproject.toml", "latin.toml"):
        assert name in failed("diagnose", str(SPIKE), "--settings", name)


def test_no_output_is_written_over_the_settings(tmp_path: Path) -> None:
    """They are in use, as a tree is."""
    write(tmp_path, LOOSE, "stabtree.toml")
    assert "is in use" in failed("diagnose", str(SPIKE), "--output", "json=stabtree.toml")


def test_config_shows_each_key_and_where_it_is_from(tmp_path: Path) -> None:
    """Options as they are without a file, what a file sets, changed thresholds beside the shipped ones, the trees."""
    told = run("info", "config").stdout
    assert "neither stabtree.toml nor [tool.stabtree] of pyproject.toml" in told
    assert ["fail_on", "default", "warning"] in [line.split() for line in told.splitlines()]
    assert any(line.split()[:1] == ["phase19"] for line in told.splitlines())
    write(tmp_path, f"{LOOSE}accept_partial = true\n[set]\nspike.sigma = 4\nQ2.1.window_steps = 50\n", "stabtree.toml")
    lines = [line.split() for line in run("info", "config").stdout.splitlines()]
    assert ["fail_on", "stabtree.toml", "never"] in lines
    assert ["set.spike.sigma", "stabtree.toml", "4", "(shipped:", "3.0)"] in lines
    assert ["set.Q2.1.window_steps", "stabtree.toml", "50", "(shipped:", "100)"] in lines
    assert ["step_column", "default", "-"] in lines


def test_config_for_machines_says_the_same(tmp_path: Path) -> None:
    """Values of their types, the file of each key, and the whole hash of each tree, which its words alone change."""
    text = (FIXTURES.parent / "trees" / "phase19.yaml").read_text(encoding="utf-8")
    write(tmp_path, text.replace("name: phase19", "name: ours", 1), "ours.yaml")
    write(tmp_path, 'tree = "ours.yaml"\ncolumn = {loss = "nll"}\n[set]\nspike.sigma = 4\n', "mine.toml")
    plain = json.loads(run("info", "config", "--json").stdout)
    told = json.loads(run("info", "config", "--json", "--settings", "mine.toml").stdout)
    assert (plain["file"], told["file"]) == (None, "mine.toml")
    assert plain["keys"]["fail_on"] == {"value": ["warning"], "from": "default"}
    assert told["keys"]["column"] == {"value": {"loss": "nll"}, "from": "mine.toml"}
    assert told["set"] == {"spike.sigma": {"value": 4, "shipped": 3.0, "from": "mine.toml"}}
    assert [(tree["name"], tree["file"]) for tree in told["trees"]] == [("ours", "ours.yaml"), ("preflight", None)]
    assert len(plain["trees"]) > 5
    hashes = [tree["sha256"] for tree in (*plain["trees"], *told["trees"][:1])]
    assert len(set(hashes)) == len(hashes)
    assert json.loads(run("diagnose", str(SPIKE), "--json", "--tree", "phase19").stdout)["rules"]["sha256"] in hashes
