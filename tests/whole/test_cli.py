"""The command line as whole commands: output, exit codes, errors in two lines."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from stabtree.cli import main
from tests.cli.command import COMMAND, failed, process, run
from tests.conftest import FIXTURES, falling

if TYPE_CHECKING:
    from pathlib import Path

NAN = str(FIXTURES / "phase19" / "nan-forward")
HEALTHY = str(FIXTURES / "phase19" / "healthy")
WARNING = str(FIXTURES / "phase19" / "spike-bad-batch")
NOTE = str(FIXTURES / "phase19" / "plateau")


@pytest.mark.parametrize(
    ("folder", "levels", "code"),
    [
        (NAN, [], 1),
        (NAN, ["never"], 0),
        (NAN, ["warning"], 1),
        (WARNING, [], 1),
        (WARNING, ["critical"], 0),
        (WARNING, ["warning"], 1),
        (WARNING, ["note"], 1),
        (NOTE, ["warning"], 0),
        (NOTE, ["note"], 1),
        (HEALTHY, ["note"], 0),
        (HEALTHY, ["note,unknown"], 0),
    ],
)
def test_the_exit_code_follows_the_severity(folder: str, levels: list[str], code: int) -> None:
    """0 below --fail-on, 1 from it on; the default is warning."""
    options = [part for level in levels for part in ("--fail-on", level)]
    assert run("diagnose", folder, "-q", *options).returncode == code


def test_a_run_that_can_not_be_judged_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    """Verdict unknown: exit 3, 0 with --fail-on never, 1 with --on-unknown fail in both, and never the word OK."""
    path = tmp_path / "short.csv"
    path.write_text("step,loss\n1,2.0\n2,1.9\n", encoding="utf-8")
    done = run("diagnose", str(path))
    assert done.returncode == 3
    assert run("diagnose", str(path), "--fail-on", "never").returncode == 0
    assert "NOT JUDGED" in done.stdout
    assert " OK " not in done.stdout
    for words in (["--on-unknown", "fail"], ["--fail-on", "never", "--on-unknown", "fail"], ["--fail-on", "unknown"]):
        assert run("diagnose", str(path), *words).returncode == 1
    assert "type fail or pass" in failed("diagnose", str(path), "--on-unknown", "3")


def test_colour_comes_only_when_wanted() -> None:
    """FORCE_COLOR colours a pipe, NO_COLOR wins over it."""
    assert "\x1b[" in run("diagnose", HEALTHY, FORCE_COLOR="1").stdout
    assert "\x1b[" not in run("diagnose", HEALTHY, FORCE_COLOR="1", NO_COLOR="1").stdout


TABLE = "step,loss\n" + "\n".join(f"{i},{v:.4f}" for i, v in enumerate(falling(400)))


@pytest.mark.parametrize(
    "arguments", [["--version"], ["diagnose", "-", "--json"], ["diagnose", "no.csv"], ["explain", "§2"]], ids=" ".join
)
def test_a_process_ends_as_main_says(arguments: list[str]) -> None:
    """`python -m stabtree` prints what `main` prints inside another process, and exits with the code it returns."""
    inside, outside = run(*arguments, given=TABLE), process(*arguments, given=TABLE)
    assert (outside.returncode, outside.stdout, outside.stderr) == (inside.returncode, inside.stdout, inside.stderr)


def test_main_leaves_the_process_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """It neither exits nor touches the garbage collector, the streams or the hooks, whatever the command ends in."""

    def state() -> tuple[object, ...]:
        return (
            gc.isenabled(),
            sys.stdout,
            sys.stderr,
            sys.stdin,
            sys.excepthook,
            signal.getsignal(signal.SIGINT),
            sys.argv,
        )

    before = state()
    codes = [main(words) for words in (["--help"], [], ["--version"], ["nope"], ["diagnose", NAN, "-q"], ["explain"])]
    assert codes == [0, 2, 0, 2, 1, 2]
    assert state() == before
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["diagnose", "no/such/file.csv"], "no/such/file.csv"),
        (["diagnose", HEALTHY, "--tree", "phase18"], "did you mean 'phase19'?"),
        (["diagnose", HEALTHY, "--fail-on", "sometimes"], "'sometimes' is not a level"),
        (["diagnose", HEALTHY, "--fail-on", "never,note"], "never can't be combined with another level"),
        (["diagnose", HEALTHY, "--set", "Q2.1.sigma"], "type --set Q2.1.sigma=4"),
        (["diagnose", HEALTHY, "--set", "Q2.1.sigmo=4"], "did you mean 'sigma'?"),
        (["diagnose", HEALTHY, "--set", "Q2.7.sigma=4"], "there is no question 'Q2.7'"),
        (["diagnose", HEALTHY, "--set", "Q2.1.sigma=much"], "'much' is not a number"),
        (["diagnose", HEALTHY, "--set", "Q2.1.sigma=nan"], "is out of range"),
        (["diagnose", HEALTHY, "--set", "Q2.1.window_steps=1.5"], "is not a whole number"),
        (["diagnose", HEALTHY, "--set", "Q4.1.strict=perhaps"], "is not true or false"),
        (["diagnose", HEALTHY, "--answer", "Q1.2=fp15"], "did you mean 'fp16'?"),
        (["diagnose", HEALTHY, "--set", "Q2.1=4"], "next: type --set Q2.1.window_steps=4; `stabtree explain Q2.1`"),
        (["diagnose", HEALTHY, "--applied", "Q9.9"], "nodes: "),
        (["diagnose", HEALTHY, "--dtype", "fp12"], "fp12"),
        (["diagnose", HEALTHY, "--checkpoint-every", "0"], "checkpoint"),
        (["diagnose", HEALTHY, "--column", "loss=nope"], "nope"),
        (["diagnose", HEALTHY, "--column", "los=loss"], "los"),
        (["diagnose", HEALTHY, "--step-column", "nope"], "nope"),
        (["diagnose", HEALTHY, "--format", "xls"], "xls"),
        (["diagnose", HEALTHY, "--checkpoint-every", "abc"], "--checkpoint-every: 'abc' is not a whole number"),
        (["diagnose", HEALTHY, "--checkpoint-every", "1.5"], "type --checkpoint-every with a whole number"),
        (["diagnose", HEALTHY, "--tre", "phase19"], "no such option: --tre"),
        (["diagnose", HEALTHY, "--tree"], "requires an argument"),
        (["diagnose"], "type `stabtree diagnose --help`"),
        (["diagnos"], "no such command 'diagnos'"),
        (["explain", "Q7.7"], "nothing is called 'Q7.7'"),
        (["explain"], "which node?"),
        (["tree", "check", "nope.yaml"], "no such tree"),
    ],
)
def test_a_mistake_ends_in_two_lines(arguments: list[str], text: str) -> None:
    """What is wrong and where, then the next thing to type; exit code 2, no traceback, nothing on stdout."""
    assert text in failed(*arguments)


def test_interactive_asks_on_standard_error() -> None:
    """--interactive asks what the log can't tell; the result alone is on standard output."""
    done = run(
        "diagnose",
        str(FIXTURES / "phase19" / "nan-unlocated"),
        "--interactive",
        "-q",
        given="perhaps\nbackward\n" + "\n" * 10,
    )
    assert "nan-backward" in done.stdout
    assert "'perhaps' is not one of them" in done.stderr
    assert done.stdout.count("\n") == 1


