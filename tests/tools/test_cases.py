"""`stabtree tree test`: a tree is held to the leaves that its author expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.errors import StabtreeError
from stabtree.tree.load import build
from tests.cli.command import failed, run
from tests.conftest import falling

if TYPE_CHECKING:
    from pathlib import Path

TREE = """
name: house
title: Our rules
uses: [phase19]
sections:
  - {id: first, title: First looks, entry: H1}
  - {id: later, title: Later looks, entry: H3, when: [kl]}
questions:
  - {id: H1, section: first, ask: Is it NaN?, test: nonfinite_eval, go: {yes: stop, no: H2}, source: ours}
  - {id: H2, section: first, ask: Did anyone look?, go: {yes: seen, no: Q2.1}, source: ours}
  - {id: H3, section: later, ask: Is kl NaN?, test: nonfinite_eval, go: {yes: late, no: healthy}, source: ours}
leaves:
  - {id: stop, of: H1, title: Stop, severity: critical, fix: stop, source: ours}
  - {id: seen, of: H2, title: Seen, severity: note, fix: none, source: ours}
  - {id: late, of: H3, title: Late, severity: warning, fix: none, source: ours}
tests:
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Logs to test a tree with."""
    spiked = falling(400)
    spiked[200:] += 3
    logs = {
        "good": (falling(400), falling(400)),
        "bad": (falling(400), np.full(400, np.nan)),
        "spiked": (spiked, np.ones(400)),
        "short": (falling(2), np.ones(2)),
    }
    for name, (loss, eval_loss) in logs.items():
        rows = [f"{step},{x:.6f},{y}" for step, (x, y) in enumerate(zip(loss, eval_loss, strict=True))]
        (tmp_path / f"{name}.csv").write_text("\n".join(["step,loss,eval_loss", *rows, ""]), encoding="utf-8")
    return tmp_path


def report(folder: Path, *tests: str) -> tuple[int, str]:
    """The exit code and the screen of a tree with these tests, on one line each."""
    (folder / "house.yaml").write_text(TREE + "".join(f"  - {{{test}}}\n" for test in tests), encoding="utf-8")
    done = run("tree", "test", str(folder / "house.yaml"), COLUMNS="160")
    return done.returncode, done.stdout


def test_all_pass(folder: Path) -> None:
    """An own leaf, one of a used tree, the ok leaf, and one that a person's answer leads to."""
    code, text = report(
        folder,
        "run: bad.csv, reaches: stop",
        "run: spiked.csv, reaches: spike-persistent",
        "run: good.csv, reaches: healthy",
        "run: good.csv, reaches: seen, answers: {H2: yes}",
    )
    assert code == 0
    assert text.count(" pass ") == 4
    assert "4 passed\nno test reaches 1   late\n" in text


@pytest.mark.parametrize(
    ("test", "reached", "shown"),
    [
        ("run: good.csv, reaches: stop", "healthy", "path     H1 no"),
        ("run: bad.csv, reaches: healthy", "stop", "turn     H1 says yes: "),
        ("run: spiked.csv, reaches: healthy", "spike-persistent", "turn     Q2.1 says yes: "),
        ("run: good.csv, reaches: seen", "healthy", "H2 not checked"),
    ],
)
def test_a_failure_shows_the_path_and_what_keeps_a_run_from_being_ok(
    folder: Path, test: str, reached: str, shown: str
) -> None:
    """Beside the leaf that was reached instead."""
    code, text = report(folder, test, "run: bad.csv, reaches: stop")
    assert code == 1
    assert f"reached  {reached}" in text
    assert shown in text
    assert "1 passed, 1 failed" in text


def test_what_was_not_judged_reaches_nothing(folder: Path) -> None:
    """A log that is too short is no healthy one."""
    code, text = report(folder, "run: short.csv, reaches: healthy")
    assert (code, "no leaf: the run was not judged" in text) == (1, True)


def test_a_log_that_can_not_be_read_is_no_failure_of_the_tree(folder: Path) -> None:
    """Exit code 2, unless another test failed; a link that leads out of the folder is not followed."""
    (folder / "inner").mkdir()
    (folder / "inner" / "link.csv").symlink_to(folder / "good.csv")
    code, text = report(folder, "run: none.csv, reaches: healthy", "run: good.csv, reaches: healthy")
    assert (code, "there is no such file" in text, "1 passed, 1 not read" in text) == (2, True, True)
    assert report(folder, "run: none.csv, reaches: healthy", "run: good.csv, reaches: stop")[0] == 1
    tree = TREE + "  - {run: link.csv, reaches: healthy}\n"
    (folder / "inner" / "house.yaml").write_text(tree, encoding="utf-8")
    done = run("tree", "test", str(folder / "inner" / "house.yaml"))
    assert (done.returncode, "leads out of the tree's folder" in done.stdout) == (2, True)


@pytest.mark.parametrize(
    ("test", "mistake"),
    [
        ("run: ../good.csv, reaches: stop", "t.yaml:18: the test of '../good.csv' leads out of the tree's folder"),
        ("run: /etc/passwd, reaches: stop", "leads out of the tree's folder"),
        ("run: a.csv, reaches: stpo", "expects 'stpo', which is not a leaf; did you mean 'stop'?"),
        (
            "run: a.csv, reaches: stop, answers: {HH1: yes}",
            "answers 'HH1', which is not a question; did you mean 'H1'?",
        ),
        (
            "run: a.csv, reaches: stop, answers: {H2: yse}",
            "answers H2 with 'yse', which is not an answer to it; did you",
        ),
        ("run: a.csv", "test lacks the key 'reaches'"),
        ("run: a.csv, reach: stop", "test has no key 'reach'; did you mean 'reaches'?"),
    ],
)
def test_a_mistake_in_a_test_is_one_of_the_tree(test: str, mistake: str) -> None:
    """With its line, before anything is read."""
    with pytest.raises(StabtreeError) as caught:
        build(f"{TREE}  - {{run: x.csv, reaches: stop}}\n  - {{{test}}}\n", "t.yaml")
    assert mistake in caught.value.problem


def test_a_tree_without_tests_says_how_to_write_one() -> None:
    """Nothing to run is no success."""
    assert "tests: [{run:" in failed("tree", "test", "phase19")
