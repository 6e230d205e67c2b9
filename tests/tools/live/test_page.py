"""docs/how-to/watch.md and its recipes do what the page says."""

from __future__ import annotations

import json
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_recipes import BASH, broken, process
from tests.conftest import FIXTURES, ROOT
from tests.whole.pages.blocks import blocks_of

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

PAGE = (ROOT / "docs" / "how-to" / "watch.md").read_text(encoding="utf-8")
BLOCKS = [(block.language, block.text) for block in blocks_of(PAGE)]
TRAINS_SECONDS = "9"  # a busy machine takes seconds to start a process
SLURM = "docs/recipes/slurm-watch.sh"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a healthy run and the recipes."""
    if sys.platform == "win32":
        pytest.skip("the recipes are for a POSIX shell")
    shutil.copytree(FIXTURES / "phase19" / "healthy", tmp_path / "runs")
    shutil.copytree(ROOT / "docs" / "recipes", tmp_path / "docs" / "recipes")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "stabtree").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m stabtree "$@"\n', encoding="utf-8"
    )
    (tmp_path / "bin" / "stabtree").chmod(0o755)
    return tmp_path


def shell(script: str, place: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script in which no silence of half an hour is waited for, and trainings outlast the start of a watch."""
    script = script.replace("--stall 30m", "--stall 0.1s").replace("sleep 4", f"sleep {TRAINS_SECONDS}")
    return process([*BASH, "-c", script], place, **environ)


def block_with(text: str) -> str:
    """The one shell block of the page that holds a text."""
    (found,) = (block for language, block in BLOCKS if language == "bash" and text in block)
    return found


@pytest.mark.parametrize("script", [text for language, text in BLOCKS if language == "bash"])
def test_the_shell_blocks_run(script: str, place: Path) -> None:
    """Each ends well for a healthy run, and no language of a block is left out."""
    done = shell(script, place)
    assert done.returncode == 0, done.stderr
    assert "OK" in done.stdout or json.loads((place / "end.json").read_text(encoding="utf-8"))["verdict"] == "ok"
    assert {language for language, _ in BLOCKS} == {"bash", "console"}


def test_the_command_for_a_finding_writes_a_line(place: Path) -> None:
    """With its time, what was found, where it began and where to restart; for a healthy run there is no file."""
    script = block_with("on_finding.py")
    shell(script, place)
    assert not (place / "alarms.txt").exists()
    broken(place)
    done = shell(script, place)
    assert done.returncode == 1
    (line,) = (place / "alarms.txt").read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"\S+ runs: opened, critical nan-forward: .*, step 412, restart from 400", line)


@pytest.mark.parametrize(("stop", "code"), [("1", 143), ("", 0)])
def test_the_job_is_ended_only_where_that_is_asked_for(stop: str, code: int, place: Path) -> None:
    """A critical finding ends the training with STABTREE_STOP=1; else it is told, and the training goes on."""
    broken(place)
    words = ["bash", SLURM, "sleep", "60" if stop else TRAINS_SECONDS]
    done = process(words, place, STABTREE_RUN="runs", STABTREE_STOP=stop)
    assert done.returncode == code, done.stderr
    assert "nan-forward" in done.stdout
    assert ("the training is ended" in done.stdout) is bool(stop)


def test_the_job_ends_as_the_training_did(place: Path) -> None:
    """Also where the watch itself fails, or there is no log."""
    (place / "bin" / "stabtree").write_text("#!/bin/sh\nexit 4\n", encoding="utf-8")
    for stop in ("", "1"):
        done = process(
            ["bash", SLURM, "bash", "-c", "sleep 0.3; exit 7"], place, STABTREE_RUN="none", STABTREE_STOP=stop
        )
        assert done.returncode == 7
