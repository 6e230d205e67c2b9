"""What can be shown of Windows without one: nothing asks for POSIX, and no name is one that Windows refuses."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.cli.command import environment, run
from tests.conftest import FIXTURES, ROOT

NAN = str(FIXTURES / "phase19" / "nan-forward")
REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', re.IGNORECASE)
TIME = re.compile(r"\d+:\d\d:\d\d")
LONGEST = 200  # with a folder before it, a path of Windows has 260


def test_a_command_asks_for_nothing_of_posix() -> None:
    """Without the modules, functions and signals of POSIX all is imported, and a watch says what it says with them."""
    words = ["watch", NAN, "--until-found", "--exec", f"'{sys.executable}' -c ''"]
    usual = run(*words)
    command = [sys.executable, "-W", "error", "-m", "tests.cli.shell.windows", *words]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", env=environment(), check=False
    )
    assert done.returncode == usual.returncode, done.stderr
    assert TIME.sub("", done.stdout) == TIME.sub("", usual.stdout)
    assert "Traceback" not in done.stderr


def test_a_checkout_has_names_that_windows_takes() -> None:
    """No sign, word or length that it refuses, and no two names that differ by case alone."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.decode()
    names = [name for name in listed.split("\0") if name]
    if not names:
        pytest.skip("no checkout of git")
    assert [name for name in names if any(REFUSED.search(part) for part in name.split("/"))] == []
    assert max(map(len, names)) < LONGEST
    assert len({name.lower() for name in names}) == len(names)
