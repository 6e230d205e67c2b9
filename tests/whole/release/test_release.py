"""`make release`: one command that commits and tags, or leaves everything as it was."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from benchmarks import verdicts
from benchmarks.verdicts import Record
from release import __main__ as release
from release.changelog import section
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n- More.\n\n## 0.1.0 - 2026-01-02\n\n- All.\n"
DAY = "2026-03-04"
STEPS = ["benchmarks.gates", "test", "test-floors", "docs", "release.dist"]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository that released 0.1.0, in the place of this one."""
    records = tmp_path / "benchmarks" / "verdicts"
    records.mkdir(parents=True)
    (records / "0.1.0.json").write_text(verdicts.written(Record("0.1.0", {"leaves": {"a": "ok -"}})), encoding="utf-8")
    (tmp_path / "_version.py").write_text('"""It."""\n\n__version__ = "0.1.0"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    shutil.copy(ROOT / "CITATION.cff", tmp_path)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a test")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@test")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "All"), ("tag", "v0.1.0")):
        git(tmp_path, *words)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "HOME", tmp_path / "_version.py")
    monkeypatch.setattr(release, "CITATION", tmp_path / "CITATION.cff")
    monkeypatch.setattr(release, "CHANGELOG", tmp_path / "CHANGELOG.md")
    monkeypatch.setattr(verdicts, "RECORDS", records)
    return tmp_path


def git(place: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", *words], cwd=place, capture_output=True, text=True, encoding="utf-8", check=True)
    return done.stdout


def stepping(monkeypatch: pytest.MonkeyPatch, fails: str = "") -> list[str]:
    """Put steps that only tell that they ran in the place of the real ones; the gates record what changed."""
    ran: list[str] = []

    def step(*command: str) -> None:
        ran.append(command[2] if command[1] == "-m" else command[1])
        if ran[-1] == "benchmarks.gates":
            record = Record(command[-1], {"leaves": {"a": "note spike-minor"}})
            (verdicts.RECORDS / f"{command[-1]}.json").write_text(verdicts.written(record), encoding="utf-8")
        if ran[-1] == fails:
            raise release.ReleaseError(fails)

    monkeypatch.setattr(release, "_run", step)
    return ran


def test_a_release_is_committed_and_tagged(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version, date and the verdicts that changed stand where they belong, after all checks; nothing is left over."""
    ran = stepping(monkeypatch)
    release.make("0.2.0", DAY)
    assert ran == STEPS
    assert (checkout / "_version.py").read_text(encoding="utf-8") == '"""It."""\n\n__version__ = "0.2.0"\n'
    assert (checkout / "CITATION.cff").read_text(encoding="utf-8").endswith(f"version: 0.2.0\ndate-released: {DAY}\n")
    notes = section((checkout / "CHANGELOG.md").read_text(encoding="utf-8"), "0.2.0")
    assert notes.startswith("### Added\n- More.\n\n### Verdicts that changed\n\nOf 1 yardstick runs of 0.1.0, 0 are")
    assert "| 1 | ok | note `spike-minor` | `leaves/a` |" in notes
    assert json.loads((verdicts.RECORDS / "0.2.0.json").read_text(encoding="utf-8"))["version"] == "0.2.0"
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "log", "-1", "--format=%s, %D").strip() == "stabtree 0.2.0, HEAD -> main, tag: v0.2.0"
    assert git(checkout, "cat-file", "-t", "v0.2.0").strip() == "tag"


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_all_as_it_was(step: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, no commit and no tag is left of it."""
    before = git(checkout, "rev-parse", "HEAD")
    stepping(monkeypatch, fails=step)
    with pytest.raises(release.ReleaseError, match=step):
        release.make("0.2.0", DAY)
    assert git(checkout, "rev-parse", "HEAD") == before
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "tag", "--list").split() == ["v0.1.0"]
    assert (checkout / "CHANGELOG.md").read_text(encoding="utf-8") == CHANGELOG


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("0.2", "is no version"),
        ("v0.2.0", "is no version"),
        ("0.2.0; ls", "is no version"),
        ("0.1.0", "does not come after 0.1.0"),
        ("0.0.9", "does not come after 0.1.0"),
        ("0.1.0rc1", "does not come after 0.1.0"),
    ],
)
def test_a_version_must_be_a_later_one(
    version: str, told: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run before that is seen."""
    ran = stepping(monkeypatch)
    with pytest.raises(release.ReleaseError, match=told):
        release.make(version, DAY)
    assert (ran, git(checkout, "status", "--porcelain")) == ([], "")


def test_only_what_is_committed_on_main_is_released(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes that are not committed are neither released nor lost."""
    stepping(monkeypatch)
    (checkout / "new.py").write_text("", encoding="utf-8")
    with pytest.raises(release.ReleaseError, match="not committed"):
        release.make("0.2.0", DAY)
    assert (checkout / "new.py").exists()
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "New")
    git(checkout, "switch", "-qc", "side")
    with pytest.raises(release.ReleaseError, match="this is side"):
        release.make("0.2.0", DAY)
