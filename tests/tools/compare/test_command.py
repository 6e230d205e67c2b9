"""`stabtree compare`: what it reads, prints and ends with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stabtree
from tests.cli.command import failed, run
from tests.conftest import FIXTURES, falling

if TYPE_CHECKING:
    from pathlib import Path

GOOD, BAD = str(FIXTURES / "healthy" / "noisy"), str(FIXTURES / "phase19" / "nan-forward")


def written(path: Path, loss: np.ndarray, extra: dict[str, np.ndarray] | None = None) -> str:
    """A CSV file of a loss, and other columns beside it."""
    columns = {"loss": loss, **(extra or {})}
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(map(repr, map(float, row))) for row in rows]
    text = "\n".join([",".join(["step", *columns]), *(f"{step},{line}" for step, line in enumerate(lines))])
    path.write_text(f"{text}\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, str]:
    """A good run, one of the same seed that jumps, one of another seed, and a short one."""
    loss = falling(300, seed=1)
    return {
        "good": written(tmp_path / "good.csv", loss),
        "jumps": written(tmp_path / "jumps.csv", np.where(np.arange(300) >= 200, 3 * loss, loss)),
        "other": written(tmp_path / "other.csv", falling(300, seed=2)),
        "short": written(tmp_path / "short.csv", falling(9, seed=3)),
    }


def test_the_exit_code_says_whether_it_is_worse(logs: dict[str, str]) -> None:
    """0 it is not, 1 it is, 2 one can't be read, 3 that can't be told."""
    codes = [run("compare", logs["good"], logs[bad]).returncode for bad in ("other", "jumps", "short")]
    assert codes == [0, 1, 3]
    assert run("compare", logs["good"], "missing.csv").returncode == 2


def test_json_is_what_the_function_returns(logs: dict[str, str]) -> None:
    """`stabtree.compare(...).to_dict()`, with the step, the values, and what each run is told."""
    told = json.loads(run("compare", logs["good"], logs["jumps"], "--json").stdout)
    assert told == stabtree.compare(logs["good"], logs["jumps"]).to_dict()
    assert (told["verdict"], told["method"]) == ("worse", "same seed")
    assert (told["metric"], told["first_worse"]) == ("loss", 200)
    assert told["times_at_end"] == pytest.approx(3, rel=0.05)
    first = told["differences"][0]
    assert (first["metric"], first["step"], first["how"]) == ("loss", 200, "worse")
    assert [item["run"] for item in told["findings"]] == [logs["good"], logs["jumps"]]


def test_the_screen_says_from_where_on_it_is_worse(logs: dict[str, str]) -> None:
    """By how much, with a figure of both runs, what each is told, and what to type next; nothing is too wide."""
    done = run("compare", logs["good"], logs["jumps"], COLUMNS="80")
    assert done.stdout.startswith(" DIVERGES   loss worse from step 200 on, no different before; 3 times")
    told = "What differs", "worse from 200", "dotted: the good run", "Verdict of each run", "next: stabtree"
    assert all(words in done.stdout for words in told)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "dotted" not in run("compare", logs["good"], logs["jumps"], "--no-plots").stdout
    assert run("compare", logs["good"], logs["jumps"], "-q").stdout.startswith("DIVERGES  ")
    manifests = run("compare", GOOD, BAD).stdout
    assert all(words in manifests for words in ("Settings that differ", "batch_size", "max_steps"))


def test_runs_of_one_seed_are_no_ranks_and_good_ones_may_be_a_pattern(logs: dict[str, str], tmp_path: Path) -> None:
    """The same gradient norm in two files is what a comparison is about; --bad names the bad run wherever it lies."""
    loss, norm = falling(300, seed=1), {"grad_norm": falling(300, seed=8)}
    (tmp_path / "runs").mkdir()
    for name in ("a", "b", "c"):
        written(tmp_path / "runs" / f"{name}.csv", loss, norm)
    done = run("compare", str(tmp_path / "runs" / "*.csv"), "--bad", logs["jumps"], "--json")
    assert [name.rpartition("/")[2] for name in json.loads(done.stdout)["good"]] == ["a.csv", "b.csv", "c.csv"]


def test_mistakes_are_told_in_two_lines(logs: dict[str, str]) -> None:
    """One run alone, a run against itself, an unknown axis, an output of diagnoses alone."""
    assert "nothing to compare with" in failed("compare", logs["good"])
    assert "is also one of the healthy runs" in failed("compare", logs["good"], logs["good"])
    assert "'tokes' is not an axis" in failed("compare", logs["good"], logs["other"], "--by", "tokes")
    assert "no column counts tokens" in failed("compare", logs["good"], logs["other"], "--by", "tokens")
    assert "'svg' is not an output" in failed("compare", logs["good"], logs["other"], "--output", "svg")


def test_a_log_that_was_misread_is_not_told_to_be_no_worse(tmp_path: Path) -> None:
    """A third of its values is not what was logged: it can't be told, as `diagnose` does not judge it either."""
    lines = ["step,loss", *(f"{step},{value}" for step, value in enumerate(falling(300, seed=1)))]
    torn = [lines[0], *(line if step % 3 else f"{step},oops" for step, line in enumerate(lines[1:]))]
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text("\n".join(lines), encoding="utf-8")
    bad.write_text("\n".join(torn), encoding="utf-8")
    for paths, which in (((good, bad), "bad"), ((bad, good), "good")):
        done = run("compare", *map(str, paths), "-q")
        assert done.returncode == 3
        assert f"the {which} run was misread: 100 of 300 values of loss" in done.stdout


@pytest.mark.parametrize("words", [("diagnose", ""), ("compare", "good.csv", ""), ("inspect", ""), ("scan", "")])
def test_an_empty_path_is_not_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """A variable of the shell that is not set names nothing, whatever lies about."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "good.csv", falling(300, seed=1))
    assert " names no " in failed(*words)


def test_the_last_run_of_a_file_is_compared_and_the_others_are_named(tmp_path: Path) -> None:
    """A run that was started again in the folder of a failed one is not compared by the failed one's rows."""
    paths = [tmp_path / "good.jsonl", tmp_path / "bad.jsonl"]
    loss = falling(300, seed=1)
    for path, runs in zip(paths, ((loss,), (np.full(100, np.nan), loss)), strict=True):
        for values in runs:
            with stabtree.Recorder(path) as recorder:
                for step, value in enumerate(values):
                    recorder.log(step, loss=value)
    found = stabtree.compare(*paths)
    assert found.verdict == "no worse"
    assert any("bad.jsonl: The file holds 2 runs" in note for note in found.notes)
