"""What typed words mean, and what help shows."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from stabtree.cli.program import routed
from stabtree.common.errors import StabtreeError
from tests.cli.command import failed, process, run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = ("diagnose", "explain", "tree")
NAN = str(FIXTURES / "phase19" / "fp16-overflow")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([], []),
        (["tree", "show"], ["tree", "show"]),
        (["-h"], ["-h"]),
        (["-V"], ["-V"]),
        (["help"], ["--help"]),
        (["help", "tree", "show"], ["tree", "show", "--help"]),
        (["run.csv"], ["diagnose", "run.csv"]),
        (["-"], ["diagnose", "-"]),
        (["-q", "run.csv"], ["diagnose", "-q", "run.csv"]),
        (["logs/*"], ["diagnose", "logs/*"]),
        (["C:\\logs\\run.csv"], ["diagnose", "C:\\logs\\run.csv"]),
        (["s3://bucket/run"], ["diagnose", "s3://bucket/run"]),
    ],
)
def test_words_mean_a_command(words: list[str], meant: list[str]) -> None:
    """A path or an option of diagnose stands for diagnose, help for --help, and commands stay what they are."""
    assert routed(words, COMMANDS) == meant


def test_a_command_goes_before_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What exists is a path, unless a command is called so."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree").mkdir()
    (tmp_path / "runs").mkdir()
    assert routed(["tree"], COMMANDS) == ["tree"]
    assert routed(["runs"], COMMANDS) == ["diagnose", "runs"]


@pytest.mark.parametrize(("word", "hint"), [("diagnos", "type `stabtree diagnose`"), ("nothing", "`stabtree help`")])
def test_a_word_that_is_neither_is_an_error(word: str, hint: str) -> None:
    """A near miss of a command is told as that, also after help."""
    for words in ([word], ["help", word]):
        with pytest.raises(StabtreeError, match="no such command") as caught:
            routed(words, COMMANDS)
        assert hint in caught.value.hint


def test_a_path_alone_is_diagnosed(tmp_path: Path) -> None:
    """With its options before or after it; the same output and exit code."""
    long = run("diagnose", NAN, "-q")
    assert (long.returncode, long.stdout[:8]) == (1, "CRITICAL")
    for words in ([NAN, "-q"], ["-q", NAN]):
        assert (run(*words).stdout, run(*words).returncode) == (long.stdout, 1)
    shutil.copy(f"{NAN}/metrics.csv", tmp_path / "x.csv")
    assert run("-", "-q", given=(tmp_path / "x.csv").read_text(encoding="utf-8")).returncode == 1


def test_help_stands_in_groups_with_examples_and_exit_codes() -> None:
    """Every option of diagnose but --help is in a group, in the order input, judging, output; experts' come last."""
    text = run("help", "diagnose").stdout
    assert text == run("diagnose", "-h").stdout
    places = [text.index(f"\n{head}:") for head in ("Arguments", "Input", "Judging", "Output", "Options", "Expert")]
    assert places == sorted(places)
    options = text[places[-2] :].partition("\n  Examples")[0]
    named = [line.split()[0] for line in options.splitlines() if line.startswith("  -")]
    assert named == ["-h,", "--trees", "--literal", "--set", "--answer", "--applied"]
    for code in ("  1  something is", "  2  a mistake", "  3  too little"):
        assert code in text


def test_the_root_help_fits_one_screen() -> None:
    """Each command in a whole sentence, the core first and then the tools, within 24 lines of 80 columns."""
    text = run("-h", COLUMNS="80").stdout
    assert text.count("\n") <= 24
    assert text.index("\nCommands:") < text.index("\nTools:")
    assert "..." not in text.partition("Commands:")[2]
    assert run("-V").stdout == run("--version").stdout


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        (["explain", "spkie"], "nothing is called 'spkie'", "did you mean `stabtree explain spike`?"),
        (["explain", "fp16-overflw"], "nothing is called", "did you mean `stabtree explain fp16-overflow`?"),
        (["explain", "grad_nrom"], "nothing is called", "did you mean `stabtree explain grad_norm`?"),
        (["diagnose", "x.csv", "--dytpe", "fp16"], "no such option: --dytpe; did you mean --dtype?", "diagnose --help"),
        (["tree", "shw"], "no such command 'shw'; did you mean 'show'?", "`stabtree tree --help`"),
        (["wandb://a"], "is not the address of a run", "type wandb://ENTITY/PROJECT/RUN"),
        (["wandb://a/b/c"], "needs stabtree[wandb]", "type `pip install 'stabtree[wandb]'`"),
        (["mlflow:0a"], "needs stabtree[mlflow]", "type `pip install 'stabtree[mlflow]'`"),
        (["s3://b/x.csv"], "packages that are not installed", "type `pip install 'stabtree[remote]'`"),
        (["scan", "hf://datasets/a/b"], "packages that are not installed", "type `pip install 'stabtree[remote]'`"),
    ],
)
def test_a_mistake_is_told_in_one_voice(
    words: list[str], problem: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong, then what to type: whoever found it; of addresses without what opens them."""
    for package in ("fsspec", "fsspec.core", "mlflow", "wandb"):
        monkeypatch.setitem(sys.modules, package, None)
    told = failed(*words).splitlines()
    assert len(told) == 2
    assert problem in told[0]
    assert hint in told[1]


def test_a_file_that_is_no_log_is_told_in_a_line(tmp_path: Path) -> None:
    """Its first line and where the formats are listed, and not the list itself."""
    (tmp_path / "README.md").write_text("# A title\n\nSome words.\n", encoding="utf-8")
    told = failed(str(tmp_path / "README.md"))
    assert "begins with '# A title'" in told
    assert "`stabtree info formats`" in told
    assert all(len(line) < 200 + len(str(tmp_path)) for line in told.splitlines())
    listed = run("info", "formats").stdout
    assert {line.split()[0] for line in listed.splitlines()} >= {"csv", "jsonl", "text", "tfevents"}


def test_a_shell_is_told_what_fits() -> None:
    """The options of a command, as Typer's own completion asks for them."""
    asked = {"COMP_WORDS": "stabtree diagnose --fail", "COMP_CWORD": "2"}
    assert process(_STABTREE_COMPLETE="complete_bash", **asked).stdout == "--fail-on\n"
