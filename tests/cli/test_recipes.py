"""The recipes of docs/how-to/ci.md and docs/recipes, and action.yml: each runs, whatever the names that it is given."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.conftest import FIXTURES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RECIPES = ROOT / "docs" / "recipes"
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]  # as GitHub starts it
HOSTILE = ("$(touch pwned)", "' || touch pwned #", "-q", "two words *", "\x1b[31mred")


def parsed(text: str) -> Any:
    """A YAML document."""
    return yaml.safe_load(text)


ACTION = parsed((ROOT / "action.yml").read_text(encoding="utf-8"))


def blocks(language: str) -> list[str]:
    """The blocks of the page in a language."""
    return [text for name, text in BLOCKS if name == language]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a healthy run and the recipes."""
    if sys.platform == "win32":
        pytest.skip("the recipes are for a POSIX shell")
    shutil.copytree(FIXTURES / "phase19" / "healthy", tmp_path / "runs")
    shutil.copytree(RECIPES, tmp_path / "docs" / "recipes")
    return tmp_path


def broken(place: Path) -> None:
    """Put a run that went NaN in the place of the healthy one."""
    shutil.rmtree(place / "runs")
    shutil.copytree(FIXTURES / "phase19" / "nan-forward", place / "runs")


def shell(script: str, place: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a job does, with this interpreter's commands first on the path."""
    return process([*BASH, "-c", script], place, **environ)


def process(words: list[str], place: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with this very stabtree."""
    path = f"{place / 'bin'}{os.pathsep}{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', '')}"  # noqa: PTH120
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **environ}
    return subprocess.run(words, cwd=place, env=env, capture_output=True, text=True, encoding="utf-8", check=False)


def step(inputs: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The last step of the action: its script, and its variables with the inputs in their places."""
    (last,) = [item for item in ACTION["runs"]["steps"] if item.get("name") == "Diagnose"]
    defaults = {name: item.get("default", "") for name, item in ACTION["inputs"].items()}
    given = defaults | inputs
    env = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], text)
        for name, text in last["env"].items()
    }
    return last["run"], env


def recorder(place: Path) -> None:
    """Put a stabtree first on the path that writes down what it was given."""
    (place / "bin").mkdir()
    stub = place / "bin" / "stabtree"
    stub.write_text('#!/usr/bin/env bash\nprintf "%s\\0" "$@" > given\n', encoding="utf-8")
    stub.chmod(0o755)


def test_every_block_of_the_page_is_run() -> None:
    """No block is of a language that nothing here runs, and every recipe is named on the page."""
    assert len(BLOCKS) == PAGE.count("```") / 2
    assert {language for language, _ in BLOCKS} == {"bash", "yaml", "python", "make"}
    assert all(f"docs/recipes/{file.name}" in PAGE for file in RECIPES.iterdir())


@pytest.mark.parametrize("script", blocks("bash"))
def test_the_shell_blocks_run(script: str, place: Path) -> None:
    """Each ends well for a healthy run."""
    done = shell(script, place)
    assert done.returncode == 0, done.stderr


def test_the_pytest_block_passes_and_fails(place: Path) -> None:
    """It passes for a healthy run, and fails with the finding for a broken one."""
    (text,) = blocks("python")
    shutil.copytree(place / "runs", place / "well" / "runs")
    broken(place)
    both = f"{text}\n\ndef test_well(monkeypatch):\n    monkeypatch.chdir('well')\n    test_training_is_stable()\n"
    (place / "test_run.py").write_text(both, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(place), "test_run.py"]
    done = process(words, place)
    assert "1 failed, 1 passed" in done.stdout
    assert "nan-forward" in done.stdout


def test_the_make_block_passes_and_fails(place: Path) -> None:
    """`make stable` is green for a healthy run and red for a broken one."""
    (text,) = blocks("make")
    (place / "Makefile").write_text(text, encoding="utf-8")
    assert process(["make", "stable"], place).returncode == 0
    broken(place)
    assert process(["make", "stable"], place).returncode == 2


def test_the_workflow_gives_the_action_what_it_knows(place: Path) -> None:
    """The inputs of the page are the action's own, and its step runs with them."""
    (text,) = blocks("yaml")
    steps = parsed(text)["jobs"]["stabtree"]["steps"]
    (used,) = [item for item in steps if "/stabtree@" in item.get("uses", "")]
    assert used["with"].keys() <= ACTION["inputs"].keys()
    script, env = step(used["with"])
    done = shell(script, place, **env, GITHUB_STEP_SUMMARY=str(place / "summary.md"))
    assert done.returncode == 0, done.stderr
    assert (place / "stabtree.md").is_file()
    broken(place)
    assert shell(script, place, **env, GITHUB_STEP_SUMMARY=str(place / "summary.md")).returncode == 1


