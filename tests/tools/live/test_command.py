"""`stabtree watch` as it is typed: what it prints, what it runs, how it ends."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from stabtree.tools.live.command import EXEC_AT_ONCE, Hook, Stop
from tests.cli.command import COMMAND, Done, environment, failed, run
from tests.conftest import FIXTURES
from tests.tools.live.growing import broken, falling, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

NAN = str(FIXTURES / "phase19" / "nan-forward")
HEALTHY = str(FIXTURES / "phase19" / "healthy")
QUICK = ("--every", "0.01", "--stall", "0.05s")


def once(*arguments: str, **environ: str) -> Done:
    """A watch that is asked to end before its first look."""

    def asked(stop: Stop) -> Stop:
        stop.asked = True
        return stop

    with mock.patch.object(Stop, "__enter__", asked):
        return run("watch", *arguments, **environ)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log that has turned NaN."""
    path = tmp_path / "run.csv"
    path.write_text("".join(lines("csv", broken(120, 80))), encoding="utf-8")
    return path


def events(done: Done) -> list[dict[str, object]]:
    """What was printed, each line as JSON."""
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("options", [(), ("--fail-on", "never"), ("--literal",)])
@pytest.mark.parametrize("path", [NAN, HEALTHY, str(FIXTURES / "phase19" / "plateau")])
def test_the_exit_code_is_that_of_diagnose(path: str, options: tuple[str, ...]) -> None:
    """Ended at once, a watch ends with the verdict and the exit code of diagnose."""
    done = once(path, *options, "--json")
    told = run("diagnose", path, *options, "--json")
    assert done.returncode == told.returncode
    (end,) = [event for event in events(done) if event["event"] == "end"]
    assert end["verdict"] == json.loads(told.stdout)["verdict"]
    assert end["exit_code"] == told.returncode


def test_a_finding_is_told_whole(log: Path) -> None:
    """A finding stands with its time, its step, its title, what to do first and where to restart, then the verdict."""
    done = once(str(log))
    first, title, *rest = done.stdout.splitlines()
    assert "step 119" in first
    assert "CRITICAL" in first
    assert title.strip().startswith("Step 80: ")
    assert rest[0].startswith("  First")
    assert any(line.startswith("  Then   Restart from") for line in rest)
    assert any(line.startswith("CRITICAL  ") for line in rest[-3:-1])
    assert rest[-1] == "stopped · exit 1"
    assert not done.stderr


def test_json_is_a_line_an_event(log: Path) -> None:
    """With --json each event is a line: the finding as `diagnose --json` has it, and the end."""
    finding, *_, end = events(once(str(log), "--json"))
    known = json.loads(run("diagnose", str(log), "--json").stdout)["findings"]
    assert finding["event"] == "finding"
    assert finding["finding"] in known
    assert finding["last_step"] == 119
    assert end["event"] == "end"
    assert end["runs"] == [{"run": str(log), "verdict": "critical", "error": None}]


def test_quiet_is_a_line_a_finding(log: Path) -> None:
    """With -q a finding is one line, and so is the verdict at the end."""
    *told, verdict = once(str(log), "-q").stdout.splitlines()
    assert all("Step" in line and "[" in line for line in told)
    assert verdict == run("diagnose", str(log), "-q").stdout.strip()


def test_until_found_ends_the_watch(log: Path) -> None:
    """With --until-found it ends with 1 at the first finding that counts, and says why."""
    done = run("watch", str(log), "--until-found")
    assert done.returncode == 1
    assert "found what --until-found waits for · exit 1" in done.stdout


def test_a_stall_ends_with_1(tmp_path: Path) -> None:
    """A log that falls silent is a stall, whatever its verdict; one that is complete keeps its verdict's code."""
    path = tmp_path / "run.log"
    path.write_text("".join(lines("text", falling(200))), encoding="utf-8")
    done = run("watch", str(path), *QUICK, "--fail-on", "not-partial")
    assert done.returncode == 1
    assert "stalled: nothing was written for" in done.stdout
    assert "stalled" in run("watch", str(path), *QUICK, "-q").stderr
    with path.open("a", encoding="utf-8") as stream:
        stream.write("Training completed.\n")
    done = run("watch", str(path), *QUICK, "--fail-on", "not-partial")
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
        (("a.csv", "--set", "Q2.1.nothing=1"), "nothing"),
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


def test_exec_is_given_the_finding_and_nothing_of_the_log_runs(tmp_path: Path) -> None:
    """A log whose names and lines are commands reaches the command as JSON on standard input, and none of it runs."""
    evil = "$(touch pwned);`touch pwned`;'\"|touch pwned&\x1b]0;x\x07"
    path = tmp_path / f"a {evil.replace('/', '')}.log"
    path.write_text(
        "".join(lines("text", broken(120, 80))) + f"RuntimeError: {evil} ; touch pwned\n" * 3, encoding="utf-8"
    )
    keep = tmp_path / "keep.py"
    keep.write_text(
        "import sys; open('told','a').write(sys.stdin.read()); open('words','a').write(repr(sys.argv[1:]))",
        encoding="utf-8",
    )
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(keep))} '$HOME' '*'"
    before = os.getcwd()  # noqa: PTH109
    os.chdir(tmp_path)
    try:
        done = once(str(path), "--exec", command, "--json")
    finally:
        os.chdir(before)
    told = [event for event in events(done) if event["event"] == "finding"]
    assert [json.loads(line) for line in sorted((tmp_path / "told").read_text(encoding="utf-8").splitlines())]
    assert len((tmp_path / "told").read_text(encoding="utf-8").splitlines()) == len(told) > 0
    assert (tmp_path / "words").read_text(encoding="utf-8") == "['$HOME', '*']" * len(told)
    assert not (tmp_path / "pwned").exists()
    assert "\x1b" not in done.stdout


