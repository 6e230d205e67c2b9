"""`stabtree watch` as it is typed: what it prints, what it runs, how it ends; and docs/how-to/watch.md."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.tools.live.command import Hook, Stop
from tests.cli.command import Done, Terminal, failed, run
from tests.cli.test_recipes import BASH, broken, process
from tests.conftest import FIXTURES, ROOT
from tests.tools.live.growing import broken as broken_loss
from tests.tools.live.growing import falling, lines
from tests.whole.pages.blocks import blocks_of

if TYPE_CHECKING:
    import subprocess

NAN = str(FIXTURES / "phase19" / "nan-forward")
HEALTHY = str(FIXTURES / "phase19" / "healthy")
QUICK = ("--every", "0.01", "--stall", "0.05s")
PYTHON = shlex.quote(sys.executable)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="this is otherwise on Windows")


def once(*arguments: str, number: int = signal.SIGINT, **environ: str) -> Done:
    """A watch that gets a signal before its first look."""
    enter = Stop.__enter__

    def signalled(stop: Stop) -> Stop:
        enter(stop)
        os.kill(os.getpid(), number)
        return stop

    with mock.patch.object(Stop, "__enter__", signalled):
        return run("watch", *arguments, **environ)


def write(path: Path, *, nan: bool = False, text: str = "") -> str:
    """Write a log of 120 rows, healthy or NaN from step 80 on, and a text to its end; return its path."""
    loss = broken_loss(120, 80) if nan else falling(120)
    path.write_text("".join(lines("text" if text else "csv", loss)) + text, encoding="utf-8")
    return str(path)


@pytest.fixture
def log(tmp_path: Path) -> str:
    """A log that has turned NaN."""
    return write(tmp_path / "run.csv", nan=True)


def events(done: Done) -> list[dict[str, Any]]:
    """What was printed, each line as JSON."""
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("path", "options"), [(NAN, ()), (NAN, ("--fail-on", "never")), (HEALTHY, ("--literal",)), (HEALTHY, ())]
)
def test_the_exit_code_is_that_of_diagnose(path: str, options: tuple[str, ...]) -> None:
    """Ended at once, a watch ends with the verdict, the findings and the exit code of diagnose."""
    done = once(path, *options, "--json")
    told = run("diagnose", path, *options, "--json")
    *news, end = events(done)
    diagnosis = json.loads(told.stdout)
    assert (end["event"], end["exit_code"], end["verdict"]) == ("end", told.returncode, diagnosis["verdict"])
    assert done.returncode == told.returncode
    assert end["runs"] == [{"run": path, "verdict": diagnosis["verdict"], "error": None}]
    assert all(item["event"] == "finding" and item["finding"] in diagnosis["findings"] for item in news)
    assert news or path == HEALTHY


def test_a_finding_is_told_whole(log: str) -> None:
    """A finding stands with its time, its step, its title, what to do first and where to restart, then the verdict."""
    done = once(log)
    first, title, *rest = done.stdout.splitlines()
    assert "step 119" in first
    assert "CRITICAL" in first
    assert title.strip().startswith("Step 80: ")
    assert rest[0].startswith("  First")
    assert any(line.startswith("  Then   Restart from") for line in rest)
    assert any(line.startswith("CRITICAL  ") for line in rest[-3:-1])
    assert rest[-1] == "stopped · exit 1"
    assert not done.stderr


def test_quiet_is_a_line_a_finding(log: str) -> None:
    """With -q a finding is one line, and so is the verdict at the end."""
    *told, verdict = once(log, "-q").stdout.splitlines()
    assert all("Step" in line and "[" in line for line in told)
    assert verdict == run("diagnose", log, "-q").stdout.strip()


def test_until_found_ends_the_watch(log: str) -> None:
    """With --until-found it ends with 1 at the first finding that counts, and says why."""
    done = run("watch", log, "--until-found")
    assert done.returncode == 1
    assert "found what --until-found waits for · exit 1" in done.stdout


def test_a_stall_ends_with_1(tmp_path: Path) -> None:
    """A log that falls silent is a stall, whatever its verdict; one that is complete keeps its verdict's code."""
    path, options = tmp_path / "run.log", (*QUICK, "--fail-on", "not-partial")
    done = run("watch", write(path, text="and on\n"), *options)
    assert done.returncode == 1
    assert "stalled: nothing was written for" in done.stdout
    assert "stalled" in run("watch", str(path), *QUICK, "-q").stderr
    done = run("watch", write(path, text="Training completed.\n"), *options)
    assert done.returncode == 0
    assert "the run is complete, and nothing was written for 0s · exit 0" in done.stdout


