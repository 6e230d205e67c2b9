"""Outputs for services, as they are asked for on the command line and read from what it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.report.outputs import GITHUB, JUNIT, SARIF, SERVICES
from tests.cli.command import failed, run
from tests.conftest import FIXTURES
from tests.tools.ci import reading

if TYPE_CHECKING:
    from pathlib import Path

NAN, HEALTHY = (str(FIXTURES / "phase19" / name) for name in ("nan-forward", "healthy"))
SUMMARY = "GITHUB_STEP_SUMMARY"


def test_findings_are_told_with_the_line_in_which_they_begin() -> None:
    """Line 414 of the log holds step 412, below its header; every format that knows of lines says so."""
    assert (
        (FIXTURES / "phase19" / "nan-forward" / "metrics.csv")
        .read_text(encoding="utf-8")
        .split("\n")[413]
        .startswith("412,")
    )
    (command,) = reading.commands(run("diagnose", NAN, "--output", GITHUB).stdout)
    assert command.properties["line"] == "414"
    (result,) = reading.sarif(run("diagnose", NAN, "--output", SARIF).stdout)["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 414}


def test_the_summary_is_appended_where_github_names_it(tmp_path: Path) -> None:
    """Below what other steps wrote, and only beside the commands that GitHub reads from standard output."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    run("diagnose", NAN, HEALTHY, "--output", f"{GITHUB}={tmp_path / 'commands'}", SUMMARY=str(summary))
    done = run("diagnose", NAN, "-q", **{SUMMARY: str(summary)})
    assert (done.returncode, summary.read_text(encoding="utf-8")) == (1, "before\n")
    done = run("diagnose", NAN, "--output", GITHUB, **{SUMMARY: str(summary)})
    assert done.returncode == 1
    assert summary.read_text(encoding="utf-8").startswith("before\n### CRITICAL: Step 412")
    run("diagnose", NAN, HEALTHY, "--output", GITHUB, **{SUMMARY: str(summary)})
    assert "### 1 of 2 runs has a warning or worse: 1 critical, 1 ok" in summary.read_text(encoding="utf-8")


def test_a_summary_that_can_not_be_written_changes_no_verdict(tmp_path: Path) -> None:
    """One note on standard error; the annotations and the exit code are those of the run."""
    done = run("diagnose", NAN, "--output", GITHUB, **{SUMMARY: str(tmp_path / "no" / "summary.md")})
    assert done.returncode == 1
    assert len(reading.commands(done.stdout)) == 1
    assert done.stderr.startswith("note: nothing was added to the job's summary: ")


def test_a_summary_never_grows_beyond_what_github_shows(tmp_path: Path) -> None:
    """What others wrote is not lost because of us."""
    summary = tmp_path / "summary.md"
    summary.write_bytes(b"x" * ((1 << 20) - 10))
    assert "larger than GitHub shows" in run("diagnose", NAN, "--output", GITHUB, **{SUMMARY: str(summary)}).stderr
    assert summary.stat().st_size == (1 << 20) - 10


def test_the_bar_of_failures_is_that_of_the_exit_code(tmp_path: Path) -> None:
    """`--fail-on` and `--on-unknown pass` say in JUnit XML what they say in the exit code."""
    plateau, short = str(FIXTURES / "phase19" / "plateau"), tmp_path / "short.csv"
    short.write_text("step,loss\n1,2.0\n2,1.9\n", encoding="utf-8")
    for words, failures, errors, code in (
        ((plateau,), 0, 0, 0),
        ((plateau, "--fail-on", "note"), 1, 0, 1),
        ((str(short),), 0, 1, 3),
        ((str(short), "--on-unknown", "pass"), 0, 0, 0),
    ):
        done = run("diagnose", *words, "--output", JUNIT)
        root = reading.suites(done.stdout)
        told = (int(root.get("failures", "")), int(root.get("errors", "")), done.returncode)
        assert told == (failures, errors, code), words


def test_a_log_that_can_not_be_read_is_told_to_services_too(tmp_path: Path) -> None:
    """Alone as among others: a file for each service that wanted one, two lines on standard error, exit code 2."""
    log = tmp_path / "empty.csv"
    log.write_text("", encoding="utf-8")
    files = {name: tmp_path / f"told.{name}" for name in SERVICES}
    asked = [word for name, file in files.items() for word in ("--output", f"{name}={file}")]
    failed("diagnose", str(log), *asked)
    assert [command.name for command in reading.commands(files[GITHUB].read_text(encoding="utf-8"))] == ["error"]
    assert reading.suites(files[JUNIT].read_text(encoding="utf-8")).get("errors") == "1"
    assert not reading.sarif(files[SARIF].read_text(encoding="utf-8"))["invocations"][0]["executionSuccessful"]


@pytest.mark.parametrize("others", [(), (HEALTHY,)])
def test_a_log_that_can_not_be_read_is_not_written_over(tmp_path: Path, others: tuple[str, ...]) -> None:
    """It may be all that is left of a run."""
    log = tmp_path / "broken.csv"
    log.write_text("no log at all", encoding="utf-8")
    assert "is a file of the run itself" in failed("diagnose", str(log), *others, "--output", f"{JUNIT}={log}")
    assert log.read_text(encoding="utf-8") == "no log at all"
