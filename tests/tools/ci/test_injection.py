"""Whatever a log, a name or an error holds stays text: no output gains an element, a key, a command or an escape."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import string
from functools import cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.judging.verdict import Outcome
from stabtree.report.outputs import GITHUB, JUNIT, RUN, RUNS, SARIF, RenderOptions, names, output
from stabtree.run import ColumnUse, FileUse, LogLine, Setting
from tests.conftest import make_run, recorded, series
from tests.tools.ci import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.result import Diagnosis, Incident

HOSTILE = (
    "::error file=x::pwned",
    "\n::set-output name=a::b",
    "%0A::add-mask::s",
    "##[add-mask]s",
    "##vso[task.setvariable variable=a]b",
    "\x1b[31m\x1b]8;;http://a.b\x07",
    "]]>",
    "</script><script>alert(1)</script>",
    "<!-- --> <img src=x onerror=alert(1)> &amp; &#10; \" ' ` </details></failure>",
    "| a | b |\n\n# h\n- [x](javascript:alert(1)) ![y](http://a.b) **z** @ann #12",
    "\u202eevil\u2066\u200f",
    "\0\x85\u2028\ufffe\ud800\r",
    '","x":{"y":[1]},"',
    "{0} [link](http://a.b)",
    "title=a,line=1,file=b",
    "=1+1|cmd",
)
# Without letters, of which words might be made that name a task.
SIGNS = st.characters(codec="utf-8", exclude_characters=string.ascii_letters)
TEXTS = st.lists(st.sampled_from(HOSTILE) | st.text(SIGNS, max_size=20), min_size=1, max_size=4).map(
    lambda texts: f"{''.join(texts)}x"
)
FORBIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
OPTIONS = RenderOptions(exit_code=1)
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@cache
def plain() -> Diagnosis:
    """A run that goes NaN, with a column of a group, a line of its log, and a setting."""
    steps = range(80)
    run = make_run(
        {
            "loss": [3.0 / (1 + step / 10) if step < 60 else math.nan for step in steps],
            "grad_norm": [1.0 + step % 3 / 10 if step < 50 else 10.0 ** (step - 50) for step in steps],
        },
        dtype="fp16",
    )
    return Judging().diagnosed(run)


def holding(evil: str) -> Diagnosis:
    """The same, with a text wherever one comes from outside."""
    found = plain()
    run = replace(
        found.run,
        name=f"run {evil}",
        series={**found.run.series, f"weight_norm/{evil}": series("weight_norm", [1.0, 2.0])},
        config={**found.run.config, "optimizer": Setting(f"adam {evil}", f"args {evil}")},
        sources=(FileUse(f"logs/{evil}", "csv", 80, (ColumnUse(f"loss {evil}", "loss"),), steps_from=evil),),
        notes=(f"A note on {evil}.",),
        lines=(LogLine(3, f"RuntimeError: {evil}", at_end=True),),
    )
    return replace(
        found,
        run=run,
        findings=tuple(_finding(finding, evil) for finding in found.findings),
        missing=tuple(replace(one, reason=f"{one.reason} {evil}") for one in found.missing),
        answer_notes=(f"A person said {evil}",),
    )


def _finding(finding: Incident, evil: str) -> Incident:
    causes = tuple(replace(one, evidence=_evidence(one.evidence, evil)) for one in finding.causes)
    actions = tuple(replace(one, text=one.text and f"{one.text} {evil}", why=evil) for one in finding.actions)
    restart = replace(finding.restart, path=f"ckpt/{evil}") if finding.restart else None
    evidence = _evidence(finding.evidence, evil)
    moved = tuple(replace(one, metric=f"m/{evil}", text=f"{one.text} {evil}") for one in finding.departures)
    return replace(finding, evidence=evidence, causes=causes, actions=actions, restart=restart, departures=moved)


def _evidence(items: Iterable[Evidence], evil: str) -> tuple[Evidence, ...]:
    return tuple(replace(one, text=f"{one.text} {evil}", brief=f"{one.brief}{evil}") for one in items)


def shape(value: Any) -> Any:
    """The keys and the kinds of what JSON holds, without its texts."""
    if isinstance(value, dict):
        return {key: shape(held) for key, held in value.items()}
    return [shape(held) for held in value] if isinstance(value, list) else type(value).__name__


def elements(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The elements of XML, each with the names of its attributes."""
    return [(one.tag, tuple(one.attrib)) for one in ET.fromstring(text).iter()]  # noqa: S314 - our own


