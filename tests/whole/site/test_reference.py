"""The reference is made of the code: nothing that a user can type, set or read is missing from it."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

import stabtree
from docs.site.reference import api, commands, hints, schemas, shapes, tables
from docs.site.reference.docstrings import about, attributes
from stabtree.cli.program import commands as all_commands
from stabtree.diagnosis.result import Diagnosis, Incident
from stabtree.judging.settings import KEYS
from stabtree.loaders import LOADERS
from stabtree.metrics.table import all_metrics
from stabtree.report.contract import schema
from stabtree.tree.model import Section
from tests.cli.command import run
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN = [name for name, home in all_commands().items() if home.help]
ANCHOR = re.compile(r"\]\{#([\w-]+)\}")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """All made pages of the reference."""
    makers = (commands, schemas, tables, api)
    return {path: str(content) for maker in makers for path, content in maker.pages().items()}


@pytest.mark.parametrize("name", SHOWN)
def test_a_command_has_every_option_of_its_help(pages: dict[str, str], name: str) -> None:
    """As it is spelled there, with its description."""
    told = run(name, "--help").stdout
    page = pages[f"commands/{name}.md"]
    spelled = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", told, re.MULTILINE)) - {"--help"}
    assert {option for option in spelled if f"{option}" not in page} == set()
    assert len(re.findall(r"^: \S", page, re.MULTILINE)) >= len(spelled)


def test_what_a_command_is_given_is_said_in_words(pages: dict[str, str]) -> None:
    """Its type where it is no text, its default, and whether it may come again."""
    page = pages["commands/diagnose.md"]
    assert "Steps between checkpoints. A whole number." in page
    assert "as in Q2.1.sigma=4. May be given several times." in page
    assert r"Default\: step." in pages["commands/compare.md"]
    assert "| 3 | too little was logged to judge |" in page
    assert "### Options" in pages["commands/tree.md"]


def test_help_is_never_markup() -> None:
    """What stands in ticks and options are code; whatever else would be markup is not."""
    assert commands.prose("Write *to* `--out FILE`, or --all\n of [it]") == (
        r"Write \*to\* `--out FILE`, or `--all` of \[it\]"
    )


def test_addresses_are_of_one_thing(pages: dict[str, str]) -> None:
    """Each option and each key has one of its own on its page."""
    for path, page in pages.items():
        anchors = ANCHOR.findall(page)
        assert len(anchors) == len(set(anchors)), path


def _described(shape: Any) -> Iterator[str]:
    if isinstance(shape, dict):
        yield from [shape["description"]] if isinstance(shape.get("description"), str) else []
        for held in shape.values():
            yield from _described(held)
    elif isinstance(shape, list):
        for held in shape:
            yield from _described(held)


def test_all_that_the_schema_says_stands_on_the_page(pages: dict[str, str]) -> None:
    """Every meaning of every key."""
    page = pages["reference/json.md"]
    missing = {
        words for words in _described(schema()) if commands.prose(words).removesuffix(".").lower() not in page.lower()
    }
    # Of several items of a list, or a scalar, the key tells that.
    assert {words for words in missing if words[-1] == "." and len(words) > 40} == set()


def test_every_key_has_a_meaning(pages: dict[str, str]) -> None:
    """Of JSON and of tree files, of settings and manifests."""
    for path in ("reference/json.md", "reference/tree-file.md", "reference/keys.md"):
        assert re.findall(r"^\[`([^`]+)`\].*\n: *$", pages[path], re.MULTILINE) == [], path


def test_types_are_told_in_words() -> None:
    """With links to what is defined on the page."""
    assert shapes.plain({"type": ["integer", "null"]}, "json") == "whole number or null"
    assert shapes.plain({"type": "array", "items": {"$ref": "#/$defs/note_event"}}, "json") == (
        r"list of [note\_event](#json-note-event)"
    )
    assert shapes.plain({"anyOf": [{"type": "object"}, {"type": "null"}]}, "json") == "object or null"
    nested = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}
    assert shapes.plain(nested, "json") == "object of lists of texts"


def test_tables_of_the_code_are_whole(pages: dict[str, str]) -> None:
    """Settings, formats, columns."""
    assert [key for key in KEYS if f"[`{key}`]" not in pages["reference/keys.md"]] == []
    assert [each.name for each in LOADERS if f"| `{each.name}` |" not in pages["reference/formats.md"]] == []
    assert [each.name for each in all_metrics() if f"[`{each.name}`]" not in pages["reference/columns.md"]] == []
    assert "`train_loss`" in pages["reference/columns.md"]
    assert '"checkpoint_every": 1000' in pages["reference/manifest.md"]
    assert "[`checkpoint_every`]{#manifest-checkpoint-every} [" in pages["reference/manifest.md"]


def test_everything_that_is_offered_is_described() -> None:
    """Each public name of the package, once."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. auto\w+:: (\w+)", page, re.MULTILINE)
    assert sorted(named) == sorted(stabtree.__all__)


def test_types_that_come_back_are_found(pages: dict[str, str]) -> None:
    """Those of fields, of properties, of arguments of functions that are given; none that is offered by name."""
    names = {kind.__name__ for kind in hints.types()}
    assert {"Restart", "Leaf", "Severity"} <= names
    assert names.isdisjoint(stabtree.__all__)
    assert ".. autoclass:: stabtree.diagnosis.restart.Restart\n" in pages["reference/types.md"]


def test_names_for_type_checkers_are_taken_from_where_they_are_imported() -> None:
    """And are not there for the module itself."""
    hints.types()
    names = hints.checking_names()
    assert names["stabtree.diagnosis.result"]["Leaf"].__name__ == "Leaf"
    assert "Leaf" not in vars(sys.modules["stabtree.diagnosis.result"])


def test_docstrings_are_read_as_they_are_written() -> None:
    """First paragraphs, and attributes over several lines."""
    assert about(Diagnosis).endswith(".")
    assert attributes(Incident)["restart"] == "where to restart, for leaves that call for it."
    assert attributes(Section)["when"].endswith("for it to be walked; none: always.")
    assert attributes(str) == {}
