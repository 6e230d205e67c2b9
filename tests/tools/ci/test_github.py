"""Annotations: what GitHub shows beside a log, and no more than it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.verdict import Outcome
from stabtree.tools.ci.services import MAX_RUNS, MAX_SHOWN, github, summary
from tests.tools.ci.reading import commands
from tests.tools.ci.runs import UNREADABLE, outcome, short

if TYPE_CHECKING:
    from tests.tools.ci.reading import Command


def one(name: str) -> tuple[Diagnosis, list[Command]]:
    """A fixture's diagnosis, and the commands of its output."""
    found = outcome(name).found
    assert isinstance(found, Diagnosis)
    return found, commands(github(found))


def test_an_annotation_says_what_was_found_what_to_do_first_and_where_to_restart() -> None:
    """The title is the headline, the message the run, the first thing to do and the restart, each on a line."""
    _, (command,) = one("nan-forward")
    assert command.name == "error"
    assert command.properties["title"] == "Step 412: The loss became inf in one step; the row before was sound"
    assert command.properties["file"].endswith("fixtures/phase19/nan-forward/metrics.csv")
    head, first, restart = command.message.split("\n")
    assert "(nan-forward)" in head
    assert restart.startswith("Restart from the checkpoint of step 400 with its optimizer state")
    assert first.startswith("Compute the loss from the logits in fp32")


def test_the_line_is_named_only_where_it_is_known() -> None:
    """A line that nobody looked up is left out: GitHub shows the annotation beside the file."""
    found, (command,) = one("nan-forward")
    assert "line" not in command.properties
    placed = replace(found, run=replace(found.run, places={412: 414}))
    assert commands(github(placed))[0].properties["line"] == "414"


def test_the_severity_decides_the_command() -> None:
    """A critical finding and an unreadable log are errors, an open verdict a warning, a lone note a notice."""
    found = github([outcome("nan-forward"), outcome("plateau"), UNREADABLE, short()])
    told = [
        (command.name, command.message.split("\n")[0].rpartition("(")[2].rstrip(")")) for command in commands(found)
    ]
    assert told == [("error", "nan-forward"), ("error", "unread"), ("warning", "not-judged"), ("notice", "plateau")]


def test_a_healthy_run_is_one_line_and_no_annotation() -> None:
    """What calls for nothing is not shown to anybody; nor is a note beside something worse."""
    diagnosis, none = one("healthy")
    assert not none
    (line,) = github(diagnosis).splitlines()
    assert line.startswith("OK  ")
    _, found = one("fp16-suspected")
    assert {command.name for command in found} == {"error"}


def test_no_more_are_annotated_than_github_shows_and_the_rest_is_counted() -> None:
    """Ten errors, though there are twelve, and a line that says so; warnings have ten of their own."""
    found = outcome("nan-forward").found
    text = github([Outcome(f"runs/{place}", found) for place in range(MAX_SHOWN + 2)] + [outcome("slow-rise")])
    assert [command.name for command in commands(text)] == ["error"] * MAX_SHOWN + ["warning"]
    assert "Not annotated: 2 more errors" in text
    assert text.endswith(f"{MAX_SHOWN + 3} runs: {MAX_SHOWN + 2} critical, 1 warning\n")


def test_the_summary_is_the_report_of_one_run_and_a_table_of_several() -> None:
    """Of very many runs the worst, with how many more there are: GitHub shows nothing of a summary above 1 MiB."""
    assert summary([outcome("nan-forward")]).startswith("### CRITICAL: Step 412")
    many = [Outcome(f"runs/{place}", outcome("healthy").found) for place in range(MAX_RUNS + 7)]
    table = summary([*many, outcome("nan-forward")])
    assert table.count("| ok |") == MAX_RUNS - 1
    assert table.count("| critical |") == 1
    assert "and 8 more" in table
