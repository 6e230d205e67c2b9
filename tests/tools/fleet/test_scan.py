"""A scan judges each run once, in whatever process, and tells of all that went wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from stabtree import StabtreeError, scan
from stabtree.judging.judge import Judging
from stabtree.loaders.paths.find import Unit
from stabtree.loaders.paths.load import contents
from stabtree.tools.fleet import scan as scanning
from stabtree.tools.fleet.scan import UnitJudge, results
from tests.cli.command import COMMAND, failed, run
from tests.conftest import FIXTURES
from tests.loaders.paths import logs
from tests.report.test_html import Parts
from tests.tools.fleet.killer import Killer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stabtree.tools.fleet.record import Record

SPIKE = FIXTURES / "phase19" / "spike-persistent"
SERIAL = ("-j", "1")


def three(folder: Path) -> Path:
    """Three runs in folders of their own."""
    for seed, name in enumerate("abc"):
        logs.csv(folder / name / "metrics.csv", seed)
    return folder


def judged(judge: UnitJudge, units: Sequence[Unit], jobs: int = 2) -> dict[str, Record]:
    """What became of units, by the last names of their paths, in the order in which it came."""
    found = results(judge, deque(units), jobs)
    return {record.path.rpartition("/")[2]: record for item in found for record in item.records}


def test_records_are_what_diagnose_says() -> None:
    """Each run's data is where it is from and the object of `diagnose --json`, hashes with it; the worst come first."""
    paths = [FIXTURES / "phase19" / name for name in ("healthy", "nan-forward", "spike-persistent", "loss-stops")]
    fleet = scan(*paths, jobs=1)
    assert {record.path for record in fleet} == {*map(str, paths)}
    assert [record.verdict for record in fleet] == ["critical", "critical", "critical", "ok"]
    for record in fleet:
        alone = json.loads(run("diagnose", record.path, "--json").stdout)
        assert json.loads(record.data) == {"source": record.path, **alone}
        assert alone["run"]["inputs"][0]["sha256"]


def test_processes_say_the_same(tmp_path: Path) -> None:
    """Other processes find what this one finds, and the script that asks is not run again in them."""
    here = scan(three(tmp_path), jobs=1)
    code = f"import stabtree\nprint([run.data for run in stabtree.scan({str(tmp_path)!r}, jobs=2)])\n"
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout == f"{[record.data for record in here]}\n"


def test_a_worker_that_is_killed_ends_no_scan(tmp_path: Path) -> None:
    """The log that its reader was killed of is a record that says so; those that were read with it are judged."""
    units = [Unit(str(three(tmp_path) / name)) for name in "abc"]
    for name in ("r0", "r1", "fatal", "r2"):
        logs.csv(tmp_path / "loose" / f"{name}.csv", len(name))
    loose = Unit(str(tmp_path / "loose"), ("r0.csv", "r1.csv", "fatal.csv", "r2.csv"))
    found = judged(Killer(), [*units, loose])
    assert found.pop("fatal.csv").title == "the process that read it was killed"
    assert {name: record.verdict for name, record in found.items()} == dict.fromkeys(
        ("a", "b", "c", "r0.csv", "r1.csv", "r2.csv"), "ok"
    )


def test_a_fault_of_ours_is_a_record_and_code_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug that one log brings out costs the others nothing, and is never green."""
    real = contents

    def broken(unit: Unit, *rest: Any) -> Any:
        if unit.path.endswith("/c"):
            raise ZeroDivisionError("of ours")
        return real(unit, *rest)

    monkeypatch.setattr(scanning, "contents", broken)
    done = run("scan", str(three(tmp_path)), *SERIAL, "--output", "jsonl")
    assert done.returncode == 4
    assert "stabtree itself failed: ZeroDivisionError: of ours" in done.stdout
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize("stage", ["stabtree.loaders.tables.delimited.read", "stabtree.loaders.paths.read.run_of", ""])
def test_too_little_memory_is_no_fault_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """Wherever it runs out, reading, putting together or judging: the log is named, and the exit code is 2."""
    logs.csv(tmp_path / "a" / "metrics.csv")
    real = Judging.diagnosed

    def fails(*given: Any) -> Any:
        if stage or given[1].name != "nothing":
            raise MemoryError
        return real(*given)

    monkeypatch.setattr(*((stage, fails) if stage else (Judging, "diagnosed", fails)))
    for words in (("diagnose", str(tmp_path / "a" / "metrics.csv")), ("scan", str(tmp_path), *SERIAL)):
        done = run(*words)
        assert done.returncode == 2
        assert re.search(f"(?s){tmp_path}.*too little memory", done.stdout + done.stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a POSIX matter")
def test_a_scan_that_is_asked_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    """No process, and no warning of Python's own; the exit code is that of the signal."""
    for seed in range(30):
        logs.csv(tmp_path / str(seed) / "metrics.csv", seed, 20_000)
    with subprocess.Popen([*COMMAND, "scan", str(tmp_path), "-j", "2"], stdout=-1, stderr=-1) as process:
        time.sleep(2)
        process.terminate()
        assert process.communicate()[1] == b""
    assert process.returncode in (143, 0)  # 0 on a machine that is done before


