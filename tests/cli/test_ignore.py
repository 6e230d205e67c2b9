"""--ignore LEAF: found and told, but no part of the verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import failed, run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

SPIKE = str(FIXTURES / "phase19" / "spike-bad-batch")  # a warning alone
NAN = str(FIXTURES / "phase19" / "fp16-overflow")  # critical, and more


def test_an_ignored_finding_is_kept_and_counts_for_nothing() -> None:
    """Verdict and exit code go without it; JSON, the line and the screen say so."""
    plain = json.loads(run(SPIKE, "--json").stdout)
    assert [item["ignored"] for item in plain["findings"]] == [False] * len(plain["findings"])
    done = run(SPIKE, "--json", "--ignore", "spike-bad-batch")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"]) == (0, "ok")
    assert [item["id"] for item in found["findings"] if item["ignored"]] == ["spike-bad-batch"]
    for words in (["-q"], []):
        assert "1 ignored" in run(SPIKE, "--ignore", "spike-bad-batch", *words).stdout
        assert "ignored" not in run(SPIKE, *words).stdout


def test_what_else_was_found_counts_as_before() -> None:
    """The worst of what is left makes the verdict, and only what is named is ignored."""
    done = run(NAN, "--json", "--ignore", "fp16-overflow")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"]) == (1, "critical")
    assert found["findings"][0]["id"] != "fp16-overflow"
    assert [item["id"] for item in found["findings"] if item["ignored"]] == ["fp16-overflow"]


def test_what_was_not_found_is_not_told() -> None:
    """Ignoring it changes nothing, whether or not the run needs its tree."""
    for leaf in ("fp16-overflow", "reward-zero"):
        assert run(SPIKE, "-q", "--ignore", leaf).stdout == run(SPIKE, "-q").stdout


@pytest.mark.parametrize(
    ("leaf", "told"),
    [("spike-bad-bach", "did you mean 'spike-bad-batch'?"), ("Q3.4", "the findings of Q3.4 are scale-constant")],
)
def test_a_leaf_that_is_none_is_an_error(leaf: str, told: str) -> None:
    """A near miss is named, and of a question its findings."""
    assert told in failed("diagnose", SPIKE, "--ignore", leaf)


def test_a_project_may_ignore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command line ignores comes to it; a mistake is told with its key."""
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "stabtree.toml"
    settings.write_text('ignore = ["spike-bad-batch"]\n', encoding="utf-8")
    done = run(SPIKE, "--full")
    assert done.returncode == 0
    assert "Set by stabtree.toml: ignore = spike-bad-batch." in done.stdout
    assert run(SPIKE, "--ignore", "fp16-overflow").returncode == 0
    settings.write_text('ignore = "spike-bad-bach"\n', encoding="utf-8")
    assert failed("diagnose", SPIKE).startswith("error: stabtree.toml: ignore: no finding is called 'spike-bad-bach'")
