"""The report on one screen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.model import Report
from stabtree.report.outputs import RenderOptions
from stabtree.report.screen import MAX_LINES, NARROW_LINES, ROWS_OF_PLOT, full, headline, screen
from stabtree.tree.load import load_trees
from stabtree.tree.model import Severity
from tests.conftest import FIXTURES, make_run

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run

TREE = load_trees()
OPTIONS = RenderOptions(width=80, exit_code=1)
RUNS = sorted(path for path in FIXTURES.glob("*/*") if path.is_dir())[::8]
MAX_IN_ALL = 40
MAX_PLOT = ROWS_OF_PLOT + 1
BRAILLE = re.compile("[\u2801-\u28ff]|×  +×")


def flat(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def text_lines(found: Diagnosis, options: RenderOptions) -> int:
    """How many lines the screen has without its plot."""
    drawn = screen(found, options).count("\n")
    if not options.plots or not BRAILLE.search(screen(found, options)):
        return drawn
    return drawn - 1 - MAX_PLOT


def checked(run: Run, width: int) -> None:
    """A screen is no longer than it may be, no line is too wide, and what must be said is said."""
    found = diagnose(run, load_trees(run))
    options = replace(OPTIONS, width=width)
    told, text = Report(found, 1), screen(found, options)
    shown = text.splitlines()
    assert all(len(line) <= width and line == line.rstrip() for line in shown)
    assert len(shown) <= MAX_IN_ALL
    # A quoted line of the log may be cut where it is read, and the name of a run for its line; no sentence is.
    assert not [
        line for line in shown[1:] if width >= 80 and line.endswith("…") and " · " not in line and "line " not in line
    ]
    if told.badge == Severity.OK:
        assert width < 80 or len(shown) <= 3
        assert shown[0].startswith(f" OK  {told.title[:8]}")
        return
    assert text_lines(found, options) <= (MAX_LINES if width >= 80 else NARROW_LINES)
    assert flat(told.title) in flat(text)
    assert flat(told.closing) in flat(text)
    assert all(flat(action.text) in flat(text) for action in told.do_now if action.strong or action.branches)
    if "It came back" in text:
        assert "Restart from" not in text


@pytest.mark.parametrize("width", [46, 80])
@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_every_report_fits_on_a_screen_and_says_what_must_be_said(path: Path, width: int) -> None:
    """At most 25 lines of 80 columns and a plot, 3 for a healthy run; verdict, restart and last line are never cut."""
    checked(load_run(path), width)


def made(findings: int, questions: int) -> str:
    """The screen of a diagnosis with so many findings, each critical, on a path of so many questions."""
    run = load_run(FIXTURES / "phase19" / "fp16-overflow")
    found = diagnose(run, load_trees(run))
    main = found.findings[0]
    others = tuple(
        replace(main, leaf=replace(main.leaf, id=f"critical-leaf-{n}"), onset_step=100_000 + n, seen_as=())
        for n in range(1, findings)
    )
    turns = tuple(
        replace(
            found.path[n % len(found.path)], question=replace(found.path[n % len(found.path)].question, id=f"Q9.{n}")
        )
        for n in range(questions)
    )
    questions_ = {**found.tree.questions, **{visit.question.id: visit.question for visit in turns}}
    tree = replace(found.tree, questions=questions_)
    return screen(replace(found, findings=(main, *others), path=turns, tree=tree), OPTIONS)


def test_twelve_findings_on_a_path_of_ten_questions_fit() -> None:
    """The first of the others is named and the rest counted; the path is one line that ends in what decided."""
    text = made(12, 10)
    assert text.count("\n") <= MAX_LINES + 1 + MAX_PLOT
    assert "Also      critical critical-leaf-1 at step 100,001" in text
    assert "(and 10 more)" in text
    path = next(line for line in text.splitlines() if line.startswith("Path"))
    assert "… › Q9." in path
    assert "Q9.9" in path
    assert "the checkpoint of step 600" in flat(text)
    assert text.splitlines()[-2] == "critical: fp16-overflow at step 730 · restart from 600 · exit 1"


def test_the_rows_show_the_event() -> None:
    """The last good row, the onset with how far it lasts, and what was logged there."""
    run = load_run(FIXTURES / "phase19" / "fp16-overflow")
    lines = screen(diagnose(run, load_trees(run)), OPTIONS).splitlines()
    head = next(place for place, line in enumerate(lines) if line.split()[:2] == ["step", "loss"])
    rows = lines[head + 1 : lines.index("", head)]
    assert 3 <= len(rows) <= 6
    assert any(row.split()[0] == "660" and "last good row" in row for row in rows)
    assert any(row.split()[0] == "661" and "weight_norm/blocks moved first" in row for row in rows)
    here = next(row for row in rows if "◀ here" in row)
    assert here.split()[:2] == ["730", "NaN"]
    assert "and all 59 rows after it" in here


def test_no_plots_draws_none_and_ascii_says_all_of_it() -> None:
    """Without figures there is no braille; in ASCII no other sign, no line too wide, and the same path."""
    run = load_run(FIXTURES / "phase19" / "fp16-overflow")
    found = diagnose(run, load_trees(run))
    assert BRAILLE.search(screen(found, OPTIONS))
    assert not BRAILLE.search(screen(found, replace(OPTIONS, plots=False)))
    for full_ in (False, True):
        plain = screen(found, replace(OPTIONS, ascii=True, full=full_))
        assert plain.isascii()
        assert all(len(line) <= 80 for line in plain.splitlines())
    assert headline(found, replace(OPTIONS, ascii=True)).isascii()


def test_a_healthy_run_says_in_words_what_it_was_checked_for() -> None:
    """What was not found, and what was not judged with what to log for it; no signs of sections."""
    loss = 2 * np.exp(-np.arange(600) / 150) + 0.05 * np.random.default_rng(0).standard_normal(600) + 1
    run = make_run({"loss": loss, "eval_loss": loss + 0.1})
    shown = screen(diagnose(run, load_trees(run)), RenderOptions(width=80)).splitlines()
    assert "eval_loss" in shown[0]
    assert shown[1].startswith("No NaN, no spike, no divergence; mixed precision not judged: log dtype")
    assert "§" not in "".join(shown)


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"loss": np.linspace(3, 2, 2)}, "Log too short (2 rows of loss)"),
        ({"lr": np.linspace(3, 2, 12)}, "No loss in the log"),
        ({}, "No metric in the log"),
    ],
)
def test_a_run_that_is_not_judged_says_which_kind_it_is(columns: dict[str, object], kind: str) -> None:
    """Too short, without a loss, without anything."""
    found = diagnose(make_run(columns), TREE)
    assert screen(found, OPTIONS).startswith(f" NOT JUDGED  {kind}")


def test_questions_for_a_person_take_one_line_of_the_report() -> None:
    """O1=yes asks what else is wrong; what is not answered is listed together."""
    still = make_run({"loss": 2.3 + np.random.default_rng(0).normal(0, 0.01, 600), "lr": np.full(600, 1e-3)})
    assert diagnose(still, TREE).findings[0].leaf.id == "flat-from-start"
    answered = diagnose(still, TREE, answers={"O1": "yes"})
    told = full(answered, RenderOptions(width=120))
    assert "10 questions for a person (O6, O10, O11, O13, O17, O18, O19, O20, O21, O26)" in " ".join(told.split())
    assert sum("O17" in line for line in told.splitlines()) <= 2
