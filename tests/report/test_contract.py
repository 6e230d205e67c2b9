"""The JSON contract: every document that `diagnose --json` prints is one of its schema, key for key."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.loaders.paths import stored
from stabtree.loaders.paths.stored import hashed, with_inputs
from stabtree.report.contract import schema
from stabtree.report.json import error, fingerprint, to_dict, to_json
from stabtree.tree.load import load_trees
from tests.cli.command import run as command
from tests.conftest import FIXTURES, falling, make_run, series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.run import Run

CASES = sorted(path for path in FIXTURES.glob("*/*") if path.is_dir())[::8]
VALIDATOR = Draft202012Validator(schema())


def wrong(document: Any) -> list[str]:
    """Where a document leaves the contract, of the kind that it is."""
    kind = "failure" if "error" in document else "runs" if "runs" in document else "diagnosis"
    kind = f"{document['event']}_event" if "event" in document else kind
    one = Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema()["$defs"]})
    return [f"{list(item.absolute_path)}: {item.message[:300]}" for item in one.iter_errors(document)]


def judged(run: Run) -> dict[str, Any]:
    """A run's document, as it is read back by a parser that knows no NaN."""
    document: dict[str, Any] = json.loads(to_json(diagnose(run, load_trees(run))), parse_constant=pytest.fail)
    return document


def nodes(part: Any) -> Iterator[dict[str, Any]]:
    """All parts of a schema."""
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from nodes(inner)


def test_the_schema_is_one_and_leaves_nothing_open() -> None:
    """It is a valid schema; an object lists its keys, each says what it holds, and holds no others than those."""
    Draft202012Validator.check_schema(schema())
    objects = [node for node in nodes(schema()) if isinstance(node.get("properties"), dict)]
    assert len(objects) > 20
    for node in objects:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
        assert all("description" in held for held in node["properties"].values())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_a_run_keeps_the_contract(path: Path) -> None:
    """The document of every fixture is valid, as it is and with the hashes of its files."""
    run = load_run(path)
    assert wrong(judged(run)) == []
    found = judged(with_inputs(run))
    assert wrong(found) == []
    VALIDATOR.validate(found)
    for item in found["run"]["inputs"]:
        data = Path(item["path"]).read_bytes()
        assert (item["bytes"], item["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_a_key_too_many_or_too_few_is_seen() -> None:
    """A document with a key that the schema lacks, or without one that it has, is refused wherever that stands."""
    found = judged(load_run(FIXTURES / "phase19" / "nan-forward"))
    for place in (found, found["run"], found["findings"][0], found["findings"][0]["causes"][0], found["monitor"]):
        place["more"] = 1
        assert wrong(found)
        del place["more"]
        assert not wrong(found)
    del found["findings"][0]["onset_time"]
    assert wrong(found)


def test_errors_and_several_runs_keep_the_contract(tmp_path: Path) -> None:
    """What the command prints for a file that is not there, for several runs, and for a bad one among them."""
    failed = command("diagnose", str(tmp_path / "none.csv"), "--json")
    assert wrong(json.loads(failed.stdout)) == []
    assert wrong(error(StabtreeError("is bad"))) == []
    (tmp_path / "bad.csv").write_bytes(b"\x00\x01\x02" * 50)
    paths = [str(FIXTURES / "phase19" / name) for name in ("healthy", "nan-forward")]
    several_runs = json.loads(command("diagnose", *paths, str(tmp_path / "bad.csv"), "--json").stdout)
    assert wrong(several_runs) == []
    VALIDATOR.validate(several_runs)
    assert [sorted(run) == ["error", "path", "schema", "source"] for run in several_runs["runs"]] == [
        False,
        True,
        False,
    ]
    assert all(item["sha256"] for run in several_runs["runs"][::2] for item in run["run"]["inputs"])


def test_the_lines_of_a_watch_keep_the_contract(tmp_path: Path) -> None:
    """Each line of `watch --json` is valid: a finding, a note on what can't be read, and the end."""
    (tmp_path / "bad.csv").write_bytes(b"\x00\x01\x02" * 500)
    paths = [str(FIXTURES / "phase19" / "nan-forward"), str(tmp_path / "bad.csv"), str(tmp_path / "none.csv")]
    done = command("watch", *paths, "--json", "--every", "0.01", "--stall", "0.05s")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {item["event"] for item in told} == {"finding", "note", "end"}
    for item in told:
        assert wrong(item) == []
        VALIDATOR.validate(item)
        assert wrong({**item, "more": 1})


def test_the_hash_of_the_rules_is_that_of_their_words() -> None:
    """One tree has one hash; a number or a word that differs gives another, its version alone does not."""
    tree = load_trees()
    known = fingerprint(tree)
    assert known == fingerprint(replace(tree, version="next"))
    question = tree.questions["Q2.1"]
    for changed in (replace(question, ask="?"), replace(question, params={**question.params, "min_steps": 1})):
        assert fingerprint(replace(tree, questions={**tree.questions, "Q2.1": changed})) != known
    assert to_dict(diagnose(make_run({"loss": falling(100)}), tree))["rules"]["sha256"] == known


def test_the_onset_has_a_time_where_the_log_has_a_clock() -> None:
    """A clock of the calendar gives the onset a time in UTC, one that counts from the start of the run none."""
    run = load_run(FIXTURES / "phase19" / "nan-forward")
    steps = run.series["loss"].steps
    for start, told in ((1_700_000_000, "2023-11-14T22:"), (0, None)):
        clock = series("wall_time", start + 0.5 * np.arange(len(steps)), steps)
        (first, *_) = judged(replace(run, series={**run.series, "wall_time": clock}))["findings"]
        assert (first["onset_time"] or "").startswith(told) if told else first["onset_time"] is None


def test_a_file_that_is_not_hashed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a file that is gone, and one beyond the limit have no hash and a reason; one at the limit has one."""
    file = tmp_path / "log.csv"
    file.write_bytes(b"x" * 100)
    monkeypatch.setattr(stored, "MAX_HASHED", 100)
    assert hashed(str(file)).size == 100
    monkeypatch.setattr(stored, "MAX_HASHED", 99)
    for path, reason in ((file, "larger than 99 bytes"), (tmp_path, "a folder"), (tmp_path / "none", "not a file")):
        item = hashed(str(path))
        assert (item.size, item.sha256, item.reason) == (None, None, reason)
