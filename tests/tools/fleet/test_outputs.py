"""The outputs of many runs: each run once, nothing of it lost, nothing of it active."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.judging.verdict import Outcome
from stabtree.loaders import load_run
from stabtree.report.outputs import RenderOptions
from stabtree.tools.fleet.outputs import COLUMNS, csv_lines, frame, headlines, jsonl, markdown, to_json
from stabtree.tools.fleet.page import page
from stabtree.tools.fleet.record import levels, loss_line, record_of, spark, worst_first
from stabtree.tools.fleet.table import Summary, next_command, screen
from tests.conftest import FIXTURES, make_run
from tests.report.test_html import Parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stabtree.tools.fleet.record import Record

NAMES = ("fp16-overflow", "nan-forward", "spike-minor", "healthy", "plateau")
HOSTILE = """</script><script>alert(1)</script><img src=x onerror='alert(1)'>"&|`\u2028\u202e\x1b[31m\n@all"""
NARROW = RenderOptions(width=80)
VARIED = ("lr", "batch_size", "max_steps", "dtype", "lr_schedule", "seed")


@cache
def judged() -> tuple[Record, ...]:
    """A run of each verdict, worst first."""
    outcomes = [Outcome(name, Judging().diagnosed(load_run(FIXTURES / "phase19" / name))) for name in NAMES]
    outcomes.append(Outcome("broken.csv", StabtreeError("no loss in it", where="broken.csv")))
    return tuple(worst_first(record_of(outcome, outcome.name) for outcome in outcomes))


