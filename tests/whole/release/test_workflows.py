"""The workflows: pinned actions, no more rights than each job needs, and the Pythons that pyproject.toml promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS: dict[str, Any] = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in FILES}
JOBS = {f"{name}.{job}": spec for name, flow in WORKFLOWS.items() for job, spec in flow["jobs"].items()}
USES = re.compile(r"uses: (?P<action>[\w./-]+)@(?P<commit>\S+)(?: # (?P<version>v\d+\.\d+\.\d+))?")
# The jobs that may do more than read, and what.
RIGHTS = {
    "docs.publish": {"pages": "write", "id-token": "write"},
    "release.publish": {"id-token": "write"},
    "release.page": {"contents": "write"},
}


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every step with its job's name."""
    for name, job in JOBS.items():
        for step in job["steps"]:
            yield name, step


def triggers(name: str) -> dict[str, Any]:
    """What starts a workflow; YAML 1.1 takes its key for the word for true."""
    found: dict[str, Any] = WORKFLOWS[name][True]
    return found


def test_every_action_is_pinned_to_one_commit() -> None:
    """With the version that it is, the same in all workflows and in the action itself."""
    pinned: dict[str, tuple[str, str]] = {}
    for file in (*FILES, ROOT / "action.yml"):
        text = file.read_text(encoding="utf-8")
        found = list(USES.finditer(text))
        assert len(found) == len(re.findall(r"uses: (?!\./)", text)), file
        for use in found:
            assert re.fullmatch(r"[0-9a-f]{40}", use["commit"]), use[0]
            assert use["version"], use[0]
            at = (use["commit"], use["version"])
            assert pinned.setdefault(use["action"], at) == at


def test_jobs_have_no_more_rights_than_they_need() -> None:
    """A workflow reads; the few jobs that write are known."""
    assert all(flow["permissions"] == {"contents": "read"} for flow in WORKFLOWS.values())
    assert {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job} == RIGHTS
    assert not any("secrets." in file.read_text(encoding="utf-8") for file in FILES)
    assert not any("pull_request_target" in triggers(name) for name in WORKFLOWS)
    for name, step in steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, name


def test_no_script_holds_an_expression() -> None:
    """What a pull request or a tag is called would be run as text of it."""
    assert not [name for name, step in steps() if "${{" in step.get("run", "")]


def page(place: Path, tag: str, *, known: bool) -> list[str]:
    """What the last job asks of `gh` for a tag, where the action's tag is known or not."""
    place.mkdir()
    stub = place / "gh"
    refused = "" if known else 'case "$*" in *PATCH*) exit 1;; esac\n'
    stub.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{place}/asked"\n{refused}', encoding="utf-8")
    stub.chmod(0o755)
    environ = {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "GH_REPO": "o/r", "GITHUB_SHA": "c0ffee"}
    for step in JOBS["release.page"]["steps"]:
        if "run" in step:
            bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            subprocess.run(bash, cwd=place, env={**environ, "GITHUB_REF_NAME": tag}, check=True)
    return (place / "asked").read_text(encoding="utf-8").splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="the job runs in bash of Linux")
def test_the_tag_of_the_action_moves_with_a_release(tmp_path: Path) -> None:
    """It is made by the first, moved by the next, and left alone by a candidate."""
    first = page(tmp_path / "first", "v0.1.0", known=False)
    assert "--notes-file notes/notes.md dist/*" in first[0]
    assert first[-1] == "api --silent --method POST repos/o/r/git/refs -f ref=refs/tags/v0 -f sha=c0ffee"
    assert page(tmp_path / "next", "v1.2.3", known=True)[1:] == [
        "api --silent --method PATCH repos/o/r/git/refs/tags/v1 -f sha=c0ffee -F force=true"
    ]
    (candidate,) = page(tmp_path / "candidate", "v1.2.3rc1", known=True)
    assert "--prerelease" in candidate
