"""CONTRIBUTING.md: each recipe is applied to a copy of the code, where it does what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^(New file|In) `([^`]+)`:\n\n<!-- run by [^\n]* -->\n```(python|diff|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
RECIPES = BLOCK.findall(PAGE)
LEAVES = """
from stabtree.tree.load import load_trees
from tests.leaves import NEAR, RUNS, diagnosed

tree = load_trees()
for leaf in ("sft-answer-leaks", "sft-loss-frozen"):
    assert leaf in [one.leaf.id for one in diagnosed(RUNS[leaf], tree).reached], leaf
    near = [name for name in NEAR if name.startswith(leaf)]
    assert near
    for name in near:
        assert leaf not in [one.leaf.id for one in diagnosed(NEAR[name], tree).reached], name
"""


def applied(text: str, diff: str) -> str:
    """A text with the lines of a diff added and taken out, where the others stand once."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    assert text.count(old) == 1, f"these lines do not stand there once:\n{old}"
    return text.replace(old, "".join(line[1:] for line in lines if line[0] in " +"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code with all recipes applied."""
    place = tmp_path_factory.mktemp("contributing")
    for folder in ("benchmarks", "stabtree", "trees", "fixtures", "tests"):
        shutil.copytree(ROOT / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for kind, name, language, text in RECIPES:
        file = place / name
        assert (kind, language) in {("New file", "python"), ("New file", "yaml"), ("In", "diff")}
        assert file.exists() is (kind == "In"), name
        changed = text if kind == "New file" else applied(file.read_text(encoding="utf-8"), text)
        file.write_text(changed, encoding="utf-8", newline="\n")
    return place


def python(place: Path, words: Sequence[str]) -> str:
    """What Python prints in the copy."""
    env = {**os.environ, "PYTHONPATH": str(place), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *words], cwd=place, env=env, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_block_of_a_recipe_is_applied() -> None:
    """None is passed over for the way in which it is written."""
    assert len(RECIPES) == PAGE.count("<!-- run by tests/whole/release/test_contributing.py -->")
    assert sum(PAGE.count(f"```{language}\n") for language in ("diff", "python", "yaml")) == len(RECIPES)


def test_the_rules_of_the_page_work(copy: Path) -> None:
    """The trees have no mistake, and each new leaf is reached by its run and not by those that lack one thing."""
    assert "no mistake" in python(copy, ["-m", "stabtree", "tree", "check", "trees/sft.yaml"])
    assert "Does the model guess nearly every token" in python(copy, ["-m", "stabtree", "explain", "S4"])
    python(copy, ["-c", LEAVES])


def test_the_trainer_of_the_page_is_recognised(copy: Path, tmp_path: Path) -> None:
    """By `check`, which reads its keys, and its file lacks nothing."""
    file = tmp_path / "args.json"
    file.write_text('{"train_type": "lora", "tuner_backend": "peft", "learning_rate": 0.01}', encoding="utf-8")
    told = python(copy, ["-m", "stabtree", "check", str(file), "--fail-on", "never"])
    assert "Trainer: ms-swift." in told
    assert "rate-lora" in told
    asked = ["--rootdir", ".", "tests/frameworks", "-k", "swift"]
    python(copy, ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, *asked])


def test_the_tests_of_the_page_pass(copy: Path) -> None:
    """Those that it adds, and those that ask each format, each output and each measure for its line."""
    files = ["tests/loaders/tables/test_npz.py", "tests/tools/ci/test_chat.py"]
    asked = [
        "tests/loaders/test_formats.py::test_whatever_a_format_says_has_a_rank",
        "tests/loaders/test_formats.py::test_ranks_name_no_other_format",
        "tests/tools/ci/test_injection.py::test_no_output_of_one_run_gains_structure",
    ]
    python(copy, ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", *files, *asked])


def test_the_code_of_the_page_is_as_ours(copy: Path) -> None:
    """Lint and format hold there too."""
    files = [name for _, name, _, _ in RECIPES if name.endswith(".py")]
    shutil.copy(ROOT / "pyproject.toml", copy)
    python(copy, ["-m", "ruff", "check", "--no-cache", *files])
    python(copy, ["-m", "ruff", "format", "--no-cache", "--check", *files])
