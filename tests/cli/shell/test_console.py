"""Terminals as they are: narrow, of another encoding, closed, full, a Windows console of old."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from stabtree.cli import main
from tests.cli.command import COMMAND, Terminal, environment, run
from tests.conftest import FIXTURES

NAN = str(FIXTURES / "phase19" / "nan-forward")
HELPS = [["-h"], ["tree", "-h"], ["diagnose", "-h"], ["scan", "-h"], ["info", "config", "-h"]]
LISTS = [["info", "formats"], ["tree", "list"], ["tree", "show", "--thresholds"], ["tree", "measures"]]
MISTAKES = [
    ["nosuch"],
    ["diagnose", "no-such.csv"],
    ["diagnose", NAN, "--set", "Q2.1.nosuch=3"],
    ["diagnose", "s3://bucket/run.csv"],
    ["explain", "nosuchnode"],
]
SHOWN = [["-h"], *LISTS, ["explain", "Q2.1", "--full"], ["inspect", NAN], ["diagnose", NAN, "--full"], ["demo"]]
posix = pytest.mark.skipif(sys.platform == "win32", reason="closes and fills streams as a POSIX shell does")


@pytest.mark.parametrize("words", [*HELPS, *LISTS, ["demo"]], ids=" ".join)
def test_nothing_is_wider_than_the_terminal(words: list[str]) -> None:
    """At 80 columns no line of a help text, a list or the screen has more."""
    done = run(*words, COLUMNS="80")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_an_error_fits_the_terminal_that_shows_it(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets coloured words, lines of its own width, the further ones below the words; else the same."""
    plain = run(*words).stderr
    shown = Terminal()
    monkeypatch.setenv("COLUMNS", "60")
    for name, value in (("TERM", "xterm"), ("NO_COLOR", "")):
        monkeypatch.setenv(name, value)
    with mock.patch.object(sys, "stderr", coloured := Terminal()):
        main(words)
    monkeypatch.setenv("NO_COLOR", "1")
    with mock.patch.object(sys, "stderr", shown):
        assert main(words) == 2
    assert coloured.getvalue().startswith("\x1b[1;38;5;131merror:\x1b[0m ")
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured.getvalue()) == shown.getvalue()
    lines = shown.getvalue().splitlines()
    assert [line for line in lines if len(line) > 60 and " " in line.strip()] == []
    assert all(line.startswith(("error: ", " next: ", "       ")) for line in lines)
    assert shown.getvalue().split() == plain.split()


def encoded(words: list[str], encoding: str, errors: str = "strict") -> tuple[int, str, str]:
    """What a command does where both streams are of an encoding that has no way out."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding, errors, newline="\r\n") for _ in range(2))
    with (
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
        mock.patch.dict(os.environ, environment(COLUMNS="80"), clear=True),
    ):
        code = main(words)
        out.flush()
        err.flush()
    told = [stream.detach().getvalue().decode(encoding) for stream in (out, err)]
    return code, told[0], told[1]


@pytest.mark.parametrize("encoding", ["cp437"])
@pytest.mark.parametrize("words", [*SHOWN, *MISTAKES], ids=" ".join)
def test_no_encoding_stops_a_command(words: list[str], encoding: str) -> None:
    """A Windows console of old gets all of it, with no sign lost that another terminal shows."""
    usual = run(*words, COLUMNS="80")
    code, out, err = encoded(words, encoding)
    assert code == usual.returncode
    assert (out + err).count("?") == (usual.stdout + usual.stderr).count("?")
    assert "itself failed" not in err
    assert "\r\r" not in out + err
    assert "\x1b" not in out + err


def shell(words: str, streams: str) -> subprocess.CompletedProcess[str]:
    """A command as a shell runs it, with its streams as told."""
    line = f"exec {shlex.join(COMMAND)} {words} {streams}"
    return subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, encoding="utf-8", env=environment(), check=False
    )


@posix
def test_what_nobody_gets_is_no_success() -> None:
    """Where standard output is closed or full, even a help text ends in 2 and in two lines that say so."""
    for words, streams in (("-h", ">&-"), *([("explain Q2.1", ">/dev/full")] if Path("/dev/full").exists() else [])):
        done = shell(words, streams)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 2


@posix
@pytest.mark.parametrize(("words", "code"), [("-h", 0), ("nosuch", 2), (f"{NAN} -q", 1)])
def test_without_standard_error_the_exit_code_is_left(words: str, code: int) -> None:
    """A result that arrived is a success, and an error one, whoever could be told of it."""
    for streams in ("2>&-", *(["2>/dev/full"] if code == 2 and Path("/dev/full").exists() else [])):
        done = shell(words, streams)
        assert (done.returncode, bool(done.stdout)) == (code, code < 2)
