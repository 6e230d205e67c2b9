"""Every run below a folder is found, none is lost, none is reported twice."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import find_runs, load_runs
from stabtree.loaders.paths import find
from stabtree.tools.fleet.scan import scan
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


@pytest.mark.parametrize(
    ("given", "follow", "expected", "outside"),
    [
        ("top", False, ["run", "vis"], 3),
        ("top", True, ["run/metrics.csv", "run/one.csv", "run/out", "vis"], 0),
        ("typed", False, ["run", "vis"], 3),
        ("typed/run/metrics.csv", False, ["."], 0),
        ("cache/snapshots/r", False, ["."], 1),
    ],
)
def test_links_are_followed_within_what_was_named(
    tmp_path: Path, given: str, follow: bool, expected: list[str], outside: int
) -> None:
    """Each run is found once; what lies outside only where that was asked for, or in the store beside a snapshot."""
    for seed, path in enumerate(("top/run/metrics.csv", "top/.hidden/a.csv", "far/a.csv", "far/deep/a.csv"), 1):
        logs.csv(tmp_path / path, min(seed, 3))
    logs.csv(tmp_path / "cache" / "blobs" / "a1b2", 5)
    (tmp_path / "far" / "hparams.yaml").write_text("lr: 0.5")
    links = {
        "top": {"up": "top", "again": "top/run", "latest.csv": "top/run/metrics.csv", "vis": "top/.hidden"},
        "top/run": {"one.csv": "far/a.csv", "out": "far", "out2": "far", "all": "/", "kernel": "/proc/self"},
        "top/run/": {"hparams.yaml": "far/hparams.yaml"},
        "far/deep": {"circle": "far"},
        "cache/snapshots/r": {"metrics.csv": "cache/blobs/a1b2", "out": "far"},
        ".": {"typed": "top"},
    }
    for folder, inner in links.items():
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name, target in inner.items():
            (tmp_path / folder / name).symlink_to(tmp_path / target)
    found = find_runs(tmp_path / given, follow_links=follow)
    assert len(found.outside) == outside
    used = any(item.own.setting("lr") == 0.5 for item in found.loaded if item.path.endswith(("run", "metrics.csv")))
    assert used == (follow or given.endswith("csv"))
    fleet = scan(tmp_path / given, follow_links=follow, jobs=1, documents=False)
    assert len(fleet.outside) == outside
    assert sorted(run.path for run in fleet) == sorted(item.path for item in found.loaded)
    assert sorted(os.path.relpath(item.path, tmp_path / given) for item in found.loaded) == expected


def test_many_logs_of_one_folder_are_parted_with_ranks_together(tmp_path: Path) -> None:
    """Of a folder of many logs none is lost, and the ranks of a run are read together."""
    for seed in range(find.MAX_TOGETHER + 6):
        logs.csv(tmp_path / f"run{seed:03}.csv", seed, 8)
    for rank in range(4):
        logs.csv(tmp_path / f"big-rank{rank}.csv", 500 + rank, 8)
    assert len(names(tmp_path)) == find.MAX_TOGETHER + 7
    together = find.parts("f", [f"run{n}_rank{rank}.csv" for rank in range(3) for n in range(40)])
    assert all(len({name.split("_")[0] for name in unit.files}) == len(unit.files) / 3 for unit in together)
