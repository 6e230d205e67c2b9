"""`stabtree baseline` accepts what is found; `diagnose --baseline` and the settings let that count for nothing."""

from __future__ import annotations

import json
import math
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import failed, run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

SPIKE, NAN = "spike-bad-batch", "nan-forward"  # a warning, and something critical


@pytest.fixture(autouse=True)
def _beside_two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SPIKE, NAN):
        shutil.copytree(FIXTURES / "phase19" / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)


def accepted(path: str, *words: str) -> list[str]:
    """The leaves of a run that are accepted."""
    told = json.loads(run("diagnose", path, "--json", *words).stdout)
    return [item["id"] for item in told["findings"] if item["accepted"]]


def grown(path: Path, value: float) -> None:
    """Ten more rows, the last of them with this loss."""
    log = path / "metrics.csv"
    head, *rows = log.read_text(encoding="utf-8").splitlines()
    names, cells = head.split(","), rows[-1].split(",")
    for step in range(int(cells[0]) + 1, int(cells[0]) + 11):
        cells[0] = str(step)
        if step % 10 == 9:
            cells[names.index("loss")] = str(value)
        rows.append(",".join(cells))
    log.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


def test_what_is_accepted_no_longer_fails_and_is_told() -> None:
    """Exit code 0 with it, 1 without; each output says that it is accepted, and what the verdict would be."""
    done = run("baseline", SPIKE, NAN, "--output", "base.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "accepted in base.json" in done.stdout
    assert run("diagnose", SPIKE, NAN, "-q").returncode == 1
    both = run("diagnose", SPIKE, NAN, "--baseline", "base.json")
    assert both.returncode == 0
    assert "1 accepted: spike-bad-batch at step 466" in " ".join(both.stdout.split())
    assert accepted(SPIKE, "--baseline", "base.json") == ["spike-bad-batch"]
    assert accepted(SPIKE) == []
    for words in ([], ["--output", "markdown"], ["--output", "html"]):
        told = run("diagnose", SPIKE, "--baseline", "base.json", *words).stdout
        assert "Accepted: spike-bad-batch at step 466: known (base.json)" in told, words
        assert "But for what is accepted the verdict would be warning." in told, words
        assert "1 accepted" in told, words


def test_what_a_person_writes_into_the_file_is_told_and_kept(tmp_path: Path) -> None:
    """The reason and the date stand in the report and in JSON, and no later writing takes them away."""
    run("baseline", SPIKE, "-o", "base.json")
    held = json.loads((tmp_path / "base.json").read_text(encoding="utf-8"))
    held["findings"][0] |= {"reason": "one odd shard\x1b[31m <b>", "since": "2026-03-01"}
    (tmp_path / "base.json").write_text(json.dumps(held), encoding="utf-8")
    assert run("baseline", SPIKE, NAN, "-o", "base.json").returncode == 0
    told = run("diagnose", SPIKE, "--baseline", "base.json").stdout
    assert "known since 2026-03-01, one odd shard <b> (base.json)" in told
    found = json.loads(run("diagnose", SPIKE, "--baseline", "base.json", "--json").stdout)["findings"][0]
    assert found["ignored"] is True
    assert found["accepted"] == {"reason": "one odd shard <b>", "since": "2026-03-01", "source": "base.json"}


def test_what_no_longer_occurs_is_told_and_dropped(tmp_path: Path) -> None:
    """On the screen, in JSON, beside the one line and the table; --update drops it, and accepts nothing new."""
    run("baseline", SPIKE, NAN, "-o", "base.json")
    shutil.copy(FIXTURES / "phase19" / "healthy" / "metrics.csv", tmp_path / SPIKE / "metrics.csv")
    note = "1 accepted finding no longer occurs: `stabtree baseline PATH --update` drops it"
    assert note in " ".join(run("diagnose", SPIKE, "--baseline", "base.json").stdout.split())
    assert note in json.loads(run("diagnose", SPIKE, "--baseline", "base.json", "--json").stdout)["notes"]
    assert note in run("diagnose", SPIKE, NAN, "--baseline", "base.json").stderr
    shutil.copytree(FIXTURES / "phase19" / "fp16-overflow", tmp_path / "other")
    done = run("baseline", SPIKE, "other", "-o", "base.json", "--update")
    assert done.stdout.endswith("0 new, 0 as before, 1 dropped\n")
    held = {item["run"] for item in json.loads((tmp_path / "base.json").read_text(encoding="utf-8"))["findings"]}
    assert held == {NAN}
    assert note not in run("diagnose", SPIKE, "--baseline", "base.json").stdout


def test_a_project_may_name_its_baseline_and_accept_leaves(tmp_path: Path) -> None:
    """Both count as on the command line; the file is beside the settings, wherever they are read from."""
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "strict.toml").write_text('baseline = "base.json"\n', encoding="utf-8")
    run("baseline", SPIKE, "-o", "ci/base.json")
    words = ("--settings", "ci/strict.toml")
    assert run("diagnose", SPIKE, "-q", *words).returncode == 0
    assert "Set by ci/strict.toml: baseline = ci/base.json." in run("diagnose", SPIKE, "--full", *words).stdout
    assert run("baseline", NAN, *words).stdout.endswith("0 as before, 0 dropped\n")
    assert run("diagnose", SPIKE, NAN, "-q", *words).returncode == 0
    (tmp_path / "stabtree.toml").write_text(
        'accept = [{leaf = "spike-bad-batch", run = "spike-*", reason = "odd"}]', encoding="utf-8"
    )
    told = run("diagnose", SPIKE)
    assert told.returncode == 0
    assert "Accepted: spike-bad-batch at step 466: odd (stabtree.toml)" in told.stdout