def test_a_log_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    """It is said once what is waited for; where it never came, that is what diagnose says of it."""
    path = str(tmp_path / "run.csv")
    done = once(path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"note: waiting for {path}")
    assert "there is no such file" in done.stderr
    done = once(path, "--json")
    assert [event["event"] for event in events(done)] == ["note", "end"]
    assert done.returncode == 2
    assert run("watch", path, *QUICK).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-",), "standard input"),
        (("s3://bucket/run.csv",), "addresses"),
        (("",), "empty path"),
        (("a.csv", "--every", "0"), "--every"),
        (("a.csv", "--every", "nan"), "--every"),
        (("a.csv", "--stall", "soon"), "--stall 30m"),
        (("a.csv", "--stall", "0s"), "--stall 30m"),
        (("a.csv", "--exec", "no-such-command-at-all"), "no command"),
        (("a.csv", "--exec", "'"), "--exec"),
        (("a.csv", "--exec", ""), "--exec"),
        (("a.csv", "--ignore", "no-such-leaf"), "no-such-leaf"),
        (("a.csv", "--format", "xml"), "--format"),
        (("a.csv", "--column", "lozz=a"), "--column"),
        (("a.csv", "--fail-on", "bad"), "--fail-on"),
        (("a.csv", "--json", "-q"), "leave one of them out"),
        (("a.csv", "--until-found", "--fail-on", "never"), "--until-found"),
        (("a.csv", "--tree", "no-such-tree.yaml"), "no-such-tree"),
    ],
)
def test_mistakes_are_told_before_anything_is_waited_for(arguments: tuple[str, ...], said: str) -> None:
    """What is wrong with the words typed is an error at once, though the log is not there yet."""
    assert said in failed("watch", *arguments)


def test_exec_is_given_the_finding_and_nothing_of_the_log_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log whose names and lines are commands reaches the command as JSON on standard input, and none of it runs."""
    monkeypatch.chdir(tmp_path)
    evil = "$(touch pwned);`touch pwned`;'\"|touch pwned&\x1b]0;x\x07"
    path = write(tmp_path / f"a {evil}.log", nan=True, text=f"RuntimeError: {evil} ; touch pwned\n" * 3)
    Path("keep.py").write_text(
        "import sys; open('told','a').write(sys.stdin.read()); open('words','a').write(repr(sys.argv[1:]))",
        encoding="utf-8",
    )
    done = once(path, "--exec", f"{PYTHON} keep.py '$HOME' '*'", "--json")
    told = [line for line in done.stdout.splitlines() if '"event": "finding"' in line]
    assert sorted(Path("told").read_text(encoding="utf-8").splitlines()) == sorted(told) != []
    assert Path("words").read_text(encoding="utf-8") == "['$HOME', '*']" * len(told)
    assert not Path("pwned").exists()
    assert "\x1b" not in done.stdout


def test_a_command_that_fails_is_a_note(log: str) -> None:
    """A command that ends in an error is told of, and the watch goes on to its verdict."""
    done = once(log, "--exec", f"{PYTHON} -c 'raise SystemExit(7)'")
    assert done.returncode == 1
    assert "note: --exec failed with exit code 7" in done.stderr


def test_a_command_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that takes too long is ended with all that it started, and that is a note."""
    if sys.platform == "win32":
        pytest.skip("there are no named pipes on Windows")
    held = tmp_path / "held"
    os.mkfifo(held)
    hook = Hook(f"sh -c 'exec 3>{held}; sleep 600 & sleep 600'")
    monkeypatch.setattr("stabtree.tools.live.command.EXEC_SECONDS", 0.5)
    hook.start("{}")
    with held.open() as pipe:
        hook.wait()
        assert hook.notes() == ["--exec took longer than 0.5 seconds, and was ended"]
        assert not pipe.read()  # which ends when nobody is left to write


@POSIX
def test_a_full_disk_loses_no_alarm(log: str, tmp_path: Path) -> None:
    """Where findings can't be printed any more, their command is run, and to its end."""
    told = tmp_path / "told"
    with mock.patch("stabtree.tools.live.command.emit", side_effect=StabtreeError("the disk is full")):
        assert once(log, "--exec", f"sh -c 'sleep 0.2; cat > {told}'").returncode == 2
    assert json.loads(told.read_text(encoding="utf-8"))["event"] == "finding"


def test_a_log_that_can_not_be_read_is_told_at_once(tmp_path: Path) -> None:
    """What diagnose would refuse is a note while the watch lasts, once, whatever else is watched."""
    for name in ("bad", "bad too"):
        (tmp_path / f"{name}.csv").write_bytes(bytes(range(256)) * 9)
    paths = [write(tmp_path / "good.csv"), *(str(tmp_path / f"{name}.csv") for name in ("bad", "bad too"))]
    done = run("watch", *paths, *QUICK)
    assert done.stderr.count("bad.csv: not judged just now: is a binary file") == 1
    assert done.stderr.count("not judged just now") == 2


def test_a_setting_that_check_warns_of_is_a_note(tmp_path: Path) -> None:
    """As for diagnose: neither a finding nor a part of the verdict."""
    path = tmp_path / "run.jsonl"
    config = {"config": {"optimizer": "AdamW", "lr": 0.06, "max_steps": 400, "weight_decay": 0.1}}
    path.write_text("".join([json.dumps(config) + "\n", *lines("jsonl", falling(100))]), encoding="utf-8")
    note, end = events(once(str(path), "--json"))
    assert "too high for Adam" in note["note"]
    assert end["verdict"] == json.loads(run("diagnose", str(path), "--json").stdout)["verdict"]