def test_an_interrupted_scan_keeps_what_it_found(tmp_path: Path) -> None:
    """Ctrl-C ends a scan with its runs so far, and says that there may be more."""
    told: list[int] = []

    def stop(_records: Any, found: Any, _waiting: int) -> None:
        told.append(found.total())
        if found:
            raise KeyboardInterrupt

    fleet = scan(three(tmp_path), jobs=1, tell=stop)
    assert fleet.stopped
    assert len(fleet) == told[-1] > 0


def test_a_notebook_shows_a_card(tmp_path: Path) -> None:
    """Of how many runs are what and the worst ones; no name of a folder is more than text. The text form is a line."""
    fleet = scan(three(tmp_path / 'a"><script>alert(1)<'), jobs=1)
    parts = Parts(fleet._repr_html_())
    assert not {"script", "iframe"} & {tag for tag, _ in parts.elements}
    assert "3 runs" in parts.text
    assert repr(fleet).startswith("Fleet(3 runs: ")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("jobs", 0, "0 is too few"),
        ("format", "nonsense", "not a format"),
    ],
)
def test_an_odd_value_is_an_error_of_ours(name: str, value: Any, problem: str) -> None:
    """In Python as on the command line: it says what is wrong and what to do, once, and nothing is read."""
    odd: dict[str, Any] = {"jobs": 1, name: value}
    with pytest.raises(StabtreeError) as caught:
        scan(SPIKE, **odd)
    assert problem in caught.value.problem
    assert caught.value.hint
    for path in (5, None, [SPIKE], ""):  # no record of a log that can't be read, which would be taken for a run's
        with pytest.raises(StabtreeError, match="names no folder"):
            scan(path, jobs=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--worst", "0"), "0 is too few"),
        (("--set", "Q9.9.x=1"), "Q9.9"),
    ],
)
def test_what_is_typed_wrong_is_told_once(options: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    """A mistake in an option ends the command in two lines, before any log is read."""
    assert problem in failed("scan", str(three(tmp_path)), *SERIAL, *options)


def test_exit_codes_are_those_of_diagnose(tmp_path: Path) -> None:
    """0 for healthy runs, 1 for a finding, 2 for a log that can't be read or none at all, 3 for one not judged."""
    assert "holds no log" in failed("scan", str(tmp_path), *SERIAL)
    logs.csv(tmp_path / "a" / "metrics.csv")
    assert run("scan", str(tmp_path), *SERIAL).returncode == 0
    (tmp_path / "short.csv").write_text("step,loss\n1,2.31\n2,2.29\n", encoding="utf-8")
    assert run("scan", str(tmp_path), *SERIAL).returncode == 3
    assert run("scan", str(tmp_path), *SERIAL, "--on-unknown", "pass").returncode == 0
    (tmp_path / "a" / "bad.csv").write_bytes(bytes(range(256)))
    assert run("scan", str(tmp_path), *SERIAL).returncode == 2
    assert run("scan", str(tmp_path), str(SPIKE), *SERIAL).returncode == 1
    assert run("scan", str(tmp_path), str(SPIKE), *SERIAL, "--fail-on", "never").returncode == 2


def test_outputs_go_where_they_are_sent(tmp_path: Path) -> None:
    """The screen and files at once, each with every run; a report of before is written over."""
    logs.csv(tmp_path / "top" / "metrics.csv")
    out = tmp_path / "out.jsonl"
    out.write_text("of before", encoding="utf-8")
    done = run("scan", str(tmp_path / "top"), str(SPIKE), *SERIAL, "--output", "screen", "--output", f"jsonl={out}")
    assert "1 of 2 runs has a warning or worse: 1 critical, 1 ok" in done.stdout
    assert [json.loads(line)["verdict"] for line in out.read_text(encoding="utf-8").splitlines()] == ["critical", "ok"]


def test_json_lines_and_progress_come_while_runs_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a scan that is killed had found is there, and a line says how far it is, though no terminal shows it."""
    monkeypatch.setattr("stabtree.tools.fleet.command.EVERY_SECONDS", 0)

    def ends(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("stabtree.tools.fleet.command.tell_of_links", ends)  # the first thing after the last run
    done = run("scan", str(three(tmp_path)), *SERIAL, "--output", "jsonl")
    assert [json.loads(line)["verdict"] for line in done.stdout.splitlines()] == ["ok"] * 3
    assert re.search(r"3 runs in \d+ s, 0 folders to go: 3 ok", done.stderr)


def test_no_output_goes_over_what_was_scanned_or_judged_by(tmp_path: Path) -> None:
    """A log, one that can't be read, the settings: each may be all that there is of it."""
    logs.csv(tmp_path / "top" / "metrics.csv")
    (tmp_path / "top" / "bad.csv").write_bytes(bytes(range(256)))
    (tmp_path / "own.toml").write_text('fail_on = "critical"\n', encoding="utf-8")
    words = ("scan", str(tmp_path / "top"), *SERIAL, "--settings", str(tmp_path / "own.toml"))
    problems = {"top/metrics.csv": "of the run itself", "top/bad.csv": "of the run itself", "own.toml": "is in use"}
    for name, problem in problems.items():
        before = (tmp_path / name).read_bytes()
        assert problem in failed(*words, "--output", f"csv={tmp_path / name}")
        assert (tmp_path / name).read_bytes() == before
