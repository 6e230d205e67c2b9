"""The pages and forms for those who report and contribute: what they ask people to type exists, where they lead too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from stabtree.cli.program.commands import commands
from tests.conftest import ROOT
from tests.whole.release.test_metadata import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(path for path in FOLDER.glob("*.yml") if path.name != "config.yml")
PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md")]
PAGES += [ROOT / "docs" / "explanation" / "releasing.md", FOLDER / "config.yml", *FORMS]
ADDRESS = re.compile(r"https://[^\s)\"'>]+")
KINDS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def read(form: Path) -> Any:
    """A form as data."""
    return yaml.safe_load(form.read_text(encoding="utf-8"))


def fields(form: Path) -> dict[str, Any]:
    """The fields of a form that somebody fills in, by their ids."""
    return {item["id"]: item for item in read(form)["body"] if item["type"] != "markdown"}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_is_one(form: Path) -> None:
    """It has what GitHub asks of a form: a name, a description, fields of known kinds, each with a label and an id."""
    said = read(form)
    assert {"name", "description", "body"} <= said.keys() <= {"name", "description", "title", "labels", "body"}
    asked = [item for item in said["body"] if item["type"] != "markdown"]
    assert len(fields(form)) == len(asked) > 0
    for item in said["body"]:
        assert item["type"] in KINDS
        assert item["attributes"]["value" if item["type"] == "markdown" else "label"]
        assert item["type"] != "checkboxes" or all(option["label"] for option in item["attributes"]["options"])
    assert any(item.get("validations", {}).get("required") for item in asked)


@pytest.mark.parametrize("name", ["wrong-verdict", "unreadable-log"])
def test_who_reports_a_log_is_asked_for_what_it_takes(name: str) -> None:
    """The log without names, how it was read, and the version; a form can't be sent without them."""
    asked = fields(FOLDER / f"{name}.yml")
    assert all(asked[field]["validations"]["required"] for field in ("log", "inspect", "version"))
    assert "stabtree anonymize" in asked["log"]["attributes"]["description"]
    assert "stabtree inspect" in asked["inspect"]["attributes"]["description"]
    assert "stabtree --version" in asked["version"]["attributes"]["description"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_that_people_are_told_exist(page: Path) -> None:
    """Those of stabtree, those of make, and the modules."""
    text = page.read_text(encoding="utf-8")
    told = set(re.findall(r"(?<![\w/])stabtree ([a-z]+)(?= |`)", " ".join(re.findall(r"`[^`\n]+`", text))))
    assert told <= {*commands()}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"`make ([\w-]+)", text) + re.findall(r"^make ([\w-]+)", text, re.MULTILINE)
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)]
    for module in re.findall(r"python -m ((?:tests|benchmarks|release)[\w.]*)", text):
        place = ROOT.joinpath(*module.split("."))
        assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_people_are_sent_to_is_there(page: Path) -> None:
    """Files of the repository, and addresses of the one place where the project lives."""
    text = page.read_text(encoding="utf-8")
    homes = (PROJECT["urls"]["Source"], PROJECT["urls"]["Documentation"])
    assert not [address for address in ADDRESS.findall(text) if not address.startswith(homes)]
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    assert not [name for name in linked if not (page.parent / name).exists()]
    named = re.findall(r"`((?:stabtree|tests|docs|benchmarks|release|trees|\.github)/[\w./-]+)`", text)
    new = re.findall(r"^New file `([^`]+)`", text, re.MULTILINE)
    made = {"benchmarks/verdicts/0.2.0.json"}  # by the release that the page tells of
    assert not [name for name in named if not (ROOT / name).exists() and name not in {*new, *made}]


def test_security_is_told_in_private() -> None:
    """The page and the list of forms lead to a private report."""
    private = f"{PROJECT['urls']['Source']}/security/advisories/new"
    assert private in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert private in [link["url"] for link in read(FOLDER / "config.yml")["contact_links"]]
