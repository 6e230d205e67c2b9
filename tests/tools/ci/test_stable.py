"""`stabtree.assert_stable`: a run as a test of a project's own."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from stabtree import StabtreeError, assert_stable
from tests.cli.command import run
from tests.conftest import FIXTURES, falling, make_run

HEALTHY, SPIKE = (FIXTURES / "phase19" / name for name in ("healthy", "spike-bad-batch"))


def test_a_run_with_a_finding_fails_with_its_report() -> None:
    """The message names the finding and what to do, as the screen does; a healthy one is handed back."""
    assert assert_stable(HEALTHY).verdict == "ok"
    with pytest.raises(AssertionError, match="not stable") as error:
        assert_stable(SPIKE)
    assert "spike-bad-batch" in str(error.value)
    assert "Do now" in str(error.value)


def test_what_fails_it_can_be_said() -> None:
    """By level, by leaf and by parameter, as on the command line; a word that is none is an error."""
    for how in ({"fail_on": "critical"}, {"fail_on": ["never"]}, {"ignore": ["spike-bad-batch"]}):
        assert assert_stable(SPIKE, **how).findings is not None
    with pytest.raises(StabtreeError, match="not a level"):
        assert_stable(SPIKE, fail_on="worst")
    with pytest.raises(StabtreeError, match="--set"):
        assert_stable(SPIKE, set=["Q2.1.nosuch=4"])
    with pytest.raises(StabtreeError):
        assert_stable("none.csv")


def test_a_run_that_was_not_judged_is_no_pass() -> None:
    """It fails, unless what could be judged is enough."""
    blind = make_run({"grad_norm": falling(100)}, dtype="fp16")
    with pytest.raises(AssertionError, match="not stable"):
        assert_stable(blind)
    assert assert_stable(blind, accept_partial=True).partial
    with pytest.raises(AssertionError):
        assert_stable(make_run({"note": falling(3)}), accept_partial=True)


def test_the_settings_of_the_project_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns and levels come from the working directory, and give way to what is said."""
    monkeypatch.chdir(tmp_path)
    Path("stabtree.toml").write_text('fail_on = ["critical"]\n', encoding="utf-8")
    assert assert_stable(SPIKE).verdict == "warning"
    with pytest.raises(AssertionError):
        assert_stable(SPIKE, fail_on="warning")
    Path("other.toml").write_text('[column]\nloss = "of_ours"\n', encoding="utf-8")
    frame = pd.DataFrame({"step": range(400), "of_ours": falling(400)})
    assert assert_stable(frame, dtype="fp32", config="other.toml").run.has("loss")


def test_a_baseline_and_what_else_the_settings_accept_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for `diagnose` in the same folder; an argument goes before them."""
    monkeypatch.chdir(tmp_path)
    run("baseline", str(SPIKE), "-o", "base.json")
    assert assert_stable(SPIKE, baseline="base.json").verdict == "ok"
    Path("stabtree.toml").write_text('baseline = "base.json"\naccept_partial = true\n', encoding="utf-8")
    assert assert_stable(SPIKE).verdict == "ok"
    assert assert_stable(make_run({"grad_norm": falling(100)}, dtype="fp16")).partial
    Path("empty.json").write_text('{"stabtree_baseline": 1, "findings": []}', encoding="utf-8")
    with pytest.raises(AssertionError):
        assert_stable(SPIKE, baseline="empty.json")