def test_the_action_takes_a_path_a_line(place: Path) -> None:
    """Without the spaces around it, which a list in YAML easily gets, and with those in it."""
    (text,) = blocks("yaml")
    (used,) = [item for item in parsed(text)["jobs"]["stabtree"]["steps"] if "/stabtree@" in item.get("uses", "")]
    shutil.copytree(FIXTURES / "phase19" / "nan-forward", place / "a run")
    script, env = step({**used["with"], "path": "  runs \n\n   a run"})
    done = shell(script, place, **env, GITHUB_STEP_SUMMARY=str(place / "summary.md"))
    assert done.returncode == 1, done.stderr
    assert "2 runs: 1 critical, 1 ok" in done.stdout


def test_the_action_is_a_composite_one_without_inputs_in_its_scripts() -> None:
    """Its scripts hold no expression: an input that stood in one would be run as text of it."""
    assert ACTION["runs"]["using"] == "composite"
    for item in ACTION["runs"]["steps"]:
        assert "${{" not in item.get("run", "")
        assert "run" not in item or item["shell"] == "bash"
    assert all("description" in item for item in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_inputs_of_the_action_stay_single_words(text: str, place: Path) -> None:
    """Each input arrives as one argument of its own option, paths behind `--`, and nothing of it is run."""
    recorder(place)
    script, env = step(
        dict.fromkeys(("fail-on", "baseline", "settings", "on-unknown", "markdown"), text) | {"path": f"{text}\nruns\n"}
    )
    assert shell(script, place, **env).returncode == 0
    given = (place / "given").read_text(encoding="utf-8").split("\0")[:-1]
    options = [
        f"--output=markdown={text}",
        *(f"--{name}={text}" for name in ("fail-on", "baseline", "on-unknown", "settings")),
    ]
    assert given == ["diagnose", "--output", "github", *options, "--", text, "runs"]
    assert not (place / "pwned").exists()


def test_the_gitlab_recipe_runs(place: Path) -> None:
    """Its command runs, and writes the files that the job hands on."""
    job = parsed((RECIPES / "gitlab-ci.yml").read_text(encoding="utf-8"))["stabtree"]
    (script,) = [line for line in job["script"] if line.startswith("stabtree")]
    assert shell(script, place).returncode == 0
    for file in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]):
        assert (place / file).is_file()


def test_the_argo_recipe_runs(place: Path) -> None:
    """The step on exit is one of the workflow's, and its command runs on the volume that the training writes to."""
    spec = parsed((RECIPES / "argo.yaml").read_text(encoding="utf-8"))["spec"]
    steps = {item["name"]: item["container"] for item in spec["templates"]}
    assert spec["entrypoint"] in steps
    (mount,) = steps[spec["onExit"]]["volumeMounts"]
    assert mount["name"] in {item["metadata"]["name"] for item in spec["volumeClaimTemplates"]}
    words = [word.replace(mount["mountPath"], str(place / "runs")) for word in steps[spec["onExit"]]["command"]]
    assert process(words, place).returncode == 0
    assert (place / "runs" / "stabtree.json").is_file()


@pytest.mark.parametrize("state", ["healthy", "broken", "gone"])
def test_the_slurm_epilogue_never_fails(state: str, place: Path) -> None:
    """It leaves a page where there is a log, names the job where something is wrong, and always exits with 0."""
    if state == "broken":
        broken(place)
    run = place / ("none.csv" if state == "gone" else "runs")
    done = process(["bash", str(RECIPES / "slurm-epilogue.sh")], place, STABTREE_RUN=str(run), SLURM_JOB_ID="4711")
    assert done.returncode == 0
    assert (run / "stabtree-4711.html").is_file() is (state != "gone")
    told = {"healthy": "Healthy", "broken": "something is wrong with job 4711", "gone": "was not judged (exit code 2)"}
    assert told[state] in done.stdout


@pytest.mark.parametrize("text", HOSTILE[:2])
def test_hostile_names_stay_names_in_the_epilogue(text: str, place: Path) -> None:
    """A log's name is never run, nor taken for an option."""
    shutil.copy(FIXTURES / "phase19" / "healthy" / "metrics.csv", place / f"{text}.csv")
    done = process(["bash", str(RECIPES / "slurm-epilogue.sh")], place, STABTREE_RUN=f"{text}.csv", SLURM_JOB_ID="1")
    assert done.returncode == 0
    assert not (place / "pwned").exists()
    assert "not judged (exit code 2)" not in done.stdout