def many(count: int, healthy: int) -> Iterator[Record]:
    """So many runs that are not healthy, the worst first, then so many that are; each its own name and onset."""
    calling = [run for run in judged() if run.badge != "ok"]
    rest = [run for run in judged() if run.badge == "ok"]
    for number in range(count):
        run = calling[number * len(calling) // count]
        onset = None if run.onset_step is None else run.onset_step + number
        yield replace(run, path=f"runs/sweep-{number % 3}/seed{number:05}.csv", onset_step=onset)
    for number in range(healthy):
        yield replace(rest[number % len(rest)], path=f"runs/good/seed{number:05}.csv")


def hostile() -> Record:
    """A run all of whose texts are markup, formulas and escape codes."""
    texts = dict.fromkeys(("run", "title", "leaf", "first"), HOSTILE)
    outcome = Outcome(f"=cmd|{HOSTILE}", StabtreeError(HOSTILE, where=HOSTILE, hint=HOSTILE))
    packed = record_of(outcome, outcome.name).packed
    return replace(judged()[0], path=f"=cmd|{HOSTILE}", notes=(HOSTILE,), packed=packed, **texts)


@pytest.mark.parametrize(
    "write", [screen, csv_lines, headlines, jsonl, to_json, markdown, page], ids=lambda f: f.__name__
)
def test_a_hostile_run_is_text_in_every_output(write: Callable[..., Iterator[str]]) -> None:
    """No name breaks a line, sends an escape code, turns text around, or is markup, a mention or a formula."""
    text = "".join(write([hostile(), *judged()]))
    assert not re.search("[\u2028\u202e\x1b]", text)
    assert "\n@all" not in text
    if write in (csv_lines, headlines, jsonl):
        assert len(text.splitlines()) == len(judged()) + 1 + (write is csv_lines)
    if write is csv_lines:
        assert "'=cmd" in text
    if write in (markdown, page):
        assert "<script>" not in text.replace("\\<", "")
    if write in (jsonl, to_json):
        assert text.isascii()


def test_json_is_what_the_runs_alone_tell() -> None:
    """Each line is the object of the run with its path as `source`; the whole holds the same, and the worst verdict."""
    lines = [json.loads(line) for line in jsonl(judged())]
    assert [line["source"] for line in lines] == [run.path for run in judged()]
    varied = [{"key": key, "split": ""} for key in VARIED]
    whole = {"schema": 1, "runs": lines, "verdict": "critical", "varied": varied}
    assert json.loads("".join(to_json(judged()))) == whole
    assert json.loads("".join(to_json([]))) == {"schema": 1, "runs": [], "verdict": "ok", "varied": []}


@pytest.mark.parametrize("path", ["日本 \U0001f600.csv", "a\udcff.csv"])
def test_no_encoding_can_garble_a_line(path: str) -> None:
    """A name is that of the run, whatever a terminal or a pipe can carry, and though it be no UTF-8."""
    (line,) = jsonl([record_of(Outcome(path, StabtreeError("is bad", where=path)), path)])
    assert line.isascii()
    assert json.loads(line)["path"] == path


def test_a_run_is_a_row_of_the_csv() -> None:
    """Below a header that stays, with steps as whole numbers, and why a log can't be read in a column of its own."""
    rows = {row["path"]: row for row in csv.DictReader(io.StringIO("".join(csv_lines(judged()))))}
    assert tuple(rows["healthy"]) == (*COLUMNS, *VARIED)
    names = ("verdict", "leaf", "section", "more", "onset_step", "restart_step", "rows", "last_step", "badge")
    values = ["critical", "fp16-overflow", "3", "1", "730", "600", "790", "789", "critical"]
    assert [rows["fp16-overflow"][name] for name in names] == values
    assert [rows["broken.csv"][name] for name in ("problem", "title", "rows")] == ["no loss in it", "", ""]
    assert [row["verdict"] for row in rows.values() if row["badge"] == "ok"] == ["note", "ok"]
    assert "2 ok (1 with notes)" in "".join(screen(judged()))


@pytest.mark.parametrize("begins", ["=", "-", "\t=", "\n@", "\x1b[0m=", "\uff1d"])
def test_no_cell_of_a_csv_is_a_formula(begins: str) -> None:
    """Text that a spreadsheet would compute begins with an apostrophe, and numbers stay numbers."""
    text = f"{begins}HYPERLINK(A1)"
    run = replace(judged()[0], path=text, run=text, leaf=text, title=text, onset_step=-3)
    (row,) = csv.DictReader(io.StringIO("".join(csv_lines([run]))))
    assert all(row[name].startswith("'") for name in ("path", "run", "leaf", "title"))
    assert row["onset_step"] == "-3"


def test_a_frame_is_typed() -> None:
    """Steps are whole numbers also where some are missing, and verdicts compare by how bad they are."""
    told = frame([replace(judged()[0], onset_step=2**60 + 1), *judged()[1:]])
    assert tuple(told.columns) == (*COLUMNS, *VARIED)
    assert (str(told["onset_step"].dtype), int(told["onset_step"][0])) == ("Int64", 2**60 + 1)
    assert (told["verdict"] >= "warning").tolist() == [run.verdict == "critical" for run in judged()]
    assert len(frame([])) == 0


def test_of_many_runs_the_causes_are_told_and_the_worst_listed() -> None:
    """Each cause once, with how many runs, from which steps on, and what to do; the rest is counted."""
    text = "".join(screen(many(80, 900), NARROW))
    causes, _, rows = text.partition("  run ")
    assert len(re.findall("^ CRITICAL", causes, re.MULTILINE)) == 2
    assert re.search(
        r"CRITICAL +20 of 980  The run overflowed in fp16, from step 730-749\n +fp16-overflow · .* more\n +→ ", causes
    )
    assert re.search(r"^ OK +900 of 980  Healthy$", causes, re.MULTILINE)
    assert len(re.findall(r"sweep-\d/seed\d+\.csv", rows.partition("\nand ")[0])) == 20
    assert "and 60 more that are not ok: --worst 80, or --output csv=runs.csv" in text
    assert text.splitlines()[-1] == "next  stabtree diagnose runs/sweep-0/seed00000.csv"
    assert "".join(screen(many(80, 900), replace(NARROW, worst=50))).partition("  run ")[2].count("seed") == 51
    text = "".join(screen(many(20, 20), NARROW))  # of few all are listed
    assert len(re.findall(r"^  (?:sweep-\d|good)/seed\d+\.csv  ", text, re.MULTILINE)) == 40
    assert len(re.findall(r"seed\d+\.csv .*[▁-█×]{8} ", text)) == 35  # those that could be read


def swept(diverged: str, settings: Iterable[dict[str, float | str]]) -> list[Record]:
    """Runs with settings; those of which the text has an x diverged."""
    good, bad = judged()[-1], judged()[0]
    pairs = zip(diverged, settings, strict=True)
    return [replace(bad if mark == "x" else good, path=f"run{i}", settings=one) for i, (mark, one) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("diverged", "settings", "varied", "split"),
    [
        (
            "...xxx",
            {"seed": range(6), "lr": (1, 2, 3, 4, 5, 6)},
            ["lr", "seed"],
            "lr >= 4 diverges (3 of 3; 0 of 3 below)",
        ),
        (
            "xxx....",
            {"lr": [1e-4] * 7, "warmup_steps": (0, 9, 9, 10, 20, 20, 30)},
            ["warmup_steps"],
            "warmup_steps <= 9 d",
        ),
        ("...xxx", {"lr": (1, 2, 4, 4, 5, 6)}, ["lr"], ""),  # one that does not diverge is at the limit
        ("....xx", {"lr": (1, 2, 3, 4, 5, 6)}, ["lr"], ""),  # too few
        ("...xxx", {"seed": (1, 2, 3, 4, 5, 6), "log_interval": (1, 1, 1, 2, 2, 2)}, ["seed"], ""),
        (
            "......",
            {"optimizer": ("a", "a", "b") * 2, "init_from": "abcdef", "task": ["x/y", "z"] * 3},
            ["optimizer"],
            "",
        ),
        (
            "xxx...",
            {"optimizer": "aabbcc", "lr": (1, 1, 2, 2, 3, 3), "beta1": (1, 2) * 3, "beta2": (3, 3, 3, 1, 1, 1)},
            ["beta2", "lr", "beta1", "optimizer"],
            "beta2 >= 3",
        ),
    ],
)
def test_what_varies_is_shown_and_what_splits_the_runs_is_said(
    diverged: str, settings: dict[str, Sequence[float | str]], varied: list[str], split: str
) -> None:
    """A setting that splits first, numbers before words, the seed last; no path, no name, nothing of the logging."""
    runs = swept(
        diverged, [dict(zip(settings, values, strict=True)) for values in zip(*settings.values(), strict=True)]
    )
    summary = Summary(runs)
    assert summary.varied == varied
    assert split in "".join(summary.splits.values())
    shown = "".join(screen(runs))
    assert re.search(r"  run +" + " +".join(varied), shown)
    assert (f"every run with {split}" in " ".join(shown.split())) is bool(split)
    plotted = set(varied) - {"seed"}
    text = "".join(page(runs))
    assert set(re.findall(r'<svg [^>]*aria-label="(\w+) against the loss', text)) == plotted
    assert text.count('class="point') == len(plotted) * len(runs)


def test_a_run_of_a_tracker_has_the_name_that_people_gave_it() -> None:
    """Where two have one name, each keeps its path."""
    paths = [f"wandb/offline-run-2026-{end}" for end in "abc"]
    runs = [
        replace(judged()[0], path=path, label=label) for path, label in zip(paths, ("one", "two", "two"), strict=True)
    ]
    assert [Summary(runs).name(run) for run in runs] == ["one", "offline-run-2026-b", "offline-run-2026-c"]


def test_the_next_command_can_be_typed() -> None:
    """The worst run in full, with the name of the run where a file holds several."""
    run = replace(judged()[0], path="my runs/sweep.csv", run="lr 3e-3")
    assert next_command(run) == "stabtree diagnose 'my runs/sweep.csv' --run 'lr 3e-3'"
    assert next_command(replace(run, path="-x.csv", run="")) == "stabtree diagnose ./-x.csv"
    assert next_command(hostile()) == "stabtree diagnose PATH --run NAME"


@pytest.mark.parametrize("width", [60, 140])
@pytest.mark.parametrize("plain", [False, True])
def test_every_line_fits(width: int, plain: bool) -> None:
    """At any width, hostile names among them; in ASCII where nothing else can be shown."""
    text = "".join(screen([hostile(), *many(80, 300)], RenderOptions(width=width, ascii=plain)))
    assert all(len(line) <= width for line in text.splitlines()[:-1])
    assert "in fp16" in text.partition("  run ")[2]
    assert text.isascii() or not plain


def test_markdown_of_many_runs_is_short() -> None:
    """The causes stand open, the worst runs folded, within what a forge takes."""
    text = "".join(markdown(many(900, 9000)))
    assert len(text) < 65_000
    assert "The worst 100 of 900 runs that are not ok" in text


def test_the_page_is_static() -> None:
    """No script, nothing of the network, no handler or style in an element."""
    text = "".join(page((hostile(), *judged())))
    parts = Parts(text)
    for name, attributes in parts.elements:
        assert name not in ("script", "iframe", "object", "embed", "base", "form", "img")
        assert not [key for key in attributes if key.startswith("on") or key == "style"]
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    policy = next(a["content"] or "" for _, a in parts.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_the_page_counts_groups_and_lists() -> None:
    """The headline, a row a cause with what to do, and a row a run with its small line; the rest is counted."""
    parts = Parts("".join(page(many(80, 3000))))
    assert "40 of 3,080 runs have a warning or worse" in parts.text
    assert re.search(r"The run overflowed in fp16 730-749 .* and 17 more ", parts.text)
    assert len([name for name, _ in parts.elements if name == "tr"]) == 2000 + 1 + len(Summary(many(80, 3000)).groups)
    assert "and 1,080 more runs" in parts.text
    assert "stabtree diagnose runs/sweep-0/seed00000.csv" in parts.text
    assert sum(map(len, page(many(80, 3000)))) < 3_000_000


def test_a_small_line_shows_spikes_and_holes() -> None:
    """A spike is the highest cell, and what was not finite is crossed."""
    assert spark([1.0] * 16 + [9.0] + [1.0] * 7 + [None] * 8) == "▁▁▁▁█▁××"
    assert spark([1.0, 2.0, 3.0, 4.0], ascii=True) == "__..--''"
    assert levels([1.0, 1.0, None], 8) == [3, 3, None]
    assert levels([-1.7e308, 1.7e308, 0.0], 3) == [0, 2, 1]
    assert not spark([])
    loss = [5.0 - i / 40 for i in range(160)]
    loss[37], loss[81] = 90.0, -7.0
    loss[120:] = [float("nan")] * 40
    told, mark = loss_line(make_run({"loss": loss}), 120)
    finite = [value for value in told if value is not None]
    assert (max(finite), min(finite), told[24:], mark) == (90.0, -7.0, (None,) * 8, 24)
