"""Several paths are several runs: nothing is averaged away, and no healthy run hides a bad one."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree import StabtreeError, diagnose, load_run, load_runs
from tests.cli.command import failed, run
from tests.conftest import FIXTURES, falling
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path


PHASE19 = FIXTURES / "phase19"
HEALTHY = str(PHASE19 / "healthy")


def csv(path: Path, *, seed: int = 0, lr: float = 1e-3, broken: bool = False) -> str:
    """A log of 300 steps with a rate and a gradient norm of its own; a broken one ends in NaN."""
    loss = falling(300, seed=seed)
    norm = 1 + 0.1 * np.random.default_rng(seed).random(300)
    if broken:
        loss[250:] = np.nan
    rows = [f"{i},{x:.6g},{lr:g},{n:.6g}" for i, (x, n) in enumerate(zip(loss, norm, strict=True))]
    return str(write(path.parent, "step,loss,lr,grad_norm\n" + "\n".join(rows) + "\n", path.name))


@pytest.mark.parametrize("other", ["nan-forward", "spike-bad-batch", "plateau", "not-shown", "normal-backoff"])
def test_a_healthy_run_beside_another_never_lowers_the_exit_code(other: str) -> None:
    """Whatever the run, and whichever is named first."""
    alone = run("diagnose", str(PHASE19 / other), "-q").returncode
    for paths in ((HEALTHY, str(PHASE19 / other)), (str(PHASE19 / other), HEALTHY)):
        assert run("diagnose", *dict.fromkeys(paths), "-q").returncode == alone


def test_a_folder_of_runs_is_a_table_worst_first() -> None:
    """Each run below it is judged on its own; the last lines sum up."""
    done = run("diagnose", str(PHASE19))
    verdicts = [line.split()[0] for line in done.stdout.splitlines() if line[:2].strip() and line[1:2].isupper()]
    assert done.returncode == 1
    assert verdicts == sorted(verdicts, key=["CRITICAL", "WARNING", "NOTE", "OK"].index)
    assert "24 of 31 runs have a warning or worse: 16 critical, 8 warning, 3 note, 4 ok (2 with notes)" in done.stdout


@pytest.mark.parametrize("width", [60, 120])
def test_the_table_is_aligned_and_no_name_is_broken(width: int) -> None:
    """Each run is one row whose columns stand where those of all others stand; the folder is told once.

    The last line is a command to copy, and stays one line.
    """
    done = run("diagnose", str(PHASE19), COLUMNS=str(width))
    lines = done.stdout.splitlines()
    assert all(len(line) <= width for line in lines[:-1])
    told = next(line.index("what was found") for line in lines if "what was found" in line)
    names = sorted(path.name for path in PHASE19.iterdir())
    rows = {line.split()[0]: line for line in lines if line[2:].split(" ")[0] in names}
    assert sorted(rows) == names
    assert all(line[told - 2 : told] == "  " and line[told] != " " for line in rows.values())
    assert re.search(r"  730  The run overflowed in", rows["fp16-overflow"])
    assert done.stdout.count(PHASE19.name) == 2


@pytest.mark.parametrize(
    ("letters", "table"),
    [
        ("HBHHBHBB", r"4 of 8  .*\n.* · .*seed1.* and .*\n +→ .*\n OK +4 of 8  Healthy"),
        ("HBBH", r"2 of 4  .*\n.* · seed1 and seed2\n +→ .*\n OK +2 of 4  Healthy"),
        ("HB", r"1 run\n  seed1 "),
        ("HHHH", r"OK +4 of 4  Healthy"),
    ],
)
def test_equal_findings_are_a_group(tmp_path: Path, letters: str, table: str) -> None:
    """With what to do first; healthy runs are counted apart. By either name of the command it is the same."""
    for index, letter in enumerate(letters):
        csv(tmp_path / f"seed{index}.csv", seed=index, lr=1e-3 * (index + 1), broken=letter == "B")
    done = run("diagnose", str(tmp_path), COLUMNS="120")
    assert re.search(table, done.stdout.replace(".csv", ""))
    again = run("scan", str(tmp_path), COLUMNS="120")
    assert (again.stdout, again.returncode) == (done.stdout, done.returncode)


def test_long_paths_keep_their_ends(tmp_path: Path) -> None:
    """That is where runs differ; logs of other folders are named with theirs."""
    paths = [tmp_path / letter / ("x" * 60) / letter / name for letter, name in (("a", "plateau"), ("b", "healthy"))]
    for path in paths:
        shutil.copytree(PHASE19 / path.name, path)
    done = run("diagnose", *map(str, paths))
    rows = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  …")]
    assert [(row[0], row[-12:]) for row in rows] == [("…", "xx/a/plateau"), ("…", "xx/b/healthy")]


def test_seeds_are_runs_and_ranks_are_proved(tmp_path: Path) -> None:
    """The same steps and rate prove nothing; a rank in the names, or one gradient norm in all logs, does."""
    seeds = [csv(tmp_path / f"seed{n}.csv", seed=n, broken=n == 1) for n in range(3)]
    assert len(load_runs(*seeds)) == 3
    done = run("diagnose", *seeds, "-q")
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["WARNING", "OK", "OK"]
    with pytest.raises(StabtreeError, match="these are 3 runs"):
        load_run(*seeds)
    ranks = [csv(tmp_path / f"rank{n}.csv", seed=n) for n in range(3)]
    assert [len(item.run.ranks) for item in load_runs(*ranks) if not isinstance(item.run, StabtreeError)] == [3]
    reduced = [csv(tmp_path / f"{name}.csv") for name in "ab"]
    assert len(load_runs(*reduced)) == 1


def test_inspect_takes_the_option_that_its_hint_names(tmp_path: Path) -> None:
    """Of several logs it says --ranks, and then shows them as one run."""
    paths = [csv(tmp_path / f"seed{n}.csv", seed=n) for n in range(2)]
    assert "--ranks" in failed("inspect", *paths)
    assert len(json.loads(run("inspect", *paths, "--ranks", "--json").stdout)["ranks"]) == 2


def test_what_contradicts_a_proof_is_never_averaged(tmp_path: Path) -> None:
    """Two logs named as ranks, with learning rates of their own, are two runs; --ranks says otherwise."""
    paths = [csv(tmp_path / f"rank{n}.csv", lr=10.0**-n) for n in (2, 3)]
    assert len(load_runs(*paths)) == 2
    assert len(load_runs(*paths, ranks=True)) == 1


def test_a_rank_that_broke_is_found_though_the_mean_hides_it(tmp_path: Path) -> None:
    """Its finding is told with its rank."""
    paths = [csv(tmp_path / f"rank{n}.csv", seed=n) for n in range(8)]
    loss = falling(300, seed=3)
    loss[150:] += np.where(np.arange(150) < 150, 1.5, 0)
    rows = [f"{i},{x:.6g},0.001,1" for i, x in enumerate(loss)]
    write(tmp_path, "step,loss,lr,grad_norm\n" + "\n".join(rows) + "\n", "rank3.csv")
    found = diagnose(load_run(*paths))
    assert found.verdict == "critical"
    assert any("rank 3" in item.text for finding in found.findings for item in finding.evidence)


def printed_and_logged(folder: Path, *, off: float = 0.0, rows: int = 40) -> Path:
    """A file of metrics by epoch, and the same losses as they were printed, by steps, with what the run ended in."""
    loss = falling(rows, seed=4)
    write(folder, "epoch,loss\n" + "".join(f"{i},{x:.9g}\n" for i, x in enumerate(loss)), "training.csv")
    lines = "".join(f"step {38 * (i + 1)}, loss: {x + off:.4f}\n" for i, x in enumerate(loss))
    write(folder, f"{lines}Traceback (most recent call last):\nValueError: nothing left\n", "train.log")
    return folder


def test_a_run_that_was_printed_and_logged_is_one(tmp_path: Path) -> None:
    """The same losses, rounded, are told once, on one axis, by what tells more, with the error that was printed."""
    (loaded,) = load_runs(printed_and_logged(tmp_path))
    assert not isinstance(loaded.run, StabtreeError)
    assert loaded.run.series["loss"].steps[[0, -1]].tolist() == [0, 39]
    assert any("ValueError" in line.text for line in loaded.run.lines)
    assert any("holds the same run" in note for note in loaded.run.notes)


@pytest.mark.parametrize(("off", "rows"), [(0.002, 40), (0.0, 19)])
def test_runs_that_are_not_proved_one_stay_two(tmp_path: Path, off: float, rows: int) -> None:
    """Losses that differ in printed digits are of two runs, and few rows prove nothing; epochs follow no steps."""
    assert len(load_runs(printed_and_logged(tmp_path, off=off, rows=rows))) == 2


def test_a_log_that_can_not_be_read_is_a_row_with_its_reason(tmp_path: Path) -> None:
    """It makes the exit code 2, or 1 where something was found; JSON holds its error."""
    text = str(write(tmp_path, "nothing,here\na,b\n", "notes.csv"))
    assert run("diagnose", HEALTHY, text).returncode == 2
    assert "NOT READ" in run("diagnose", HEALTHY, text).stdout
    assert run("diagnose", HEALTHY, text, str(PHASE19 / "lr-rising")).returncode == 1
    told = json.loads(run("diagnose", HEALTHY, text, "--json").stdout)
    assert told["verdict"] == "unknown"
    assert [set(one) & {"error", "verdict"} for one in told["runs"]] == [{"error"}, {"verdict"}]


def test_patterns_are_expanded_where_the_shell_did_not(tmp_path: Path) -> None:
    """As on a shell that leaves them; a file of that very name comes first."""
    for name in ("fp16-overflow", "healthy"):
        shutil.copytree(PHASE19 / name, tmp_path / "runs" / name)
    assert len(load_runs(f"{tmp_path}/runs/*")) == 2


def test_a_file_that_is_named_twice_is_one(tmp_path: Path) -> None:
    """In other words, by a link, through its folder or a pattern; neither two runs nor two ranks."""
    place = tmp_path / "run"
    place.mkdir()
    path = csv(place / "a.csv")
    (tmp_path / "link.csv").symlink_to(path)
    for again in (path, f"{place}/./a.csv", str(tmp_path / "link.csv"), str(place), f"{place}/*.csv"):
        (only,) = load_runs(path, again)
        assert not isinstance(only.run, StabtreeError)
        assert not only.run.ranks
    assert not load_run(path, str(tmp_path / "link.csv"), ranks=True).ranks


def test_of_many_files_none_is_passed_over_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log among data is found; beyond what is read the rest is told, and the exit code is not 0."""
    monkeypatch.setattr("stabtree.loaders.paths.load.MAX_LOOKS", 300)
    for number in range(200):
        (tmp_path / f"{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    csv(tmp_path / "zz.csv")
    assert run("diagnose", str(tmp_path), "-q").returncode == 0
    for number in range(301):
        (tmp_path / f"{number}.json").write_bytes(b"[]")
    done = run("diagnose", str(tmp_path), "-q")
    assert (done.returncode, "1 more files, which were not looked at" in done.stdout + done.stderr) == (2, True)


def test_options_of_one_run_are_refused_for_several() -> None:
    """A rerun and questions at the prompt go with one run, and a number of runs with several."""
    both = (HEALTHY, str(PHASE19 / "plateau"))
    assert "goes with several runs" in failed("diagnose", HEALTHY, "--worst", "3")
    assert "goes with one run" in failed("diagnose", *both, "--interactive")
    assert "goes with one run" in failed("diagnose", *both, "-o", "run.svg")
    assert "goes with one run" in failed("diagnose", *both, "--rerun", str(PHASE19 / "lr-rising"))
