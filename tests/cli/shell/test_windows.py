"""What can be shown of Windows without one: nothing asks for POSIX, and no name is one that Windows refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import environment, process, run
from tests.conftest import FIXTURES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

NAN = str(FIXTURES / "phase19" / "nan-forward")
HEALTHY = str(FIXTURES / "phase19" / "healthy")
REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', re.IGNORECASE)
TIME = re.compile(r"\d+:\d\d:\d\d")
LONGEST = 200  # with a folder before it, a path of Windows has 260
HOSTILE = ("CON", "a:b", "ends with dots...", "nul.csv", "x" * 200, "what? <b>*|", "größe→Σ 日本")
WITHOUT = [sys.executable, "-W", "error", "-m", "tests.cli.shell.windows"]


def without_posix(*words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process that lacks what Windows lacks; it starts none of its own, which would be of POSIX."""
    return subprocess.run(
        [*WITHOUT, *words], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", env=environment(), check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        ["diagnose", NAN],
        ["scan", NAN, HEALTHY, "--engine", "serial"],
        ["inspect", NAN],
        ["explain", "Q3.4"],
        ["watch", NAN, "--until-found", "--exec", f"'{sys.executable}' -c ''"],
    ],
    ids=lambda words: words[0],
)
def test_a_command_asks_for_nothing_of_posix(words: list[str]) -> None:
    """Without the modules, functions and signals of POSIX it says what it says with them."""
    usual, done = run(*words), without_posix(*words)
    assert done.returncode == usual.returncode, done.stderr
    assert TIME.sub("", done.stdout) == TIME.sub("", usual.stdout)
    assert "Traceback" not in done.stderr


def test_every_module_and_every_test_is_imported_without_posix() -> None:
    """None asks for what Windows lacks as it is imported, so that tests are at least collected there."""
    done = without_posix("tests")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_checkout_has_names_that_windows_takes() -> None:
    """No sign, word or length that it refuses, and no two names that differ by case alone."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.decode()
    names = [name for name in listed.split("\0") if name]
    if not names:
        pytest.skip("no checkout of git")
    assert [name for name in names if any(REFUSED.search(part) for part in name.split("/"))] == []
    assert max(map(len, names)) < LONGEST
    assert len({name.lower() for name in names}) == len(names)


def odd(folder: Path, name: str) -> Path:
    """A run under an odd name; a name that this system refuses is skipped."""
    place = folder / name
    try:
        place.mkdir(parents=True)
        (place / "metrics.csv").write_bytes((FIXTURES / "phase19" / "nan-forward" / "metrics.csv").read_bytes())
    except OSError:
        pytest.skip("no folder can be called so here")
    return place


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: name[:10])
def test_anonymized_folders_have_names_that_windows_takes(tmp_path: Path, name: str) -> None:
    """A folder keeps no more of its files' names than what can be written there, too."""
    odd(tmp_path / "run", name)
    done = run("anonymize", str(tmp_path / "run"), "-o", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    files = [file.relative_to(tmp_path / "out") for file in (tmp_path / "out").rglob("*")]
    assert len(files) == 2
    assert [file for file in files if any(REFUSED.search(part) for part in file.parts)] == []


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
def test_a_file_is_utf_8_whatever_a_terminal_shows(tmp_path: Path, encoding: str) -> None:
    """It has the same bytes under each encoding of the terminal, and line feeds alone."""
    kinds = ("json", "markdown", "html", "screen", "junit")
    written = {}
    for each in ("utf-8", encoding):
        files = [tmp_path / f"{kind}.{each}" for kind in kinds]
        words = [f"--output={kind}={file}" for kind, file in zip(kinds, files, strict=True)]
        done = process("diagnose", NAN, *words, PYTHONIOENCODING=each, PYTHONUTF8="0", LC_ALL="C")
        assert done.returncode == 1, done.stderr
        written[each] = [file.read_bytes() for file in files]
    assert written[encoding] == written["utf-8"]
    assert not any(b"\r" in data for data in written["utf-8"])