def test_interactive_explains_its_options_and_itself() -> None:
    """Each option has a line of its own, `?` prints what `explain` does, and words are taken in their plain forms."""
    from stabtree.tree.load import load_tree

    folder = str(FIXTURES / "phase19" / "nan-unlocated")
    done = run("diagnose", folder, "--interactive", "-q", given="?\nLayer norm\n")
    assert f"\n    backward: {load_tree().leaves['nan-backward'].title}\n" in done.stderr
    assert "\n    layer (or embedding, attention" in done.stderr
    assert run("explain", "Q1.3", "--full").stdout.strip().splitlines()[0].strip() in done.stderr
    assert "nan-layer" in done.stdout


def test_an_answer_against_the_log_is_told_beside_the_one_line() -> None:
    """`-q` keeps to its line on standard output; what the log says against an answer stands on standard error."""
    done = run("diagnose", HEALTHY, "-q", "--answer", "Q2.1=yes")
    assert done.stdout.count("\n") == 1
    assert done.stderr.startswith("note: Q2.1 answered yes; the log says no: ")


def test_interactive_asks_nothing_that_only_a_log_can_tell(tmp_path: Path) -> None:
    """A metric is asked of nobody, and the number format once; yes and no go by other words, too."""
    path = tmp_path / "flat.csv"
    path.write_text(
        "step,loss\n" + "".join(f"{step},{3.4 + 0.01 * (step * 7 % 5)}\n" for step in range(600)), encoding="utf-8"
    )
    done = run("diagnose", str(path), "--interactive", "-q", given="bf16\n\nN\nY\n")
    asked = [line.split()[0] for line in done.stderr.splitlines() if line.startswith(("Q", "O"))]
    assert asked == ["Q3.0", "O2", "O1", "O3"]
    assert "loss-detached" in done.stdout


