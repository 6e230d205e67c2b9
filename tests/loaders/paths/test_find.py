"""Every run below a folder is found, none is lost, none is reported twice."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_runs
from stabtree.loaders.paths import find
from tests.loaders.paths import logs

if TYPE_CHECKING:
    from pathlib import Path


def names(top: Path) -> list[str]:
    """Return the paths of all runs below a folder, from there, in order; `!` marks what can't be read."""
    found = []
    for item in load_runs(top):
        mark = "! " if isinstance(item.run, StabtreeError) else ""
        found.append(f"{mark}{os.path.relpath(item.path, top)}")
    return sorted(found)


@pytest.mark.parametrize("count", [1, find.MAX_TOGETHER + 1])
def test_files_that_a_manifest_names_are_no_runs_of_their_own(tmp_path: Path, count: int) -> None:
    """However many they are, and whatever their folder is called."""
    files = [f"hugo/{number}.csv" for number in range(count)]
    for file in files:
        logs.csv(tmp_path / file, 1)
    (tmp_path / "manifest.json").write_text(json.dumps({"metrics_files": files}), encoding="utf-8")
    assert names(tmp_path) == ["."]


def test_a_folder_that_may_not_be_entered_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever could not look somewhere says so."""
    logs.csv(tmp_path / "open" / "metrics.csv")
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def guarded(path: str) -> os._ScandirIterator[str]:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert names(tmp_path) == ["! closed", "open"]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    """A link to a folder above, or to a run that was read already, adds nothing; one that leads elsewhere does."""
    top, elsewhere = tmp_path / "top", tmp_path / "elsewhere"
    logs.csv(top / "run" / "metrics.csv", 1)
    logs.csv(elsewhere / "metrics.csv", 2)
    (top / "up").symlink_to(top)
    (top / "again").symlink_to(top / "run")
    (top / "links").mkdir()
    (top / "links" / "latest.csv").symlink_to(top / "run" / "metrics.csv")
    (top / "out").symlink_to(elsewhere)
    (elsewhere / "circle").symlink_to(elsewhere)
    assert names(top) == ["out", "run"]


@pytest.mark.parametrize("target", ["/proc/self", "/"])
def test_links_to_what_is_no_folder_of_runs_are_left_out(tmp_path: Path, target: str) -> None:
    """One to the kernel's own folders, and one from which everything would be read."""
    logs.csv(tmp_path / "a" / "metrics.csv", 1)
    (tmp_path / "a" / "out").symlink_to(target)
    assert names(tmp_path) == ["a"]


def test_many_logs_of_one_folder_are_parted_with_ranks_together(tmp_path: Path) -> None:
    """Of a folder of many logs none is lost, and the ranks of a run are read together."""
    for seed in range(find.MAX_TOGETHER + 6):
        logs.csv(tmp_path / f"run{seed:03}.csv", seed, 8)
    for rank in range(4):
        logs.csv(tmp_path / f"big-rank{rank}.csv", 500 + rank, 8)
    assert len(names(tmp_path)) == find.MAX_TOGETHER + 7
    together = find.parts("f", [f"run{n}_rank{rank}.csv" for rank in range(3) for n in range(40)])
    assert all(len({name.split("_")[0] for name in unit.files}) == len(unit.files) / 3 for unit in together)