def test_what_can_never_be_followed_is_no_log_to_wait_for(tmp_path: Path) -> None:
    """A pipe, and links in a loop, are told as what they are, to watch and to diagnose."""
    if sys.platform == "win32":
        pytest.skip("there are no named pipes on Windows")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, problem in (("pipe", "is not a regular file"), ("loop", "symbolic links")):
        assert problem in run("watch", str(tmp_path / name), *QUICK).stderr
        assert problem in failed("diagnose", str(tmp_path / name))


@POSIX
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_it_with_the_last_verdict(log: str, name: str) -> None:
    """SIGTERM and a closed terminal end a watch as Ctrl-C does, and the handlers are then as they were."""
    number = signal.Signals[name]
    before = signal.signal(number, signal.SIG_DFL)  # a background job may ignore it
    try:
        done = once(log, "--json", number=number)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert done.returncode == 1
    assert events(done)[-1]["why"] == "stopped"


def test_a_terminal_has_a_status_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a line shows how the run goes, and it is gone before the last lines are printed."""
    monkeypatch.setattr(io, "StringIO", Terminal)
    for path, shown in ((write(tmp_path / "run.csv"), "  step 119  last row 0s ago"), ("none", "waiting for none  0s")):
        done = once(path, TERM="xterm-256color", NO_COLOR="1")
        assert done.stderr.startswith("\r\x1b[2K")
        assert shown in done.stderr
        assert done.stderr.partition("error: ")[0].endswith("\r\x1b[2K")


PAGE = (ROOT / "docs" / "how-to" / "watch.md").read_text(encoding="utf-8")
BLOCKS = [(block.language, block.text) for block in blocks_of(PAGE)]
SLURM = "docs/recipes/slurm-watch.sh"
# A `stabtree` that says when it has looked at the log for the first time.
ENTRY = """
import sys
from pathlib import Path
from stabtree.cli import main
from stabtree.tools.live.watch import Session

rounds = Session.rounds

def noted(self):
    for item in rounds(self):
        yield item
        Path("looked").touch()

Session.rounds = noted
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a healthy run and the recipes, and `train`, which lasts until the watch has begun."""
    if sys.platform == "win32":
        pytest.skip("the recipes are for a POSIX shell")
    shutil.copytree(FIXTURES / "phase19" / "healthy", tmp_path / "runs")
    shutil.copytree(ROOT / "docs" / "recipes", tmp_path / "docs" / "recipes")
    (tmp_path / "entry.py").write_text(ENTRY, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    for name, script in (
        ("stabtree", f'exec {PYTHON} entry.py "$@"'),
        ("train", "until [ -e looked ]; do sleep 0.1; done"),
    ):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def shell(script: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Run a block of the page, without waiting for half an hour."""
    script = script.replace("--stall 30m", "--stall 0.1s").replace("sleep 4", "train")
    return process([*BASH, "-c", script], place)


@pytest.mark.parametrize("script", [text for language, text in BLOCKS if language == "bash"])
def test_the_shell_blocks_of_the_page_run(script: str, place: Path) -> None:
    """Each ends well for a healthy run, and no language of a block is left out."""
    done = shell(script, place)
    assert done.returncode == 0, done.stderr
    assert "OK" in done.stdout or json.loads((place / "end.json").read_text(encoding="utf-8"))["verdict"] == "ok"
    assert {language for language, _ in BLOCKS} == {"bash", "console"}
    assert not (place / "alarms.txt").exists()


def test_the_command_for_a_finding_writes_a_line(place: Path) -> None:
    """With its time, what was found, where it began and where to restart."""
    broken(place)
    (script,) = (text for language, text in BLOCKS if language == "bash" and "on_finding.py" in text)
    assert shell(script, place).returncode == 1
    (line,) = (place / "alarms.txt").read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"\S+ runs: opened, critical nan-forward: .*, step 412, restart from 400", line)


def test_a_job_is_ended_where_that_is_asked_for(place: Path) -> None:
    """A critical finding ends the training with STABTREE_STOP=1."""
    broken(place)
    done = process(["bash", SLURM, "sleep", "60"], place, STABTREE_RUN="runs", STABTREE_STOP="1")
    assert done.returncode == 143, done.stderr
    assert "nan-forward" in done.stdout
    assert "the training is ended" in done.stdout


@pytest.mark.parametrize("stop", ["", "1"])
def test_the_job_ends_as_the_training_did(place: Path, stop: str) -> None:
    """Also where the watch itself fails, or there is no log."""
    (place / "bin" / "stabtree").write_text("#!/bin/sh\nexit 4\n", encoding="utf-8")
    words = ["bash", SLURM, "bash", "-c", "sleep 0.1; exit 7"]
    assert process(words, place, STABTREE_RUN="none", STABTREE_STOP=stop).returncode == 7