def test_thresholds_are_those_of_the_document() -> None:
    """The quick-reference table, generated from the tree, holds the document's six rows."""
    text = run("tree", "show", "phase19", "--thresholds", "--literal").stdout
    for part in (
        "any",
        "loss > μ + 3σ of 100 steps",
        "spike, no return in 50 steps",
        "over 200 steps",
        "> 2× in 200 steps",
    ):
        assert part in text


def test_the_measures_are_listed_for_those_who_write_trees() -> None:
    """Every measure stands in the list with its verdicts; one alone shows its metrics and its parameters' units."""
    from stabtree.measures import all_questions

    text = run("tree", "measures").stdout
    assert set(all_questions()) <= {line.split()[0] for line in text.splitlines() if line.strip()}
    assert "lr_jump, duplicate_batch, bad_batch, unexplained, minor, unknown" in " ".join(text.split())
    one = " ".join(run("tree", "measures", "stays_above").stdout.split())
    assert "share float, a share, 0 to 1" in one
    assert "rows int, rows of the log" in one
    assert "did you mean 'stays_above'?" in run("tree", "measures", "stays_abov").stderr


def test_a_closed_pipe_is_no_error() -> None:
    """`stabtree tree schema | true` ends without a word on standard error."""
    with subprocess.Popen(
        [*COMMAND, "tree", "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a POSIX matter")
def test_ctrl_c_ends_without_a_traceback() -> None:
    """An interrupt while reading standard input ends at once, with 130 and no traceback."""
    # Under nohup or `&` this process ignores the signal, and a child would inherit that; what is handled it does not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        child = subprocess.Popen(
            [*COMMAND, "diagnose", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with child:
        assert child.stdin is not None
        # More than a pipe holds: once all is written, the child is reading.
        child.stdin.write("step,loss\n" + "1,2.0\n" * 100_000)
        child.stdin.flush()
        try:
            # Python misses a signal that comes between two reads until the next one comes.
            for _ in range(10):
                time.sleep(0.3)
                child.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    child.wait(5)
                    break
            assert child.returncode == 130
        finally:
            child.kill()
        assert child.stderr is not None
        assert "Traceback" not in child.stderr.read()


def test_interactive_at_the_end_of_its_input_goes_on_without_answers() -> None:
    """No one to ask is unknown, not an abort."""
    done = run("diagnose", str(FIXTURES / "phase19" / "nan-unlocated"), "--interactive", "-q", given="")
    assert done.returncode == 1
    assert "nan-unlocated" in done.stdout


def test_nothing_from_a_tree_reaches_the_terminal_raw(tmp_path: Path) -> None:
    """Escape codes in a tree's texts and in its name are taken out of every screen."""
    path = tmp_path / "t.yaml"
    path.write_text(
        'name: "a\\e[31mb"\ntitle: "c\\e[31md"\nsections: [{id: "1", title: "e\\e[31mf", entry: Q1}]\nquestions:\n'
        '- {id: Q1, section: "1", ask: "g\\e[31mh", test: loss_spikes, go: {yes: bad, no: bad}, source: s,\n'
        '   quick: {symptom: "i\\e[31mj", threshold: "k\\e[31ml", first: "m\\e[31mn"}}\nleaves:\n'
        '- {id: bad, of: Q1, title: "o\\e[31mp", severity: warning, fix: "q\\e[31mr", source: s}\n',
        encoding="utf-8",
    )
    tree = str(path)
    commands = [["tree", "check", tree], ["tree", "show", tree], ["tree", "show", tree, "--thresholds"]]
    commands += [["diagnose", NAN, "--tree", tree], ["diagnose", NAN, "-q", "--tree", tree]]
    commands += [["explain", "--all", "--tree", tree], ["diagnose", NAN, "--tree", "\x1b[31mx\n"]]
    for command in commands:
        done = run(*command)
        assert "\x1b" not in done.stdout + done.stderr, command
        assert "Traceback" not in done.stderr
