"""The completion in the shells themselves, where they are installed."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from stabtree.cli.program.completion import SCRIPTS, Shell
from stabtree.common.text import clean
from tests.cli.command import environment

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_SECONDS = 30
LINES = [
    ("expl", "explain"),
    ("explain spike-m", "spike-minor"),
    ("tree show ph", "phase19"),
    ("run.csv --output=ht", "--output=html"),
    ("run.csv --output ht", "html"),
    ("run.csv --set Q2.1.si", "Q2.1.sigma="),
    ("run.csv --answer Q1.2=fp1", "Q1.2=fp16"),
    ("ru", "run.csv"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a log, and stabtree where a shell looks for commands."""
    (tmp_path / "run.csv").write_text("step,loss\n", encoding="utf-8")
    command = tmp_path / "bin" / "stabtree"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stabtree "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return tmp_path


def surroundings(place: Path) -> dict[str, str]:
    """The environment of a shell in that folder, with no settings of a user."""
    paths = {"PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(place)}
    return environment(**paths, TERM="xterm", PYTHONPATH=os.pathsep.join(sys.path))


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("fish"), reason="there is no fish here")
@pytest.mark.parametrize(("line", "offered"), LINES)
def test_fish_offers_it(line: str, offered: str, place: Path) -> None:
    """What fish itself lists for a line holds what fits, and not a file besides."""
    script = place / "stabtree.fish"
    script.write_text(SCRIPTS[Shell.FISH], encoding="utf-8")
    code = f"source '{script}'; complete -C 'stabtree {line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=place,
        env=surroundings(place),
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert [item.partition("\t")[0] for item in done.stdout.splitlines()] == [offered], done.stderr


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh here")
def test_zsh_completes_it(place: Path) -> None:
    """Lines typed into zsh, and Tab, become what fits; its start-up file holds nothing but the line of the README."""
    if sys.platform == "win32":
        pytest.skip("there is no zsh here")
    import pty

    (place / ".zshrc").write_text("PS1='ready> '\n" + SCRIPTS[Shell.ZSH], encoding="utf-8")
    terminal, end = pty.openpty()
    child = subprocess.Popen(
        ["zsh", "-i"],
        stdin=end,
        stdout=end,
        stderr=end,
        cwd=place,
        env={**surroundings(place), "COLUMNS": "200"},
        start_new_session=True,
    )
    try:
        until(terminal, "ready> ")
        for line, offered in LINES:
            os.write(terminal, f"stabtree {line}\t".encode())
            before, _, _ = line.rpartition(" ")
            until(terminal, f"stabtree {before} {offered}" if before else f"stabtree {offered}")
            os.write(terminal, b"\x15")  # the line is thrown away
    finally:
        child.kill()
        child.wait()
        os.close(terminal)
        os.close(end)


def until(terminal: int, text: str) -> None:
    """Read until a text is shown; what moves the cursor or colours is not counted."""
    shown, end = b"", time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 1 << 16)
            if text in "".join(clean(part, 100_000) + " " for part in shown.decode(errors="replace").split("\r")):
                return
    pytest.fail(f"zsh never showed {text!r} but {shown!r}")
