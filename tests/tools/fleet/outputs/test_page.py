"""The page of many runs: whole, safe, small, and drawn by a browser without a complaint."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.tools.fleet.outputs.page import page
from stabtree.tools.fleet.outputs.reports import report_name, reports
from tests.report.test_html import LOADS, Parts
from tests.tools.fleet.outputs.made import HOSTILE, hostile, judged, many

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tools.fleet.record import Record
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def browsed(page: str, folder: Path, width: int = 1280) -> tuple[str, str]:
    """What a browser makes of a page, and what it complains of."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=3000"]
    command = [str(CHROMIUM), *options, f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
    command += ["--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    return done.stdout, done.stderr


def rows(parts: Parts) -> list[list[Any]]:
    """The rows for the script."""
    told = next(json.loads(data) for _, attrs, data in parts.inline if attrs.get("id") == "runs-data")
    return list(told["rows"])


def test_the_page_counts_groups_and_lists() -> None:
    """The headline, a part a cause with what to do, and a row a run, each with its small line."""
    parts = Parts("".join(page(many(80, 900))))
    assert "80 of 980 runs are not healthy" in parts.text
    assert re.search(r"The run overflowed in fp16 fp16-overflow .* and 17 more First: ", parts.text)
    assert len(rows(parts)) == 980
    assert rows(parts)[0][1] == "sweep-0/seed00000.csv"
    assert "next" not in parts.text
    assert "stabtree diagnose runs/sweep-0/seed00000.csv" in parts.text


def test_without_scripts_the_worst_stand() -> None:
    """Two hundred of them are rows of the page itself, and how many more there are is said."""
    parts = Parts("".join(page(many(300, 100))))
    assert len([name for name, _ in parts.elements if name == "tr"]) == 201
    assert "and 200 more, which need scripts to be on" in parts.text


@pytest.mark.parametrize("first", [judged()[0], hostile()], ids=["plain", "hostile"])
def test_the_page_asks_nothing_of_the_network_and_runs_only_its_own_script(first: Record) -> None:
    """No address to load from, no handler or style in an element, and a policy that allows just what is inside."""
    parts = Parts("".join(page([first, *judged()])))
    for name, attrs in parts.elements:
        assert name not in ("iframe", "object", "embed", "base", "form", "img")
        assert not [key for key in attrs if key.startswith("on") or key == "style"]
        assert all((attrs[key] or "").startswith(("#", "data:,")) for key in LOADS & attrs.keys() - {"data"})
    policy = next(a["content"] or "" for _, a in parts.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for name, attrs, data in parts.inline:
        if attrs.get("type") != "application/json":
            digest = base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in next(part for part in policy.split(";") if f"{name}-src" in part)
    assert len([name for name, _ in parts.elements if name == "script"]) == 2


def test_hostile_names_are_text() -> None:
    """They are told as they are, and lose what could move or hide text."""
    parts = Parts("".join(page([hostile(), *judged()])))
    assert "<script>alert(1)</script><img src=x onerror='alert(1)'>" in parts.text
    assert not re.search("[\u2028\u202e\x1b]", parts.text)
    assert not re.search("[\u2028\u202e\x1b\n]", json.dumps(rows(parts), ensure_ascii=False))


def test_ten_thousand_runs_make_a_page_that_opens() -> None:
    """A few megabytes; beyond twenty thousand runs the worst of them, and that is said."""
    assert sum(map(len, page(many(1_000, 9_000)))) < 4_000_000
    parts = Parts("".join(page(many(100, 20_000))))
    assert len(rows(parts)) == 20_000
    assert "The page holds the worst 20,000 of 20,100 runs" in parts.text


def test_an_alarmed_run_links_to_its_report() -> None:
    """Under a name that any file system takes and no two runs share; a healthy one has no report."""
    names = {one.path: report_name(one) for one in judged()}
    assert bool(names["fp16-overflow"]) == bool(names["nan-forward"]) != bool(names["healthy"] or names["broken.csv"])
    assert re.fullmatch(r"[A-Za-z0-9-]{1,100}\.html", report_name(hostile()))
    one = judged()[0]
    assert len({report_name(replace(one, path=path)) for path in ("a/b", "a-b", "a b")}) == 3
    parts = Parts("".join(page(judged(), reports="all%20reports")))
    links = {attrs.get("href") for name, attrs in parts.elements if name == "a"}
    assert f"all%20reports/{names['fp16-overflow']}" in links
    assert {row[12] for row in rows(parts)} == set(names.values())


def test_a_report_is_written_of_each_alarmed_run() -> None:
    """Each is the page of that run alone; one whose log went away has none."""
    from stabtree.common.errors import StabtreeError
    from stabtree.judging.judge import Judging
    from stabtree.loaders import load_run
    from tests.conftest import FIXTURES

    def again(record: Record) -> Diagnosis | StabtreeError:
        if record.path == "nan-forward":
            return StabtreeError("went away")
        return Judging().diagnosed(load_run(FIXTURES / "phase19" / record.path))

    written = dict(reports(judged(), again))
    assert list(written) == [report_name(one) for one in judged() if one.path == "fp16-overflow"]
    assert "The run overflowed in fp16" in Parts(*written.values()).text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
@pytest.mark.parametrize("kind", ["many", "hostile"])
def test_a_browser_draws_the_rows_and_complains_of_nothing(kind: str, tmp_path: Path) -> None:
    """The first rows at once, the rest as somebody scrolls; no error of the script and none of the policy."""
    runs = [hostile(), *judged()] if kind == "hostile" else list(many(2_000, 8_000))
    drawn, complaints = browsed("".join(page(runs)), tmp_path)
    assert "CONSOLE" not in complaints
    shown = len(re.findall(r'<tr class="row"', drawn))
    assert shown == len(runs) if kind == "hostile" else 200 <= shown <= 600
    assert drawn.count('type="search"') == 1
    assert HOSTILE.partition("<script>")[0] not in re.sub(r"<script.*?</script>", "", drawn, flags=re.DOTALL)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_rows_sort_filter_and_open(tmp_path: Path) -> None:
    """By number and by name, both ways, what has no number last; a row opens into what to do and what to type."""
    acts = """
    const cells = (n) => [...document.querySelectorAll("tr.row")].map((row) => row.cells[n].textContent);
    const head = (n) => document.querySelectorAll("thead th")[n].querySelector("button");
    const told = {};
    head(3).click(); told.up = cells(3);
    head(3).click(); told.down = cells(3);
    document.querySelector('header a[data-badge="ok"]').click(); told.ok = cells(0);
    document.querySelector('.groups a[data-leaf="fp16-overflow"]').click(); told.leaf = cells(1);
    document.querySelector("tr.row").click(); told.open = document.querySelector("tr.more").textContent;
    document.title = JSON.stringify(told);
    """
    whole = "".join(page(judged()))
    digest = base64.b64encode(hashlib.sha256(acts.encode()).digest()).decode()
    whole = whole.replace("script-src ", f"script-src 'sha256-{digest}' ").replace(
        "</body>", f"<script>{acts}</script></body>"
    )
    drawn, complaints = browsed(whole, tmp_path)
    assert "CONSOLE" not in complaints
    told = json.loads((re.search(r"<title>(.*?)</title>", drawn) or [""])[1].replace("&amp;", "&").replace("&gt;", ">"))
    steps = [text for text in told["up"] if text]
    assert steps == sorted(steps, key=lambda text: int(text.replace(",", "")))
    assert told["down"][: len(steps)] == steps[::-1]
    assert told["up"][len(steps) :] == [""] * (len(told["up"]) - len(steps))
    assert set(told["ok"]) == {"OK"}
    assert told["leaf"] == ["fp16-overflow"]
    assert "stabtree diagnose fp16-overflow" in told["open"]