def test_a_log_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    """The others are accepted all the same, what was accepted of it stays, and the exit code is 2."""
    run("baseline", SPIKE, NAN, "-o", "base.json")
    (tmp_path / SPIKE / "metrics.csv").write_text("", encoding="utf-8")
    done = run("baseline", SPIKE, NAN, "-o", "base.json")
    assert done.returncode == 2
    assert SPIKE in done.stderr
    held = {item["run"] for item in json.loads((tmp_path / "base.json").read_text(encoding="utf-8"))["findings"]}
    assert held == {SPIKE, NAN}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("diagnose", SPIKE, "--baseline", "no.json"), "no.json: it can't be read"),
        (("baseline", SPIKE, "-o", f"{SPIKE}/manifest.json"), "it is not a baseline"),
        (("baseline", SPIKE, "--update", "-o", "no.json"), "no.json: it can't be read"),
        (("baseline", SPIKE, "-o", "no/base.json"), "it can't be written"),
        (("baseline", "no.csv", "-o", "base.json"), "no.csv"),
        (("baseline", SPIKE, "--ignore", "nosuch"), "no finding is called"),
    ],
)
def test_a_mistake_is_an_error(words: tuple[str, ...], told: str) -> None:
    """Two lines and exit code 2, and no file is written over that is none of ours."""
    assert told in failed(*words)


def test_no_output_goes_over_the_baseline(tmp_path: Path) -> None:
    """It is in use as the settings are, also where the log can't be read; and it is no standard output."""
    run("baseline", SPIKE, "-o", "base.json")
    (tmp_path / "bad.csv").write_bytes(bytes(range(256)))
    before = (tmp_path / "base.json").read_text(encoding="utf-8")
    for log in ("bad.csv", SPIKE):
        assert "is in use" in failed("diagnose", log, "--baseline", "base.json", "--output", "junit=base.json")
    assert (tmp_path / "base.json").read_text(encoding="utf-8") == before
    assert "kept in a file" in failed("baseline", SPIKE, "--output", "-")


def test_a_scan_takes_it(tmp_path: Path) -> None:
    """By option or by the settings."""
    run("baseline", SPIKE, NAN, "-o", "base.json")
    words = ("scan", SPIKE, NAN, "-j", "1", "-q")
    assert run(*words).returncode == 1
    assert run(*words, "--baseline", "base.json").returncode == 0
    assert run(*words).returncode == 1
    (tmp_path / "stabtree.toml").write_text('baseline = "base.json"\n', encoding="utf-8")
    assert run(*words).returncode == 0


def test_services_are_told_why_a_finding_is_accepted(tmp_path: Path) -> None:
    """SARIF's suppression has the reason, and so has the case of JUnit; what no longer holds is a note."""
    run("baseline", SPIKE, "-o", "base.json")
    text = (tmp_path / "base.json").read_text(encoding="utf-8")
    (tmp_path / "base.json").write_text(text.replace('"reason": ""', '"reason": "a [bad](shard)"'), encoding="utf-8")
    run("diagnose", SPIKE, "--baseline", "base.json", "--output", "sarif=s.json", "--output", "junit=j.xml")
    (result,) = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["runs"][0]["results"]
    why = "a [bad] (shard) (base.json)"
    assert result["suppressions"] == [{"kind": "external", "justification": why}]
    assert "a [bad](shard) (base.json)</skipped>" in (tmp_path / "j.xml").read_text(encoding="utf-8")


def test_of_two_copies_each_is_held_to_what_was_accepted_of_it(tmp_path: Path) -> None:
    """One that went on to break is no excuse for the other, though both are the same up to the onset."""
    (tmp_path / "z").mkdir()
    shutil.copytree(NAN, tmp_path / "z" / NAN)
    for value in (math.nan, 2.0, math.nan):
        grown(tmp_path / "z" / NAN, value)
    for name in (NAN, f"z/{NAN}"):
        run("baseline", name, "-o", "base.json")
    assert [run("diagnose", name, "--baseline", "base.json").returncode for name in (NAN, f"z/{NAN}")] == [0, 0]
    for value in (math.nan, 2.0, math.nan):
        grown(tmp_path / NAN, value)
    assert run("diagnose", NAN, "--baseline", "base.json").returncode == 1
