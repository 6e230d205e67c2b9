"""The report as one page: whole, safe, small, and in the words of the report."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.html import html
from stabtree.report.model import Report
from stabtree.report.outputs import RenderOptions
from stabtree.report.page import asset
from stabtree.report.sections import story
from stabtree.report.words import answer_word, seen
from stabtree.run import LogLine, Run, Series, Setting
from stabtree.tree.load import load_trees
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis

RUNS = sorted(path for path in FIXTURES.glob("*/*") if path.is_dir())[::8]
OVERFLOW = FIXTURES / "phase19" / "fp16-overflow"
HOSTILE = """</script></title><script>alert(1)</script><img src=x onerror='alert(1)'>"&\u2028\u202e\x1b[31m"""
INLINE = {"b", "code", "span", "strong", "i"}
LOADS = {"src", "srcset", "href", "action", "formaction", "data", "poster", "background", "ping", "xlink:href"}


class Parts(HTMLParser):
    """What a browser makes of a page: its elements, its text, and what stands in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[tuple[str, dict[str, str | None], str]] = []
        self.words: list[str] = []
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        self._open = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        """Note the end of one: words of different blocks do not touch."""
        self._open = ""
        if tag not in INLINE:
            self.words.append(" ")

    def handle_data(self, data: str) -> None:
        """Note text."""
        if self._open:
            self.inline.append((self._open, self.elements[-1][1], data))
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        """What is there to read."""
        return flat("".join(self.words))


def flat(text: str) -> str:
    """Text as it is compared: one blank between words, no marks of code."""
    return " ".join(text.replace("`", "").split())


def found(run: Run) -> Diagnosis:
    """The diagnosis of a run by the shipped trees."""
    return diagnose(run, load_trees(run))


def hostile_run() -> Run:
    """A run all of whose names and lines are markup."""
    run = load_run(OVERFLOW)
    lines = (LogLine(3, f"RuntimeError: {HOSTILE}", at_end=True),)
    series = {**run.series, f"weight_norm/{HOSTILE}": run.series["weight_norm/blocks"]}
    series = {name: replace(each, metric=name) for name, each in series.items() if name != "weight_norm/blocks"}
    config = {**run.config, HOSTILE: Setting(HOSTILE, HOSTILE)}
    return replace(run, name=HOSTILE, series=series, config=config, lines=lines, notes=(HOSTILE,))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_a_page_says_what_the_report_says_the_chart_first(path: Path) -> None:
    """Every word of the report stands on the page: the chart and what to do first, what nobody needs to act folded."""
    diagnosis = found(load_run(path))
    told = Report(diagnosis, 1)
    shown = Parts(html(diagnosis, RenderOptions(exit_code=1))).text
    texts = [told.title, told.facts, told.why, told.misread, told.also_seen, told.closing]
    texts += [text for action in told.do_now for text in (action.text, action.why)]
    texts += [text for item in told.causes for text in (item.cause.says, *(seen.text for seen in item.evidence))]
    visits = [visit for walk in told.walks for group in walk.groups for visit in group]
    texts += [text for item in visits for text in (item.question.id, item.question.ask, answer_word(item), *seen(item))]
    texts += [finding.leaf.title for finding in told.also] + [walk.ends for walk in told.walks]
    texts += [text for item in told.open for text in (item.text, item.how, *item.unlocks)]
    for text in texts:
        assert flat(text) in shown
    heads = ["Charts", "Do now", "What it means", "What happened, in order", "The rows"]
    heads += [told.closing, "Everything else", "Also found", "Path"]
    places = [shown.index(flat(head), shown.index(flat(told.facts))) for head in heads if head in shown]
    assert places == sorted(places)


STORIES = {
    "phase19/fp16-overflow": "The weight norm of `blocks` grew from 14.1 to 124,000 (661 to 730), the gradient norm is",
    "phase19/spike-bad-batch": "The gradient norm jumped from 2.58 to 134 (466), the loss jumped from 0.705 to 19.2",
    "phase19/loss-ends": "The loss is logged up to 454, then it is missing in 1 rows up to 455.",
    "healthy/smooth": "The eval loss went from 2.52 to 0.541 in 10 rows. No NaN, no spike, precision sound, no",
}


def test_a_page_tells_its_story_and_draws_what_was_logged() -> None:
    """What moved and broke, with numbers; its events and stretches on the curves; of a healthy run all curves."""
    for name, told in STORIES.items():
        diagnosis = found(load_run(FIXTURES / name))
        assert story(Report(diagnosis)).startswith(told)
        drawn = [attrs.get("class") for _, attrs in Parts(html(diagnosis)).elements]
        assert name not in ("phase19/fp16-overflow", "healthy/smooth") or drawn.count("frame") == 4
        assert "overflow" not in name or {"event", "doubt", "trouble", "checkpoint", "restart-line"} <= {*drawn}


@pytest.mark.parametrize("run", [load_run(OVERFLOW), hostile_run()], ids=["plain", "hostile"])
def test_a_page_asks_nothing_of_the_network_and_runs_nothing_but_its_own(run: Run) -> None:
    """No address to load from, no handler or style in an element, and a policy that allows just what is inside."""
    diagnosis = found(run)
    page, told = html(diagnosis), diagnosis.findings[0]
    parts = Parts(page)
    for name, attrs in parts.elements:
        assert name not in ("iframe", "object", "embed", "base", "form", "img")
        assert not [key for key in attrs if key.startswith("on") or key == "style"]
        for key in LOADS & attrs.keys():
            assert (attrs[key] or "").startswith(("#", "data:,")) or (name, attrs[key]) == ("a", told.leaf.page)
    policy = next(a["content"] or "" for _, a in parts.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for name, attrs, data in parts.inline:
        if attrs.get("type") == "application/json":
            continue  # no browser runs it
        if name == "style":
            assert not re.search(r"url\(|@import", data)
        digest = base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in next(part for part in policy.split(";") if f"{name}-src" in part)
    scripts = [data for name, _, data in parts.inline if name == "script"]
    assert scripts[1:] == [asset("uplot/uPlot.iife.min.js"), asset("charts.js")]
    drawn = json.loads(scripts[0])
    low, high = drawn["near"]  # what moved first, the onset and the restart
    assert low <= 600
    assert high >= 730
    assert [strip["tall"] for strip in drawn["strips"]] == [True, False, False, False]
    steps, values = drawn["strips"][0]["rows"]
    assert (steps[730], values[730], len(steps)) == (730, None, 790)


def test_a_page_of_a_long_run_is_small_and_shows_each_extreme() -> None:
    """Many rows are drawn by those that stand out, close to the onset by all that there is room for."""
    rng = np.random.default_rng(0)
    loss = rng.normal(2, 0.1, 100_000)
    loss[[12_345, 70_000, 80_000]] = 40, -3, 1.79769e308
    loss[95_000:] = np.nan
    run = Run("long", {name: Series(name, np.arange(len(loss)), loss) for name in ("loss", "eval_loss")})
    page = html(found(run), RenderOptions(against=run))
    (strip, *_) = json.loads(Parts(page).inline[-3][2])["strips"]
    assert len(page) < 250_000
    for steps, values in (strip["rows"], strip["good"]):
        assert {(12_345, 40), (70_000, -3), (80_000, 1.79769e308), (95_000, None)} <= {*zip(steps, values, strict=True)}


def test_hostile_names_and_lines_are_text() -> None:
    """A name that is markup makes no element more, is told as it is, and loses what could move or hide text."""
    plain, hostile = Parts(html(found(load_run(OVERFLOW)))), Parts(html(found(hostile_run())))
    assert {name for name, _ in plain.elements} == {name for name, _ in hostile.elements}
    assert "<script>alert(1)</script><img src=x onerror='alert(1)'>\"&" in hostile.text
    assert not re.search("[\u2028\u202e\x1b]", hostile.text)


def test_a_notebook_shows_a_card_and_python_a_few_lines() -> None:
    """Of any run, with markup for names too, in at most 15 kB without a script or a frame; text is the screen."""
    run, diagnosis = load_run(OVERFLOW), found(hostile_run())
    assert repr(run).startswith("Run('fp16-overflow'")
    for shown in (found(run)._repr_html_(), diagnosis._repr_html_()):
        parts = Parts(shown)
        assert len(shown.encode()) <= 15_000
        assert not {"iframe", "script", "img"} & {name for name, _ in parts.elements}
        assert all(words in parts.text for words in ("CRITICAL", "Step 730", "Restart from", "onset at step 730"))
    assert str(diagnosis) == diagnosis.to_text()
    finding = diagnosis.findings[0]
    assert repr(finding).startswith("Incident('fp16-overflow': critical at step 730")
    assert repr(finding).count("\n") <= 2
    assert repr(finding.restart).startswith("Restart(checkpoint_step=600, ")
