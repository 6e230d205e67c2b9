"""The outputs as the services read them: each with a parser that is none of ours."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import jsonschema
import xmlschema

HERE = Path(__file__).parent
ESCAPES = (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
ANYWHERE = re.compile(r"##\w*\[")  # how GitHub's older commands, Azure's and TeamCity's begin, wherever they stand


class Command(NamedTuple):
    """A workflow command."""

    name: str
    properties: dict[str, str]
    message: str


def commands(text: str) -> list[Command]:
    """The commands that GitHub's runner sees in what a step prints."""
    found = ANYWHERE.search(text)
    assert not found, text[max(0, found.start() - 60) : found.end()]
    return [_command(line.lstrip()) for line in re.split(r"\r\n|\n|\r", text) if line.lstrip().startswith("::")]


def _command(line: str) -> Command:
    head, _, data = line[2:].partition("::")
    name, _, listed = head.partition(" ")
    pairs = [item.partition("=") for item in listed.split(",") if item]
    return Command(name, {key: _plain(value) for key, _, value in pairs}, _plain(data))


def _plain(text: str) -> str:
    for code, char in ESCAPES:
        text = text.replace(code, char)
    return text


def suites(text: str) -> ET.Element:
    """JUnit XML, valid by its schema."""
    _junit().validate(text)
    return ET.fromstring(text)  # noqa: S314 - our own


@cache
def _junit() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(HERE / "junit.xsd")


def sarif(text: str) -> Any:
    """The one run of a SARIF log, valid by its schema."""
    read = json.loads(text)
    jsonschema.Draft7Validator(json.loads((HERE / "sarif.json").read_text(encoding="utf-8"))).validate(read)
    (run,) = read["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    return run
