"""The report as one page: whole, safe, small, and in the words of the report."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.html.charts import as_script
from stabtree.report.html.folded import around
from stabtree.report.html.page import html
from stabtree.report.model.build import report
from stabtree.report.options import RenderOptions
from stabtree.report.outputs import RUN, output
from stabtree.run import LogLine, Run, Setting
from stabtree.tree.load import load_trees
from tests.conftest import FIXTURES, make_run

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis

RUNS = sorted(path for path in FIXTURES.glob("*/*") if path.is_dir())
OVERFLOW = FIXTURES / "phase19" / "fp16-overflow"
HOSTILE = """</script></title><script>alert(1)</script><img src=x onerror='alert(1)'>"&\u2028\u202e\x1b[31m"""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
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

    @property
    def drawn(self) -> dict[str, Any]:
        """The data of the charts."""
        return next(json.loads(data) for _, attrs, data in self.inline if attrs.get("id") == "chart-data")


def flat(text: str) -> str:
    """Text as it is compared: one blank between words, no marks of code."""
    return " ".join(text.replace("`", "").split())


def found(run: Run) -> Diagnosis:
    """The diagnosis of a run by the shipped trees."""
    return diagnose(run, load_trees(run))


def long_run(rows: int) -> Run:
    """A run with one spike of the loss, and two steps at which it is NaN."""
    draws = np.random.default_rng(0)
    at = np.arange(rows)
    loss = 1 + 3 * np.exp(-5 * at / rows) + draws.normal(0, 0.05, rows)
    grad_norm = 1 + np.abs(draws.normal(0, 0.2, rows))
    spike, nan = int(rows * 0.8), int(rows * 0.9)
    loss[spike], loss[[nan, nan + 1]] = 9.0, np.nan
    grad_norm[spike : spike + 3] = 40.0
    return make_run({"loss": loss, "grad_norm": grad_norm, "weight_norm/a": 10 + loss, "lr": 1e-3 / (1 + at)})


def hostile_run() -> Run:
    """A run all of whose names and lines are markup."""
    run = load_run(OVERFLOW)
    lines = (LogLine(3, f"RuntimeError: {HOSTILE}", at_end=True),)
    series = {**run.series, f"weight_norm/{HOSTILE}": run.series["weight_norm/blocks"]}
    series = {name: replace(each, metric=name) for name, each in series.items() if name != "weight_norm/blocks"}
    config = {**run.config, HOSTILE: Setting(HOSTILE, HOSTILE)}
    return replace(run, name=HOSTILE, series=series, config=config, lines=lines, notes=(HOSTILE,))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_a_page_says_what_the_report_says_in_its_order(path: Path) -> None:
    """Every word of the report stands on the page, and the sections follow one another as on the screen."""
    diagnosis = found(load_run(path))
    told = report(diagnosis, exit_code=1)
    shown = Parts(html(diagnosis, RenderOptions(exit_code=1))).text
    texts = [told.title, told.facts, told.why, told.misread, *told.seen_as, told.closing]
    texts += [text for action in told.do_now for text in (action.text, action.reason)]
    texts += [text for row in told.causes for text in (row.judged.cause.text, row.why, *row.fixes)]
    turns = [turn for walk in told.walks for turn in walk.turns]
    texts += [text for turn in turns for text in (turn.id, turn.short, turn.ask, turn.answer, *turn.evidence)]
    texts += [finding.leaf.title for finding in told.also] + [walk.ends for walk in told.walks]
    texts += [text for item in told.open for text in (item.text, item.how, *item.unlocks)]
    for text in texts:
        assert flat(text) in shown
    heads = ["The rows", "Charts", "What it means", "Do now", "Causes", "Log next", "Path", "Also found"]
    heads += ["Not checked, and what to log next time", told.closing, "Everything else"]
    places = [shown.index(flat(head), shown.index(flat(told.facts))) for head in heads if head in shown]
    assert places == sorted(places)


@pytest.mark.parametrize("run", [load_run(OVERFLOW), hostile_run()], ids=["plain", "hostile"])
def test_a_page_asks_nothing_of_the_network_and_runs_only_its_own_script(run: Run) -> None:
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
        if name == "style":
            assert not re.search(r"url\(|@import", data)
        if attrs.get("type") != "application/json":
            digest = base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()
            rule = next(part for part in policy.split(";") if part.strip().startswith(f"{name}-src"))
            assert f"'sha256-{digest}'" in rule
    assert "Permission is hereby granted" in page


def test_hostile_names_and_lines_are_text() -> None:
    """A name that is markup makes no element more, is told as it is, and loses what could move or hide text."""
    plain, hostile = Parts(html(found(load_run(OVERFLOW)))), Parts(html(found(hostile_run())))
    scripts = [len([name for name, _ in parts.elements if name == "script"]) for parts in (plain, hostile)]
    assert scripts[0] == scripts[1] == 2
    assert "<script>alert(1)</script><img src=x onerror='alert(1)'>\"&" in hostile.text
    assert not re.search("[\u2028\u202e\x1b]", hostile.text)
    assert any("<script>" in strip["metric"] for strip in hostile.drawn["strips"])


