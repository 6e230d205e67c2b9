"""Wheel and sdist: what is in them, that one builds the other, and that the wheel works where it is alone."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import stabtree
from release import contents, dist

for needed in ("build", "hatchling", "hatch_fancy_pypi_readme", "twine"):
    pytest.importorskip(needed, reason="pip install '.[release]' builds wheel and sdist")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Wheel and sdist; they are built once, the wheel also from the sdist."""
    return dist.built(tmp_path_factory.mktemp("dist") / "dist")


def test_what_is_built_is_what_is_shipped(built: tuple[Path, Path]) -> None:
    """Metadata and contents are right, and neither is large."""
    dist.checked(*built)
    wheel, sdist = built
    assert wheel.stat().st_size < 3 * 2**20
    assert sdist.stat().st_size < 20 * 2**20


def test_what_is_wrong_in_a_wheel_is_told(built: tuple[Path, Path]) -> None:
    """A file that lacks, is another, is too much, or names the machine."""
    held = contents.in_wheel(built[0])
    assert contents.wrong_in_wheel(held) == []
    del held["stabtree/_trees/phase19.yaml"]
    held["stabtree/run.py"] += b"#"
    held["tests/test_run.py"] = b""
    held["stabtree/py.typed"] = str(contents.ROOT).encode()
    assert contents.wrong_in_wheel(held) == [
        "stabtree/_trees/phase19.yaml is not in it",
        "stabtree/py.typed is not that of the repository",
        "stabtree/run.py is not that of the repository",
        "tests/test_run.py must not be in it",
        "stabtree/py.typed names the folder that it was built in",
    ]


def test_what_is_wrong_in_an_sdist_is_told(built: tuple[Path, Path]) -> None:
    """The same, and what tools leave."""
    held = contents.in_sdist(built[1])
    assert contents.wrong_in_sdist(held) == []
    del held["docs/tutorial.md"]
    held["tests/__pycache__/x.pyc"] = b""
    assert contents.wrong_in_sdist(held) == [
        "docs/tutorial.md is not in it",
        "tests/__pycache__/x.pyc must not be in it",
        "tests/__pycache__/x.pyc is what a tool left",
    ]


def test_the_wheel_works_where_it_is_alone(built: tuple[Path, Path], tmp_path: Path) -> None:
    """In an environment of its own, with what it depends on beside it: it finds its trees, its runs and its version."""
    place = tmp_path / "bare"
    venv.create(place)
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    options = ("--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check")
    said(Path(sys.executable), "-m", "pip", "--python", str(python), "install", *options, str(built[0]))
    (packages,) = place.rglob("site-packages")
    # The folder alone: the `.pth` files in it, which lead to this very checkout, are not read.
    (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    assert str(place) in said(python, "-c", "import stabtree; print(stabtree.__file__)")
    assert "critical: fp16-overflow at step 730" in said(python, "-m", "stabtree", "demo")
    assert said(python, "-m", "stabtree", "--version").split()[-1] == stabtree.__version__
    assert "phase19" in said(python, "-m", "stabtree", "tree", "list")


def said(python: Path, *words: str) -> str:
    """What an interpreter prints that looks neither into this folder nor at PYTHONPATH."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [python, "-I", *words], env=environ, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
