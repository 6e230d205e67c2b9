"""The command line, run inside this process or as one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from stabtree.cli import main

COMMAND = [sys.executable, "-W", "error", "-m", "stabtree"]
Done = subprocess.CompletedProcess[str]


class Terminal(io.StringIO):
    """A stream that a person sees."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def environment(**environ: str) -> dict[str, str]:
    """The environment of a command: 100 columns wide, in UTF-8 and without colour unless told otherwise."""
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    return {**plain, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8", **environ}


def run(*arguments: str, given: str = "", **environ: str) -> Done:
    """Run stabtree inside this process, with `given` on standard input."""
    out, err = io.StringIO(), io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        mock.patch.object(sys, "stdin", stdin),
        mock.patch.dict(os.environ, environment(**environ), clear=True),
    ):
        code = main(arguments)
    return Done(arguments, code, out.getvalue(), err.getvalue())


def process(*arguments: str, given: str = "", **environ: str) -> Done:
    """Run stabtree as a process of its own."""
    env = environment(**environ)
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, encoding="utf-8", input=given, env=env, check=False
    )


def failed(*arguments: str, given: str = "") -> str:
    """Standard error of a command that must end in a two-line error and exit code 2."""
    done = run(*arguments, given=given)
    assert done.returncode == 2, done.stderr
    assert not done.stdout or json.loads(done.stdout)["error"]["problem"]
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    assert "\n next: " in done.stderr
    return done.stderr