def test_data_in_a_page_holds_no_markup() -> None:
    """What a parser of markup or of old scripts could stumble over is written as an escape, and comes back whole."""
    written = as_script({"name": HOSTILE})
    assert not re.search("[<>&\u2028]", written)
    assert json.loads(written) == {"name": HOSTILE}


@pytest.mark.parametrize(("rows", "most"), [(1_000, 500_000), (100_000, 1_500_000), (1_000_000, 1_500_000)])
def test_a_page_stays_small_and_loses_no_spike_and_no_nan(rows: int, most: int) -> None:
    """The charts hold the lowest and the highest value of each series and every step that is not finite."""
    run = long_run(rows)
    page = html(found(run))
    assert len(page.encode()) <= most
    drawn = Parts(page).drawn
    assert drawn["strips"][0]["metric"] == "loss"
    for strip in drawn["strips"]:
        series = run.series[strip["metric"]]
        assert min(strip["low"]) == pytest.approx(np.nanmin(series.values), rel=1e-5)
        assert max(strip["high"] or strip["low"]) == pytest.approx(np.nanmax(series.values), rel=1e-5)
        for step in series.steps[~np.isfinite(series.values)].tolist():
            assert any(first <= step < last + max(drawn["width"], 1) for first, last in strip["bad"])


def test_at_a_column_a_step_every_value_stands_at_its_own_step() -> None:
    """A short run is drawn as it was logged."""
    run = long_run(1_000)
    drawn = Parts(html(found(run))).drawn
    loss, strip = run.series["loss"], drawn["strips"][0]
    good = np.isfinite(loss.values)
    assert strip["at"] == loss.steps[good].tolist()
    assert strip["low"] == pytest.approx(loss.values[good].tolist(), rel=1e-5)
    assert [strip["at"][place] for place in strip["cut"]] == [0, 902]


def test_a_log_of_many_columns_makes_no_large_page() -> None:
    """What is told of columns is cut where it grows beyond what anybody reads, and the rest is counted."""
    many = {f"weight_norm/layer{place}": np.full(60, 1.0 + place) for place in range(3000)}
    settings = {f"key{place}": Setting(place, "manifest.json") for place in range(3000)}
    run = replace(make_run({"loss": np.linspace(3, 1, 60), **many}), config=settings)
    page = html(found(run))
    assert len(page.encode()) < 500_000
    assert "and 2,700 more" in page


def test_the_rows_around_the_onset_are_those_of_the_log() -> None:
    """A row a step, in order, a cell a series; empty where nothing was logged, and NaN where that was."""
    heads, rows = around(load_run(OVERFLOW), 730, ["loss", "grad_norm", "eval_loss"])
    assert heads[:4] == ["step", "loss", "grad_norm", "eval_loss"]
    assert "batch_id" not in heads
    assert [row[0] for row in rows] == [str(step) for step in range(724, 737)]
    assert rows[5][:4] == ["729", "0.677957", "1.10565", ""]
    assert rows[6][:4] == ["730", "nan", "nan", ""]


def test_without_plots_no_chart_is_drawn() -> None:
    """Whoever asks for no figures gets none."""
    page = html(found(load_run(OVERFLOW)), RenderOptions(plots=False))
    assert "<svg" not in page
    assert 'id="live"' not in page


def test_the_command_line_writes_a_page() -> None:
    """`html` is one of the outputs, the same page twice for the same run."""
    diagnosis = found(load_run(OVERFLOW))
    assert output(RUN, "html")(diagnosis, RenderOptions()) == html(diagnosis) == html(found(load_run(OVERFLOW)))


def test_paper_gets_the_still_figure_alone() -> None:
    """What only a screen can use is hidden in print: the buttons, and the charts that are zoomed into."""
    paper = html(found(load_run(OVERFLOW))).partition("@media print")[2].partition("svg.stabtree")[0]
    assert ".tools, .controls, .skip, .live #live { display: none; }" in paper
    assert ".live .still { display: block; }" in paper


def browsed(page: str, folder: Path, width: int = 1280) -> tuple[str, str]:
    """What a browser makes of a page, and what it complains of."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=3000"]
    command = [str(CHROMIUM), *options, f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
    command += ["--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    return done.stdout, done.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
@pytest.mark.parametrize("name", ["fp16-overflow", "healthy", "hostile", "extreme"])
def test_a_browser_draws_the_charts_and_complains_of_nothing(name: str, tmp_path: Path) -> None:
    """One plot a series, and no error in the console: none of the script, and none of the policy."""
    span = np.where(np.arange(300) % 2, 8e307, -8e307)
    columns = {"loss": span, "grad_norm": np.abs(span), "loss_scale": np.full(300, 1.0)}
    run = {"extreme": make_run(columns), "hostile": hostile_run()}.get(name) or load_run(FIXTURES / "phase19" / name)
    page = html(found(run))
    drawn, complaints = browsed(page, tmp_path)
    assert "CONSOLE" not in complaints
    strips = Parts(page).drawn["strips"]
    assert len(re.findall(r'class="uplot', drawn)) == len(strips) > 0
    assert re.search(r'<html lang="en" class="live"', drawn)
