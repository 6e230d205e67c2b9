"""What a shell is told at Tab."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from stabtree.cli.program.completion import SCRIPTS, Shell
from tests.cli.command import environment, failed, run


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["exp"], ["explain"]),
        (["he"], ["help"]),
        (["help", "ins"], ["inspect"]),
        (["--fail"], ["--fail-on"]),
        (["run.csv", "--checkpoint-"], ["--checkpoint-every"]),
        (["run.csv", "--fail-on", "wa"], ["warning"]),
        (["--fail-on=wa"], ["--fail-on=warning"]),
        (["run.csv", "--format", "tf"], ["tfevents"]),
        (["tree", "sh"], ["show"]),
        (["tree", "show", "ph"], ["phase19"]),
        (["diagnose", "--tree", "ph"], ["phase19"]),
        (["diagnose", "--output", "js"], ["json", "jsonl"]),
        (["diagnose", "--dtype", "b"], ["bf16"]),
        (["explain", "spike-m"], ["spike-minor"]),
        (["explain", "grad_nor"], ["grad_norm"]),
        (["explain", "Q2.3"], ["Q2.3"]),
        (["diagnose", "--ignore", "spike-m"], ["spike-minor"]),
        (["diagnose", "--set", "Q2.1"], ["Q2.1."]),
        (["diagnose", "--set", "Q2.1.si"], ["Q2.1.sigma="]),
        (["diagnose", "--answer", "Q1.2"], ["Q1.2="]),
        (["diagnose", "--answer", "Q1.2=fp1"], ["Q1.2=fp16"]),
        (["diagnose", "run.c"], []),
        (["diagnose", "--config", ""], []),
        (["diagnose", "--baseline", "ba"], []),
        (["base"], ["baseline"]),
        (["baseline", "--upd"], ["--update"]),
        (["baseline", "--output", "js"], []),
        (["baseline", "--ignore", "spike-m"], ["spike-minor"]),
        (["diagnose", "--set", "nothing.of"], []),
        (["compare", "--by", ""], ["step", "time", "tokens"]),
        (["compare", "--output", ""], ["headline", "html", "json", "markdown", "screen"]),
        (["calibrate", "--output", "t"], ["toml"]),
        (["scan", "--output", "p"], []),
    ],
)
def test_what_fits_is_offered(words: list[str], offered: list[str]) -> None:
    """Commands, options, ids, trees, formats and outputs; nothing where only a file fits."""
    done = run("_complete", "zsh", "--", *words)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, offered, "")


@pytest.mark.parametrize("words", [["--fail-on", "=", "wa"], ["x.csv", "--fail-on", "=", "wa"]])
def test_bash_cuts_words_at_an_equals_sign(words: list[str]) -> None:
    """It gets what stands behind the sign alone, as it replaces no more."""
    assert run("_complete", "bash", "--", *words).stdout == "warning\n"
    assert run("_complete", "bash", "--", "x.csv", "--answer", "Q1.2", "=", "fp1").stdout == "fp16\n"
    assert len(run("_complete", "bash", "--", "--fail-on", "=").stdout.split()) > 3


def test_each_shell_has_its_lines_and_no_other_one() -> None:
    """They ask the program; an unknown shell is an error."""
    for shell in Shell:
        assert f"stabtree _complete {shell} -- " in run("completion", shell).stdout
    assert "'tcsh' is not one of bash, zsh, fish" in failed("completion", "tcsh")
    assert "_complete" not in run("-h").stdout


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="there is no bash here")
@pytest.mark.parametrize(
    ("words", "offered"), [(["explain", "spike-m"], "spike-minor"), (["x.csv", "--output", "=", "ht"], "html")]
)
def test_bash_itself_gets_them(words: list[str], offered: str) -> None:
    """Its own function fills in the reply, from the words as bash splits them."""
    listed = " ".join(f"'{word}'" for word in ["stabtree", *words])
    code = (
        f"stabtree() {{ '{sys.executable}' -m stabtree \"$@\"; }}\n{SCRIPTS[Shell.BASH]}\n"
        f"COMP_WORDS=({listed}); COMP_CWORD={len(words)}; _stabtree; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    done = subprocess.run(
        ["bash", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(),
        check=False,
        timeout=60,
    )
    assert done.stdout.split() == [offered], done.stderr


@pytest.mark.parametrize("shell", [Shell.ZSH, Shell.FISH])
def test_the_lines_are_of_their_language(shell: Shell) -> None:
    """The shell reads them without a complaint, where it is installed."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run(
        [program, "-n"], input=SCRIPTS[shell], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