def tags(text: str) -> list[tuple[str, ...]]:
    """What a browser makes of a page: its tags and comments, each with the names of its attributes."""
    parser, found = HTMLParser(), list[tuple[str, ...]]()

    def start(tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any((value or "").lower().lstrip().startswith("javascript:") for _, value in attrs)
        found.append((tag, *(name for name, _ in attrs)))

    parser.handle_starttag = start  # type: ignore[method-assign]
    parser.handle_endtag = lambda tag: found.append((f"/{tag}",))  # type: ignore[method-assign]
    parser.handle_comment = lambda data: found.append(("!", data))  # type: ignore[method-assign]
    parser.feed(text)
    parser.close()
    return [tag for tag in found if tag[0] not in ("code", "/code")]  # what stands in backticks may be shown so


def blocks(text: str) -> list[tuple[str, str]]:
    """The markup of a Markdown page: all of its tokens but text."""
    inner = [token for block in MARKDOWN.parse(text) for token in (block, *(block.children or []))]
    kept = [token for token in inner if token.type not in ("text", "text_special", "inline", "softbreak")]
    return [(token.type, token.content if token.type.startswith("html") else "") for token in kept]


def annotated(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The commands, each with the names of its properties."""
    return [(one.name, tuple(one.properties)) for one in reading.commands(text)]


def lines(text: str) -> int:
    """What is shown to a person has no structure but its lines, of which a long text may need more."""
    return min(1, len(text.splitlines()))


READ: Mapping[str, Callable[[str], Any]] = {
    "screen": lines,
    "headline": lambda text: len(text.splitlines()),
    "json": lambda text: shape(json.loads(text)),
    "jsonl": lambda text: [shape(json.loads(line)) for line in text.splitlines()],
    "csv": lambda text: [len(row) for row in csv.reader(io.StringIO(text, newline=""))],
    "html": tags,
    "svg": lambda text: [name for name, _ in elements(text) if not name.endswith("tspan")],
    "markdown": blocks,
    "postmortem": blocks,
    GITHUB: annotated,
    JUNIT: lambda text: [(one.tag, tuple(one.attrib)) for one in reading.suites(text).iter()],
    SARIF: lambda text: shape(reading.sarif(text)),
}


def check(name: str, text: str, harmless: str) -> None:
    """An output has the structure that it has of harmless texts, and neither commands nor escapes."""
    assert not (found := FORBIDDEN.search(text)), (name, found)
    assert not (found := reading.ANYWHERE.search(text)), (name, text[found.start() - 60 : found.end()])
    assert READ[name](text) == READ[name](harmless), name
    if name != GITHUB:
        assert not reading.commands(text), name


@cache
def harmless(name: str) -> str:
    """An output of harmless texts."""
    return str(output(RUN, name)(holding("x"), OPTIONS))


def many(evil: str) -> tuple[Outcome, ...]:
    """Runs of such names, and a log whose error quotes it."""
    error = StabtreeError(f"holds {evil}", where=f"logs/{evil}", hint=f"type {evil}")
    return Outcome(f"a/{evil}", holding(evil)), Outcome(f"b/{evil}", plain()), Outcome(f"c/{evil}", error)


@cache
def harmless_runs(name: str) -> str:
    """The same of several runs."""
    return "".join(output(RUNS, name)(recorded(*many("x")), OPTIONS))


@settings(max_examples=10)
@given(TEXTS)
@example("".join(HOSTILE))
@example(" ".join(HOSTILE))
def test_no_output_of_one_run_gains_structure(evil: str) -> None:
    """Names, columns, lines, settings, paths, errors: each output, also of several runs, is read by a parser."""
    found, runs = holding(evil), recorded(*many(evil))
    for name in names(RUN):
        check(name, output(RUN, name)(found, OPTIONS), harmless(name))
    for name in names(RUNS):
        check(name, "".join(output(RUNS, name)(runs, OPTIONS)), harmless_runs(name))


@pytest.mark.parametrize("evil", HOSTILE)
def test_a_megabyte_of_it_is_cut(evil: str) -> None:
    """No service is sent a megabyte of a name; what is cut is no less text."""
    found = holding(evil * (1_000_000 // len(evil)))
    for name in (GITHUB, JUNIT, SARIF):
        text = output(RUN, name)(found, OPTIONS)
        assert len(text) < 200_000
        check(name, text, harmless(name))
