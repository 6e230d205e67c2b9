"""The outputs, in one table: of what kind of result, by name; and how all of them are drawn.

A new output is a function, and a line here or in a tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from stabtree.common import extensions

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.run import Run

    Output = Callable[..., Any]
    """Takes a result and the options; returns the text, or pieces of a large result."""

SCREEN, HEADLINE, JSON, HTML, SVG = "screen", "headline", "json", "html", "svg"
MARKDOWN, POSTMORTEM, JSONL, CSV = "markdown", "postmortem", "jsonl", "csv"
GITHUB, JUNIT, SARIF = "github", "junit", "sarif"
SERVICES = (GITHUB, JUNIT, SARIF)
"""Those that a service reads: they report a log that can't be read too, and name the line where a finding begins."""

RUN, RUNS = "run", "runs"
COMPARISON, CALIBRATION, CHECK = "comparison", "calibration", "check"

OUTPUTS: dict[str, dict[str, str]] = {
    RUN: {
        SCREEN: "stabtree.report.screen:screen",
        HEADLINE: "stabtree.report.screen:headline",
        JSON: "stabtree.report.json:to_json",
        HTML: "stabtree.report.html:html",
        SVG: "stabtree.report.svg:svg_report",
        MARKDOWN: "stabtree.report.markdown:markdown",
        POSTMORTEM: "stabtree.report.markdown:postmortem",
    }
}
"""The outputs of the core: of one run. Tools add those of their own results, and further ones of one run."""


def names(kind: str) -> tuple[str, ...]:
    """List the outputs that a kind of result has."""
    return (*OUTPUTS.get(kind, ()), *extensions.table("OUTPUTS").get(kind, ()))


def output(kind: str, name: str) -> Output:
    """Return what writes a kind of result under a name, imported now: `--help` lists the names and needs none of them.

    Raises:
        KeyError: where there is no such output.
    """
    address = OUTPUTS.get(kind, {}).get(name) or extensions.table("OUTPUTS")[kind][name]
    found: Output = extensions.load(address)
    return found


class RenderOptions(Struct, frozen=True):
    """How a report is rendered."""

    width: int = 100  # columns of a screen
    color: bool = False  # whether it may be coloured
    full: bool = False  # whether it says all there is, rather than what it takes to act
    plots: bool = True  # whether figures are drawn
    against: Run | None = None  # a healthy run that figures show behind the one that is diagnosed
    ascii: bool = False  # whether only ASCII can be shown
    exit_code: int | None = None  # the exit code that the command will end with; None where there is none
    fail_on: frozenset[str] = frozenset({"warning"})  # the verdicts that count as a failure
    accept_partial: bool = False  # whether a run passes if every check that could run passed
    worst: int | None = None  # how many of many runs a screen lists, if that was said


DEFAULT_OPTIONS = RenderOptions()
