"""Runs at addresses: what is fetched, what is refused, and that they are told as those of this machine are."""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.tools.fleet import remote
from stabtree.tools.fleet.scan import scan
from tests.cli.command import run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.tools.fleet.record import Record

fsspec = pytest.importorskip("fsspec", reason="needs the extra test-fleet")
OVERFLOW = FIXTURES / "phase19" / "fp16-overflow"
HEALTHY = FIXTURES / "phase19" / "healthy"


@pytest.fixture
def memory() -> Iterator[Any]:
    """A store in memory with two runs, one with checkpoints and with weights under other names."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    for folder in (OVERFLOW, HEALTHY):
        for file in folder.iterdir():
            system.pipe(f"/runs/{folder.name}/{file.name}", file.read_bytes())
    for name in ("checkpoint-500/model.safetensors", "weights.pt", "predictions.npz"):
        system.pipe(f"/runs/fp16-overflow/{name}", b"\0" * 4096)
    yield system
    system.store.clear()


def rows(*paths: str, **options: Any) -> list[Record]:
    """What a scan in this process finds, by path."""
    return sorted(scan(*paths, jobs=1, **options), key=lambda run: run.path)


@pytest.mark.usefixtures("memory")
def test_a_scan_tells_addresses_as_it_tells_folders() -> None:
    """The same runs have the same verdicts, findings and files' hashes; their paths are addresses."""
    far, near = rows("memory://runs"), rows(str(OVERFLOW), str(HEALTHY))
    assert [row.path for row in far] == ["memory://runs/fp16-overflow", "memory://runs/healthy"]
    for one, other in zip(far, near, strict=True):
        assert (one.verdict, one.leaf, one.onset_step, one.spark) == (
            *(other.verdict, other.leaf, other.onset_step),
            other.spark,
        )
        files = [[file["sha256"] for file in json.loads(row.data)["run"]["inputs"]] for row in (one, other)]
        assert files[0] == files[1]
    assert all(tempfile.gettempdir() not in row.data for row in far)


def test_files_that_a_manifest_names_are_of_its_run(memory: Any) -> None:
    """They are fetched with it from whatever folder they are in."""
    for name in ("manifest.json", "metrics.csv"):
        memory.pipe(f"/named/{name}", (OVERFLOW / name).read_bytes())
    memory.mv("/named/metrics.csv", "/named/hugo/metrics.csv")
    text = memory.cat("/named/manifest.json").replace(b'"metrics.csv"', b'"hugo/metrics.csv"')
    memory.pipe("/named/manifest.json", text)
    assert [row.leaf for row in rows("memory://named")] == ["fp16-overflow"]


def test_only_what_may_be_a_log_is_fetched(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are known by their names and never fetched, and a checkpoint among them is restarted from."""
    fetched: list[str] = []
    get = memory.get

    def noted(there: list[str], here: list[str]) -> None:
        fetched.extend(there)
        get(there, here)

    monkeypatch.setattr(type(memory), "get", lambda _self, *paths: noted(*paths))
    (row,) = rows("memory://runs/fp16-overflow")
    assert sorted(fetched) == ["/runs/fp16-overflow/manifest.json", "/runs/fp16-overflow/metrics.csv"]
    assert "memory://runs/fp16-overflow/checkpoint-500" in row.data


def test_diagnose_reads_a_run_at_an_address(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`diagnose` tells of the copy what it tells of the run, by its address, and leaves nothing behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other tests have theirs in the usual place
    memory.rm("/runs/fp16-overflow/checkpoint-500", recursive=True)
    far, near = (
        json.loads(run("diagnose", path, "--json").stdout) for path in ("memory://runs/fp16-overflow", str(OVERFLOW))
    )
    assert (far["verdict"], far["findings"], far["path"]) == (near["verdict"], near["findings"], near["path"])
    assert tempfile.gettempdir() not in json.dumps(far)
    assert not [*tmp_path.iterdir()]


def test_a_pattern_names_runs(memory: Any) -> None:
    """A pattern stands for what it fits."""
    memory.pipe("/other/run.csv", HEALTHY.joinpath("metrics.csv").read_bytes())
    assert [row.path for row in rows("memory://runs/fp*")] == ["memory://runs/fp16-overflow"]
    assert [row.path for row in rows("memory://other/*.csv")] == ["memory://other/run.csv"]


def test_runs_beside_a_log_are_runs_of_their_own(memory: Any) -> None:
    """A folder with a log and more logs below than are read together is parted; no run of it is lost or told twice."""
    text = HEALTHY.joinpath("metrics.csv").read_bytes()
    for number in range(70):
        memory.pipe(f"/sweep/{number}/metrics.csv", text)
    memory.pipe("/sweep/top.csv", text)
    found = [row.path for row in rows("memory://sweep", documents=False)]
    assert found == sorted(["memory://sweep/top.csv", *(f"memory://sweep/{number}" for number in range(70))])


@pytest.mark.usefixtures("memory")
def test_a_file_that_is_too_large_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log above the limit is not fetched, and told."""
    monkeypatch.setattr(remote, "MAX_BYTES", 4096)
    found = {row.path: row for row in rows("memory://runs/healthy")}
    assert "more than is copied" in found["memory://runs/healthy/metrics.csv"].title


def test_no_name_leads_out_of_the_folder(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be written elsewhere is refused, each name in a record of its own, and nothing of it is fetched."""
    names = ("../../home/user/.ssh/id", "b/../../x.csv", "a\0b.csv", "x" * 300)
    listing = {"/runs/healthy/metrics.csv": {"size": 9}, **{f"/runs/healthy/{name}": {"size": 9} for name in names}}
    monkeypatch.setattr(type(memory), "find", lambda *_args, **_options: listing)
    found = rows("memory://runs/healthy")
    assert [row.verdict for row in found] == ["ok", *["unread"] * len(names)]
    assert {row.title for row in found[1:]} == {"its name would lead out of the folder, or is not a file name"}


@pytest.mark.parametrize("address", ["memory://runs/../../etc", "memory://runs/a\0b"])
def test_an_address_leads_nowhere_else(address: str) -> None:
    """Nor does an address that is typed."""
    with pytest.raises(StabtreeError, match="not the address"):
        remote.address_units(address)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a real S3 API on loopback, with two runs."""
    server = pytest.importorskip("moto.server", reason="needs the extra test-fleet")
    pytest.importorskip("s3fs", reason="needs the extra test-fleet")
    service = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    service.start()
    host, port = service.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class("s3").clear_instance_cache()  # one that another test opened has no key
    system = fsspec.filesystem("s3", skip_instance_cache=True)
    system.mkdir("bucket")
    for folder in (OVERFLOW, HEALTHY):
        for file in folder.iterdir():
            system.pipe(f"bucket/runs/{folder.name}/{file.name}", file.read_bytes())
    yield "s3://bucket/runs"
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    service.stop()


def test_a_bucket_is_scanned(bucket: str) -> None:
    """Runs of an S3 bucket are found and judged as those of a folder are."""
    found = rows(f"{bucket}/**")
    assert [(row.path, row.leaf) for row in found] == [
        (f"{bucket}/fp16-overflow", "fp16-overflow"),
        (f"{bucket}/healthy", ""),
    ]
    with pytest.raises(StabtreeError, match="nothing at this address"):
        rows(f"{bucket}/absent")