def test_a_command_that_fails_is_a_note(log: Path) -> None:
    """A command that ends in an error is told of, and the watch goes on to its verdict."""
    done = once(str(log), "--exec", f"{shlex.quote(sys.executable)} -c 'raise SystemExit(7)'")
    assert done.returncode == 1
    assert "note: --exec failed with exit code 7" in done.stderr


def test_a_command_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that takes too long is ended with all that it started, and that is a note."""
    if sys.platform == "win32":
        pytest.skip("there are no groups of processes on Windows")
    held = tmp_path / "held"
    os.mkfifo(held)
    hook = Hook(f"sh -c 'exec 3>{held}; sleep 600 & sleep 600'")
    monkeypatch.setattr("stabtree.tools.live.command.EXEC_SECONDS", 0.1)
    hook.start("{}")
    with held.open() as pipe:
        hook.wait()
        assert hook.notes() == ["--exec took longer than 0.1 seconds, and was ended"]
        assert not pipe.read()  # which ends when nobody is left to write


def test_few_commands_run_beside_each_other(tmp_path: Path) -> None:
    """Of many findings at once each has its command, and only so many of them run at a time."""
    code = f"import os; os.mkdir({str(tmp_path / 'run')!r} + str(os.getpid()))"
    hook = Hook(shlex.join([sys.executable, "-c", code]))
    for _ in range(2 * EXEC_AT_ONCE):
        hook.start("{}")
        assert len(hook._running) <= EXEC_AT_ONCE
    hook.wait()
    assert not hook.notes()
    assert len([*tmp_path.iterdir()]) == 2 * EXEC_AT_ONCE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device")
def test_a_full_disk_loses_no_alarm(log: Path, tmp_path: Path) -> None:
    """Where findings can't be printed any more, their command is run, and to its end."""
    told = tmp_path / "told"
    words = ["watch", str(log), "--exec", f"sh -c 'sleep 0.3; cat > {told}'"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run([*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False)
    assert done.returncode == 2
    assert json.loads(told.read_text(encoding="utf-8"))["event"] == "finding"


def test_a_log_that_can_not_be_read_is_told_at_once(tmp_path: Path) -> None:
    """What diagnose would refuse is a note while the watch lasts, once, whatever else is watched."""
    (tmp_path / "good.csv").write_text("".join(lines("csv", falling(100))), encoding="utf-8")
    for name in ("bad", "bad too"):
        (tmp_path / f"{name}.csv").write_bytes(bytes(range(256)) * 9)
    paths = [str(tmp_path / f"{name}.csv") for name in ("good", "bad", "bad too")]
    done = run("watch", *paths, *QUICK)
    assert done.stderr.count("bad.csv (and 1 more): not judged just now: is a binary file") == 1
    assert done.stderr.count("not judged just now") == 1


def test_what_can_never_be_followed_is_no_log_to_wait_for(tmp_path: Path) -> None:
    """A pipe, and links in a loop, are told as what they are, to watch and to diagnose."""
    if sys.platform == "win32":
        pytest.skip("there are no such files on Windows")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, problem in (("pipe", "is not a regular file"), ("loop", "symbolic links")):
        done = run("watch", str(tmp_path / name), *QUICK)
        assert problem in done.stderr
        assert problem in failed("diagnose", str(tmp_path / name))


def lines_of(made: subprocess.Popen[str]) -> Iterator[str]:
    """The lines that a process prints, as they come."""
    assert made.stdout is not None
    return iter(made.stdout.readline, "")


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Don't let processes inherit that a background job ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise on Windows")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.usefixtures("default_signals")
def test_a_signal_ends_it_with_the_last_verdict(log: Path, number: str) -> None:
    """Ctrl-C, SIGTERM and a closed terminal end a watch with its summary and exit code, without a traceback."""
    words = [*COMMAND, "watch", str(log), "--json", "--every", "0.05"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment()
    ) as made:
        told = lines_of(made)
        assert json.loads(next(told))["event"] == "finding"
        made.send_signal(signal.Signals[number])
        end = json.loads([*told][-1])
        assert made.wait(timeout=30) == 1
        assert made.stderr is not None
        assert not made.stderr.read()
    assert end["event"] == "end"
    assert end["why"] == "stopped"


def test_a_terminal_has_a_status_line(tmp_path: Path) -> None:
    """On a terminal a line shows how the run goes, and it is gone before the last lines are printed."""
    if sys.platform == "win32":
        pytest.skip("there are no such terminals on Windows")
    import pty

    path = tmp_path / "run.csv"
    path.write_text("".join(lines("csv", falling(200))), encoding="utf-8")
    ours, theirs = pty.openpty()
    words = [*COMMAND, "watch", str(path), "--every", "0.05"]
    env = environment(TERM="xterm-256color", PYTHONUTF8="1")
    with subprocess.Popen(words, stdout=theirs, stderr=theirs, env=env) as made:
        shown = b""
        while b"step 199" not in shown:
            shown += os.read(ours, 4096)
        made.send_signal(signal.SIGINT)
        assert made.wait(timeout=30) == 0
        os.close(theirs)
        after = b""
        with suppress(OSError):  # how a terminal tells that nobody writes to it any more
            while piece := os.read(ours, 4096):
                after += piece
    os.close(ours)
    assert shown.count(b"\r\x1b[2K") >= 1
    assert after.decode().rpartition("\r\x1b[2K")[2].splitlines()[-1] == "\x1b[38;5;244mstopped · exit 0\x1b[0m"
