"""What is published: the labelled runs as they were, the scorer, and figures that follow from what is there."""

from __future__ import annotations

import csv
import lzma
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import peers, peers_own, peers_table, probes, publish
from docs.site import comparison
from faultbench import __main__ as command
from faultbench import archives, rates, scoring

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(
    not archives.archive_of("dev").exists(), reason="the labelled runs are in the repository, not in a distribution"
)
TOOLS = (peers_own.OWN, *peers.TOOLS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sets."""
    folder = tmp_path_factory.mktemp("faultbench")
    for name in archives.PACKED:
        assert archives.unpack(name, folder) == folder / name
    return folder


# ------------------------------------------------------------------ archives
def test_what_was_unpacked_is_checked(runs: Path, tmp_path: Path) -> None:
    """A file that was changed or taken away is told; so is an archive."""
    assert archives.check_sums() == ["dev.tar.xz", "trainers.tar.xz", "public.csv"]
    archives.unpack("trainers", tmp_path)
    assert archives.verify("trainers", tmp_path) == sum(path.is_file() for path in (runs / "trainers").rglob("*"))
    log = tmp_path / "trainers" / "runs" / "nano-ok" / "train.log"
    log.write_bytes(log.read_bytes() + b"\n")
    with pytest.raises(archives.ChangedError, match=r"train\.log is not what it was"):
        archives.verify("trainers", tmp_path)
    log.unlink()
    with pytest.raises(archives.ChangedError, match=r"train\.log is missing"):
        archives.verify("trainers", tmp_path)


def test_a_changed_archive_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sum is looked at first; one that is not here, as in an sdist, is told to be so."""
    monkeypatch.setattr(archives, "HERE", tmp_path)
    with pytest.raises(archives.ChangedError, match=r"dev\.tar\.xz is not here"):
        archives.unpack("dev", tmp_path / "runs")
    (tmp_path / "dev.tar.xz").write_bytes(b"another")
    with pytest.raises(archives.ChangedError, match=r"dev\.tar\.xz is not what SHA256SUMS says"):
        archives.unpack("dev", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_packing_is_reproducible(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same files give the same archive, whatever their times; what is packed can be unpacked."""
    published = lzma.decompress(archives.archive_of("trainers").read_bytes())
    (runs / "trainers" / "truth" / "nano-ok.json").touch()
    assert archives.tar_of(runs / "trainers", "trainers") == published
    monkeypatch.setattr(archives, "HERE", tmp_path)
    small = runs / "trainers" / "runs" / "nano-ok"
    assert lzma.decompress(archives.pack(small, "small").read_bytes()) == archives.tar_of(small, "small")


def test_nothing_private_is_published(runs: Path) -> None:
    """No path of a machine, no user, no address, in no file and in no name; all of it stays small."""
    for path in sorted(runs.rglob("*")):
        assert not publish.PRIVATE.search(path.relative_to(runs).as_posix().encode())
        if path.is_file():
            assert not publish.PRIVATE.search(path.read_bytes()), path
    assert sum(path.stat().st_size for path in archives.HERE.rglob("*")) < 15e6


def test_what_is_taken_out_leaves_sound_files(runs: Path, tmp_path: Path) -> None:
    """Checksums are worked out as the writers do: of files that were not changed they are what they were."""
    events = sorted((runs / "trainers").rglob("*tfevents*"))[::16]
    wandb = sorted((runs / "trainers").rglob("*.wandb"))[:1]
    assert len(events) > 2
    for path in events:
        assert publish.event_file(path.read_bytes()) == path.read_bytes()
    for path in wandb:
        assert publish.wandb_file(path.read_bytes()) == path.read_bytes()
        broken = path.read_bytes()[:7] + bytes(4) + path.read_bytes()[11:]
        assert publish.wandb_file(broken) == path.read_bytes()
    private = tmp_path / "train.log"
    private.write_text("File /home/user/ex/make.py\n", encoding="utf-8")
    assert publish.scrubbed(private) == b"File /faultbench/t/make.py\n"
    private.write_text("saved to /home/somebody/run\n", encoding="utf-8")
    with pytest.raises(ValueError, match="is left"):
        publish.scrubbed(private)


def test_the_readme_counts_rightly(runs: Path) -> None:
    """The numbers in its first table are those of the labels."""
    told = (archives.HERE / "README.md").read_text(encoding="utf-8")
    faults = Counter(label["fault"] for label in scoring.labels("dev", runs))
    calm = sum(faults[fault] for fault in scoring.CALM)
    faulty = faults.total() - calm - faults[scoring.DONE]
    assert f"| {calm} | {faulty}, and {faults[scoring.DONE]} plateaus | `dev.tar.xz` |" in told
    trainers = scoring.labels("trainers", runs)
    failed = [label for label in trainers if not label["healthy"]]
    seen = sum(label["visible"] == "yes" for label in failed)
    counts = f"| {len(trainers) - len(failed)} | {len(failed)}, of which {seen} can be seen in the log |"
    assert counts in told
    public = Counter(row["label"] for row in scoring.labels("public", runs))
    failures = public.total() - sum(public[label] for label in ("healthy", *scoring.NO_RATE))
    assert f"| {public['healthy']} | {failures} | `public.csv`" in told
    assert f"`unclear` ({public['unclear']}) or `not-a-log` ({public['not-a-log']})" in told


# ------------------------------------------------------------------ scorer
def test_intervals_are_wilsons() -> None:
    """Values from tables: none of 49, one of 75, half of 20."""
    assert rates.Rate(0, 49).interval() == pytest.approx((0, 0.0727), abs=1e-4)
    assert rates.Rate(1, 75).interval() == pytest.approx((0.0024, 0.0717), abs=1e-4)
    assert rates.Rate(10, 20).interval() == pytest.approx((0.2993, 0.7007), abs=1e-4)
    assert rates.Rate(20, 20).interval()[1] == 1
    assert rates.Rate(0, 0).interval() == (0, 1)
    assert str(rates.Rate(1, 75)) == "1/75 = 1.3% (0.2 to 7.2)"


def test_two_tools_are_compared_exactly() -> None:
    """McNemar's test looks at the runs on which they differ alone."""
    first = {str(run): run < 9 for run in range(12)}
    second = {str(run): run < 4 or run == 10 for run in range(12)}
    found = rates.pair(first, second)
    assert found == (4, 5, 1, 2)
    assert found.chance == pytest.approx(14 / 64)
    assert rates.pair(first, first).chance == 1
    with pytest.raises(ValueError, match="same runs"):
        rates.pair(first, {"0": True})


def truth(run: str, fault: str, section: str = "none", leaf: str | None = None) -> dict[str, Any]:
    """A label of `dev`."""
    accepted = {"acceptable_sections": [section], "acceptable_leaves": [leaf], "columns_kind": "full"}
    return {"run_id": run, "fault": fault, **accepted}


def test_dev_is_scored() -> None:
    """An alarm on a healthy run, a miss, a wrong section, a right one; a plateau counts nowhere."""
    labels = [truth("calm", "HEALTHY"), truth("quiet", "HEALTHY"), truth("flat", scoring.DONE)]
    labels += [truth(run, "NAN_BF16", "1", "s1.nan_bf16") for run in ("missed", "wrong", "right")]
    wrong = {"healthy": False, "section": "2", "leaf": "s2.spike"}
    right = {"healthy": False, "section": 1, "leaf": "s1.nan_bf16", "causes": ["NAN_BF16"]}
    found = scoring.dev(labels, {"calm": wrong, "flat": wrong, "wrong": wrong, "right": right})
    assert dict(found.rates) == {
        scoring.FALSE_ALARMS: (1, 2),
        scoring.MISSED: (1, 3),
        **dict.fromkeys((scoring.SECTION, scoring.LEAF, scoring.CAUSE), (1, 3)),
    }
    assert found.right == {"calm": False, "quiet": True, "missed": False, "wrong": False, "right": True}
    assert [line.split()[0] for line in found.wrong] == ["false", "missed", "wrong"]


def test_trainers_are_scored_by_the_first_log_that_is_judged() -> None:
    """What a tool can't read is passed over; what it reads nowhere is silence, and told."""
    targets = [{"name": "folder", "path": "run"}, {"name": "log", "path": "run/train.log"}]
    label = {"id": "run", "healthy": False, "visible": "yes", "fault": "nan", "kinds": ["nan"], "targets": targets}
    read = scoring.trainers([label], {"run": "refused", "run/train.log": {"verdict": "critical", "kinds": ["nan"]}})
    assert (read.rates[scoring.FOUND], read.rates[scoring.KIND]) == ((1, 1), (1, 1))
    assert (read.rates[scoring.NOT_READ], read.rates[scoring.FOUND_FIRST]) == ((0, 1), (0, 1))
    alone = scoring.trainers([label], {"run": "critical"})
    assert (alone.rates[scoring.FOUND_FIRST], alone.rates[scoring.KIND]) == ((1, 1), (0, 0))
    unread = scoring.trainers([label], {"run": "unknown"})
    assert (unread.rates[scoring.FOUND], unread.rates[scoring.NOT_READ]) == ((0, 1), (1, 1))
    hidden = scoring.trainers([{**label, "visible": "weak"}], {"run": "ok"})
    assert (hidden.rates[scoring.FOUND], hidden.right) == ((0, 0), {})


def test_public_logs_are_scored() -> None:
    """Those that nobody can judge are in no rate."""
    rows = [{"repo": "o/r", "path": name, "label": name} for name in ("healthy", "nan", "overfit", "unclear")]
    told = {"o/r/healthy": "ok", "o/r/nan": {"verdict": "warning", "kinds": ["spike"]}, "o/r/unclear": "critical"}
    found = scoring.public(rows, told).rates
    assert found[scoring.COVERED] == (2, 3)
    assert (found[scoring.FALSE_ALARMS], found[scoring.RIGHT_ALARMS]) == ((0, 1), (1, 1))
    assert (found[scoring.FAILURES], found[scoring.KIND]) == ((1, 2), (0, 1))


def shown_commands() -> list[list[str]]:
    """The arguments of each command that `faultbench/README.md` shows, in blocks and in the text."""
    told = (archives.HERE / "README.md").read_text(encoding="utf-8")
    return [shlex.split(line) for line in re.findall(r"python -m faultbench ([^\n`]+)", told)]


def test_the_commands_of_the_readme_do_what_it_says(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of `faultbench/README.md`, with the runs where they were unpacked and two tools' predictions."""
    ours, theirs = (str(peers_table.PREDICTIONS / "dev" / f"{tool}.json") for tool in TOOLS[:2])
    there = {
        "runs": str(runs),
        "faultbench/predictions/dev/stabtree.json": ours,
        "one.json": ours,
        "other.json": theirs,
    }
    commands = [[there.get(word, word) for word in words] for words in shown_commands() if words[0] != "unpack"]
    assert [words[0] for words in commands] == ["score", "compare", "verify"]
    assert [command.main(words) for words in commands] == [0, 0, 0]
    printed = capsys.readouterr().out
    assert f"{scoring.SECTION:34s} {peers_table.rates_of('dev', TOOLS[0])[scoring.SECTION]}" in printed
    assert str(peers_table.against("dev", TOOLS[1])) in printed
    assert f"{runs / 'dev'}: 384 files as they were" in printed


# ------------------------------------------------------------------ the record
@pytest.mark.parametrize("name", scoring.SETS)
def test_the_record_follows_from_the_predictions(runs: Path, name: str) -> None:
    """Every count of every tool."""
    found = peers_table.figures()["sets"][name]
    assert peers_table.scored(name, runs, found["versions"]) == found


def test_we_read_the_lost_run_in_every_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its twin is well; as was recorded."""
    monkeypatch.setattr("sys.argv", ["probes", str(tmp_path)])
    probes.main()
    for what, twins in probes.paths().items():
        told = {twin: peers_own.of_log(tmp_path / path)["verdict"] for twin, path in twins.items()}
        assert probes.outcome(told) == probes.NAMED, what
        assert peers_table.figures()["formats"][what][peers_own.OWN] == probes.NAMED
    with (tmp_path / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 2 * len(probes.WRITERS)


# ------------------------------------------------------------------ pages
def test_the_readme_has_the_table_as_it_was_recorded() -> None:
    """`python -m benchmarks.peers_table --readme` prints it."""
    assert "\n".join(peers_table.readme()) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_is_made_of_the_record() -> None:
    """All tools and tables; the facts are about the tools that were measured, a sign for each."""
    page = str(comparison.pages()["comparison.md"])
    assert list(comparison.facts()["tools"]) == list(TOOLS)
    for points in comparison.facts()["points"].values():
        assert all(len(signs) == len(TOOLS) and set(signs) <= set(comparison.SIGNS) for signs in points.values())
    for tool in peers.TOOLS:
        found = peers_table.rates_of("dev", tool)[scoring.FALSE_ALARMS]
        assert f"| {peers_table.titled(tool)} | {found.share:.0%} · {found.hits}/{found.of}<br>" in page
    assert "$" not in page
